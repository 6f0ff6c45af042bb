/* SPDX-License-Identifier: Apache-2.0 */
/* Anchors of cases on the page. */
#include "report/html/html.h"

void html_case_id(struct text *out, const char *prefix, const struct view_row *row)
{
	text_addf(out, "%s-%u", prefix, row->c->id);
	if (row->c->rank)
		text_addf(out, "-rank-%u", row->c->rank);
}

void html_case_link(struct text *out, const char *prefix, const struct view_row *row)
{
	text_add(out, "<a href=\"#");
	html_case_id(out, prefix, row);
	text_add(out, "\">");
	html_add(out, row->title);
	text_add(out, "</a>");
}

void html_case_place(struct text *out, const struct view_row *row, const char *s)
{
	text_add(out, "<span id=\"");
	html_case_id(out, "case", row);
	text_add(out, "\">");
	html_add(out, s);
	text_add(out, "</span>");
}
