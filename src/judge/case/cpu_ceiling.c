/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs: what a share of this machine's own ceiling is worth, and what it means that other work took CPU time.
 */
#include "judge/case/verdict.h"
#include <math.h>
#include "judge/advice/blas_kernels.h"

/* The share and how far it may be off; one figure where the case was not timed in turns. */
static struct interleaved_ratio share_of(const struct judgement *out, const struct subject *s, double traffic)
{
	struct interleaved_ratio t;

	if (!bound_interleaved(s, &t))
		t.ratio = t.low = t.high = s->figure / out->bound.value;
	t.ratio /= traffic;
	t.low /= traffic;
	t.high /= traffic;
	return t;
}

static void interval_text(char *out, size_t size, const struct interleaved_ratio *t)
{
	if (t->high - t->low < 0.005)
		snprintf(out, size, "%.2f", t->ratio);
	else
		snprintf(out, size, "%.2f (%.2f .. %.2f)", t->ratio, t->low, t->high);
}

/* What the share is of, in words; NULL: of other traffic than the case's, which no row knows. *beside: of
 * reading alone. */
static const char *held_against(const struct subject *s, bool *beside)
{
	char unit[32];

	*beside = !s->gpu && traffic_beside(s->c, unit, sizeof(unit));
	if (!*beside)
		return "this machine's own ceiling";
	return strcmp(unit, "read") ? NULL : "reading alone, which bounds no other traffic";
}

/* CPU time of the case's threads over that of its ceiling's, at most 1. Turns cancel what other work took of
 * both alike, but not what it took of one of them alone. 1: not recorded. */
static double cpu_time_beside(const struct subject *s)
{
	const struct record_phase *beside = record_phase(s->c, "ceiling");
	double own, ceiling;

	if (s->gpu || !beside || !subject_number(s, "cpu_share", &own) ||
	    !record_number(beside, "cpu_share", &ceiling) || !(own > 0) || !(ceiling > own))
		return 1;
	return own / ceiling;
}

/* Below a mark that it reaches if one counts the CPU time that its threads had. */
static bool lacks_cpu_time(const struct interleaved_ratio *t, double mark, double cpu_time)
{
	return t->ratio < mark && t->ratio >= mark * cpu_time;
}

/*
 * A failure needs the whole interval: on a shared machine a median under the limit alone proves nothing. Pass
 * or warn is the median's: both end well, and the interval stands beside it.
 */
void verdict_ceiling(struct judgement *out, const struct subject *s)
{
	const struct ceiling_row *row = expect_ceiling(s->ctx->e, subject_word, s);
	struct interleaved_ratio t;
	char share[48], kernels[48];
	bool beside;
	const char *of = held_against(s, &beside);
	double cpu_time;

	if (!row || !of || (out->bound.from != BOUND_CEILING && !beside))
		return;
	if (s->require != REQUIRE_JUDGED && !bound_interleaved(s, &t)) /* a ceiling of another moment */
		return;
	out->judged_by = JUDGED_CEILING;
	out->low_confidence = row->source.confidence == 1;
	t = share_of(out, s, row->traffic);
	interval_text(share, sizeof(share), &t);
	blas_retry_named(s, kernels, sizeof(kernels));
	cpu_time = cpu_time_beside(s);
	if (!beside && t.low > row->above)
		finding(out, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND,
			"%s of %s: one of the two figures is wrong", share, of);
	else if (lacks_cpu_time(&t, row->fail, cpu_time))
		finding(out, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED,
			"%s of %s, under %.2f, but its threads had %.2f of the ceiling's CPU time: other "
			"work took the rest, or the threads waited",
			share, of, row->fail, cpu_time);
	else if (t.high < row->fail)
		finding(out, VERDICT_FAIL, CAUSE_BELOW_CEILING, "%s of %s, under %.2f%s", share, of,
			row->fail, kernels);
	else if (t.ratio < row->fail)
		finding(out, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s of %s: its turns lie on both sides of %.2f%s", share, of, row->fail, kernels);
	else if (lacks_cpu_time(&t, row->pass, cpu_time))
		finding(out, VERDICT_WARN, CAUSE_CPU_CONTENDED,
			"%s of %s, under %.2f, but its threads had %.2f of the ceiling's CPU time: other "
			"work took the rest, or the threads waited",
			share, of, row->pass, cpu_time);
	else if (t.ratio < row->pass)
		finding(out, VERDICT_WARN, CAUSE_BELOW_CEILING, "%s of %s, under %.2f%s", share, of,
			row->pass, kernels);
}

/* CPU time that was asked for and not had, as a share of what the quota grants: by anybody, and by other work
 * here. */
static bool missing(const struct subject *s, double *lost, double *others, bool *limited)
{
	const struct cpu *cpu = s->ctx->cpu;
	double share, steal, threads = 1, granted = 1;

	*limited = false;
	if (s->gpu || !subject_number(s, "cpu_share", &share))
		return false;
	if (!subject_number(s, "threads", &threads) || threads < 1)
		threads = 1;
	*limited = cpu && cpu->quota > 0 && cpu->quota < threads;
	if (*limited)
		granted = cpu->quota / threads;
	*lost = fmax(1 - share / granted, 0);
	if (!s->phase || !record_number(s->phase, "steal_share", &steal) || !(steal > 0))
		steal = 0;
	*others = fmax(*lost - steal, 0);
	return true;
}

void verdict_cpu_time(struct judgement *out, const struct subject *s)
{
	double lost, others, stop;
	struct interleaved_ratio t;
	bool limited, tolerant;

	if (!missing(s, &lost, &others, &limited))
		return;
	/* Turns with a ceiling cancel it; what need not be judged is a lower bound then. */
	tolerant = bound_interleaved(s, &t) || s->require != REQUIRE_JUDGED;
	stop = tolerant ? VERDICT_OTHERS_STOP : 1 - BOUND_CPU_SHARE;
	if (others > stop)
		finding(out, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED,
			"the threads got %.1f %% of the CPU time that was theirs: other work on this machine took it",
			100 * (1 - lost));
	else if (lost > 1 - BOUND_CPU_SHARE)
		remark(out, CAUSE_CPU_CONTENDED);
	else if (limited)
		remark(out, CAUSE_CPU_QUOTA);
}

void verdict_ceiling_passed(struct judgement *out, const struct subject *s, const char *figure)
{
	const struct ceiling_row *row = expect_ceiling(s->ctx->e, subject_word, s);
	struct interleaved_ratio t = share_of(out, s, row ? row->traffic : 1);
	double lost, others;
	bool limited, beside;
	const char *of = held_against(s, &beside);
	char share[48];

	interval_text(share, sizeof(share), &t);
	if (out->cause == CAUSE_CPU_CONTENDED && missing(s, &lost, &others, &limited))
		snprintf(out->reason, sizeof(out->reason),
			 "%s, %s of %s; both without %.0f %% of the CPU time, %s", figure, share, of,
			 100 * lost,
			 others > lost / 2 ? "which other work here took" : "which the host gave to others");
	else
		snprintf(out->reason, sizeof(out->reason), "%s, %s of %s", figure, share, of);
}
