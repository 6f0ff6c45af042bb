/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/window.h"
#include <math.h>
#include <stdlib.h>

static int compare_due(const void *a, const void *b)
{
	const struct load_record *x = *(const struct load_record *const *)a;
	const struct load_record *y = *(const struct load_record *const *)b;

	if (x->scheduled_ns != y->scheduled_ns)
		return x->scheduled_ns < y->scheduled_ns ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

bool load_window_holds(const struct load_window *w, uint64_t at_ns)
{
	return at_ns >= w->spec->from_ns && at_ns < w->spec->to_ns;
}

static double tokens_per_chunk(const struct load_records *all)
{
	double tokens = 0, chunks = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct load_record *r = &all->record[i];
		const int64_t known = load_output_tokens(r);

		if (!load_is_answered(r) || known == LOAD_UNKNOWN || !r->chunks)
			continue;
		tokens += (double)known;
		chunks += r->chunks;
	}
	return chunks > 0 ? tokens / chunks : 1;
}

bool load_window_open(struct load_window *w, const struct load_records *all,
		      const struct load_measure_spec *spec)
{
	*w = (struct load_window){.all = all, .spec = spec, .tokens_per_chunk = tokens_per_chunk(all)};
	if (spec->to_ns > spec->from_ns)
		w->length_s = 1e-9 * (double)(spec->to_ns - spec->from_ns);
	w->due = malloc((all->count + 1) * sizeof(*w->due));
	if (!w->due)
		return false;
	for (size_t i = 0; i < all->count; i++)
		if (load_window_holds(w, all->record[i].scheduled_ns))
			w->due[w->count++] = &all->record[i];
	qsort(w->due, w->count, sizeof(*w->due), compare_due);
	return true;
}

void load_window_close(struct load_window *w)
{
	free(w->due);
	*w = (struct load_window){0};
}

int64_t load_output_tokens(const struct load_record *r)
{
	return r->output_usage >= 0 ? r->output_usage : r->output_counted;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns == LOAD_NEVER || to_ns == LOAD_NEVER)
		return (double)NAN;
	return to_ns >= from_ns ? 1e-9 * (double)(to_ns - from_ns) : -1e-9 * (double)(from_ns - to_ns);
}

/* The time to connect is the network's and the server's, not the client's. */
static double lag(const struct load_record *r)
{
	const double connect_s = seconds(r->handed_ns, r->connected_ns);

	if (r->sent_ns == LOAD_NEVER || isnan(connect_s))
		return seconds(r->scheduled_ns, r->handed_ns);
	return seconds(r->scheduled_ns, r->sent_ns) - connect_s;
}

static double tpot(const struct load_record *r)
{
	const int64_t tokens = load_output_tokens(r);

	return tokens < 2 || !r->chunks ? (double)NAN
					: seconds(r->first_token_ns, r->last_token_ns) / (double)(tokens - 1);
}

double load_latency_of(const struct load_record *r, enum load_latency kind)
{
	if (kind == LOAD_LAG)
		return lag(r);
	if (!load_is_answered(r))
		return (double)NAN;
	switch (kind) {
	case LOAD_TTFT:
		return seconds(r->scheduled_ns, r->first_token_ns);
	case LOAD_TTFT_SEND:
		return seconds(r->sent_ns, r->first_token_ns);
	case LOAD_TPOT:
		return tpot(r);
	case LOAD_E2E:
		return seconds(r->scheduled_ns, r->end_ns);
	case LOAD_E2E_SEND:
		return seconds(r->sent_ns, r->end_ns);
	default:
		return (double)NAN;
	}
}

bool load_series_add(struct load_series *s, double x)
{
	if (s->count == s->room) {
		const size_t room = s->room ? 2 * s->room : 1024;
		double *more = realloc(s->x, room * sizeof(*more));

		if (!more)
			return false;
		s->x = more;
		s->room = room;
	}
	s->x[s->count++] = x;
	return true;
}

void load_series_release(struct load_series *s)
{
	free(s->x);
	*s = (struct load_series){0};
}

bool load_window_latencies(struct load_series *s, const struct load_window *w, enum load_latency kind)
{
	for (size_t i = 0; i < w->count; i++) {
		const double x = load_latency_of(w->due[i], kind);

		if (isfinite(x) && !load_series_add(s, x))
			return false;
	}
	return true;
}

void load_put(json_t *out, const char *name, double value)
{
	if (isfinite(value))
		json_object_set_new(out, name, json_real(value));
}
