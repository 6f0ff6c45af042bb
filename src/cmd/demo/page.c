/* SPDX-License-Identifier: Apache-2.0 */
/* demo.html: the tour on one page that loads nothing from elsewhere. */
#include <stdlib.h>
#include <unistd.h>
#include "cmd/demo/demo.h"
#include "cmd/stages/stage_page.h"
#include "core/file/file.h"
#include "core/text/units.h"
#include "journal/record/record.h"
#include "report/html/html.h"
#include "report/plot/lines.h"

enum { OUTPUT_COLUMNS = 200, FIGURES_OPEN = 12 };

static void add_header(struct text *out, const struct demo *d)
{
	static const enum stage_verdict overall[] = {VERDICT_STAGE_PASSED, VERDICT_STAGE_FAILED,
						     VERDICT_STAGE_INCONCLUSIVE};
	const enum stage_verdict verdict = overall[demo_code(d)];
	char seconds[32];

	units_format_clock(seconds, sizeof(seconds), d->seconds);
	text_addf(out, "<header class=\"v-%s\">", stage_verdict_class(verdict));
	stage_page_verdict(out, verdict);
	text_addf(out, "<h1>assay demo %s</h1>\n", tour_words[d->tour]);
	stage_page_paragraph(out, d->host);
	text_addf(out,
		  "<p class=\"muted\">%s, %s min, assay " ASSAY_VERSION
		  ". Every step is an assay command that anybody can repeat. Its results come from its run "
		  "directory. The links work while this page lies in its folder.</p></header>\n",
		  d->began, seconds);
}

static bool is_there(const char *dir, const char *name)
{
	char path[PATH_MAX + 128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, R_OK);
}

/* Links to the files of a step that exist. */
static void add_links(struct text *out, const struct demo *d, enum step_id id)
{
	static const struct {
		const char *file, *text;
	} files[] = {
		{"report.html", "report"},    {"run/report.html", "report"},
		{"run/index.html", "report"}, {"serve/report.html", "the server's report"},
		{"REPORT.md", "as text"},     {"output.txt", "all output"},
		{"messages.txt", "messages"},
	};
	char dir[PATH_MAX + 64];
	const char *name;

	tour_step_dir(d, id, dir);
	name = strrchr(dir, '/') + 1;
	text_add(out, "<p>");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is_there(dir, files[i].file))
			text_addf(out, "<a href=\"%s/%s\">%s</a> ", name, files[i].file, files[i].text);
	text_add(out, "</p>\n");
}

static void add_row(struct text *out, const struct demo *d, size_t at)
{
	const enum step_id id = d->step[at];
	const struct stage_result *r = &d->result[id];

	text_addf(out, "<tr><td>%zu</td><td><a href=\"#step-%zu\">", at + 1, at + 1);
	html_add(out, step_list[id].title);
	text_add(out, "</a></td><td>");
	stage_page_verdict(out, r->verdict);
	text_add(out, "</td><td>");
	html_add(out, r->headline);
	text_add(out, *r->headline && *r->reason ? "<br>" : "");
	html_add(out, r->reason);
	if (r->seconds > 0)
		text_addf(out, "</td><td>%.0f s</td></tr>\n", r->seconds);
	else
		text_add(out, "</td><td>–</td></tr>\n");
}

static void add_table(struct text *out, const struct demo *d)
{
	text_add(
		out,
		"<table><thead><tr><th scope=\"col\">step</th><th scope=\"col\">subject</th><th scope=\"col\">"
		"verdict</th><th scope=\"col\">result</th><th scope=\"col\">time</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < d->count; i++)
		if (d->result[d->step[i]].asked)
			add_row(out, d, i);
	text_add(out, "</tbody></table>\n");
}

/* The plot as its command drew it. */
static void add_roofline(struct text *out, const char *dir)
{
	size_t size = 0;
	char *text = stage_read_text(dir, "roofline.svg", &size);
	const char *svg = text ? strstr(text, "<svg") : NULL;

	if (svg)
		text_addf(out, "<figure class=\"roofline\"><div class=\"wide\">%s</div></figure>\n", svg);
	free(text);
}

/* The loss over the steps, from the journal. */
static void add_loss(struct text *out, const char *dir)
{
	struct lines chart = {.x = {.label = "step", .unit = ""},
			      .y = {.label = "loss", .unit = "", .zero = true}};
	struct record record;
	struct error err = {0};
	const struct series *steps, *loss;
	struct canvas c;

	if (record_read(&record, dir, &err))
		return;
	steps = record_series(&record, "train", "step");
	loss = record_series(&record, "train", "loss");
	if (steps && loss && steps->count == loss->count && loss->count > 1) {
		chart.series[0] = (struct lines_series){
			.name = "loss", .x = steps->value, .y = loss->value, .count = loss->count};
		chart.count = 1;
		canvas_init(&c, LINES_WIDTH, LINES_HEIGHT);
		lines_draw(&c, &chart);
		text_add(out, "<figure class=\"plot\"><div class=\"wide\">");
		canvas_svg(out, &c, "loss over the steps of the training", false);
		text_add(out, "</div></figure>\n");
		canvas_release(&c);
	}
	record_release(&record);
}

static void add_output(struct text *out, const struct demo *d, enum step_id id)
{
	struct text lines = {0};

	tell_output(&lines, d, id, 0, OUTPUT_COLUMNS);
	if (lines.size) {
		text_add(out, "<pre>");
		text_add_html(out, text_str(&lines)); /* keeps the ends of lines */
		text_add(out, "</pre>\n");
	}
	text_release(&lines);
}

/* A long table unfolds. */
static void add_figures(struct text *out, const json_t *figures)
{
	const size_t count = json_array_size(figures);

	if (count > FIGURES_OPEN)
		text_addf(out, "<details><summary>%zu figures</summary>\n", count);
	stage_page_figures(out, figures);
	text_add(out, count > FIGURES_OPEN ? "</details>\n" : "");
}

static void add_step(struct text *out, const struct demo *d, size_t at)
{
	const enum step_id id = d->step[at];
	const struct demo_step *step = &step_list[id];
	const struct stage_result *r = &d->result[id];
	char dir[PATH_MAX + 80];

	tour_run_dir(d, id, dir);
	text_addf(out, "<section id=\"step-%zu\"><h2>%zu. ", at + 1, at + 1);
	html_add(out, step->title);
	text_add(out, "</h2>\n<p>");
	stage_page_verdict(out, r->verdict);
	text_add(out, " ");
	html_add(out, r->headline);
	text_add(out, *r->headline && *r->reason ? "; " : "");
	html_add(out, r->reason);
	text_add(out, "</p>\n");
	html_element(out, "p", step->says);
	if (r->command.count) {
		stage_page_command(out, &r->command);
		add_output(out, d, id);
		add_links(out, d, id);
		add_figures(out, r->figures);
	}
	if (id == STEP_ROOFLINE)
		add_roofline(out, dir);
	if (id == STEP_TRAIN || id == STEP_SPEED)
		add_loss(out, dir);
	text_add(out, "</section>\n");
}

enum status demo_write_page(struct demo *d, struct error *err)
{
	struct text out = {0}, title = {0};
	char path[PATH_MAX + 32];
	enum status st;

	text_addf(&title, "demo %s", tour_words[d->tour]);
	html_begin(&out, text_str(&title));
	add_header(&out, d);
	text_add(&out, "<main id=\"main\">\n");
	add_table(&out, d);
	for (size_t i = 0; i < d->count; i++)
		if (d->result[d->step[i]].asked)
			add_step(&out, d, i);
	text_add(&out, "</main>\n");
	html_end(&out);
	snprintf(path, sizeof(path), "%s/demo.html", d->dir);
	st = out.failed ? error_set(err, STATUS_NO_RESOURCE, "no memory for demo.html")
			: file_write(path, text_str(&out), out.size, err);
	text_release(&title);
	text_release(&out);
	return st;
}
