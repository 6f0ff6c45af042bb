/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of report.html. */
#ifndef REPORT_HTML_HTML_H
#define REPORT_HTML_HTML_H
#include "report/view/view.h"

/* Appends `s` escaped for text and attributes of HTML and XML; control characters, marks that turn the
 * direction of what follows, and bytes that are not UTF-8 do not pass. */
void html_add(struct text *out, const char *s);
/* A verdict as a badge. */
void html_verdict(struct text *out, enum verdict verdict);
/* The same text with names replaced first. */
void html_names(struct text *out, const struct view *v, const char *s);

/* A page from its doctype to the open body: style and script are in it, and a policy that allows these alone;
 * then its end, script and all. */
void html_begin(struct text *out, const char *title);
void html_end(struct text *out);

/* As an element of its own: <tag>text</tag>. */
void html_element(struct text *out, const char *tag, const char *s);

/* The section of results. */
void html_results(struct text *out, const struct view *v);
/* A headline case: figure, waterfall, knobs, telemetry. `open`: unfolded. */
void html_case(struct text *out, const struct view *v, const struct view_row *row, bool open);
/* A curve: its levels, its plot, its points in a table that unfolds. */
void html_curve(struct text *out, const struct curve *c);
/* Clock and power over the run of a case; nothing where neither was recorded. */
void html_telemetry(struct text *out, const struct view *v, const struct view_row *row);
#endif
