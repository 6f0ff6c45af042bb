/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/curves.h"
#include <math.h>
#include <stdlib.h>
#include "core/math/stats.h"
#include "load/measure/arrivals.h"

enum { P99_SAMPLES_LEAST = 100 };

struct span {
	uint64_t from_ns, to_ns;
	size_t parts;
	double part_s;
};

/* From the first schedule to the last end. */
static struct span span_of(const struct load_window *w)
{
	struct span s = {.from_ns = UINT64_MAX};
	double length_s;

	for (size_t i = 0; i < w->all->count; i++) {
		const struct load_record *r = &w->all->record[i];

		s.from_ns = r->scheduled_ns < s.from_ns ? r->scheduled_ns : s.from_ns;
		s.to_ns = r->end_ns != LOAD_NEVER && r->end_ns > s.to_ns ? r->end_ns : s.to_ns;
	}
	if (s.from_ns >= s.to_ns)
		return (struct span){0};
	length_s = 1e-9 * (double)(s.to_ns - s.from_ns);
	s.part_s = ceil(length_s / LOAD_CURVE_POINTS);
	s.parts = (size_t)ceil(length_s / s.part_s);
	s.to_ns = s.from_ns + (uint64_t)((double)s.parts * s.part_s * 1e9);
	return s;
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static bool put_list(json_t *curves, const char *name, const struct load_bins *b, double divisor)
{
	json_t *list = json_array();
	bool done = list != NULL;

	for (size_t i = 0; i < b->count && done; i++)
		done = !json_array_append_new(list, number(b->sum[i] / divisor));
	return !json_object_set_new(curves, name, list) && done;
}

/* A time with the part of the curve that it belongs to. */
struct placed {
	size_t part;
	double x;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *p = a, *q = b;

	if (p->part != q->part)
		return p->part < q->part ? -1 : 1;
	return (p->x > q->x) - (p->x < q->x);
}

static size_t place(struct placed *to, const struct load_window *w, const struct span *s,
		    enum load_latency kind)
{
	size_t count = 0;

	for (size_t i = 0; i < w->all->count; i++) {
		const struct load_record *r = &w->all->record[i];
		const double x = load_latency_of(r, kind);

		if (isnan(x))
			continue;
		to[count++] = (struct placed){
			(size_t)(1e-9 * (double)(r->scheduled_ns - s->from_ns) / s->part_s), x};
	}
	qsort(to, count, sizeof(*to), compare_placed);
	return count;
}

struct lists {
	json_t *p50, *p99, *most;
};

static bool add_part(const struct lists *l, const double *sorted, size_t count)
{
	return !json_array_append_new(l->p50, number(stats_percentile(sorted, count, 0.5))) &&
	       !json_array_append_new(l->p99, number(count < P99_SAMPLES_LEAST
							     ? (double)NAN
							     : stats_percentile(sorted, count, 0.99))) &&
	       !json_array_append_new(l->most, number(stats_percentile(sorted, count, 1)));
}

static bool set(json_t *curves, const char *name, const char *part, json_t *list)
{
	char key[32];

	snprintf(key, sizeof(key), "%s_%s_s", name, part);
	return !json_object_set_new(curves, key, list);
}

static bool put_times(json_t *curves, const char *name, const struct load_window *w, const struct span *s,
		      enum load_latency kind)
{
	struct lists l = {json_array(), json_array(), json_array()};
	struct placed *placed = malloc((w->all->count + 1) * sizeof(*placed));
	double *sorted = malloc((w->all->count + 1) * sizeof(*sorted));
	bool done = placed && sorted && l.p50 && l.p99 && l.most;
	size_t count = done ? place(placed, w, s, kind) : 0, at = 0;

	for (size_t part = 0; part < s->parts && done; part++) {
		size_t here = 0;

		while (at < count && placed[at].part == part)
			sorted[here++] = placed[at++].x;
		done = add_part(&l, sorted, here);
	}
	free(placed);
	free(sorted);
	done = set(curves, name, "p50", l.p50) && done;
	done = set(curves, name, "p99", l.p99) && done;
	return set(curves, name, "max", l.most) && done;
}

static bool put_counts(json_t *curves, const struct load_window *w, const struct span *s)
{
	struct load_bins flight = {0}, tokens = {0}, due = {0}, errors = {0};
	bool done = load_bins_open(&flight, s->from_ns, s->to_ns, s->parts) &&
		    load_bins_open(&tokens, s->from_ns, s->to_ns, s->parts) &&
		    load_bins_open(&due, s->from_ns, s->to_ns, s->parts) &&
		    load_bins_open(&errors, s->from_ns, s->to_ns, s->parts);

	for (size_t i = 0; i < w->all->count && done; i++) {
		const struct load_record *r = &w->all->record[i];

		load_bins_add_flight(&flight, r);
		load_bins_add_output(&tokens, r, w->tokens_per_chunk);
		load_bins_add(&due, r->scheduled_ns, 1);
		load_bins_add(&errors, r->end_ns,
			      r->error != LOAD_ERROR_NONE && r->error != LOAD_ERROR_CANCELLED);
	}
	done = done && put_list(curves, "in_flight", &flight, s->part_s) &&
	       put_list(curves, "output_tokens_per_s", &tokens, s->part_s) &&
	       put_list(curves, "due_per_s", &due, s->part_s) && put_list(curves, "errors", &errors, 1);
	free(flight.sum);
	free(tokens.sum);
	free(due.sum);
	free(errors.sum);
	return done;
}

static bool put_middles(json_t *curves, const struct span *s)
{
	json_t *list = json_array();
	bool done = list != NULL;

	for (size_t i = 0; i < s->parts && done; i++)
		done = !json_array_append_new(
			list, json_real(1e-9 * (double)s->from_ns + ((double)i + 0.5) * s->part_s));
	return !json_object_set_new(curves, "t_s", list) && done;
}

bool load_curves_put(json_t *curves, const struct load_window *w)
{
	const struct span s = span_of(w);

	if (!s.parts)
		return true;
	load_put(curves, "part_s", s.part_s);
	load_put(curves, "from_s", 1e-9 * (double)w->spec->from_ns);
	load_put(curves, "to_s", 1e-9 * (double)w->spec->to_ns);
	return put_middles(curves, &s) && put_times(curves, "ttft", w, &s, LOAD_TTFT) &&
	       put_times(curves, "e2e", w, &s, LOAD_E2E) && put_counts(curves, w, &s);
}
