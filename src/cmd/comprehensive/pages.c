/* SPDX-License-Identifier: Apache-2.0 */
/* index.html, and a page for each stage whose command writes no report of its own. */
#include <unistd.h>
#include "cmd/comprehensive/comprehensive.h"
#include "cmd/stages/stage_page.h"
#include "core/file/file.h"
#include "report/html/html.h"

static enum status write_page(const struct comprehensive *s, enum stage_id id, const char *dir,
			      struct error *err)
{
	const struct stage_result *r = &s->result[id];
	struct text out = {0};
	char path[PATH_MAX + 64];
	enum status st;

	html_begin(&out, stage_list[id].title);
	text_addf(&out, "<main id=\"main\"><header class=\"v-%s\">", stage_verdict_class(r->verdict));
	stage_page_verdict(&out, r->verdict);
	text_addf(&out, "<h1>Stage %d: %s</h1></header>\n", (int)id + 1, stage_list[id].title);
	stage_page_paragraph(&out, stage_list[id].says);
	stage_page_paragraph(&out, r->headline);
	stage_page_paragraph(&out, r->reason);
	stage_page_command(&out, &r->command);
	stage_page_figures(&out, r->figures);
	stage_page_messages(&out, dir);
	text_add(&out, "<p><a href=\"../index.html\">All stages</a></p></main>\n");
	html_end(&out);
	snprintf(path, sizeof(path), "%s/stage.html", dir);
	st = file_write(path, text_str(&out), out.size, err);
	text_release(&out);
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
	stage_page_verdict(out, r->verdict);
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
	const enum stage_verdict verdict = stage_verdict_of(comprehensive_code(s));
	const char *class = stage_verdict_class(verdict);
	struct text out = {0};
	char path[PATH_MAX + 32];
	enum status st;

	html_begin(&out, "comprehensive");
	text_addf(&out, "<main id=\"main\"><header class=\"v-%s\"><span class=\"verdict v-%s\">%s</span>",
		  class, class, stage_verdict_word(verdict));
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
