/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of a load test over its time, for the report. */
#ifndef LOAD_MEASURE_CURVES_H
#define LOAD_MEASURE_CURVES_H
#include "load/measure/window.h"

enum { LOAD_CURVE_POINTS = 600 };
/*
 * Adds to `curves`: "part_s", "from_s", "to_s" (the window), and lists with one number for each part of the
 * whole time: "t_s" (its middle), "ttft_p50_s", "ttft_p99_s", "ttft_max_s", "e2e_p50_s", "e2e_max_s" of the
 * requests due in it, "in_flight" (mean), "output_tokens_per_s", "due_per_s", "errors". null: no value. A
 * part is a second or longer. False: no memory.
 */
bool load_curves_put(json_t *curves, const struct load_window *w);
#endif
