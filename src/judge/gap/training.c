/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of a training run. They lead from the model's FLOP at the rate of a large GEMM timed before the
 * first step to the measured tokens per second. Each factor is the time of one part of a step, so the product
 * of all factors is the step. docs/explanation/methods/gap.md, "Training". */
#include "judge/gap/gap.h"
#include <math.h>
#include "judge/gap/training_step.h"

#define EVENTS_ERROR 0.002 /* share of the time of a part */

void bound_training(const struct subject *s, struct bound *out)
{
	double mfu, rate;

	if (!s->has_figure || !(s->figure > 0) || strcmp(s->field, "tokens_per_s") || !s->phase ||
	    !record_number(s->phase, "mfu", &mfu) || !record_number(s->phase, "flop_rate", &rate) ||
	    !(mfu > 0) || mfu >= 1) /* a GEMM slower than the steps is no bound */
		return;
	out->value = s->figure / mfu;
	out->from = BOUND_CEILING;
	snprintf(out->formula, sizeof(out->formula),
		 "%.4g TFLOPS of a large GEMM before the first step, over %.4g GFLOP per token",
		 rate / mfu / 1e12, rate / s->figure / 1e9);
}

struct chain {
	struct judgement *out;
	double s; /* time of a step that the parts added so far explain */
};

/* Adds a part by the time it adds to the step. The time can be negative, if the part runs faster than a large
 * GEMM. */
static void takes(struct chain *c, const char *name, double s, const char *signal)
{
	const double before = c->s;

	c->s += s;
	gap_add(c->out, name, before / c->s, EVENTS_ERROR, "%s", signal);
}

/* Adds a kind of operation by its time beyond its FLOP at the bound's rate; without FLOP, by its whole time.
 */
static void part(struct chain *c, const struct training_step *t, const struct training_part *p)
{
	char signal[160];

	if (p->flop > 0 && p->s > 0)
		snprintf(signal, sizeof(signal), "%.4g ms at %.4g of %.4g TFLOPS", p->s * 1e3,
			 p->flop / p->s / 1e12, t->gemm_rate / 1e12);
	else if (p->bytes > 0 && p->s > 0)
		snprintf(signal, sizeof(signal), "%.4g ms at %.4g TB/s, each operand counted once",
			 p->s * 1e3, p->bytes / p->s / 1e12);
	else
		snprintf(signal, sizeof(signal), "%.4g ms, timed by events", p->s * 1e3);
	takes(c, p->name, p->s - p->flop / t->gemm_rate, signal);
}

/* Adds GEMMs and attention: by their own FLOP if the journal has them, else both together by the model's
 * FLOP. */
static void operations(struct chain *c, const struct training_step *t)
{
	const bool told = t->parts_flop > 0;
	char signal[160];

	if (told) {
		snprintf(signal, sizeof(signal), "%.4g TFLOP executed, of which the model needs %.4g",
			 t->parts_flop / 1e12, t->flop / 1e12);
		takes(c, "made again", (t->parts_flop - t->flop) / t->gemm_rate, signal);
	} else {
		snprintf(signal, sizeof(signal), "%.4g ms for the %.4g TFLOP that the model needs",
			 t->gemm_s * 1e3, t->flop / 1e12);
		takes(c, "products, attention", t->gemm_s - t->flop / t->gemm_rate, signal);
	}
	for (size_t i = 0; i < t->part_count; i++)
		if (told || !training_part_multiplies(&t->part[i]))
			part(c, t, &t->part[i]);
}

/* False: the parts of the passes were not timed. */
static bool passes(struct chain *c, const struct training_step *t)
{
	char signal[160];

	if (t->part_count && t->gemm_s > 0) {
		operations(c, t);
		return true;
	}
	if (t->gemm_s > 0) {
		snprintf(signal, sizeof(signal), "%.4g ms, including attention", t->gemm_s * 1e3);
		takes(c, "products", t->gemm_s - c->s, signal);
		snprintf(signal, sizeof(signal), "%.4g ms of the passes and the optimizer",
			 (t->phases_s - t->gemm_s) * 1e3);
		takes(c, "other operations", t->phases_s - t->gemm_s, signal);
		return true;
	}
	snprintf(signal, sizeof(signal),
		 "%.4g ms, timed by events; training: step_parts: true splits it into parts",
		 t->phases_s * 1e3);
	takes(c, "device", t->phases_s - c->s, signal);
	return false;
}

/* Adds what the card reported during the steps. */
static void seen(struct judgement *out, const struct subject *s)
{
	double share;

	if (case_number(s->c, "violation_power_share", &share))
		gap_show(out, "power", fmin(share, 1),
			 "share of the time that the power limit held the clock down (NVML)");
	if (case_number(s->c, "sm_active_share", &share))
		gap_show(out, "SM active", share,
			 "share of elapsed cycles with a warp on the SM (GPM); the rest are gaps "
			 "between kernels and their ramps");
	if (case_number(s->c, "tensor_active_share", &share))
		gap_show(out, "tensor pipe", share, "share of elapsed cycles that it was active (GPM)");
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
	snprintf(signal, sizeof(signal), "%.4g ms of a step that the device timers do not cover",
		 (t.step_s - c.s) * 1e3);
	takes(&c, "host", t.step_s - c.s, signal);
	gap_add(out, "other steps", t.step_s / t.mean_s, EVENTS_ERROR,
		"the median of %zu steps is %.4g ms, their mean %.4g ms", t.steps, t.step_s * 1e3,
		t.mean_s * 1e3);
	return whole;
}
