/* SPDX-License-Identifier: Apache-2.0 */
/* A report of several runs, of one machine or several. */
#ifndef REPORT_FILES_MERGE_H
#define REPORT_FILES_MERGE_H
#include "report/view/view.h"

/* Appends one heading line and the lines of every run. */
void merge_csv(struct text *out, const struct view *views, size_t count);
/* Appends a table of all devices, then the gaps and conditions of every run. */
void merge_markdown(struct text *out, const struct view *views, size_t count);

/* Parts of results.csv (report/data/csv.c): a quoted text, the heading line, the lines of one run. */
void csv_text(struct text *out, const char *s);
void csv_heading(struct text *out);
void csv_lines(struct text *out, const struct view *v);
#endif
