/* SPDX-License-Identifier: Apache-2.0 */
/* Bound of attention: the slowest of its GEMMs, its exponentials and its bytes.
 * docs/explanation/methods/bounds.md, "Attention". */
#include <stdlib.h>
#include "judge/bound/bound.h"

#define EXP_A_CLOCK 16.0 /* exponentials per SM and clock, from sm_70 to sm_100 */

/* FLOP per exponential: 4 x head dimension for each unmasked pair, backward 10 x. */
static double flop_an_exp(const struct subject *s)
{
	const char *text = record_option(s->c, "head_dim"), *pass = record_option(s->c, "pass");

	return text ? (pass && !strcmp(pass, "backward") ? 10 : 4) * strtod(text, NULL) : 0;
}

static void lower(struct bound *out, double value, const char *formula)
{
	out->value = value;
	snprintf(out->formula, sizeof(out->formula), "%.150s", formula);
}

enum attention_limit bound_attention(const struct subject *s, struct bound *out)
{
	double sms = gpu_get(s->gpu, GPU_FACT_sm_count, 0),
	       clock = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6;
	double each = flop_an_exp(s), bytes = s->c->work_read + s->c->work_write;
	enum attention_limit by = ATTENTION_BY_MATRIX;
	struct bound memory = {.from = BOUND_NONE};
	double exps = EXP_A_CLOCK * sms * clock * each;
	char text[160];

	bound_compute(s, out);
	if (!(out->value > 0))
		return by;
	if (exps > 0 && exps < out->value) {
		snprintf(text, sizeof(text), "%.0f SM x %.0f exp x %.3f GHz x %.0f FLOP", sms, EXP_A_CLOCK,
			 clock / 1e9, each);
		lower(out, exps, text);
		by = ATTENTION_BY_EXP;
	}
	bound_memory(s, &memory);
	if (memory.value > 0 && bytes > 0 && memory.value * s->c->work_flop / bytes < out->value) {
		snprintf(text, sizeof(text), "%.90s x %.1f FLOP per byte", memory.formula,
			 s->c->work_flop / bytes);
		lower(out, memory.value * s->c->work_flop / bytes, text);
		by = ATTENTION_BY_MEMORY;
	}
	return by;
}
