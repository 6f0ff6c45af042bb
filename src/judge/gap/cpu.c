/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU: the bound is its own ceiling, so the chain says what the case had less of than the ceiling beside
 * it. */
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

/* A number of the instrument that was timed in turns with the case, else of the peak that bounds it. */
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
		gap_absent(out, "clock", "not read beside its ceiling");
		return false;
	}
	if (own / ceiling > GAP_ABOVE) {
		/* the adds ran when the cores had already left the clock of the work */
		out->clock_recovered = true;
		gap_absent(
			out, "clock",
			"the clock after the window is not the one in it: %.0f against the ceiling's %.0f MHz",
			own / 1e6, ceiling / 1e6);
		return false;
	}
	gap_add(out, "clock", own / ceiling, 0.01,
		"%.0f of the ceiling's %.0f MHz, dependent adds after each window", own / 1e6, ceiling / 1e6);
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
	gap_add(out, "cpu time", own / ceiling, 0.005, "CPU time over threads x wall, against the ceiling's");
	return true;
}

/*
 * The instructions that the ceiling issues multiply unsigned by signed bytes. With both signed, oneDNN shifts
 * one operand and takes the shift back from every sum. METHODS "INT8 on CPUs" has what that and the packing
 * cost.
 */
static bool shifts_operands(const struct subject *s)
{
	const char *kernel = case_text(s->c, "instruction_set");

	return !strcmp(s->type, "int8") && !strcmp(s->c->engine, "onednn") && kernel &&
	       strstr(kernel, "vnni");
}

/* What the library's code reaches on a thread by itself: another case of this run, timed in turns as this
 * one. */
static bool kernel(struct judgement *out, const struct subject *s)
{
	struct subject one;
	struct interleaved_ratio t;

	if (gap_one_thread(s, &one) && bound_interleaved(&one, &t)) {
		gap_add(out, "kernel", t.ratio, (t.high - t.low) / 2 / t.ratio,
			"one thread alone over one thread's ceiling (case %u)", one.c->id);
		return true;
	}
	if (shifts_operands(s)) {
		gap_absent(out, "kernel",
			   "signed bytes on unsigned x signed instructions: the library shifts, takes back "
			   "and packs; nothing measures it");
		return false;
	}
	gap_absent(out, "kernel", "the code's own efficiency has no signal on a CPU: it is the residual");
	return false;
}

/* FMA(n) over n FMA(1): what sharing cores and clock costs; part of the ceiling, so shown. */
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
		    "part of the ceiling: %.0f threads give %.2f x one thread's", n, all / one);
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
