/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels of a curve: sizes at which a rate or a latency changes, as caches make it. Method and limits:
 * docs/explanation/methods, "Cache levels".
 */
#ifndef CORE_MATH_CACHE_LEVELS_H
#define CORE_MATH_CACHE_LEVELS_H
#include <stddef.h>

struct level {
	double value; /* of the level: geometric mean of its points */
	double end;   /* where the next level takes over: the curve crosses half way (on a log scale) between
		       * the two   values; infinity for the last */
	size_t first, points; /* first point and number of points on the level itself */
};

enum { LEVELS_MAX = 6, LEVELS_POINTS_MAX = 256 };

/*
 * Splits (x[i], y[i]), x growing, all finite and > 0, into levels of constant y, in order of x. A level is
 * told from its neighbour when their values differ by 15 % or more; a single point between two levels belongs
 * to neither. Returns the number of levels (at most `room`, LEVELS_MAX); 0 for bad input or no point.
 */
size_t levels_of(const double *x, const double *y, size_t count, struct level *out, size_t room);
#endif
