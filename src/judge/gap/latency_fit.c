/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/gap/latency_fit.h"
#include <math.h>
#include <string.h>

/* A further line must explain more than noise does: docs/explanation/methods/collectives.md, "Curve and
 * switch points". */
#define NOISE 0.01 /* relative error of points from noise */
/* Price of a line in logarithms of the number of points: two unknowns and a position. */
#define LINE_PRICE 3.0

/* Least squares of the relative error: the weights are 1 / t^2. */
struct sums {
	double w, x, xx, t, xt;
};

static struct sums sum_up(const struct latency_fit_point *p, size_t count)
{
	struct sums s = {0};

	for (size_t i = 0; i < count; i++) {
		double w = 1 / (p[i].ns * p[i].ns);

		s.w += w;
		s.x += w * p[i].x;
		s.xx += w * p[i].x * p[i].x;
		s.t += w * p[i].ns;
		s.xt += w * p[i].x * p[i].ns;
	}
	return s;
}

/* Sum of squares of relative errors around t = a + b x. */
static double misfit(const struct latency_fit_point *p, size_t count, double a, double b, double *worst)
{
	double sum = 0;

	*worst = 0;
	for (size_t i = 0; i < count; i++) {
		double off = (p[i].ns - a - b * p[i].x) / p[i].ns;

		sum += off * off;
		*worst = fabs(off) > *worst ? fabs(off) : *worst;
	}
	return sum;
}

/* 97.5 % point of Student's t. */
static double student(size_t freedom)
{
	static const double t[] = {12.7, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};

	return freedom == 0 ? 0 : freedom <= 10 ? t[freedom - 1] : 1.96 + 2.5 / (double)freedom;
}

/* Latency is never negative, and time never falls with size. A line that breaks this is replaced by the best
 * one that does not. */
static double line_through(const struct latency_fit_point *p, size_t count, struct latency_fit_line *out)
{
	struct sums s = sum_up(p, count);
	double det = s.w * s.xx - s.x * s.x, a = 0, b = 0, sum, variance, half;
	size_t freedom = count > 2 ? count - 2 : 0;

	*out = (struct latency_fit_line){.count = count};
	if (det > 0) {
		b = (s.w * s.xt - s.x * s.t) / det;
		a = (s.t - b * s.x) / s.w;
	}
	if (b <= 0) {
		b = 0;
		a = s.t / s.w;
	}
	if (a < 0) {
		a = 0;
		b = s.xt / s.xx;
	}
	sum = misfit(p, count, a, b, &out->worst);
	out->latency_ns = a;
	out->rate = b > 0 ? 1 / b : 0;
	if (!freedom || !(det > 0))
		return sum;
	variance = sum / (double)freedom;
	half = student(freedom);
	out->latency_half = half * sqrt(variance * s.xx / det);
	out->rate_half = b > 0 ? half * sqrt(variance * s.w / det) / (b * b) : 0;
	return sum;
}

static bool same_way(const struct latency_fit_point *a, const struct latency_fit_point *b)
{
	return a->way && b->way && !strcmp(a->way, b->way);
}

static bool all_told(const struct latency_fit_point *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!p[i].way)
			return false;
	return count > 0;
}

/* Fits one line for each reported way. A way with only one or two points gets no line, and its points are
 * left out. */
static bool by_way(const struct latency_fit_point *p, size_t count, struct latency_fit *out)
{
	size_t first = 0;

	out->told = true;
	for (size_t i = 1; i <= count; i++) {
		if (i < count && same_way(&p[i - 1], &p[i]))
			continue;
		if (i - first >= LATENCY_FIT_LEAST) {
			if (out->lines == LATENCY_FIT_SPANS)
				return false;
			line_through(p + first, i - first, &out->line[out->lines]);
			out->line[out->lines++].first = first;
		}
		first = i;
	}
	return out->lines > 0;
}

/* Finds the partition with the lowest cost, by dynamic programming. The cost is the misfit relative to noise
 * plus a price for each line. */
static void by_shape(const struct latency_fit_point *p, size_t count, struct latency_fit *out)
{
	double cost[LATENCY_FIT_SPANS + 1][LATENCY_FIT_POINTS + 1], best = INFINITY;
	size_t from[LATENCY_FIT_SPANS + 1][LATENCY_FIT_POINTS + 1], lines = 0;
	struct latency_fit_line line;

	for (size_t k = 0; k <= LATENCY_FIT_SPANS; k++)
		for (size_t i = 0; i <= count; i++)
			cost[k][i] = k || i ? INFINITY : 0;
	for (size_t k = 1; k <= LATENCY_FIT_SPANS; k++)
		for (size_t i = k * LATENCY_FIT_LEAST; i <= count; i++)
			for (size_t j = (k - 1) * LATENCY_FIT_LEAST; j + LATENCY_FIT_LEAST <= i; j++) {
				double c = cost[k - 1][j];

				if (!isfinite(c))
					continue;
				c += line_through(p + j, i - j, &line) / (NOISE * NOISE);
				if (c < cost[k][i]) {
					cost[k][i] = c;
					from[k][i] = j;
				}
			}
	for (size_t k = 1; k <= LATENCY_FIT_SPANS; k++) {
		double c = cost[k][count] + LINE_PRICE * (double)k * log((double)count);

		if (c < best) {
			best = c;
			lines = k;
		}
	}
	out->lines = lines;
	for (size_t k = lines, end = count; k > 0; end = from[k][end], k--) {
		size_t first = from[k][end];

		line_through(p + first, end - first, &out->line[k - 1]);
		out->line[k - 1].first = first;
	}
}

static struct latency_fit_switch between(const struct latency_fit_point *p, const struct latency_fit_line *a,
					 const struct latency_fit_line *b)
{
	struct latency_fit_switch s = {.from = p[a->first + a->count - 1].x, .to = p[b->first].x};
	double slope = (a->rate > 0 ? 1 / a->rate : 0) - (b->rate > 0 ? 1 / b->rate : 0),
	       at = slope > 0 ? (b->latency_ns - a->latency_ns) / slope : 0;

	if (at >= s.from && at <= s.to)
		s.at = at;
	return s;
}

void latency_fit_of(const struct latency_fit_point *point, size_t count, struct latency_fit *out)
{
	*out = (struct latency_fit){0};
	if (count > LATENCY_FIT_POINTS)
		count = LATENCY_FIT_POINTS;
	if (count < LATENCY_FIT_LEAST)
		return;
	if (!all_told(point, count) || !by_way(point, count, out)) {
		*out = (struct latency_fit){0};
		by_shape(point, count, out);
	}
	for (size_t i = 1; i < out->lines; i++)
		out->change[i - 1] = between(point, &out->line[i - 1], &out->line[i]);
}

double latency_fit_latency_without(const struct latency_fit_point *point, size_t count, double x)
{
	struct latency_fit_point other[LATENCY_FIT_POINTS];
	struct latency_fit_line line;
	size_t n = 0;

	for (size_t i = 0; i < count && n < LATENCY_FIT_POINTS; i++)
		if (point[i].x < x || point[i].x > x)
			other[n++] = point[i];
	if (n < 2)
		return 0;
	line_through(other, n, &line);
	return line.latency_ns;
}
