/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of a CPU. The bound is its own ceiling, so each factor shows what the case had less of than its
 * ceiling. */
#include "judge/gap/gap.h"
#include <math.h>
#include <stdlib.h>

bool gap_one_thread(const struct subject *s, struct subject *one)
{
	const struct record *r = s->ctx->record;
	double threads;
	size_t i;

	if (!subject_number(s, "threads", &threads) || threads < 1.5)
		return false;
	for (i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];

		if (c == s->c || !case_sound(c) ||
		    !record_same_but(c, s->c, (const char *const[]){"threads", NULL}))
			continue;
		subject_of(one, s->ctx, c);
		if (one->has_figure && subject_number(one, "threads", &threads) && threads < 1.5)
			return true;
	}
	return false;
}

/* Reads a number of the ceiling that was interleaved with the case, else of the peak that is its bound. */
static bool ceiling_number(const struct subject *s, const char *field, double *out)
{
	const struct record_phase *beside = record_phase(s->c, "ceiling");
	const struct record_case *peak, *disturbed;

	if (beside)
		return record_number(beside, field, out);
	return bound_ceiling(s->ctx, s->c, &peak, &disturbed) > 0 && case_number(peak, field, out);
}

static bool clock(struct judgement *out, const struct subject *s)
{
	double own, ceiling;

	if (!record_number(s->phase, "clock_hz", &own) || !ceiling_number(s, "clock_hz", &ceiling) ||
	    !(own > 0) || !(ceiling > 0) || !record_phase(s->c, "ceiling")) {
		gap_absent(out, "clock", "not measured with its ceiling");
		return false;
	}
	if (own / ceiling > GAP_ABOVE) {
		/* the adds ran after the cores had left the clock of the work */
		out->clock_recovered = true;
		gap_absent(out, "clock",
			   "the clock after the window differs from the clock in it: %.0f MHz against "
			   "%.0f MHz of the ceiling",
			   own / 1e6, ceiling / 1e6);
		return false;
	}
	gap_add(out, "clock", own / ceiling, 0.01,
		"%.0f of the ceiling's %.0f MHz, from dependent adds after each window", own / 1e6,
		ceiling / 1e6);
	return true;
}

static bool cpu_time(struct judgement *out, const struct subject *s)
{
	double own, ceiling;

	if (!record_number(s->phase, "cpu_share", &own) || !(own > 0)) {
		gap_absent(out, "cpu time", "not recorded");
		return false;
	}
	if (!ceiling_number(s, "cpu_share", &ceiling) || !(ceiling > 0))
		ceiling = 1;
	gap_add(out, "cpu time", own / ceiling, 0.005,
		"CPU time over threads x wall time, relative to the ceiling's");
	return true;
}

/* The instructions of the ceiling multiply unsigned by signed bytes. If both are signed, oneDNN shifts one
 * operand and corrects every sum. docs/explanation/methods/cpu-probes.md, "INT8 on CPUs", gives the cost of
 * this and of the packing. */
static bool shifts_operands(const struct subject *s)
{
	const char *kernel = case_text(s->c, "instruction_set");

	return !strcmp(s->type, "int8") && !strcmp(s->c->engine, "onednn") && kernel &&
	       strstr(kernel, "vnni");
}

/* Efficiency of the library's code on one thread: another case of this run, interleaved with its ceiling like
 * this one. */
static bool kernel(struct judgement *out, const struct subject *s)
{
	struct subject one;
	struct interleaved_ratio t;

	if (gap_one_thread(s, &one) && bound_interleaved(&one, &t)) {
		gap_add(out, "kernel", t.ratio, (t.high - t.low) / 2 / t.ratio,
			"one thread alone over the ceiling of one thread (case %u)", one.c->id);
		return true;
	}
	if (shifts_operands(s)) {
		gap_absent(out, "kernel",
			   "signed x signed bytes on unsigned x signed instructions: the library shifts, "
			   "corrects and packs, and no signal measures it");
		return false;
	}
	gap_absent(out, "kernel",
		   "the efficiency of the library's code has no signal on a CPU and stays in the residual");
	return false;
}

/* FMA(n) over n FMA(1): the cost of sharing cores and clock. It is part of the ceiling, so it is only shown.
 */
static void scaling(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	double threads, one = 0, all = 0, n = 0;
	struct factor *f;
	struct subject p;
	size_t i;

	for (i = 0; i < r->case_count; i++) {
		if (strcmp(r->cases[i].probe, "peak") || strcmp(r->cases[i].limit, s->c->limit) ||
		    strcmp(r->cases[i].target, s->c->target) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&p, s->ctx, &r->cases[i]);
		if (!p.has_figure || !subject_number(&p, "threads", &threads))
			continue;
		if (threads < 1.5) {
			one = fmax(one, p.figure);
		} else if (threads > n - 0.5) {
			all = threads > n ? p.figure : fmax(all, p.figure);
			n = threads;
		}
	}
	if (!(one > 0) || n < 2 || !(all > 0))
		return;
	f = gap_add(out, "threads", all / (n * one), 0.01,
		    "part of the ceiling: %.0f threads reach %.2f x the rate of one", n, all / one);
	if (f)
		f->shown_only = true;
}

bool gap_cpu(struct judgement *out, const struct subject *s)
{
	bool whole = true;

	if (out->bound.from != BOUND_CEILING)
		return false;
	if (*s->type)
		whole = clock(out, s);
	whole = cpu_time(out, s) && whole;
	if (*s->type) {
		whole = kernel(out, s) && whole;
		scaling(out, s);
	}
	return whole && *s->type;
}
