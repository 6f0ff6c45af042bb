/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay compare` prints for people. */
#ifndef CMD_COMPARE_COMPARE_H
#define CMD_COMPARE_COMPARE_H
#include "core/text/text.h"
#include "judge/compare/compare.h"

/* Appends headline, tables and differences of inventory. `runs` are those of compare_runs; `all`: also the
 * cases that did not change, and each that could not be compared. */
void compare_show(struct text *out, const struct comparison *c, const struct compare_run *runs, size_t count,
		  bool all);
/* What tells `name`, a run's, from the others: its path without the folders that all of them begin and end
 * with. */
void compare_name(char *out, size_t size, const struct compare_run *runs, size_t count, const char *name);
#endif
