/* SPDX-License-Identifier: Apache-2.0 */
#include "report/terminal/style.h"
#include "core/text/width.h"

/* The SGR code of a verdict. Colour is never the only sign: the verdict's word is always printed. */
static const char *colour_of(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_PASS:
		return "\033[32m";
	case VERDICT_WARN:
	case VERDICT_UNTRUSTED:
		return "\033[33m";
	case VERDICT_FAIL:
	case VERDICT_ERROR:
		return "\033[1;31m";
	case VERDICT_MEASURED:
		return "\033[36m";
	case VERDICT_UNKNOWN:
		return "\033[35m";
	case VERDICT_SKIP:
	case VERDICT_COUNT:
		break;
	}
	return "\033[2m";
}

void style_code(const struct terminal_style *p, const char *code)
{
	if (p->style->colour)
		text_add(p->out, code);
}

void style_verdict(const struct terminal_style *p, enum verdict verdict, unsigned width)
{
	style_code(p, colour_of(verdict));
	width_add(p->out, verdict_name(verdict), width, WIDTH_LEFT);
	style_code(p, "\033[0m");
}

void style_line(const struct terminal_style *p, enum verdict verdict, const char *s)
{
	style_verdict(p, verdict, STYLE_VERDICT);
	text_add(p->out, " ");
	width_wrap(p->out, s, p->columns, STYLE_VERDICT + 1, STYLE_VERDICT + 1);
	text_add(p->out, "\n");
}

void style_title(const struct terminal_style *p, const char *title)
{
	text_add(p->out, "\n");
	style_code(p, "\033[1m");
	width_wrap(p->out, title, p->columns, 0, 0);
	style_code(p, "\033[0m");
	text_add(p->out, "\n");
}
