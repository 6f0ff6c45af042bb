/* SPDX-License-Identifier: Apache-2.0 */
/* A curve on the page: its levels, its plot and a table of its points. */
#include "report/html/html.h"
#include "report/text/format.h"

static void add_point(struct text *out, const struct curve_series *s, double bytes)
{
	char one[96];

	text_add(out, "<td class=\"num\"");
	for (size_t i = 0; i < s->count; i++)
		if (s->point[i].bytes == bytes) {
			text_add(out, " id=\"");
			html_case_id(out, "case", s->point[i].row);
			text_add(out, "\"");
		}
	curve_cell(one, sizeof(one), s, bytes);
	text_add(out, ">");
	html_add(out, one);
	text_add(out, "</td>");
}

static void add_points(struct text *out, const struct curve *c)
{
	char one[96];

	text_add(
		out,
		"<div class=\"wide\"><table class=\"points\"><thead><tr><th class=\"num\" scope=\"col\">size</th>");
	for (size_t i = 0; i < c->series_count; i++) {
		text_add(out, "<th class=\"num\" scope=\"col\">");
		html_add(out, c->series[i].name);
		text_add(out, "</th>");
	}
	text_add(out, "</tr></thead><tbody>\n");
	for (size_t k = 0; k < c->size_count; k++) {
		format_bytes(one, sizeof(one), c->size[k]);
		text_addf(out, "<tr><td class=\"num\">%s</td>", one);
		for (size_t i = 0; i < c->series_count; i++) {
			add_point(out, &c->series[i], c->size[k]);
		}
		text_add(out, "</tr>\n");
	}
	text_add(out, "</tbody></table></div>\n");
}

void html_curve(struct text *out, const struct curve *c)
{
	struct canvas drawing;
	struct text doubt = {0};
	char one[96];

	text_add(out, "<div class=\"curve\"><h4>");
	html_add(out, c->title);
	text_add(out, "</h4>\n");
	if (c->level_count)
		text_add(out, "<ul class=\"levels\">");
	for (size_t i = 0; i < c->level_count; i++) {
		curve_level_text(one, sizeof(one), &c->level[i]);
		text_add(out, "<li>");
		html_add(out, one);
		text_add(out, "</li>");
	}
	text_add(out, c->level_count ? "</ul>\n" : "");
	for (size_t i = 0; i < c->fit_count; i++) {
		struct text fit = {0};

		curve_fit_text(&fit, &c->fit[i]);
		text_add(out, "<p class=\"fit\">");
		html_add(out, text_str(&fit));
		text_add(out, "</p>\n");
		text_release(&fit);
	}
	canvas_init(&drawing, CURVE_WIDTH, CURVE_HEIGHT);
	curve_draw(&drawing, c);
	text_add(out, "<div class=\"wide plot\">");
	canvas_svg(out, &drawing, c->title, false);
	canvas_release(&drawing);
	text_add(out, "</div>\n<details><summary>points of the curve</summary>\n");
	add_points(out, c);
	curve_doubt_text(&doubt, c);
	if (doubt.size) {
		text_add(out, "<p class=\"muted\">");
		html_add(out, text_str(&doubt));
		text_add(out, "</p>");
	}
	text_release(&doubt);
	text_add(out, "</details></div>\n");
}
