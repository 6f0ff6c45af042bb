/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the report files of a run directory, and of a roofline of several runs. The manifest is written
 * last, because it names the others. */
#include "core/file/file.h"
#include "report/html/html.h"
#include "report/data/manifest.h"
#include "report/files/merge.h"
#include "report/tables/nodes.h"
#include "report/plot/plot.h"
#include "report/report.h"
#include "report/plot/roofline.h"
#include "report/load/load.h"
#include "report/training/training.h"
#include "report/serving/serving.h"

enum { FILES_MAX = 32, CURVES_MAX = 12, PLOT_WIDTH = 960, PLOT_HEIGHT = 600 };
static const char plot_title[] = "roofline: rate over arithmetic intensity";

struct outputs {
	const char *dir;
	struct text text[FILES_MAX];
	char name[FILES_MAX][32];
	size_t count;
};

static struct text *output(struct outputs *o, const char *name)
{
	text_copy(o->name[o->count], sizeof(o->name[0]), name);
	return &o->text[o->count++];
}

static void outputs_release(struct outputs *o)
{
	for (size_t i = 0; i < o->count; i++)
		text_release(&o->text[i]);
}

static enum status outputs_write(struct outputs *o, const struct view *views, size_t views_count,
				 struct error *err)
{
	struct manifest_file files[FILES_MAX];
	size_t rendered = o->count;
	struct text *manifest;
	char path[4200];
	enum status st;

	for (size_t i = 0; i < rendered; i++)
		files[i] = (struct manifest_file){o->name[i], text_str(&o->text[i]), o->text[i].size};
	manifest = output(o, "manifest.json");
	st = manifest_text(manifest, views, views_count, files, rendered, err);
	for (size_t i = 0; !st && i < o->count; i++) {
		snprintf(path, sizeof(path), "%s/%s", o->dir, o->name[i]);
		if (o->text[i].failed)
			return error_set(err, STATUS_NO_RESOURCE, "not enough memory to render %s", path);
		st = file_write(path, text_str(&o->text[i]), o->text[i].size, err);
	}
	return st;
}

/* A missing module is no failure: the SVG exists, and *note says that the PNG is left out. */
static enum status write_png(const char *dir, const struct canvas *c, struct text *note, struct error *err)
{
	struct error why = {0};
	char path[4200];
	enum status st;

	snprintf(path, sizeof(path), "%s/roofline.png", dir);
	st = plot_write(path, PLOT_PNG, c, plot_title, &why);
	if (st == STATUS_UNAVAILABLE && note) {
		text_addf(note, "roofline.png is left out: %s\n", why.text);
		return STATUS_OK;
	}
	return st && st != STATUS_UNAVAILABLE ? error_set_cause(err, st, why.cause, "%s", why.text)
					      : STATUS_OK;
}

/* Draws the roofline into `c` and renders it as SVG into `svg`. False: there was nothing to draw. */
static bool draw(struct canvas *c, struct text *svg, const struct view *views, size_t count)
{
	struct roofline r = {0};
	bool any;

	for (size_t i = 0; i < count; i++)
		roofline_add(&r, &views[i]);
	canvas_init(c, PLOT_WIDTH, PLOT_HEIGHT);
	c->failed = r.failed;
	any = roofline_any(&r);
	roofline_draw(c, &r, NULL); /* an empty frame shows that nothing was measured */
	canvas_svg(svg, c, plot_title, true);
	roofline_release(&r);
	return any;
}

static void draw_curves(struct outputs *o, const struct view *v)
{
	for (size_t i = 0; i < v->curve_count && i < CURVES_MAX; i++) {
		struct canvas c;
		char name[32];

		curve_file(name, sizeof(name), i);
		canvas_init(&c, CURVE_WIDTH, CURVE_HEIGHT);
		curve_draw(&c, &v->curves[i]);
		canvas_svg(output(o, name), &c, v->curves[i].title, true);
		canvas_release(&c);
	}
}

/* The page, the figures and the charts of a load test. */
static void add_load(struct outputs *o, const struct view *v)
{
	struct load_chart charts[LOAD_CHARTS];
	const size_t count = load_charts(charts, v);

	load_summary_page(output(o, "SUMMARY.md"), v);
	load_export_json(output(o, "load.json"), v);
	load_export_csv(output(o, "load.csv"), v);
	for (size_t i = 0; i < count; i++) {
		struct canvas c;

		canvas_init(&c, LINES_WIDTH, LINES_HEIGHT);
		lines_draw(&c, &charts[i].lines);
		canvas_svg(output(o, charts[i].file), &c, charts[i].title, true);
		canvas_release(&c);
		load_chart_release(&charts[i]);
	}
}

enum status report_write(const char *dir, const struct report_input *in, struct text *note, struct error *err)
{
	struct outputs o = {.dir = dir};
	struct canvas plot = {0};
	struct view v;
	enum status st = view_build(&v, in, err);
	bool any;

	if (st)
		return st;
	report_csv(output(&o, "results.csv"), in);
	st = report_json(output(&o, "results.json"), in, err);
	if (st)
		goto out;
	if (nodes_any(&v))
		nodes_csv(output(&o, "nodes.csv"), &v);
	report_markdown(output(&o, "REPORT.md"), in);
	report_html(output(&o, "report.html"), in);
	if (load_case(&v))
		add_load(&o, &v);
	any = !training_case(&v) && !serving_case(&v) && !load_case(&v) &&
	      draw(&plot, output(&o, "roofline.svg"), &v, 1);
	draw_curves(&o, &v);
	st = outputs_write(&o, &v, 1, err);
	if (!st && any)
		st = write_png(dir, &plot, note, err);
out:
	canvas_release(&plot);
	outputs_release(&o);
	view_release(&v);
	return st;
}

enum status report_write_merged(const char *dir, const struct report_input *in, size_t count,
				enum plot_format format, struct text *note, struct error *err)
{
	static const char *const names[] = {"roofline.svg", "roofline.png", "roofline.pdf"};
	struct view *views = calloc(count ? count : 1, sizeof(*views));
	struct outputs o = {.dir = dir};
	struct canvas plot = {0};
	enum status st =
		views ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for %zu runs", count);
	size_t built = 0;
	char path[4200];

	while (!st && built < count) {
		st = view_build(&views[built], &in[built], err);
		built += !st;
	}
	if (st)
		goto out;
	merge_csv(output(&o, "results.csv"), views, built);
	merge_markdown(output(&o, "REPORT.md"), views, built);
	draw(&plot, output(&o, "roofline.svg"), views, built);
	st = outputs_write(&o, views, built, err);
	if (!st && format == PLOT_SVG)
		st = write_png(dir, &plot, note, err);
	if (!st && format != PLOT_SVG) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[format]);
		st = plot_write(path, format, &plot, plot_title, err);
	}
out:
	for (size_t i = 0; i < built; i++)
		view_release(&views[i]);
	free(views);
	canvas_release(&plot);
	outputs_release(&o);
	return st;
}
