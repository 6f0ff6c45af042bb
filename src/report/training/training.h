/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a training run: results, parts of a step, steps. */
#ifndef REPORT_TRAINING_TRAINING_H
#define REPORT_TRAINING_TRAINING_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* The training case of the run; NULL: there is none. */
const struct record_case *training_case(const struct view *v);
/* Fills one row per result, with its meaning. False: the run has no training. */
bool training_grid(struct grid *g, const struct view *v);
/* Fills the parts of the step of median length. The last row is the whole step, the sum of the others. False:
 * no step was reported. */
bool training_parts_grid(struct grid *g, const struct view *v);
/* Fills loss, held-out loss and rates over the steps: the evaluated steps and a few more. If a resumed run
 * repeated a step, the last one counts. False: there are none. */
bool training_steps_grid(struct grid *g, const struct view *v);
#endif
