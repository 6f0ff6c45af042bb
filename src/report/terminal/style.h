/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the report on a terminal is laid out with: colour, verdicts, sentences that wrap. */
#ifndef REPORT_TERMINAL_STYLE_H
#define REPORT_TERMINAL_STYLE_H
#include "report/view/view.h"

enum { STYLE_VERDICT = 9 /* columns of a verdict */ };

struct terminal_style {
	struct text *out;
	const struct report_style *style;
	unsigned columns;
};

/* An SGR code, where the style has colour. */
void style_code(const struct terminal_style *p, const char *code);
void style_verdict(const struct terminal_style *p, enum verdict verdict, unsigned width);
/* A verdict and a sentence that wraps beside it. */
void style_line(const struct terminal_style *p, enum verdict verdict, const char *s);
/* An empty line, then the title. */
void style_title(const struct terminal_style *p, const char *title);

/* Parts of the report, each in a file of its own. */
void terminal_results(const struct terminal_style *p, const struct view *v);
#endif
