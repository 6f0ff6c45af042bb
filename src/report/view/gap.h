/* SPDX-License-Identifier: Apache-2.0 */
/* The gap of one case in words and as steps of a waterfall. */
#ifndef REPORT_VIEW_GAP_H
#define REPORT_VIEW_GAP_H
#include <stdbool.h>
#include "report/view/view.h"

enum { GAP_STEPS_MAX = 20 };

enum gap_kind {
	GAP_FACTOR,   /* before * value = after, in the figure's unit */
	GAP_PART,     /* of the factor before it: shown, not multiplied */
	GAP_ABSENT,   /* nothing here tells it: stays in what is unexplained */
	GAP_RESIDUAL, /* what no factor explains: the last */
};

struct gap_step {
	enum gap_kind kind;
	const char *name, *signal; /* lent from the judgement or static */
	double value, before, after;
};
/* Steps from bound to figure; 0 where the case has no chain (no bound, no figure, or no factor with a
 * signal). */
size_t gap_steps(const struct view_row *row, struct gap_step steps[GAP_STEPS_MAX]);

/* It has a bound, so there is a rest that went somewhere: headline cases, and a job's own chain. */
bool gap_shown(const struct view_row *row);
/* Where the chains of this view begin, as a sentence without its full stop. */
const char *gap_begins(const struct view *v);

/* The datasheet's dense peak of this GPU for a limit ("compute.bf16", "memory"), 0 where no row fits the
 * device. */
double gap_datasheet(const struct report_input *in, const struct gpu *gpu, const char *limit);

/* "689 TFLOPS over the sustained window, 64.4 % of the bound of 1070 TFLOPS (132 SM x ..), MFU 69.6 % of ..."
 */
void gap_achieved(struct text *out, const struct view *v, const struct view_row *row);
/* "clock ×0.705, costs 316 TFLOPS (1395 of 1980 MHz by stamps on every SM)" */
void gap_step_text(struct text *out, const struct view_row *row, const struct gap_step *step);
/* "explained: the factors reproduce the measurement within 0.4 %" or why not; of a host link the share that
 * is explained; nothing where there is no chain. */
void gap_conclusion(struct text *out, const struct view_row *row);
/* "clock, 29.5 %": the factor that costs most, in words; false where there is no chain. */
bool gap_largest(struct text *out, const struct view_row *row);
#endif
