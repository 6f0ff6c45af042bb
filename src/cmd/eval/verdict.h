/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the figures of a precision with those of the reference, and with the pass marks. */
#ifndef CMD_EVAL_VERDICT_H
#define CMD_EVAL_VERDICT_H
#include "cmd/eval/measure.h"

/* How much worse than the reference a precision may be. Better is always accepted. */
struct eval_marks {
	double perplexity; /* percent */
	double calls;	   /* percentage points of right answers */
};

/* A question whose grammar was refused has no answer. With a smaller share of answers, calls have no verdict.
 */
#define EVAL_ANSWERED_LEAST 0.9

struct eval_verdict {
	struct eval_figure perplexity;		  /* NaN: nothing was scored */
	struct eval_figure perplexity_difference; /* in percent */
	struct eval_figure calls_difference;	  /* in percentage points of the answers; NaN: no answer */
	bool perplexity_met, calls_met;		  /* true if there is nothing to judge */
	bool met;				  /* both, and the logits were finite */
	bool unanswered; /* fewer answers than EVAL_ANSWERED_LEAST, here or in the reference */
	/* no mark is surely missed, but one window or one question has no finite interval, or it is
	 * unanswered */
	bool undecided;
	bool uncertain; /* a mark lies within the interval of its difference */
};
/* `m` has as many windows and questions as `reference`. */
struct eval_verdict eval_judge(const struct eval_measured *m, const struct eval_measured *reference,
			       size_t windows, const struct eval_marks *marks);
/* "pass", "fail", or "unknown" if it is undecided. */
const char *eval_verdict_word(const struct eval_verdict *v);
#endif
