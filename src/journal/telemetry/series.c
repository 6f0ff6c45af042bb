/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas: docs/explanation/methods/measuring.md, "Telemetry values of a window". */
#include "journal/telemetry/series.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "core/math/plausible_range.h"
#include "core/text/text.h"

static const char *const kind_names[] = {[SIGNAL_GAUGE] = "gauge",
					 [SIGNAL_COUNTER] = "counter",
					 [SIGNAL_BITS] = "bits",
					 [SIGNAL_EVENT] = "event"};

const char *signal_kind_name(enum signal_kind kind)
{
	return kind_names[kind];
}

bool signal_kind_from_name(const char *name, enum signal_kind *kind)
{
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
		if (!strcmp(name, kind_names[i])) {
			*kind = (enum signal_kind)i;
			return true;
		}
	return false;
}

static bool fits(const char *name, size_t size)
{
	return name && *name && strlen(name) < size;
}

enum status series_find(struct series **out, struct series **array, size_t *count, const char *source,
			const char *signal, enum signal_kind kind, struct error *err)
{
	struct series *grown, *s = NULL;

	*out = NULL;
	if (!fits(source, sizeof(s->source)) || !fits(signal, sizeof(s->signal)))
		return error_set(err, STATUS_BAD_INPUT, "a series needs a name of at most %zu bytes",
				 sizeof(s->signal) - 1);
	for (size_t i = 0; i < *count; i++)
		if (!strcmp((*array)[i].signal, signal) && !strcmp((*array)[i].source, source)) {
			*out = &(*array)[i];
			return STATUS_OK;
		}
	if (*count >= SERIES_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s %s: there are %d series already", source, signal,
				 SERIES_MAX);
	grown = realloc(*array, (*count + 1) * sizeof(*grown));
	if (!grown)
		return error_errno(err, ENOMEM, "%s %s: a series", source, signal);
	*array = grown;
	s = &grown[(*count)++];
	*s = (struct series){.kind = kind};
	text_copy(s->source, sizeof(s->source), source);
	text_copy(s->signal, sizeof(s->signal), signal);
	*out = s;
	return STATUS_OK;
}

enum status series_add(struct series *s, uint64_t t_ns, double value, struct error *err)
{
	if (!isfinite(value))
		return error_set(err, STATUS_BAD_INPUT, "%s %s: a reading is not a finite number", s->source,
				 s->signal);
	if (s->count && t_ns < s->t_ns[s->count - 1])
		return error_set(err, STATUS_BAD_INPUT, "%s %s: a reading is older than the one before it",
				 s->source, s->signal);
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		uint64_t *t = realloc(s->t_ns, room * sizeof(*t));
		double *v;

		if (t)
			s->t_ns = t;
		v = t ? realloc(s->value, room * sizeof(*v)) : NULL;
		if (!v)
			return error_errno(err, ENOMEM, "%s %s: %zu readings", s->source, s->signal, room);
		s->value = v;
		s->room = room;
	}
	s->t_ns[s->count] = t_ns;
	s->value[s->count++] = value;
	return STATUS_OK;
}

void series_release(struct series *s)
{
	free(s->t_ns);
	free(s->value);
	*s = (struct series){0};
}

size_t series_lower_bound(const struct series *s, uint64_t t_ns)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->t_ns[middle] < t_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

/* Trapezoid between readings. The first and last reading extend to the window's edges, because readings
 * outside belong to other work. */
static double mean_over(const struct series *s, size_t from, size_t to, uint64_t t0, uint64_t t1)
{
	double sum =
		s->value[from] * seconds(t0, s->t_ns[from]) + s->value[to - 1] * seconds(s->t_ns[to - 1], t1);
	double plain = s->value[from];

	for (size_t i = from + 1; i < to; i++) {
		sum += 0.5 * (s->value[i - 1] + s->value[i]) * seconds(s->t_ns[i - 1], s->t_ns[i]);
		plain += s->value[i];
	}
	return t1 > t0 ? sum / seconds(t0, t1) : plain / (double)(to - from);
}

/*
 * A polled counter moves in steps. A step between two readings is placed at their midpoint, with an error of
 * half their distance. The rate is the count between the first step and the last over the time between them.
 */
static void counter_rate(const struct series *s, size_t from, size_t to, struct span *out)
{
	double t_first = 0, t_last = 0, v_first = 0, v_last = 0, slack_first = 0, slack_last = 0;

	for (size_t i = from + 1; i < to; i++) {
		double half = 0.5 * seconds(s->t_ns[i - 1], s->t_ns[i]);

		if (s->value[i] < s->value[i - 1])
			out->went_back = 1;
		if (s->value[i] == s->value[i - 1])
			continue;
		t_last = seconds(s->t_ns[from], s->t_ns[i]) - half;
		v_last = s->value[i];
		slack_last = half;
		if (!out->ticks++) {
			t_first = t_last;
			v_first = v_last;
			slack_first = half;
		}
	}
	if (out->went_back || out->ticks < 2 || t_last <= t_first)
		return;
	out->rate = (v_last - v_first) / (t_last - t_first);
	out->rate_error = out->rate * (slack_first + slack_last) / (t_last - t_first);
}

/* Statistics of the readings [from, to), all inside the window. */
static void span_of(const struct series *s, size_t from, size_t to, uint64_t t0_ns, uint64_t t1_ns,
		    struct span *out)
{
	uint64_t previous = t0_ns;

	for (size_t i = from; i < to; i++) {
		double v = s->value[i], gap = seconds(previous, s->t_ns[i]);
		uint64_t bits = s->kind == SIGNAL_BITS && v >= 0 && v < 9007199254740992.0 ? (uint64_t)v : 0;
		bool first = i == from;

		out->min = first ? v : fmin(out->min, v);
		out->max = first ? v : fmax(out->max, v);
		out->bits_or |= bits;
		out->bits_and = first ? bits : out->bits_and & bits;
		out->gap_s = fmax(out->gap_s, gap);
		previous = s->t_ns[i];
	}
	out->readings = (unsigned)(to - from);
	out->first = s->value[from];
	out->last = s->value[to - 1];
	out->gap_s = fmax(out->gap_s, seconds(previous, t1_ns));
	out->mean = mean_over(s, from, to, t0_ns, t1_ns);
	if (s->kind == SIGNAL_COUNTER)
		counter_rate(s, from, to, out);
}

static bool all_plausible(const struct series *s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (!plausible_under_load(s->signal, s->value[i]))
			return false;
	return true;
}

/* The same without impossible readings; UNAVAILABLE: none is left. */
static enum status span_of_plausible(const struct series *s, size_t from, size_t to, uint64_t t0_ns,
				     uint64_t t1_ns, struct span *out)
{
	struct series left = {.kind = s->kind};
	enum status st = STATUS_OK;

	for (size_t i = from; i < to && !st; i++)
		if (plausible_under_load(s->signal, s->value[i]))
			st = series_add(&left, s->t_ns[i], s->value[i], NULL);
	if (st || !left.count)
		st = STATUS_UNAVAILABLE;
	else
		span_of(&left, 0, left.count, t0_ns, t1_ns, out);
	series_release(&left);
	return st;
}

enum status series_over(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, struct span *out)
{
	size_t from = series_lower_bound(s, t0_ns), to = from;

	*out = (struct span){0};
	while (to < s->count && s->t_ns[to] <= t1_ns)
		to++;
	if (to == from)
		return STATUS_UNAVAILABLE;
	if (!all_plausible(s, from, to))
		return span_of_plausible(s, from, to, t0_ns, t1_ns, out);
	span_of(s, from, to, t0_ns, t1_ns, out);
	return STATUS_OK;
}

double series_still_s(const struct series *s, uint64_t t0_ns, uint64_t t1_ns)
{
	size_t first = series_lower_bound(s, t0_ns), i;
	double longest = 0;

	if (first == s->count)
		return 0;
	/* Back to the reading that first had the value at the window's start. */
	while (first && s->value[first - 1] <= s->value[first] && s->value[first - 1] >= s->value[first])
		first--;
	for (i = first + 1; i < s->count && s->t_ns[i] <= t1_ns; i++) {
		if (s->value[i] < s->value[first] || s->value[i] > s->value[first])
			first = i;
		longest = fmax(longest, seconds(s->t_ns[first], s->t_ns[i]));
	}
	return longest;
}

bool series_whole(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, uint64_t lag_ns, double *mean)
{
	double sum = 0, total = 0, length;
	size_t i;

	for (i = series_lower_bound(s, t0_ns + lag_ns) + 1; i < s->count && s->t_ns[i] <= t1_ns; i++) {
		length = seconds(s->t_ns[i - 1], s->t_ns[i]);
		sum += s->value[i] * length;
		total += length;
	}
	if (total > 0)
		*mean = sum / total;
	return total > 0;
}
