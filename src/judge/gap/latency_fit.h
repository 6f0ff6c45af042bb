/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time over size as latency and bandwidth, t = a + x / b, in stretches: a library changes algorithm or
 * protocol with the size, and each has its own line. Pure. METHODS, "Collectives".
 */
#ifndef JUDGE_FIT_H
#define JUDGE_FIT_H
#include <stdbool.h>
#include <stddef.h>

enum { FIT_POINTS = 64, FIT_SPANS = 6, FIT_LEAST = 3 /* points of a line */ };

struct fit_point { /* growing in x, each x once */
	double x;  /* bytes over the busiest link: size times the bus factor */
	double ns;
	const char *way; /* algorithm and protocol where they were told; NULL: not. Lent */
};

struct fit_line {
	size_t first, count;		 /* of the points */
	double latency_ns, latency_half; /* 95 %, in ns; 0: as many points as unknowns */
	double rate, rate_half;		 /* x a ns: GB/s for bytes; 95 %, likewise */
	double worst;			 /* largest share by which a point is off */
};

/* Between the last point of a line and the first of the next. */
struct fit_switch {
	double from, to; /* x */
	double at;	 /* where the lines cross; 0: not between the two */
};

struct fit {
	struct fit_line line[FIT_SPANS];
	struct fit_switch change[FIT_SPANS];
	size_t lines; /* 0: too few points; changes are one less */
	bool told;    /* lines begin where the way that was told changes */
};

void fit_of(const struct fit_point *point, size_t count, struct fit *out);
/* Latency that one line through all points but those of `x` has: for the gap of the case there. 0: none. */
double fit_latency_without(const struct fit_point *point, size_t count, double x);
#endif
