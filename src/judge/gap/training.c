/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training run's chain, from what the model asks for at the rate that a large product reached before the
 * first step to tokens a second: the seconds of one step, part by part, each a factor, so that their product
 * is the step. METHODS "Gap".
 */
#include "judge/gap/gap.h"
#include <math.h>
#include "judge/gap/training_step.h"

#define EVENTS_ERROR 0.002 /* of a part's time */

void bound_training(const struct subject *s, struct bound *out)
{
	double mfu, rate;

	if (!s->has_figure || !(s->figure > 0) || strcmp(s->field, "tokens_per_s") || !s->phase ||
	    !record_number(s->phase, "mfu", &mfu) || !record_number(s->phase, "flop_rate", &rate) ||
	    !(mfu > 0) || mfu >= 1) /* a product that is slower than the steps bounds nothing */
		return;
	out->value = s->figure / mfu;
	out->from = BOUND_CEILING;
	snprintf(out->formula, sizeof(out->formula),
		 "%.4g TFLOPS of a large product before the first step, over %.4g GFLOP a token",
		 rate / mfu / 1e12, rate / s->figure / 1e9);
}

struct chain {
	struct judgement *out;
	double s; /* of a step, as far as it is told */
};

/* So much more time; less where a part is faster than a large product. */
static void takes(struct chain *c, const char *name, double s, const char *signal)
{
	const double before = c->s;

	c->s += s;
	gap_add(c->out, name, before / c->s, EVENTS_ERROR, "%s", signal);
}

/* A kind by what it takes beyond its FLOP at the bound's rate; all of it where it has none. */
static void part(struct chain *c, const struct training_step *t, const struct training_part *p)
{
	char signal[160];

	if (p->flop > 0 && p->s > 0)
		snprintf(signal, sizeof(signal), "%.4g ms at %.4g of %.4g TFLOPS", p->s * 1e3,
			 p->flop / p->s / 1e12, t->gemm_rate / 1e12);
	else if (p->bytes > 0 && p->s > 0)
		snprintf(signal, sizeof(signal), "%.4g ms at %.4g TB/s, each operand once", p->s * 1e3,
			 p->bytes / p->s / 1e12);
	else
		snprintf(signal, sizeof(signal), "%.4g ms by events", p->s * 1e3);
	takes(c, p->name, p->s - p->flop / t->gemm_rate, signal);
}

/* Products and attention by their FLOP where these are told, else together by what the model asks for. */
static void operations(struct chain *c, const struct training_step *t)
{
	const bool told = t->parts_flop > 0;
	char signal[160];

	if (told) {
		snprintf(signal, sizeof(signal), "%.4g TFLOP done of which the model asks for %.4g",
			 t->parts_flop / 1e12, t->flop / 1e12);
		takes(c, "made again", (t->parts_flop - t->flop) / t->gemm_rate, signal);
	} else {
		snprintf(signal, sizeof(signal), "%.4g ms, for %.4g TFLOP that the model asks for",
			 t->gemm_s * 1e3, t->flop / 1e12);
		takes(c, "products, attention", t->gemm_s - t->flop / t->gemm_rate, signal);
	}
	for (size_t i = 0; i < t->part_count; i++)
		if (told || !training_part_multiplies(&t->part[i]))
			part(c, t, &t->part[i]);
}

/* False: what took the passes' time was not timed. */
static bool passes(struct chain *c, const struct training_step *t)
{
	char signal[160];

	if (t->part_count && t->gemm_s > 0) {
		operations(c, t);
		return true;
	}
	if (t->gemm_s > 0) {
		snprintf(signal, sizeof(signal), "%.4g ms, attention among them", t->gemm_s * 1e3);
		takes(c, "products", t->gemm_s - c->s, signal);
		snprintf(signal, sizeof(signal), "%.4g ms of the passes and the optimiser",
			 (t->phases_s - t->gemm_s) * 1e3);
		takes(c, "other operations", t->phases_s - t->gemm_s, signal);
		return true;
	}
	snprintf(signal, sizeof(signal), "%.4g ms by events; training: step_parts: true tells its parts",
		 t->phases_s * 1e3);
	takes(c, "device", t->phases_s - c->s, signal);
	return false;
}

/* What the card said while steps were made. */
static void seen(struct judgement *out, const struct subject *s)
{
	double share;

	if (case_number(s->c, "violation_power_share", &share))
		gap_show(out, "power", fmin(share, 1), "of the time its limit held the clock down (NVML)");
	if (case_number(s->c, "sm_active_share", &share))
		gap_show(out, "SM active", share,
			 "SMs with a warp, of elapsed cycles (GPM): the rest is gaps between kernels, their "
			 "beginnings and ends");
	if (case_number(s->c, "tensor_active_share", &share))
		gap_show(out, "tensor pipe", share, "active, of elapsed cycles (GPM)");
}

bool gap_training(struct judgement *out, const struct subject *s)
{
	struct training_step t;
	struct chain c = {.out = out};
	char signal[160];
	bool whole;

	if (!training_step_of(&t, s->ctx->record) || !(t.gemm_rate > 0) || !(t.flop > 0) || !(t.phases_s > 0))
		return false;
	c.s = t.flop / t.gemm_rate;
	whole = passes(&c, &t);
	seen(out, s);
	snprintf(signal, sizeof(signal), "%.4g ms of a step outside what the device is timed for",
		 (t.step_s - c.s) * 1e3);
	takes(&c, "host", t.step_s - c.s, signal);
	gap_add(out, "other steps", t.step_s / t.mean_s, EVENTS_ERROR,
		"the median of %zu is %.4g ms, their mean %.4g ms", t.steps, t.step_s * 1e3, t.mean_s * 1e3);
	return whole;
}
