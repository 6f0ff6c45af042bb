/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a grid in Markdown, in HTML and on a terminal. */
#include "report/tables/grid.h"
#include "report/html/html.h"
#include "report/markdown/markdown.h"
#include "report/terminal/style.h"
#include "core/text/width.h"
#include "report/text/format.h"

void grid_markdown(struct text *out, const struct grid *g)
{
	text_add(out, "\n### ");
	markdown_text(out, text_str(&g->title));
	text_add(out, "\n\n|");
	for (size_t k = 0; k < g->columns; k++)
		text_addf(out, *g->column[k].head ? " %s |" : " %s|", g->column[k].head);
	text_add(out, "\n|");
	for (size_t k = 0; k < g->columns; k++)
		text_add(out, g->column[k].right ? " ---: |" : " --- |");
	for (size_t i = 0; i < grid_rows(g); i++) {
		text_add(out, "\n|");
		for (size_t k = 0; k < g->columns; k++)
			markdown_cell(out, grid_at(g, i, k));
	}
	text_add(out, "\n");
	if (g->note.size) {
		text_add(out, "\n");
		markdown_text(out, text_str(&g->note));
		text_add(out, ".\n");
	}
	out->failed |= g->failed;
}

/* `*hint`, `*place`: index of the next hint and place, which advances if it belongs to this cell. */
static void html_cell(struct text *out, const struct grid *g, size_t cell, size_t *hint, size_t *place)
{
	size_t column = cell % g->columns;
	const char *tag = !column && g->row_heads ? "th" : "td";

	text_addf(out, "<%s%s%s", tag, tag[1] == 'h' ? " scope=\"row\"" : "",
		  g->column[column].right ? " class=\"num\"" : "");
	if (*place < g->places && g->place[*place].cell == cell) {
		text_add(out, " id=\"");
		html_case_id(out, "case", g->place[(*place)++].row);
		text_add(out, "\"");
	}
	if (*hint < g->hints && g->hint[*hint].cell == cell) {
		text_add(out, " title=\"");
		html_add(out, g->hint[(*hint)++].text);
		text_add(out, "\"");
	}
	text_add(out, ">");
	html_add(out, g->cell[cell]);
	text_addf(out, "</%s>", tag);
}

void grid_html(struct text *out, const struct grid *g)
{
	size_t hint = 0, place = 0;

	if (g->folded) {
		text_add(out, "<details class=\"group\"><summary>");
		html_element(out, "b", text_str(&g->title));
		text_addf(out, "<span class=\"muted\">%zu rows</span></summary>", grid_rows(g));
	} else {
		text_add(out, "<div class=\"group\">");
		html_element(out, "h3", text_str(&g->title));
	}
	text_addf(out, "\n<div class=\"wide\"><table class=\"%s\"><thead><tr>", g->style ? g->style : "grid");
	for (size_t k = 0; k < g->columns; k++)
		text_addf(out, *g->column[k].head ? "<th%s scope=\"col\">%s</th>" : "<td%s>%s</td>",
			  g->column[k].right ? " class=\"num\"" : "", g->column[k].head);
	text_add(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < grid_rows(g); i++) {
		text_add(out, "<tr>");
		for (size_t k = 0; k < g->columns; k++)
			html_cell(out, g, i * g->columns + k, &hint, &place);
		text_add(out, "</tr>\n");
	}
	text_add(out, "</tbody></table></div>\n");
	if (g->note.size) {
		text_add(out, "<p class=\"muted\">");
		html_add(out, text_str(&g->note));
		text_add(out, ".</p>\n");
	}
	text_add(out, g->folded ? "</details>\n" : "</div>\n");
	out->failed |= g->failed;
}

/* Appends a row; `row` -1: the headings. A last column of words wraps within the room that the others leave.
 */
static void terminal_line(const struct terminal_style *p, const struct grid *g, const unsigned *width,
			  long row)
{
	unsigned used = 0;

	for (size_t k = 0; k < g->columns; k++) {
		const char *one = row < 0 ? g->column[k].head : grid_at(g, (size_t)row, k);
		unsigned room = width[k];

		if (k)
			text_add(p->out, "  ");
		used += k ? 2 : 0;
		if (k + 1 == g->columns && !g->column[k].right) {
			width_wrap(p->out, one, p->columns, used, used);
			break;
		}
		width_add(p->out, one, room, g->column[k].right ? WIDTH_RIGHT : WIDTH_LEFT);
		used += room;
	}
	text_add(p->out, "\n");
}

/* The total width of the columns. A last column of words counts with its minimum width only. */
static unsigned wide(const struct grid *g, const unsigned *width)
{
	enum { WORDS_LEAST = 12 };
	unsigned sum = 0;

	for (size_t k = 0; k < g->columns; k++) {
		bool words = k && k + 1 == g->columns && !g->column[k].right;

		sum += (k ? 2 : 0) + (words && width[k] > WORDS_LEAST ? WORDS_LEAST : width[k]);
	}
	return sum;
}

/* Appends a row as a sentence, "node-b: state whole; ranks 8". Used if the columns do not fit side by side.
 */
static void terminal_sentence(const struct terminal_style *p, const struct grid *g, size_t row)
{
	struct text line = {0};
	const char *between = ": ";

	text_add(&line, grid_at(g, row, 0));
	for (size_t k = 1; k < g->columns; k++) {
		const char *one = grid_at(g, row, k);

		if (!*one || !strcmp(one, FORMAT_NONE))
			continue;
		text_addf(&line, "%s%s %s", between, g->column[k].head, one);
		between = "; ";
	}
	width_wrap(p->out, text_str(&line), p->columns, 0, 2);
	text_add(p->out, "\n");
	text_release(&line);
}

void grid_terminal(const struct terminal_style *p, const struct grid *g)
{
	size_t shown = g->brief && g->brief < grid_rows(g) ? g->brief : grid_rows(g);
	unsigned width[GRID_COLUMNS];
	bool table;

	for (size_t k = 0; k < g->columns; k++) {
		width[k] = width_of(g->column[k].head);
		for (size_t i = 0; i < shown; i++)
			if (width_of(grid_at(g, i, k)) > width[k])
				width[k] = width_of(grid_at(g, i, k));
	}
	table = wide(g, width) <= p->columns;
	style_title(p, text_str(&g->title));
	if (table) {
		style_code(p, "\033[2m");
		terminal_line(p, g, width, -1);
		style_code(p, "\033[0m");
	}
	for (size_t i = 0; i < shown; i++) {
		if (table)
			terminal_line(p, g, width, (long)i);
		else
			terminal_sentence(p, g, i);
	}
	if (shown < grid_rows(g))
		text_addf(p->out, "and %zu more; REPORT.md lists them\n", grid_rows(g) - shown);
	if (g->note.size) {
		width_wrap(p->out, text_str(&g->note), p->columns, 0, 0);
		text_add(p->out, "\n");
	}
	p->out->failed |= g->failed;
}
