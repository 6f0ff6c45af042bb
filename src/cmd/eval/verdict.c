/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/verdict.h"
#include <math.h>

static struct eval_figure times(struct eval_figure f, double by)
{
	return (struct eval_figure){f.value * by, f.half_width * by};
}

/* Whether the interval of `worse`, how much worse it is, contains the mark. */
static bool is_uncertain(double worse, double half_width, double mark)
{
	return isfinite(half_width) && half_width > 0 && fabs(worse - mark) < half_width;
}

/* Answers to questions. Refusals do not depend on the precision. */
static double answers_of(const struct eval_measured *m, const struct eval_measured *reference)
{
	const uint64_t rows = reference->calls.rows, a = m->calls.refused, b = reference->calls.refused;

	return (double)(rows - (a > b ? a : b));
}

struct eval_verdict eval_judge(const struct eval_measured *m, const struct eval_measured *reference,
			       size_t windows, const struct eval_marks *marks)
{
	const size_t questions = reference->calls.rows;
	const double answers = answers_of(m, reference);
	/* a question without an answer counts as wrong on both sides, so it adds nothing to the difference */
	const double points = answers > 0 ? 100 * (double)questions / answers : NAN;
	struct eval_verdict v = {
		.perplexity = eval_perplexity(m->score, windows),
		.perplexity_difference =
			times(eval_perplexity_difference(reference->score, m->score, windows), 100),
		.calls_difference =
			times(eval_share_difference(reference->exact, m->exact, questions), points),
		.unanswered = answers < EVAL_ANSWERED_LEAST * (double)questions,
	};
	const struct eval_figure p = v.perplexity_difference, c = v.calls_difference;

	v.perplexity_met = !windows || p.value <= marks->perplexity;
	v.calls_met = !questions || v.unanswered || -c.value <= marks->calls;
	v.undecided =
		m != reference && !*m->broken &&
		((windows && isinf(p.half_width)) || (questions && isinf(c.half_width)) || v.unanswered) &&
		(v.perplexity_met || isinf(p.half_width)) && (v.calls_met || isinf(c.half_width));
	v.met = !*m->broken && !v.undecided && v.perplexity_met && v.calls_met;
	v.uncertain = m != reference && !*m->broken &&
		      ((windows && is_uncertain(p.value, p.half_width, marks->perplexity)) ||
		       (questions && !v.unanswered && is_uncertain(-c.value, c.half_width, marks->calls)));
	return v;
}

const char *eval_verdict_word(const struct eval_verdict *v)
{
	return v->met ? "pass" : v->undecided ? "unknown" : "fail";
}
