/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in flight, and whether they and the time to first token grew until the end of the window: then
 * the server was offered more than it can serve. */
#ifndef LOAD_MEASURE_SATURATION_H
#define LOAD_MEASURE_SATURATION_H
#include "load/measure/window.h"

/* A least-squares slope with its 95 % interval, which allows for residuals that resemble their neighbours, up
 * to a random walk: that is what the queue of an overloaded server does. */
struct load_slope {
	double value, low, high;
	bool known; /* at least five points */
};
struct load_slope load_slope_of(const double *t, const double *y, size_t count);
/* False: no memory. */
bool load_saturation_put(json_t *out, const struct load_window *w);
#endif
