/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay compare` prints for people. */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H
#include "core/text.h"
#include "judge/compare.h"

/* Appends headline, tables and differences of inventory. `runs` are those of compare_runs; `all`: also the
 * cases that did not change, and each that could not be compared. */
void compare_show(struct text *out, const struct comparison *c, const struct compare_run *runs, bool all);
#endif
