/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of the page that name findings: what to do, settings to try, cases without a verdict, parts
 * for a ticket. */
#include "report/html/html.h"

/* Appends links to the named cases, and the number of the others. */
static void add_cases(struct text *out, const struct view_todo *t)
{
	for (unsigned i = 0; i < t->count && i < VIEW_TODO_CASES; i++) {
		text_add(out, i ? "; " : "");
		html_case_link(out, "case", t->named[i]);
	}
	if (t->count > VIEW_TODO_CASES)
		text_addf(out, "; and %u more", t->count - VIEW_TODO_CASES);
}

void html_todos(struct text *out, const struct view *v)
{
	text_add(out, "<section id=\"todo\"><h2>What to do</h2>\n");
	if (!v->todo_count)
		text_addf(out, "<p>%s</p>",
			  v->row_count ? "Nothing: no case needs attention." : "No case ran.");
	else
		text_add(out, "<ol class=\"todo\">\n");
	for (size_t i = 0; i < v->todo_count; i++) {
		const struct view_todo *t = &v->todos[i];

		if (t->spread.joined)
			continue;
		text_add(out, "<li><span>");
		html_verdict(out, t->verdict);
		text_add(out, "</span><span>");
		html_add(out, t->spread.where);
		text_add(out, ": ");
		html_element(out, "b", t->action[0] ? t->action : "look at the case");
		text_add(out, "<br><span class=\"muted\">");
		add_cases(out, t);
		text_add(out, ": ");
		html_add(out, t->reason[0] ? t->reason : cause_text(t->cause));
		if (t->cause != CAUSE_NONE)
			text_addf(out, " (<code>%s</code>)", cause_name(t->cause));
		text_add(out, "</span></span></li>\n");
	}
	text_addf(out, "%s</section>\n", v->todo_count ? "</ol>\n" : "");
}

static void add_gains(struct text *out, const struct view *v, const struct view_knob *k)
{
	for (unsigned i = 0; i < k->count && i < VIEW_KNOB_CASES; i++) {
		text_add(out, i ? "; " : "");
		html_case_link(out, "case", k->named[i]);
		text_add(out, " (");
		html_names(out, v, k->gain[i]);
		text_add(out, ")");
	}
	if (k->count > VIEW_KNOB_CASES)
		text_addf(out, "; and %u more", k->count - VIEW_KNOB_CASES);
}

void html_knobs(struct text *out, const struct view *v)
{
	if (!v->knob_count)
		return;
	text_add(out, "<section id=\"knobs\"><h2>Settings that could improve a figure</h2>\n");
	for (size_t i = 0; i < v->knob_count; i++) {
		if (v->knobs[i].spread.joined)
			continue;
		text_add(out, "<div class=\"knob\">");
		html_add(out, v->knobs[i].spread.where);
		text_add(out, ": <b>");
		html_names(out, v, v->knobs[i].knob);
		text_add(out, "</b><br><span class=\"muted\">");
		add_gains(out, v, &v->knobs[i]);
		text_add(out, "</span></div>\n");
	}
	text_add(out, "</section>\n");
}

/* Empty anchors for the cases of an entry that no table shows. */
static void add_places(struct text *out, const struct view *v, size_t entry)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].unjudged == entry + 1 && !v->rows[i].figure[0])
			html_case_place(out, &v->rows[i], "");
}

void html_unjudged(struct text *out, const struct view *v)
{
	if (!v->unjudged_count)
		return;
	text_add(out, "<section id=\"unjudged\"><h2>Not judged, and why</h2>\n<ol class=\"todo\">\n");
	for (size_t i = 0; i < v->unjudged_count; i++) {
		const struct view_unjudged *u = &v->unjudged[i];

		text_add(out, "<li><span>");
		html_verdict(out, u->verdict);
		text_addf(out, "</span><span>%u case%s: ", u->count, u->count == 1 ? "" : "s");
		html_add(out, u->reason);
		text_add(out, "<br><span class=\"muted\">");
		html_add(out, text_str(&u->some));
		text_add(out, "</span>");
		add_places(out, v, i);
		text_add(out, "</span></li>\n");
	}
	text_add(out, "</ol></section>\n");
}

void html_box(struct text *out, const struct view *v, const char *title, char (*lines)[200], size_t count)
{
	if (!count)
		return;
	text_addf(out, "<section class=\"box\"><h2>%s</h2><ul>\n", title);
	for (size_t i = 0; i < count; i++) {
		text_add(out, "<li>");
		html_names(out, v, lines[i]);
		text_add(out, "</li>\n");
	}
	text_add(out, "</ul></section>\n");
}

void html_parts(struct text *out, const struct view *v)
{
	if (!v->part_count)
		return;
	text_add(out, "<section id=\"parts\"><h2>Parts for a ticket</h2>\n"
		      "<div class=\"wide\"><table><thead><tr>"
		      "<th scope=\"col\">PCI address</th><th scope=\"col\">slot</th>"
		      "<th scope=\"col\">serial number</th><th scope=\"col\">verdict</th>"
		      "<th scope=\"col\">cause</th><th scope=\"col\">evidence</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct view_part *p = &v->parts[i];

		text_add(out, "<tr>");
		for (int column = 0; column < PART_COLUMNS; column++) {
			char text[160];

			view_part_text(text, sizeof(text), p, column);
			html_element(out, "td", text);
		}
		text_add(out, "<td>");
		html_verdict(out, p->verdict);
		text_add(out, "</td>");
		html_element(out, "td", cause_name(p->cause));
		text_add(out, "<td>");
		html_case_link(out, "case", p->row);
		text_add(out, ": ");
		html_add(out, p->row->reason);
		text_add(out, "</td></tr>\n");
	}
	text_add(out, "</tbody></table></div></section>\n");
}
