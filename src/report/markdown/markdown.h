/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of REPORT.md. */
#ifndef REPORT_MARKDOWN_MARKDOWN_H
#define REPORT_MARKDOWN_MARKDOWN_H
#include "report/view/view.h"

/* Appends `s` escaped for Markdown: Markdown's own marks, angle brackets and the table's bar get a backslash,
 * control characters become spaces, bytes that are not UTF-8 become U+FFFD. */
void markdown_text(struct text *out, const char *s);
/* Appends one table cell, " text |"; a dash for an empty text. */
void markdown_cell(struct text *out, const char *s);
void markdown_results(struct text *out, const struct view *v);
/* Appends the section "Gap to the bound" with every device of the run; nothing if no case has a figure. */
void markdown_gaps(struct text *out, const struct view *v);
void markdown_sanity(struct text *out, const struct view *v);
void markdown_conditions(struct text *out, const struct view *v);
#endif
