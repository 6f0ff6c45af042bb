/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of a load test on the page. */
#include "report/html/html.h"
#include "report/load/load.h"

static void add_chart(struct text *out, const struct load_chart *chart)
{
	struct canvas c;

	canvas_init(&c, LINES_WIDTH, LINES_HEIGHT);
	lines_draw(&c, &chart->lines);
	text_add(out, "<figure class=\"plot\">");
	html_element(out, "h4", chart->title);
	text_add(out, "<div class=\"wide\">");
	canvas_svg(out, &c, chart->title, false);
	text_add(out, "</div><figcaption>");
	html_element(out, "span", chart->caption);
	if (chart->lines.shade_from < chart->lines.shade_to)
		text_add(out, "<span>shaded: the measured window</span>");
	text_add(out, "</figcaption></figure>\n");
	canvas_release(&c);
}

void html_load(struct text *out, const struct view *v)
{
	struct load_chart charts[LOAD_CHARTS];
	const size_t count = load_charts(charts, v);

	if (!load_values(v))
		return;
	text_add(out, "<section id=\"charts\"><h2>Charts</h2>\n");
	text_add(out, count ? "" : "<p>The run has no curves.</p>\n");
	for (size_t i = 0; i < count; i++) {
		add_chart(out, &charts[i]);
		load_chart_release(&charts[i]);
	}
	text_add(out, "</section>\n");
}
