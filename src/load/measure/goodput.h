/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that meet sets of limits. */
#ifndef LOAD_MEASURE_GOODPUT_H
#define LOAD_MEASURE_GOODPUT_H
#include "load/measure/window.h"

/*
 * A request meets a set if it was answered and each of its times is within its limit. A time that a limit
 * needs and that is absent does not meet it, except TPOT of an answer with fewer than two tokens.
 */
bool load_slo_met(const struct load_slo *slo, const struct load_record *r);
/* Sets "slo": [{name, limits, goodput, share, share_low, share_high, met}..], and the fields of the first
 * set. False: no memory. */
bool load_goodput_put(json_t *out, const struct load_window *w);
#endif
