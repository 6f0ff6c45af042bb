/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and requests per second of the window. */
#ifndef LOAD_MEASURE_THROUGHPUT_H
#define LOAD_MEASURE_THROUGHPUT_H
#include "load/measure/window.h"

/* False: no memory. */
bool load_throughput_put(json_t *out, const struct load_window *w);
#endif
