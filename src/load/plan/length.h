/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of lengths in tokens. */
#ifndef LOAD_PLAN_LENGTH_H
#define LOAD_PLAN_LENGTH_H
#include <stdint.h>
#include "core/error.h"
#include "load/plan/draw.h"

enum { LOAD_TOKENS_MOST = 10000000 }; /* of one prompt or answer */

enum load_length { LOAD_FIXED, LOAD_UNIFORM, LOAD_NORMAL, LOAD_LOGNORMAL };

/* Values are rounded and clamped to min .. max, which moves the mean if much of the distribution is beyond
 * them. */
struct load_length_spec {
	enum load_length kind;
	double mean, spread; /* of the length before it is clamped, not of its logarithm. spread: standard
				deviation; of UNIFORM: half of the width */
	uint32_t min, max;   /* UNIFORM: every integer from min to max is equally likely */
};

/*
 * Reads "1000", "uniform:500,1500", "normal:1000,200" or "lognormal:1000,300"; the last two may go on with
 * limits: "normal:1000,200,100,4000". The limits are otherwise 1 and LOAD_TOKENS_MOST. BAD_INPUT names the
 * text.
 */
enum status load_length_read(struct load_length_spec *out, const char *text, struct error *err);
/* BAD_INPUT, which begins with `what`: a spec that load_length_read would not make. */
enum status load_length_check(const struct load_length_spec *s, const char *what, struct error *err);
uint32_t load_length_draw(const struct load_length_spec *s, struct draw *d);
#endif
