/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the report on a terminal: colour, verdicts, sentences that wrap. */
#ifndef REPORT_TERMINAL_STYLE_H
#define REPORT_TERMINAL_STYLE_H
#include "report/view/view.h"

enum { STYLE_VERDICT = 9 /* width of a verdict */ };

struct terminal_style {
	struct text *out;
	const struct report_style *style;
	unsigned columns;
};

/* Appends an SGR code if the style has colour. */
void style_code(const struct terminal_style *p, const char *code);
void style_verdict(const struct terminal_style *p, enum verdict verdict, unsigned width);
/* Appends a verdict, and a sentence that wraps to the right of it. */
void style_line(const struct terminal_style *p, enum verdict verdict, const char *s);
/* Appends an empty line and the title. */
void style_title(const struct terminal_style *p, const char *title);

/* Appends the tables of results (results.c). */
void terminal_results(const struct terminal_style *p, const struct view *v);
#endif
