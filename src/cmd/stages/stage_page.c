/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stages/stage_page.h"
#include <stdlib.h>
#include "core/json/member.h"
#include "report/html/html.h"

enum { MESSAGES_SHOWN = 8000 };

void stage_page_verdict(struct text *out, enum stage_verdict verdict)
{
	text_addf(out, "<span class=\"verdict v-%s\">%s</span>", stage_verdict_class(verdict),
		  stage_verdict_word(verdict));
}

void stage_page_paragraph(struct text *out, const char *s)
{
	if (*s)
		html_element(out, "p", s);
}

void stage_page_command(struct text *out, const struct stage_command *k)
{
	struct text command = {0};

	stage_command_text(&command, k);
	html_element(out, "pre", text_str(&command));
	text_release(&command);
}

void stage_page_figures(struct text *out, const json_t *figures)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(figures))
		return;
	text_add(
		out,
		"<table><thead><tr><th scope=\"col\">figure</th><th scope=\"col\">value</th><th scope=\"col\">"
		"note</th></tr></thead><tbody>\n");
	json_array_foreach((json_t *)figures, i, one)
	{
		char value[80];

		stage_figure_value(value, sizeof(value), one);
		text_add(out, "<tr>");
		html_element(out, "td", json_member_text(one, "name"));
		html_element(out, "td", value);
		html_element(out, "td", json_member_text(one, "note"));
		text_add(out, "</tr>\n");
	}
	text_add(out, "</tbody></table>\n");
}

void stage_page_messages(struct text *out, const char *dir)
{
	size_t size = 0;
	char *text = stage_read_text(dir, "messages.txt", &size);

	if (text && size) {
		text_add(out, "<h2>Messages</h2>\n<pre>");
		text_add_html(out, text + (size > MESSAGES_SHOWN ? size - MESSAGES_SHOWN : 0));
		text_add(out, "</pre>\n");
	}
	free(text);
}

void stage_page_cell(struct text *out, const char *s)
{
	for (; *s; s++)
		text_addf(out, *s == '|' ? "\\%c" : "%c", *s == '\n' ? ' ' : *s);
}
