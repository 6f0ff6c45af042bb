/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of report.html, some of which PROFILE.html uses too. */
#ifndef REPORT_HTML_HTML_H
#define REPORT_HTML_HTML_H
#include "report/view/view.h"

/* Appends `s`, escaped for text and attributes of HTML and XML. Control characters and marks that change the
 * direction of text become spaces; bytes that are not UTF-8 become U+FFFD. */
void html_add(struct text *out, const char *s);
/* Appends a verdict as a badge. */
void html_verdict(struct text *out, enum verdict verdict);
/* Appends `s` like html_add, with names replaced by pseudonyms first. */
void html_names(struct text *out, const struct view *v, const char *s);

/* html_begin appends a page from its doctype to the opened body, with the style and a policy that allows only
 * the page's own style and script. html_end appends the script and the end of the page. */
void html_begin(struct text *out, const char *title);
void html_end(struct text *out);

/* Appends <tag>text</tag> with the text escaped. */
void html_element(struct text *out, const char *tag, const char *s);

/* The sections with findings: what to do, settings to try, cases without a verdict, parts for a ticket. The
 * last three append nothing if there are none. html_box appends a titled list, nothing if `count` is 0. */
void html_todos(struct text *out, const struct view *v);
void html_knobs(struct text *out, const struct view *v);
void html_unjudged(struct text *out, const struct view *v);
void html_parts(struct text *out, const struct view *v);
void html_box(struct text *out, const struct view *v, const char *title, char (*lines)[200], size_t count);

/* Every case that the page shows has one place with the id "case-ID" or "case-ID-rank-R", where ID is `case`
 * in results.json and R a rank above 0. A case with details has a second place, "gap-ID". html_case_id
 * appends an id, html_case_link a link with the case's title, html_case_place the place itself around the
 * text `s`. */
void html_case_id(struct text *out, const char *prefix, const struct view_row *row);
void html_case_link(struct text *out, const char *prefix, const struct view_row *row);
void html_case_place(struct text *out, const struct view_row *row, const char *s);

/* Appends the section of results. */
void html_results(struct text *out, const struct view *v);
/* Appends the details of a headline case: figure, waterfall, settings to try, telemetry. `open`: unfolded. */
void html_case(struct text *out, const struct view *v, const struct view_row *row, bool open);
/* Appends a curve: its levels, its plot, and its points in a table that unfolds. */
void html_curve(struct text *out, const struct curve *c);
/* Appends the section with the charts of a load test; nothing if the run has none. */
void html_load(struct text *out, const struct view *v);
/* Appends a plot of clock, power and temperature during a case; nothing if none was recorded. */
void html_telemetry(struct text *out, const struct view *v, const struct view_row *row);
#endif
