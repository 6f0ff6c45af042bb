/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the report on a terminal is laid out with: colour, verdicts, sentences that wrap. */
#ifndef REPORT_PAINT_H
#define REPORT_PAINT_H
#include "report/view/view.h"

enum { PAINT_VERDICT = 9 /* columns of a verdict */ };

struct paint {
	struct text *out;
	const struct report_style *style;
	unsigned columns;
};

/* An SGR code, where the style has colour. */
void paint_code(const struct paint *p, const char *code);
void paint_verdict(const struct paint *p, enum verdict verdict, unsigned width);
/* A verdict and a sentence that wraps beside it. */
void paint_line(const struct paint *p, enum verdict verdict, const char *s);
/* An empty line, then the title. */
void paint_title(const struct paint *p, const char *title);

/* Parts of the report, each in a file of its own. */
void terminal_results(const struct paint *p, const struct view *v);
#endif
