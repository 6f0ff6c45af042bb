/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes SVG without a library. Every element has its light colour as an attribute, for viewers without style
 * sheets, and a class for the dark colour.
 */
#include "report/plot/canvas.h"
#include <math.h>
#include "report/html/html.h"

static const char font_family[] =
	"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif";
static const char *const dashes[] = {"", "7 4", "2 4"};

#define X(name, light, dark) #name,
static const char *const role_names[] = {CANVAS_ROLES(X)};
#undef X

/* Appends a number with two decimals, without trailing zeros and "-0", the same on every machine. */
static void number(struct text *out, double value)
{
	char digits[48];
	size_t n;

	value = round(value * 100) / 100 + 0.0;
	n = (size_t)snprintf(digits, sizeof(digits), "%.2f", value == 0 ? 0.0 : value);
	while (n && digits[n - 1] == '0')
		n--;
	if (n && digits[n - 1] == '.')
		n--;
	text_add_bytes(out, digits, n);
}

static void attribute(struct text *out, const char *name, double value)
{
	text_addf(out, " %s=\"", name);
	number(out, value);
	text_add(out, "\"");
}

static void colour(struct text *out, const char *name, char prefix, enum canvas_role role)
{
	text_addf(out, " class=\"%c-%s\" %s=\"#%06x\"", prefix, role_names[role], name,
		  canvas_colour(role, false));
}

static void path(struct text *out, const struct canvas *c, const struct canvas_op *op)
{
	text_add(out, " d=\"");
	for (size_t i = 0; i < op->count; i++) {
		text_add(out, i ? "L" : "M");
		number(out, c->points[op->first + i].x);
		text_add(out, " ");
		number(out, c->points[op->first + i].y);
	}
}

static void add_op(struct text *out, const struct canvas *c, const struct canvas_op *op)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	const struct canvas_point *at = &c->points[op->first];

	switch (op->kind) {
	case CANVAS_STROKE:
		text_add(out, "<path");
		path(out, c, op);
		text_add(out, "\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"");
		colour(out, "stroke", 'k', op->role);
		attribute(out, "stroke-width", op->width);
		if (op->dash != CANVAS_SOLID)
			text_addf(out, " stroke-dasharray=\"%s\"", dashes[op->dash]);
		text_add(out, "/>\n");
		break;
	case CANVAS_FILL:
		text_add(out, "<path");
		path(out, c, op);
		text_add(out, "Z\"");
		colour(out, "fill", 'f', op->role);
		if (op->opacity < 1)
			attribute(out, "fill-opacity", op->opacity);
		text_add(out, "/>\n");
		break;
	case CANVAS_TEXT:
		text_add(out, "<text");
		attribute(out, "x", at->x);
		attribute(out, "y", at->y);
		attribute(out, "font-size", op->width);
		if (op->anchor != CANVAS_START)
			text_addf(out, " text-anchor=\"%s\"", anchors[op->anchor]);
		if (op->bold)
			text_add(out, " font-weight=\"600\"");
		if (op->angle != 0) {
			text_add(out, " transform=\"rotate(");
			number(out, op->angle);
			text_add(out, " ");
			number(out, at->x);
			text_add(out, " ");
			number(out, at->y);
			text_add(out, ")\"");
		}
		text_addf(out, " class=\"f-%s%s\" fill=\"#%06x\"", role_names[op->role],
			  op->halo ? " halo" : "", canvas_colour(op->role, false));
		if (op->halo)
			text_addf(out,
				  " stroke=\"#%06x\" stroke-width=\"3\" paint-order=\"stroke\" "
				  "stroke-linejoin=\"round\"",
				  canvas_colour(CANVAS_paper, false));
		text_add(out, ">");
		html_add(out, c->texts.data ? c->texts.data + op->text : "");
		text_add(out, "</text>\n");
		break;
	}
}

static void css_scheme(struct text *out, bool dark)
{
	for (int i = 0; i < CANVAS_ROLE_COUNT; i++)
		text_addf(out, ".k-%s{stroke:#%06x}.f-%s{fill:#%06x}%s", role_names[i],
			  canvas_colour((enum canvas_role)i, dark), role_names[i],
			  canvas_colour((enum canvas_role)i, dark), i % 3 == 2 ? "\n" : "");
	text_addf(out, ".halo{stroke:#%06x}\n", canvas_colour(CANVAS_paper, dark));
}

void canvas_css(struct text *out)
{
	css_scheme(out, false);
	text_add(out, "@media screen and (prefers-color-scheme:dark){\n");
	css_scheme(out, true);
	text_add(out, "}\n");
}

void canvas_svg(struct text *out, const struct canvas *c, const char *title, bool standalone)
{
	text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
	if (standalone) {
		attribute(out, "width", c->width);
		attribute(out, "height", c->height);
	}
	text_add(out, " viewBox=\"0 0 ");
	number(out, c->width);
	text_add(out, " ");
	number(out, c->height);
	text_addf(out, "\" role=\"img\" font-family=\"%s\">\n<title>", font_family);
	html_add(out, title);
	text_add(out, "</title>\n");
	if (standalone) {
		text_add(out, "<style>\n");
		canvas_css(out);
		text_addf(out,
			  "</style>\n<rect width=\"100%%\" height=\"100%%\" class=\"f-paper\" "
			  "fill=\"#%06x\"/>\n",
			  canvas_colour(CANVAS_paper, false));
	}
	for (size_t i = 0; i < c->op_count; i++)
		add_op(out, c, &c->ops[i]);
	text_add(out, "</svg>\n");
	if (c->failed)
		out->failed = 1;
}
