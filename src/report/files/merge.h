/* SPDX-License-Identifier: Apache-2.0 */
/* Several runs, of one machine or many, in one report. */
#ifndef REPORT_FILES_MERGE_H
#define REPORT_FILES_MERGE_H
#include "report/view/view.h"

/* One heading line, then every run's lines. */
void merge_csv(struct text *out, const struct view *views, size_t count);
/* Devices side by side, then each device's gap, the runs' conditions. */
void merge_markdown(struct text *out, const struct view *views, size_t count);

/* Of one run, for the above (report/data/csv.c). */
void csv_text(struct text *out, const char *s);
void csv_heading(struct text *out);
void csv_lines(struct text *out, const struct view *v);
#endif
