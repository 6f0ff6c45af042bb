/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies of a window: percentiles, means and points of the distribution. */
#ifndef LOAD_MEASURE_LATENCY_H
#define LOAD_MEASURE_LATENCY_H
#include "load/measure/window.h"

enum { LOAD_CDF_POINTS = 200 };
/*
 * Sets NAME_p50_s .. NAME_samples of all latencies, and the lag of the client; adds to `cdf` the member
 * NAME: [[seconds, share]..] of each. False: no memory.
 */
bool load_latencies_put(json_t *out, json_t *cdf, const struct load_window *w);
#endif
