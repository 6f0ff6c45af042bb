/* SPDX-License-Identifier: Apache-2.0 */
/* Fits time over size as latency and bandwidth, t = a + x / b, in pieces: a library changes algorithm or
 * protocol with the size, and each has a line of its own. Pure. docs/explanation/methods/collectives.md,
 * "Curve and switch points". */
#ifndef JUDGE_GAP_LATENCY_FIT_H
#define JUDGE_GAP_LATENCY_FIT_H
#include <stdbool.h>
#include <stddef.h>

enum { LATENCY_FIT_POINTS = 64, LATENCY_FIT_SPANS = 6, LATENCY_FIT_LEAST = 3 /* fewest points of a line */ };

struct latency_fit_point { /* points are sorted by x, and each x occurs once */
	double x;	   /* bytes over the busiest link: size times the bus factor */
	double ns;
	const char
		*way; /* algorithm and protocol if they were reported, else NULL; the caller owns the text */
};

struct latency_fit_line {
	size_t first, count;		 /* indices of its points */
	double latency_ns, latency_half; /* latency in ns and its 95 % half-width; half-width 0: as many
					    points as unknowns */
	double rate, rate_half;		 /* x per ns (GB/s for bytes) and its 95 % half-width, likewise */
	double worst;			 /* largest relative error of a point */
};

/* The change between the last point of a line and the first point of the next. */
struct latency_fit_switch {
	double from, to; /* the two x */
	double at;	 /* x at which the lines cross; 0: not between the two points */
};

struct latency_fit {
	struct latency_fit_line line[LATENCY_FIT_SPANS];
	struct latency_fit_switch change[LATENCY_FIT_SPANS];
	size_t lines; /* 0: too few points; there is one change fewer than lines */
	bool told;    /* a new line begins where the reported way changes */
};

void latency_fit_of(const struct latency_fit_point *point, size_t count, struct latency_fit *out);
/* Latency of one line through all points except the one at `x`, for the gap of the case at `x`. 0: not enough
 * points. */
double latency_fit_latency_without(const struct latency_fit_point *point, size_t count, double x);
#endif
