/* SPDX-License-Identifier: Apache-2.0 */
/* The gap between the bound and the figure of one case, in words and as the steps of a waterfall. */
#ifndef REPORT_VIEW_GAP_H
#define REPORT_VIEW_GAP_H
#include <stdbool.h>
#include "report/view/view.h"

enum { GAP_STEPS_MAX = 20 };

enum gap_kind {
	GAP_FACTOR,   /* before * value = after, in the figure's unit */
	GAP_PART,     /* part of the factor before it: shown, not multiplied */
	GAP_ABSENT,   /* no signal on this machine: remains in the unexplained factor */
	GAP_RESIDUAL, /* the unexplained factor: the last step */
};

struct gap_step {
	enum gap_kind kind;
	const char *name, *signal; /* lent from the judgement or static */
	double value, before, after;
};
/* Fills the steps from bound to figure and returns their number. 0: no bound, no figure, or no factor with a
 * signal. */
size_t gap_steps(const struct view_row *row, struct gap_step steps[GAP_STEPS_MAX]);

/* True if the report shows the gap of this row: it is a headline case or a training job, and it has a bound.
 */
bool gap_shown(const struct view_row *row);
/* A sentence, without full stop, that says where the breakdowns of this view start. Static. */
const char *gap_begins(const struct view *v);

/* The data sheet's dense peak of this GPU for a limit ("compute.bf16", "memory"); 0 if no SKU row fits the
 * device. */
double gap_datasheet(const struct report_input *in, const struct gpu *gpu, const char *limit);

/* Appends "689 TFLOPS (sustained), 64.4 % of the bound of 1070 TFLOPS (132 SM x ..), MFU 69.6 % of ..." */
void gap_achieved(struct text *out, const struct view *v, const struct view_row *row);
/* Appends "clock ×0.705, costs 316 TFLOPS (1395 of 1980 MHz by stamps on every SM)" */
void gap_step_text(struct text *out, const struct view_row *row, const struct gap_step *step);
/* Appends "explained: the factors reproduce the measurement within 0.4 %" or why the gap is not explained.
 * For a host link: the explained share. Nothing if there are no steps. */
void gap_conclusion(struct text *out, const struct view_row *row);
/* Appends the factor with the largest cost, such as "clock (29.5 %)". False: no steps, or no factor costs
 * anything. */
bool gap_largest(struct text *out, const struct view_row *row);
#endif
