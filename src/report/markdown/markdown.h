/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of REPORT.md. */
#ifndef REPORT_MARKDOWN_MARKDOWN_H
#define REPORT_MARKDOWN_MARKDOWN_H
#include "report/view/view.h"

/* Markdown's own marks, HTML's angle brackets and the table's bar get a backslash; control characters become
 * spaces. */
void markdown_text(struct text *out, const char *s);
/* " text |"; a dash for "". */
void markdown_cell(struct text *out, const char *s);
void markdown_results(struct text *out, const struct view *v);
/* "## Where the rest went" of every device of the run; nothing where no case has a figure. */
void markdown_gaps(struct text *out, const struct view *v);
void markdown_sanity(struct text *out, const struct view *v);
void markdown_conditions(struct text *out, const struct view *v);
#endif
