/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs: judges a figure by its share of this machine's own ceiling, and judges the CPU time that other work
 * took. */
#include "judge/case/verdict.h"
#include <math.h>
#include "judge/advice/blas_kernels.h"

/* The share of the ceiling with its interval. If the case was not interleaved with its ceiling, the interval
 * is a single value. */
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

/* The reference of the share, in words. NULL: it moves another mix of reads and writes than the case, and no
 * row covers that. *beside: the reference is reading alone. */
static const char *ceiling_words(const struct subject *s, bool *beside)
{
	char unit[32];

	*beside = !s->gpu && traffic_of_ceiling(s->c, unit, sizeof(unit));
	if (!*beside)
		return "this machine's own ceiling";
	return strcmp(unit, "read") ? NULL : "the rate of reading alone, which is no bound for other traffic";
}

/* CPU time of the case's threads over that of its ceiling's threads, at most 1. Interleaving cancels the time
 * that other work took from both, but not the time it took from only one of them. 1: not recorded. */
static double cpu_time_beside(const struct subject *s)
{
	const struct record_phase *beside = record_phase(s->c, "ceiling");
	double own, ceiling;

	if (s->gpu || !beside || !subject_number(s, "cpu_share", &own) ||
	    !record_number(beside, "cpu_share", &ceiling) || !(own > 0) || !(ceiling > own))
		return 1;
	return own / ceiling;
}

/* True if the share is below the mark only because the threads lacked CPU time. */
static bool lacks_cpu_time(const struct interleaved_ratio *t, double mark, double cpu_time)
{
	return t->ratio < mark && t->ratio >= mark * cpu_time;
}

/* A failure needs the whole interval below the limit: on a shared machine a median below it proves nothing.
 * The median decides between pass and warn, which both end well; the interval is printed with it. */
void verdict_ceiling(struct judgement *out, const struct subject *s)
{
	const struct ceiling_row *row = expect_ceiling(s->ctx->e, subject_word, s);
	struct interleaved_ratio t;
	char share[48], kernels[48];
	bool beside;
	const char *of = ceiling_words(s, &beside);
	double cpu_time;

	if (!row || !of || (out->bound.from != BOUND_CEILING && !beside))
		return;
	if (s->require != REQUIRE_JUDGED &&
	    !bound_interleaved(s, &t)) /* the ceiling was measured at another time */
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
			"%s of %s, under %.2f, but its threads had only %.2f of the ceiling's CPU "
			"time: other work took the rest, or the threads waited",
			share, of, row->fail, cpu_time);
	else if (t.high < row->fail)
		finding(out, VERDICT_FAIL, CAUSE_BELOW_CEILING, "%s of %s, under %.2f%s", share, of,
			row->fail, kernels);
	else if (t.ratio < row->fail)
		finding(out, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s of %s: its interleaved measurements lie on both sides of %.2f%s", share, of,
			row->fail, kernels);
	else if (lacks_cpu_time(&t, row->pass, cpu_time))
		finding(out, VERDICT_WARN, CAUSE_CPU_CONTENDED,
			"%s of %s, under %.2f, but its threads had only %.2f of the ceiling's CPU "
			"time: other work took the rest, or the threads waited",
			share, of, row->pass, cpu_time);
	else if (t.ratio < row->pass)
		finding(out, VERDICT_WARN, CAUSE_BELOW_CEILING, "%s of %s, under %.2f%s", share, of,
			row->pass, kernels);
}

/* CPU time that the threads wanted but did not get, as a share of what the quota grants. *lost: taken by
 * anyone; *others: taken by other work on this machine. */
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
	/* Interleaving with a ceiling cancels the loss. A figure that need not be judged still holds as a
	 * lower bound. */
	tolerant = bound_interleaved(s, &t) || s->require != REQUIRE_JUDGED;
	stop = tolerant ? VERDICT_OTHERS_STOP : 1 - BOUND_CPU_SHARE;
	if (others > stop)
		finding(out, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED,
			"the threads got only %.1f %% of their CPU time: other work on this machine took the rest",
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
	const char *of = ceiling_words(s, &beside);
	char share[48];

	interval_text(share, sizeof(share), &t);
	if (out->cause == CAUSE_CPU_CONTENDED && missing(s, &lost, &others, &limited))
		snprintf(out->reason, sizeof(out->reason),
			 "%s, %s of %s; %.0f %% of the CPU time was missing for both: %s", figure, share, of,
			 100 * lost,
			 others > lost / 2 ? "other work on this machine took it"
					   : "the host gave it to others");
	else
		snprintf(out->reason, sizeof(out->reason), "%s, %s of %s", figure, share, of);
}
