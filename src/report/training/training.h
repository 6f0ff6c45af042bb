/* SPDX-License-Identifier: Apache-2.0 */
/* A training run: what it came to, and its steps. */
#ifndef REPORT_TRAINING_TRAINING_H
#define REPORT_TRAINING_TRAINING_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* NULL: there is no training in this run. */
const struct record_case *training_case(const struct view *v);
/* A row a result, with what it means. False: there is no training in this run. */
bool training_grid(struct grid *g, const struct view *v);
/* What a step of median length went into; its rows but the last add up to the last, the step. False: no step
 * was told. */
bool training_parts_grid(struct grid *g, const struct view *v);
/* Loss, held-out loss, rates over the steps: those evaluated and a few more. A step that was done again after
 * a run went on counts as it was done last. False: there are none. */
bool training_steps_grid(struct grid *g, const struct view *v);
#endif
