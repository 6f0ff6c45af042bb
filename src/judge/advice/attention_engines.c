/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/advice/attention_engines.h"
#include <math.h>
#include "judge/advice/advice.h"

#define LIBRARY "cudnn"
#define FASTER 1.02 /* the cases were not interleaved, so a smaller ratio is no difference */
#define BUSY 0.85   /* a unit that is busy for this share of the time is the limit */

static bool same_problem(const struct subject *a, const struct subject *b)
{
	static const char *const but[] = {"search", NULL};

	return !strcmp(a->c->probe, b->c->probe) && !strcmp(a->c->target, b->c->target) &&
	       !strcmp(a->phase_name, b->phase_name) && record_same_options(a->c, b->c, but);
}

void attention_accuracy(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	struct subject o;
	double error, library;

	if (strcmp(s->c->probe, "attention") || !strcmp(s->c->engine, LIBRARY) || !s->has_figure ||
	    !case_number(s->c, "error_rms", &error))
		return;
	for (size_t i = 0; i < r->case_count; i++) {
		if (strcmp(r->cases[i].engine, LIBRARY) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&o, s->ctx, &r->cases[i]);
		if (!same_problem(&o, s) || !case_number(o.c, "error_rms", &library) || !(library > 0))
			continue;
		out->error_over_library = error / library;
		if (out->error_over_library > JUDGE_ERROR_GATE)
			finding(out, VERDICT_WARN, CAUSE_INACCURATE,
				"its error, %.2e, is %.2f times cuDNN's error on the same rows, %.2e; up to "
				"%.1f times is rounding",
				error, out->error_over_library, library, JUDGE_ERROR_GATE);
		return;
	}
}

/* Advises the fastest other engine of this run. */
static void about_engine(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	struct subject o, best = {.figure = FASTER * s->figure};
	struct advice *a;

	for (size_t i = 0; i < r->case_count; i++) {
		if (!strcmp(r->cases[i].engine, s->c->engine) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&o, s->ctx, &r->cases[i]);
		if (o.has_figure && same_problem(&o, s) && o.figure > best.figure)
			best = o;
	}
	if (!best.c)
		return;
	a = advice_add(out, "use the engine that is faster here",
		       "engine %s reached %.4g TFLOPS on the same problem in this run; this one reached %.4g",
		       best.c->engine, best.figure / 1e12, s->figure / 1e12);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "x %.3f: %.16s reached that, not interleaved",
			 best.figure / s->figure, best.c->engine);
}

static void about_units(struct judgement *out, const struct subject *s)
{
	enum { TENSOR, XU, DRAM, ISSUE, UNITS };
	static const struct {
		const char *counter, *knob;
	} unit[UNITS] = {
		[TENSOR] = {"tensor_active_share", NULL}, /* the best case */
		[XU] = {"xu_active_share",
			"exponentials are the limit: a larger head dimension, or a kernel that "
			"computes part of them on the FMA pipes"},
		[DRAM] = {"dram_share",
			  "device memory is the limit: query heads that share key heads, or a narrower type"},
		[ISSUE] = {"issue_active_share",
			   "issue slots are the limit: a kernel with fewer instructions per tile"},
	};
	double share[UNITS] = {0}, occupancy;
	char issue[32] = "", warps[48] = "";
	int most = 0;
	struct advice *a;

	for (int i = 0; i < UNITS; i++) {
		if (!subject_counter(s, unit[i].counter, &share[i]) && i != ISSUE)
			return;
		most = share[i] > share[most] ? i : most;
	}
	if (!(share[most] > 0) || (share[most] >= BUSY && !unit[most].knob))
		return;
	if (share[ISSUE] > 0)
		snprintf(issue, sizeof(issue), ", issue slots %.1f %%", 100 * share[ISSUE]);
	if (subject_counter(s, "occupancy_share", &occupancy))
		snprintf(warps, sizeof(warps), "; %.1f %% of the warps that an SM can hold", 100 * occupancy);
	a = advice_add(
		out,
		share[most] >= BUSY
			? unit[most].knob
			: "no unit is the limit: a kernel with more overlap of GEMMs, softmax and copies",
		"tensor pipe %.1f %%, exponentials %.1f %%, DRAM %.1f %%%s%s (CUPTI)", 100 * share[TENSOR],
		100 * share[XU], 100 * share[DRAM], issue, warps);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f", 1 / share[most]);
}

void attention_advice(struct judgement *out, const struct subject *s)
{
	about_engine(out, s);
	about_units(out, s);
}
