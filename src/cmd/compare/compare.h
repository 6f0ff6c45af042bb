/* SPDX-License-Identifier: Apache-2.0 */
/* The text output of `assay compare`. */
#ifndef CMD_COMPARE_COMPARE_H
#define CMD_COMPARE_COMPARE_H
#include <jansson.h>
#include "core/text/text.h"
#include "judge/compare/compare.h"
#include "judge/compare/scaling.h"

/* Appends headline, tables and inventory differences. `runs` are the runs given to compare_runs. `all`
 * also shows the cases that did not change, and each case that could not be compared. */
void compare_show(struct text *out, const struct comparison *c, const struct compare_run *runs, size_t count,
		  bool all);
/* Makes a short name for run `name`: its path without the folders at the beginning and the end that all
 * runs share. */
void compare_name(char *out, size_t size, const struct compare_run *runs, size_t count, const char *name);
/* Appends the table of efficiencies and one sentence per run (scaling.c). */
void compare_scaling_show(struct text *out, const struct scaled_runs *s, const struct compare_run *runs,
			  size_t count);
/* Owner: caller; NULL: no memory. */
json_t *compare_scaling_json(const struct scaled_runs *s);
#endif
