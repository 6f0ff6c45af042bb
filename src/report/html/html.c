/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: one file that loads nothing from elsewhere. Style and script are embedded. A content security
 * policy allows only this script, so script in foreign text does not run even if escaping failed. */
#include "report/html/html.h"
#include "report/tables/nodes.h"
#include "core/file/embedded.h"
#include "core/file/file.h"
#include "report/plot/canvas.h"
#include "report/view/about.h"
#include "report/view/gap.h"
#include "report/report.h"
#include "report/plot/roofline.h"
#include "report/load/load.h"
#include "report/training/training.h"
#include "report/serving/serving.h"
#include "report/view/guide_bands.h"
#include "core/text/width.h"
#include "report/text/format.h"

void html_add(struct text *out, const char *s)
{
	size_t size;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		char one[8];

		if (utf8_is_control(code)) {
			text_add(out, " ");
		} else if (code == 0xfffd) {
			text_add(out, "\xef\xbf\xbd");
		} else {
			memcpy(one, s, size);
			one[size] = '\0';
			text_add_html(out, one);
		}
	}
}

void html_names(struct text *out, const struct view *v, const char *s)
{
	struct text t = {0};

	pseudonym_map_add(&v->names, &t, s);
	html_add(out, text_str(&t));
	text_release(&t);
}

void html_verdict(struct text *out, enum verdict verdict)
{
	text_addf(out, "<span class=\"verdict v-%s\">%s</span>", verdict_name(verdict),
		  verdict_name(verdict));
}

void html_element(struct text *out, const char *tag, const char *s)
{
	text_addf(out, "<%s>", tag);
	html_add(out, s);
	text_addf(out, "</%s>", tag);
}

/* Appends the SHA-256 of the script in base64, as the content security policy needs it. */
static void add_script_hash(struct text *out, const struct embedded *script)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned char bytes[33] = {0};
	char hex[65];

	file_sha256(hex, script->data, script->size);
	for (int i = 0; i < 32; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	text_add(out, "'sha256-");
	for (int i = 0; i < 33; i += 3) {
		unsigned long bits =
			(unsigned long)bytes[i] << 16 | (unsigned long)bytes[i + 1] << 8 | bytes[i + 2];
		char four[5] = {digits[bits >> 18 & 63], digits[bits >> 12 & 63], digits[bits >> 6 & 63],
				i == 30 ? '=' : digits[bits & 63], '\0'};

		text_add(out, four);
	}
	text_add(out, "'");
}

void html_begin(struct text *out, const char *title)
{
	const struct embedded *style = embedded_find("src/report/html/report.css");
	const struct embedded *script = embedded_find("src/report/html/report.js");

	text_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'; script-src ");
	if (script)
		add_script_hash(out, script);
	else
		text_add(out, "'none'");
	text_add(out, "\">\n<title>assay: ");
	html_add(out, title);
	text_add(out, "</title>\n<style>\n");
	if (style)
		text_add_bytes(out, (const char *)style->data, style->size);
	canvas_css(out);
	text_add(out,
		 "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
}

void html_end(struct text *out)
{
	const struct embedded *script = embedded_find("src/report/html/report.js");

	if (script) {
		text_add(out, "<script>");
		text_add_bytes(out, (const char *)script->data, script->size);
		text_add(out, "</script>\n");
	}
	text_add(out, "</body>\n</html>\n");
}

static void add_header(struct text *out, const struct view *v)
{
	const struct judgements *j = v->in->judged;
	const struct record *r = v->in->record;
	struct text counts = {0};

	text_addf(out, "<header class=\"v-%s\">", verdict_name(j->verdict));
	html_verdict(out, j->verdict);
	text_add(out, "<h1>");
	html_add(out, v->headline);
	text_add(out, "</h1><p class=\"muted\">");
	view_run_counts(&counts, v);
	view_aside(&counts, v, ". ");
	html_add(out, text_str(&counts));
	text_release(&counts);
	if (view_ends_early(&counts, r))
		text_addf(out, ". The %s", text_str(&counts));
	text_add(out, ".</p>");
	text_release(&counts);
	if (view_rebooted(&counts, v)) {
		text_add(out, "<p>");
		html_add(out, text_str(&counts));
		text_add(out, ".</p>");
	}
	text_release(&counts);
	if (view_stated(&counts, v)) {
		text_add(out, "<p>");
		html_verdict(out, j->stated.verdict);
		text_add(out, " ");
		html_add(out, text_str(&counts));
		text_add(out, "</p>");
	}
	text_release(&counts);
	text_add(out, "</header>\n<nav aria-label=\"sections\"><a href=\"#todo\">What to do</a>"
		      "<a href=\"#devices\">Devices</a>");
	text_add(out, v->unjudged_count ? "<a href=\"#unjudged\">Not judged</a>" : "");
	text_add(out, "<a href=\"#results\">Results</a>");
	text_add(out, load_values(v) ? "<a href=\"#charts\">Charts</a>" : "");
	text_add(out, load_case(v) ? "" : "<a href=\"#gaps\">Gap to the bound</a>");
	if (!training_case(v) && !serving_case(v) && !load_case(v))
		text_add(out, "<a href=\"#roofline\">Roofline</a>");
	text_add(out, "<a href=\"#machine\">Machine</a><a href=\"#conditions\">Conditions</a></nav>\n");
}

static void add_cards(struct text *out, const struct view *v)
{
	static const char *const limits[] = {"compute", "memory", "link"};

	text_add(out, "<section id=\"devices\"><h2>Devices</h2>\n<div class=\"cards\">\n");
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];
		struct text counts = {0};

		if (!group->asked || (strchr(group->target, '>') && !view_group_any(v, g)))
			continue; /* a pair of GPUs whose cases are all in a matrix */
		text_add(out, "<div class=\"card\">");
		html_verdict(out, group->worst);
		html_element(out, "h3", group->name);
		text_add(out, "<dl>");
		for (size_t k = 0; k < 3; k++) {
			const struct view_row *row = view_best(v, group, limits[k]);

			if (!row)
				continue;
			html_element(out, "dt", row->title);
			html_element(out, "dd", row->figure);
		}
		text_add(out, "</dl><p class=\"muted\">");
		view_counts(&counts, group->verdicts, group->asked);
		html_add(out, text_str(&counts));
		text_release(&counts);
		text_add(out, "</p></div>\n");
	}
	text_add(out, "</div></section>\n");
}

/* True if both cases have the same kind of limit, such as "compute.bf16" and "compute.fp8". */
static bool same_kind(const struct view_row *a, const struct view_row *b)
{
	size_t n = strcspn(a->c->limit, ".");

	return n == strcspn(b->c->limit, ".") && !strncmp(a->c->limit, b->c->limit, n);
}

/* Cases shown unfolded: failed cases, and for each kind of limit the first case with a waterfall. */
static bool opens(const struct view *v, const struct view_group *g, size_t index)
{
	struct gap_step steps[GAP_STEPS_MAX];
	const struct view_row *row = &v->rows[index];

	if (row->j->verdict == VERDICT_FAIL)
		return true;
	if (!gap_steps(row, steps))
		return false;
	for (size_t i = g->first; i < index; i++)
		if (v->rows[i].headline && same_kind(&v->rows[i], row) && gap_steps(&v->rows[i], steps))
			return false;
	return true;
}

static void add_gaps(struct text *out, const struct view *v)
{
	bool any = false;

	if (load_case(v))
		return;
	text_add(out, "<section id=\"gaps\"><h2>Gap to the bound</h2>\n");
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];
		bool named = false;

		for (size_t i = group->first; i < group->first + group->count; i++) {
			if (!gap_shown(&v->rows[i]))
				continue;
			if (!any)
				text_addf(
					out,
					"<p class=\"muted\">%s. The signal of a factor is never the rate that the factor explains. The part that no signal explains is called unexplained.</p>\n",
					gap_begins(v));
			if (!named)
				html_element(out, "h3", group->name);
			any = named = true;
			html_case(out, v, &v->rows[i], opens(v, group, i));
		}
	}
	text_addf(out, "%s</section>\n", any ? "" : "<p>No case has a sustained figure.</p>\n");
}

static void add_roofline(struct text *out, const struct view *v)
{
	struct roofline r = {0};
	struct canvas c;

	if (training_case(v) || serving_case(v) || load_case(v))
		return;
	roofline_add(&r, v);
	text_add(out, "<section id=\"roofline\" class=\"roofline\"><h2>Roofline</h2>\n");
	if (roofline_any(&r)) {
		canvas_init(&c, 960, 600);
		roofline_draw(&c, &r, NULL);
		text_add(out, "<div class=\"wide\">");
		canvas_svg(out, &c, "roofline: rate over arithmetic intensity", false);
		text_add(out, "</div>");
		canvas_release(&c);
	} else {
		text_add(out, "<p>No measured case fits into a roofline.</p>");
	}
	text_add(out, "</section>\n");
	if (r.failed)
		out->failed = 1;
	roofline_release(&r);
}

static void fact_row(void *arg, const char *name, const char *value)
{
	struct text *out = arg;

	text_add(out, "<tr>");
	html_element(out, "th", name);
	html_element(out, "td", value);
	text_add(out, "</tr>\n");
}

static void fact_table(struct text *out, const struct view *v,
		       void (*facts)(const struct view *, about_visit *, void *))
{
	text_add(out, "<table class=\"facts\"><tbody>\n");
	facts(v, fact_row, out);
	text_add(out, "</tbody></table>\n");
}

static void add_sanity(struct text *out, const struct view *v)
{
	bool any = false;

	for (size_t i = 0; i < v->row_count; i++) {
		struct guide_band s;
		char band[64];

		if (!guide_bands_of(v, &v->rows[i], &s))
			continue;
		if (!any)
			text_add(
				out,
				"<h3>Published sanity ranges</h3><p class=\"muted\">Ranges that published lab guides give for these cases, for orientation. No verdict depends on them.</p>\n"
				"<table class=\"facts\"><tbody>\n");
		any = true;
		guide_bands_band_text(band, sizeof(band), &s);
		text_add(out, "<tr>");
		html_element(out, "th", v->rows[i].title);
		text_addf(out, "<td>%s, guide %s: %s</td></tr>\n", v->rows[i].figure, band, s.reading);
	}
	if (any)
		text_add(out, "</tbody></table>\n");
}

static void add_machine(struct text *out, const struct view *v)
{
	text_add(out, "<section id=\"machine\"><h2>Machine</h2>\n");
	fact_table(out, v, about_machine);
	for (unsigned i = 0; v->in->machine && i < machine_gpu_count(v->in->machine); i++) {
		text_addf(out, "<h3>GPU %u</h3><table class=\"facts\"><tbody>\n", i);
		about_gpu(v, machine_gpu(v->in->machine, i), fact_row, out);
		text_add(out, "</tbody></table>\n");
	}
	text_add(out, "</section>\n<section id=\"conditions\"><h2>Conditions</h2>\n");
	fact_table(out, v, about_run);
	add_sanity(out, v);
	text_add(out, "<h3>Versions</h3>\n");
	fact_table(out, v, about_software);
	text_add(out, "<h3>How to repeat</h3>\n<pre>");
	{
		struct text repeat = {0};

		view_repeat(&repeat, v);
		html_add(out, text_str(&repeat));
		text_release(&repeat);
	}
	text_add(
		out,
		"\nassay report DIR          # renders this report again from the run directory, on any machine</pre>\n</section>\n");
}

void report_html(struct text *out, const struct report_input *in)
{
	const struct judgements *j = in->judged;
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	html_begin(out, v.headline);
	add_header(out, &v);
	text_add(out, "<main id=\"main\">\n");
	html_todos(out, &v);
	add_cards(out, &v);
	html_knobs(out, &v);
	html_unjudged(out, &v);
	nodes_html(out, &v);
	html_results(out, &v);
	html_load(out, &v);
	add_gaps(out, &v);
	add_roofline(out, &v);
	html_parts(out, &v);
	text_add(out, "<div class=\"boxes\">\n");
	html_box(out, &v, "Could not be checked", j->could_not_look, j->could_not_look_count);
	html_box(out, &v, "Needs operator input", j->operator_input, j->operator_input_count);
	text_add(out, "</div>\n");
	add_machine(out, &v);
	text_add(
		out,
		"</main>\n<footer>Sustained figures are means over a window that begins after clock, power and rate have settled. Inputs are scaled random numbers unless a case says otherwise. GB = 10⁹ bytes.");
	text_add(out, view_low_confidence(&v));
	text_add(out, " No reference: assay has no sound expectation for the case.</footer>\n");
	html_end(out);
	view_release(&v);
}
