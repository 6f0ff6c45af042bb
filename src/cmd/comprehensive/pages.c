/* SPDX-License-Identifier: Apache-2.0 */
/* index.html, and a page for each stage whose command writes no report of its own. */
#include <stdlib.h>
#include <unistd.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/file/file.h"
#include "report/html/html.h"
#include "report/text/format.h"

enum { MESSAGES_MOST = 1 << 20, MESSAGES_SHOWN = 8000 };

/* The class of report.css that has the fitting colour. */
static const char *class_of(enum stage_verdict verdict)
{
	return verdict == VERDICT_STAGE_PASSED	       ? "pass"
	       : verdict == VERDICT_STAGE_FAILED       ? "fail"
	       : verdict == VERDICT_STAGE_INCONCLUSIVE ? "unknown"
						       : "skip";
}

static void add_verdict(struct text *out, enum stage_verdict verdict)
{
	text_addf(out, "<span class=\"verdict v-%s\">%s</span>", class_of(verdict),
		  stage_verdict_word(verdict));
}

static void add_paragraph(struct text *out, const char *s)
{
	if (*s)
		html_element(out, "p", s);
}

static void value_text(char *out, size_t size, const json_t *figure)
{
	const json_t *value = json_object_get(figure, "value");

	if (json_is_string(value))
		snprintf(out, size, "%s", json_string_value(value));
	else
		format_quantity(out, size, json_number_value(value), 0,
				json_string_value(json_object_get(figure, "unit")));
}

static void add_figures(struct text *out, const json_t *figures)
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
		const char *note = json_string_value(json_object_get(one, "note"));
		char value[80];

		value_text(value, sizeof(value), one);
		text_add(out, "<tr>");
		html_element(out, "td", json_string_value(json_object_get(one, "name")));
		html_element(out, "td", value);
		html_element(out, "td", note ? note : "");
		text_add(out, "</tr>\n");
	}
	text_add(out, "</tbody></table>\n");
}

/* The end of messages.txt. */
static void add_messages(struct text *out, const char *dir)
{
	char path[PATH_MAX + 64];
	struct error err = {0};
	char *text = NULL;
	size_t size = 0;

	snprintf(path, sizeof(path), "%s/messages.txt", dir);
	if (!file_read(&text, &size, path, MESSAGES_MOST, &err) && size) {
		text_add(out, "<h2>Messages</h2>\n<pre>");
		text_add_html(out, text + (size > MESSAGES_SHOWN ? size - MESSAGES_SHOWN : 0));
		text_add(out, "</pre>\n");
	}
	free(text);
}

static enum status write_page(const struct comprehensive *s, enum stage_id id, const char *dir,
			      struct error *err)
{
	const struct stage_result *r = &s->result[id];
	struct text out = {0}, command = {0};
	char path[PATH_MAX + 64];
	enum status st;

	html_begin(&out, stage_list[id].title);
	text_addf(&out, "<main id=\"main\"><header class=\"v-%s\">", class_of(r->verdict));
	add_verdict(&out, r->verdict);
	text_addf(&out, "<h1>Stage %d: %s</h1></header>\n", (int)id + 1, stage_list[id].title);
	add_paragraph(&out, stage_list[id].says);
	add_paragraph(&out, r->headline);
	add_paragraph(&out, r->reason);
	stage_command_text(&command, &r->command);
	html_element(&out, "pre", text_str(&command));
	add_figures(&out, r->figures);
	add_messages(&out, dir);
	text_add(&out, "<p><a href=\"../index.html\">All stages</a></p></main>\n");
	html_end(&out);
	snprintf(path, sizeof(path), "%s/stage.html", dir);
	st = file_write(path, text_str(&out), out.size, err);
	text_release(&out);
	text_release(&command);
	return st;
}

/* Decides which page shows the stage, and writes it if no command did. */
static enum status set_page(struct comprehensive *s, enum stage_id id, struct error *err)
{
	struct stage_result *r = &s->result[id];
	char dir[PATH_MAX + 32], path[PATH_MAX + 64];
	const char *name = "report.html";

	if (!r->command.count)
		return STATUS_OK;
	stage_dir(s, id, dir);
	snprintf(path, sizeof(path), "%s/report.html", dir);
	if (!stage_list[id].report || access(path, R_OK))
		name = "stage.html";
	snprintf(r->page, sizeof(r->page), "%s/%s", strrchr(dir, '/') + 1, name);
	return strcmp(name, "stage.html") ? STATUS_OK : write_page(s, id, dir, err);
}

static void add_row(struct text *out, const struct comprehensive *s, int id)
{
	const struct stage_result *r = &s->result[id];

	text_addf(out, "<tr><td>%d</td><td>", id + 1);
	if (*r->page)
		text_addf(out, "<a href=\"%s\">", r->page);
	html_add(out, stage_list[id].title);
	text_add(out, *r->page ? "</a></td><td>" : "</td><td>");
	add_verdict(out, r->verdict);
	text_addf(out, "</td><td>%s</td><td>", stage_list[id].core ? "core" : "optional");
	html_add(out, r->headline);
	if (*r->headline && *r->reason)
		text_add(out, "<br>");
	html_add(out, r->reason);
	if (r->seconds > 0)
		text_addf(out, "</td><td>%.0f s</td></tr>\n", r->seconds);
	else
		text_add(out, "</td><td>–</td></tr>\n");
}

static enum status write_index(const struct comprehensive *s, struct error *err)
{
	static const char *const overall[] = {"pass", "fail", "unknown"}, *const words[] = {"passed",
											    "failed",
											    "inconclusive"};
	const int code = comprehensive_code(s);
	struct text out = {0};
	char path[PATH_MAX + 32];
	enum status st;

	html_begin(&out, "comprehensive");
	text_addf(&out, "<main id=\"main\"><header class=\"v-%s\"><span class=\"verdict v-%s\">%s</span>",
		  overall[code], overall[code], words[code]);
	text_addf(&out, "<h1>assay comprehensive</h1><p class=\"muted\">%s, %.0f s</p></header>\n", s->began,
		  s->seconds);
	text_add(
		&out,
		"<table><thead><tr><th scope=\"col\">stage</th><th scope=\"col\">subject</th><th scope=\"col\">"
		"verdict</th><th scope=\"col\">kind</th><th scope=\"col\">headline</th><th scope=\"col\">time</th>"
		"</tr></thead><tbody>\n");
	for (int i = 0; i < STAGE_COUNT; i++)
		add_row(&out, s, i);
	text_add(&out, "</tbody></table>\n<p><a href=\"SUMMARY.md\">SUMMARY.md</a>, "
		       "<a href=\"summary.json\">summary.json</a></p></main>\n");
	html_end(&out);
	snprintf(path, sizeof(path), "%s/index.html", s->dir);
	st = file_write(path, text_str(&out), out.size, err);
	text_release(&out);
	return st;
}

enum status comprehensive_write_pages(struct comprehensive *s, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < STAGE_COUNT; i++)
		st = set_page(s, (enum stage_id)i, err);
	return st ? st : write_index(s, err);
}
