/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time over size as latency and bandwidth, t = a + x / b, in stretches: a library changes algorithm or
 * protocol with the size, and each has its own line. Pure. METHODS, "Collectives".
 */
#ifndef JUDGE_GAP_LATENCY_FIT_H
#define JUDGE_GAP_LATENCY_FIT_H
#include <stdbool.h>
#include <stddef.h>

enum { LATENCY_FIT_POINTS = 64, LATENCY_FIT_SPANS = 6, LATENCY_FIT_LEAST = 3 /* points of a line */ };

struct latency_fit_point { /* growing in x, each x once */
	double x;	   /* bytes over the busiest link: size times the bus factor */
	double ns;
	const char *way; /* algorithm and protocol where they were told; NULL: not. Lent */
};

struct latency_fit_line {
	size_t first, count;		 /* of the points */
	double latency_ns, latency_half; /* 95 %, in ns; 0: as many points as unknowns */
	double rate, rate_half;		 /* x a ns: GB/s for bytes; 95 %, likewise */
	double worst;			 /* largest share by which a point is off */
};

/* Between the last point of a line and the first of the next. */
struct latency_fit_switch {
	double from, to; /* x */
	double at;	 /* where the lines cross; 0: not between the two */
};

struct latency_fit {
	struct latency_fit_line line[LATENCY_FIT_SPANS];
	struct latency_fit_switch change[LATENCY_FIT_SPANS];
	size_t lines; /* 0: too few points; changes are one less */
	bool told;    /* lines begin where the way that was told changes */
};

void latency_fit_of(const struct latency_fit_point *point, size_t count, struct latency_fit *out);
/* Latency that one line through all points but those of `x` has: for the gap of the case there. 0: none. */
double latency_fit_latency_without(const struct latency_fit_point *point, size_t count, double x);
#endif
