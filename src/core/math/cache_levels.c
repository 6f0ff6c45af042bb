/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/cache_levels.h"
#include <math.h>
#include <stdbool.h>

/* Minimum reduction of the squared error of ln y that justifies one more level, or one more ramp between
 * two levels. A ramp doubles y within less than three doublings of x; a flatter slope counts as part of a
 * level. */
#define LEVEL_COST 0.015
#define RAMP_COST 0.03
#define RAMP_SLOPE 0.35
#define LEVEL_RATIO 1.15

enum { SEGMENTS_MAX = 24 };

struct sums { /* sums over the first i points; u = ln x, v = ln y */
	double u, v, uu, uv, vv;
};

struct fit {
	size_t count;
	struct sums upto[LEVELS_POINTS_MAX + 1];
	double cost[LEVELS_POINTS_MAX + 1]; /* lowest cost for the first i points */
	size_t from[LEVELS_POINTS_MAX + 1]; /* first point of its last segment */
	bool ramp[LEVELS_POINTS_MAX + 1];   /* true if that segment is a ramp */
};

struct segment {
	size_t first, last; /* points [first, last) */
	double mean;	    /* mean of ln y */
	bool ramp;
};

/* Moments of the points [first, last) about their means. Needs last > first. */
static struct sums moments(const struct fit *f, size_t first, size_t last)
{
	const struct sums *a = &f->upto[first], *b = &f->upto[last];
	double n = (double)(last - first), u = (b->u - a->u) / n, v = (b->v - a->v) / n;

	return (struct sums){.u = u,
			     .v = v,
			     .uu = fmax(0, b->uu - a->uu - n * u * u),
			     .uv = b->uv - a->uv - n * u * v,
			     .vv = fmax(0, b->vv - a->vv - n * v * v)};
}

static double mean_of(const struct fit *f, size_t first, size_t last)
{
	return moments(f, first, last).v;
}

static bool fit_begin(struct fit *f, const double *x, const double *y, size_t count)
{
	if (!count || count > LEVELS_POINTS_MAX)
		return false;
	*f = (struct fit){.count = count};
	for (size_t i = 0; i < count; i++) {
		double u = log(x[i] / x[0]), v = log(y[i]);
		const struct sums *s = &f->upto[i];

		if (!(x[i] > 0) || !isfinite(x[i]) || !(y[i] > 0) || !isfinite(y[i]) ||
		    (i && !(x[i] > x[i - 1])))
			return false;
		f->upto[i + 1] =
			(struct sums){s->u + u, s->v + v, s->uu + u * u, s->uv + u * v, s->vv + v * v};
	}
	return true;
}

static void offer(struct fit *f, size_t first, size_t last, double cost, bool ramp)
{
	cost += f->cost[first];
	if (!(cost < f->cost[last]))
		return;
	f->cost[last] = cost;
	f->from[last] = first;
	f->ramp[last] = ramp;
}

/* Finds the split into levels and ramps with the smallest squared error plus cost, over all possible
 * splits. */
static void fit_split(struct fit *f)
{
	for (size_t last = 1; last <= f->count; last++) {
		f->cost[last] = INFINITY;
		for (size_t first = 0; first < last; first++) {
			struct sums m = moments(f, first, last);
			double slope = m.uu > 0 ? m.uv / m.uu : 0;

			offer(f, first, last, m.vv + LEVEL_COST, false);
			if (last - first >= 3 && fabs(slope) >= RAMP_SLOPE)
				offer(f, first, last, fmax(0, m.vv - slope * m.uv) + RAMP_COST, true);
		}
	}
}

/* Lists the segments in order of x. Returns 0 if there are more than SEGMENTS_MAX: such a curve has no
 * levels. */
static size_t segments_of(const struct fit *f, struct segment *s)
{
	size_t count = 0;

	for (size_t last = f->count; last; last = f->from[last])
		count++;
	if (count > SEGMENTS_MAX)
		return 0;
	for (size_t last = f->count, i = count; last; last = f->from[last])
		s[--i] =
			(struct segment){f->from[last], last, mean_of(f, f->from[last], last), f->ramp[last]};
	return count;
}

static void drop(struct segment *s, size_t *count, size_t at)
{
	for (size_t i = at; i + 1 < *count; i++)
		s[i] = s[i + 1];
	(*count)--;
}

/* Removes ramps and single points between two levels, which belong to neither level. */
static void drop_steps(struct segment *s, size_t *count)
{
	for (size_t i = 0; i < *count;)
		if (s[i].ramp)
			drop(s, count, i);
		else
			i++;
	for (size_t i = 1; i + 1 < *count;) {
		bool single = s[i].last - s[i].first == 1;
		bool between = (s[i].mean - s[i - 1].mean) * (s[i + 1].mean - s[i].mean) > 0;

		if (single && between)
			drop(s, count, i);
		else
			i++;
	}
}

/* Joins neighbouring levels whose values hardly differ. */
static void join_close(const struct fit *f, struct segment *s, size_t *count)
{
	for (size_t i = 1; i < *count;) {
		if (fabs(s[i].mean - s[i - 1].mean) >= log(LEVEL_RATIO)) {
			i++;
			continue;
		}
		s[i - 1].last = s[i].last;
		s[i - 1].mean = mean_of(f, s[i - 1].first, s[i - 1].last);
		drop(s, count, i);
	}
}

/* The x at which ln y crosses the middle between two levels. It lies between the last point of one level
 * and the first point of the next. */
static double crossing(const double *x, const double *y, const struct segment *a, const struct segment *b)
{
	double middle = (a->mean + b->mean) / 2;

	for (size_t i = a->last; i <= b->first; i++) {
		double y0 = log(y[i - 1]), y1 = log(y[i]);

		if ((y0 - middle) * (y1 - middle) <= 0 && y0 != y1) {
			double share = (middle - y0) / (y1 - y0);

			return exp(log(x[i - 1]) + share * (log(x[i]) - log(x[i - 1])));
		}
	}
	return sqrt(x[a->last - 1] * x[b->first]);
}

size_t levels_of(const double *x, const double *y, size_t count, struct level *out, size_t room)
{
	struct segment s[SEGMENTS_MAX];
	struct fit f;
	size_t n;

	if (!fit_begin(&f, x, y, count))
		return 0;
	fit_split(&f);
	n = segments_of(&f, s);
	drop_steps(s, &n);
	join_close(&f, s, &n);
	if (n > room || n > LEVELS_MAX)
		return 0;
	for (size_t i = 0; i < n; i++)
		out[i] = (struct level){
			.value = exp(s[i].mean),
			.end = i + 1 < n ? crossing(x, y, &s[i], &s[i + 1]) : INFINITY,
			.first = s[i].first,
			.points = s[i].last - s[i].first,
		};
	return n;
}
