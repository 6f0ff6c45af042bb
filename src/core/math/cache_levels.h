/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the levels of a curve: the sizes at which caches change a rate or a latency. Method and limits:
 * docs/explanation/methods/cpu-probes.md, "Cache levels". */
#ifndef CORE_MATH_CACHE_LEVELS_H
#define CORE_MATH_CACHE_LEVELS_H
#include <stddef.h>

struct level {
	double value; /* geometric mean of the level's points */
	double end; /* x where the next level begins: the curve crosses half way (on a log scale) between the
		     * two values; infinity for the last level */
	size_t first, points; /* first point and number of points on the level */
};

enum { LEVELS_MAX = 6, LEVELS_POINTS_MAX = 256 };

/*
 * Splits the points (x[i], y[i]) into levels of constant y, in order of x. x is increasing; all values are
 * finite and > 0. Two neighbours are separate levels if their values differ by 15 % or more. A single point
 * between two levels belongs to neither. Returns the number of levels (at most `room` and LEVELS_MAX); 0 for
 * invalid input or no points.
 */
size_t levels_of(const double *x, const double *y, size_t count, struct level *out, size_t room);
#endif
