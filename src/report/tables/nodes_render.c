/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the tables of nodes and of their differences in Markdown and HTML. */
#include "report/html/html.h"
#include "report/markdown/markdown.h"
#include "report/tables/nodes.h"
#include "report/text/format.h"

struct table {
	struct text *out;
	unsigned columns;
	bool verdicts; /* the first column is the verdict */
};

static void markdown_row(void *arg, enum verdict verdict, const char *const *cells)
{
	const struct table *t = arg;

	if (t->verdicts)
		text_addf(t->out, "| %s ", verdict == VERDICT_WARN ? verdict_name(verdict) : FORMAT_NONE);
	for (unsigned i = 0; i < t->columns; i++) {
		text_add(t->out, "| ");
		markdown_text(t->out, *cells[i] ? cells[i] : FORMAT_NONE);
		text_add(t->out, " ");
	}
	text_add(t->out, "|\n");
}

static void markdown_head(const struct table *t, const char *const *headings)
{
	text_add(t->out, t->verdicts ? "\n| verdict " : "\n");
	for (unsigned i = 0; i < t->columns; i++)
		text_addf(t->out, "| %s ", headings[i]);
	text_add(t->out, t->verdicts ? "|\n| --- " : "|\n");
	for (unsigned i = 0; i < t->columns; i++)
		text_add(t->out, "| --- ");
	text_add(t->out, "|\n");
}

void nodes_markdown(struct text *out, const struct view *v)
{
	struct table nodes = {out, NODES_COLUMNS, false}, differences = {out, NODES_DIFFERENCE_COLUMNS, true};

	if (!nodes_any(v))
		return;
	text_add(out, "\n## Nodes\n");
	markdown_head(&nodes, nodes_headings);
	nodes_each(v, markdown_row, &nodes);
	if (!v->in->judged->difference_count) {
		text_addf(out, "\n%s.\n", nodes_alike(v));
		return;
	}
	text_add(out, "\n### Where nodes differ\n");
	markdown_head(&differences, nodes_difference_headings(v));
	nodes_each_difference(v, markdown_row, &differences);
}

static void html_row(void *arg, enum verdict verdict, const char *const *cells)
{
	const struct table *t = arg;

	text_add(t->out, "<tr><td>");
	if (verdict == VERDICT_WARN)
		html_verdict(t->out, verdict);
	text_add(t->out, "</td>");
	for (unsigned i = 0; i < t->columns; i++)
		html_element(t->out, "td", *cells[i] ? cells[i] : FORMAT_NONE);
	text_add(t->out, "</tr>\n");
}

static void html_head(const struct table *t, const char *const *headings)
{
	text_add(t->out, "<div class=\"wide\"><table><thead><tr><td></td>");
	for (unsigned i = 0; i < t->columns; i++)
		text_addf(t->out, "<th scope=\"col\">%s</th>", headings[i]);
	text_add(t->out, "</tr></thead><tbody>\n");
}

void nodes_html(struct text *out, const struct view *v)
{
	struct table nodes = {out, NODES_COLUMNS, true}, differences = {out, NODES_DIFFERENCE_COLUMNS, true};

	if (!nodes_any(v))
		return;
	text_add(out, "<section id=\"nodes\"><h2>Nodes</h2>\n");
	html_head(&nodes, nodes_headings);
	nodes_each(v, html_row, &nodes);
	text_add(out, "</tbody></table></div>\n");
	if (v->in->judged->difference_count) {
		text_add(out, "<h3>Where nodes differ</h3>\n");
		html_head(&differences, nodes_difference_headings(v));
		nodes_each_difference(v, html_row, &differences);
		text_add(out, "</tbody></table></div>\n");
	} else {
		text_addf(out, "<p>%s.</p>\n", nodes_alike(v));
	}
	text_add(out, "</section>\n");
}
