/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/telemetry/energy.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/text/text.h"

enum { STEPS_LEAST = 3, AROUND_NS = 2000000000, SECOND_NS = 1000000000 };
#define IDLE_LOOK_NS 600000000000u /* before the window; a load of hours need not be searched */
#define GAP_MOST_S 1.5		   /* without a power reading, for an integral */

/*
 * A moment at which the counter took a value: after `early`, at or before `late` (seconds after the start of
 * the window). A polled counter moved between two readings.
 */
struct point {
	double early, late, joules;
};

struct points {
	struct point *point;
	size_t count;
	double period_s; /* median of the times between steps */
	double most_w;	 /* no power above it was seen */
};

static double at(const struct series *s, size_t i, uint64_t t0_ns)
{
	return ((double)s->t_ns[i] - (double)t0_ns) * 1e-9;
}

static void unknown(struct energy *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void unknown(struct energy *e, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(e->why, sizeof(e->why), format, list);
	va_end(list);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median time between steps. 0: fewer than STEPS_LEAST steps, or no memory. */
static double period_of(const struct point *point, size_t count)
{
	double *gap = count >= STEPS_LEAST ? malloc((count - 1) * sizeof(*gap)) : NULL, period = 0;

	if (!gap)
		return 0;
	for (size_t i = 1; i < count; i++)
		gap[i - 1] = point[i].late - point[i - 1].late;
	qsort(gap, count - 1, sizeof(*gap), by_value);
	period = gap[(count - 1) / 2];
	free(gap);
	return period;
}

/* The highest power that the steps show. A step that was noticed late makes the next time between steps
 * short, so no time counts as shorter than the period. */
static double most_power(const struct points *p)
{
	double most = 0;

	for (size_t i = 1; i < p->count; i++) {
		double gap = fmax(p->point[i].late - p->point[i - 1].late, p->period_s);

		if (gap > 0)
			most = fmax(most, (p->point[i].joules - p->point[i - 1].joules) / gap);
	}
	return most;
}

/* Collects the counter's steps of the readings [from, to). The first reading is a step at an unknown time up
 * to one period before. All times may be off by `off` seconds. False: no memory, or too few steps. */
static bool collect(struct points *p, const struct series *s, size_t from, size_t to, uint64_t t0_ns,
		    double off)
{
	p->point = calloc(to - from, sizeof(*p->point));
	if (!p->point)
		return false;
	for (size_t i = from; i < to; i++) {
		if (i > from && !(s->value[i] > s->value[i - 1]))
			continue;
		p->point[p->count++] = (struct point){.early = at(s, i > from ? i - 1 : i, t0_ns),
						      .late = at(s, i, t0_ns),
						      .joules = s->value[i]};
	}
	p->period_s = period_of(p->point, p->count);
	p->point[0].early -= p->period_s;
	p->most_w = most_power(p);
	for (size_t i = 0; i < p->count; i++) {
		p->point[i].early -= off;
		p->point[i].late += off;
	}
	return p->period_s > 0;
}

static double middle(const struct point *p)
{
	return 0.5 * (p->early + p->late);
}

/* The counter at time t on the line through the two steps around it, or through the nearest two. */
static double on_line(const struct points *p, double t)
{
	const struct point *a, *b;
	size_t i = 1;
	double length;

	while (i + 1 < p->count && middle(&p->point[i]) < t)
		i++;
	a = &p->point[i - 1];
	b = &p->point[i];
	length = middle(b) - middle(a);
	return a->joules + (length > 0 ? (b->joules - a->joules) * (t - middle(a)) / length : 0);
}

/*
 * The counter at time t with its error. Each step bounds it: energy only grows, and no faster than most_w.
 * Under a constant load all bounds meet near the line; where the power changes they are apart.
 */
static double counter_at(const struct points *p, double t, double *error)
{
	double low = -INFINITY, high = INFINITY, value = on_line(p, t);

	for (size_t i = 0; i < p->count; i++) {
		const struct point *x = &p->point[i];

		low = fmax(low, x->joules - p->most_w * fmax(0, x->late - t));
		high = fmin(high, x->joules + p->most_w * fmax(0, t - x->early));
	}
	if (low > high) { /* the device drew more for a moment than any reading shows */
		*error = 0.5 * (low - high);
		return 0.5 * (low + high);
	}
	value = fmin(fmax(value, low), high);
	*error = fmax(high - value, value - low);
	return value;
}

/* The readings [*from, *to) of the window and those up to AROUND_NS beside it, without a part beyond a
 * decrease: that belongs to another count. */
static void around(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, size_t *from, size_t *to)
{
	*from = series_lower_bound(s, t0_ns);
	*to = series_lower_bound(s, t1_ns + 1);
	while (*from && s->t_ns[*from - 1] + AROUND_NS >= t0_ns &&
	       (*from == s->count || s->value[*from - 1] <= s->value[*from]))
		--*from;
	while (*to < s->count && s->t_ns[*to] <= t1_ns + AROUND_NS &&
	       (!*to || s->value[*to] >= s->value[*to - 1]))
		++*to;
}

/* The longest time in which the readings [from, to) did not change, as far as it touches the window. */
static double still_s(const struct series *s, size_t from, size_t to, uint64_t t0_ns, double length)
{
	double longest = 0, begun = at(s, from, t0_ns);

	for (size_t i = from + 1; i < to; i++) {
		double now = at(s, i, t0_ns);

		if (s->value[i] > s->value[i - 1])
			begun = now;
		if (now >= 0 && begun <= length)
			longest = fmax(longest, now - begun);
	}
	return longest;
}

/* Whether the counter did not decrease and did not stop. */
static bool sound(struct energy *e, const struct series *s, size_t from, size_t to, uint64_t t0_ns,
		  double length)
{
	double still;

	for (size_t i = from + 1; i < to; i++)
		if (s->value[i] < s->value[i - 1]) {
			unknown(e, "the energy counter ran backwards or wrapped, from %.1f J to %.1f J",
				s->value[i - 1], s->value[i]);
			return false;
		}
	still = still_s(s, from, to, t0_ns, length);
	if (still >= SERIES_STUCK_S)
		unknown(e, "the energy counter stood still for %.1f s", still);
	return still < SERIES_STUCK_S;
}

/* Whether the counter's steps reach both ends of the window. */
static bool reaches(struct energy *e, const struct points *p, double length)
{
	double begin = p->point[0].late, end = length - p->point[p->count - 1].late;

	if (begin > 2 * p->period_s)
		unknown(e, "the energy counter was first read %.2f s after the start of the window", begin);
	else if (end > 2 * p->period_s)
		unknown(e, "the energy counter last moved %.2f s before the end of the window", end);
	return begin <= 2 * p->period_s && end <= 2 * p->period_s;
}

static void take_difference(struct energy *e, const struct points *p, double length)
{
	double error0, error1, begin = counter_at(p, 0, &error0), end = counter_at(p, length, &error1);

	for (size_t i = 1; i < p->count; i++)
		e->steps += p->point[i].late > 0 && p->point[i].late <= length;
	e->joules = end - begin;
	e->error_j = error0 + error1;
	e->known = e->joules > 0 && e->error_j <= ENERGY_ERROR_SHARE_MOST * e->joules;
	if (!e->known)
		unknown(e, "the window of %.2f s is too short for an energy counter that moves every %.2f s",
			length, p->period_s);
}

/* The highest power reading from AROUND_NS before the window to AROUND_NS after it. */
static double highest(const struct series *power, uint64_t t0_ns, uint64_t t1_ns)
{
	size_t i = power ? series_lower_bound(power, t0_ns > AROUND_NS ? t0_ns - AROUND_NS : 0) : 0;
	double most = 0;

	for (; power && i < power->count && power->t_ns[i] <= t1_ns + AROUND_NS; i++)
		most = fmax(most, power->value[i]);
	return most;
}

static void count_energy(struct energy *e, const struct series *counter, const struct series *power,
			 uint64_t t0_ns, uint64_t t1_ns, double off)
{
	const double length = (double)(t1_ns - t0_ns) * 1e-9;
	struct points p = {0};
	size_t from, to;

	around(counter, t0_ns, t1_ns, &from, &to);
	if (to <= from) {
		unknown(e, "the energy counter has no reading near the window");
		return;
	}
	if (!sound(e, counter, from, to, t0_ns, length))
		return;
	if (!collect(&p, counter, from, to, t0_ns, off)) {
		unknown(e, "the energy counter moved fewer than %d times near the window of %.2f s",
			STEPS_LEAST, length);
	} else if (reaches(e, &p, length)) {
		e->period_s = p.period_s;
		p.most_w = fmax(p.most_w, highest(power, t0_ns, t1_ns));
		take_difference(e, &p, length);
	}
	free(p.point);
}

static void compare(struct energy *e)
{
	e->disagrees = e->known && e->integrated &&
		       fabs(e->integral_j - e->joules) > ENERGY_DISAGREE_SHARE * e->joules;
}

/* The lowest mean of one whole second before the window. */
static void find_idle(struct energy *e, const struct series *power, uint64_t t0_ns)
{
	size_t i = series_lower_bound(power, t0_ns > IDLE_LOOK_NS ? t0_ns - IDLE_LOOK_NS : 0);

	for (; i < power->count && power->t_ns[i] + SECOND_NS <= t0_ns; i++) {
		struct span span;

		if (series_over(power, power->t_ns[i], power->t_ns[i] + SECOND_NS, &span) ||
		    span.readings < 2 || span.gap_s > GAP_MOST_S / 2)
			continue;
		e->idle_w = e->idle_known ? fmin(e->idle_w, span.mean) : span.mean;
		e->idle_known = true;
	}
}

void energy_of_window(struct energy *out, const struct series *counter, const struct series *power,
		      uint64_t t0_ns, uint64_t t1_ns, double clock_error_s)
{
	struct span span;

	*out = (struct energy){.devices = 1};
	if (t1_ns <= t0_ns)
		unknown(out, "the window is empty");
	else if (!counter || !counter->count)
		unknown(out, "the device has no energy counter, or it was not read");
	else
		count_energy(out, counter, power, t0_ns, t1_ns, clock_error_s);
	if (!power || t1_ns <= t0_ns)
		return;
	if (!series_over(power, t0_ns, t1_ns, &span) && span.gap_s <= GAP_MOST_S) {
		out->integrated = true;
		out->integral_j = span.mean * (double)(t1_ns - t0_ns) * 1e-9;
	}
	find_idle(out, power, t0_ns);
	compare(out);
}

void energy_add(struct energy *sum, const struct energy *one)
{
	if (!sum->devices) {
		*sum = *one;
		return;
	}
	if (!sum->why[0])
		text_copy(sum->why, sizeof(sum->why), one->why);
	sum->known = sum->known && one->known;
	sum->joules += one->joules;
	sum->error_j += one->error_j;
	sum->integrated = sum->integrated && one->integrated;
	sum->integral_j += one->integral_j;
	sum->idle_known = sum->idle_known && one->idle_known;
	sum->idle_w += one->idle_w;
	sum->period_s = fmax(sum->period_s, one->period_s);
	sum->steps = one->steps < sum->steps ? one->steps : sum->steps;
	sum->devices += one->devices;
	compare(sum);
}
