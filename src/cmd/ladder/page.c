/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: the ladder on one page that loads nothing from elsewhere. */
#include <math.h>
#include <unistd.h>
#include "cmd/ladder/ladder.h"
#include "cmd/stages/stage_page.h"
#include "core/file/file.h"
#include "core/text/units.h"
#include "report/html/html.h"
#include "report/text/format.h"

static enum stage_verdict overall(const struct ladder *l)
{
	static const enum stage_verdict verdicts[] = {VERDICT_STAGE_PASSED, VERDICT_STAGE_FAILED,
						      VERDICT_STAGE_INCONCLUSIVE};

	return verdicts[ladder_code(l)];
}

static void add_header(struct text *out, const struct ladder *l)
{
	char total[64], seconds[32];

	text_addf(out, "<header class=\"v-%s\">", stage_verdict_class(overall(l)));
	stage_page_verdict(out, overall(l));
	text_add(out, "<h1>assay ladder</h1>\n");
	stage_page_paragraph(out, l->plan.host);
	if (l->top > 0) {
		ladder_factor_text(total, sizeof(total), l->total, l->total_lowest, l->total_highest,
				   l->rung[l->top].rounds);
		text_addf(
			out,
			"<p>All rungs up to %s together: <b>%s</b> times the baseline. A published training guide expects 8 to 12 on an H100.</p>\n",
			rung_list[l->top].word, total);
	}
	units_format_clock(seconds, sizeof(seconds), l->seconds);
	text_addf(
		out,
		"<p class=\"muted\">%s, %s min, assay " ASSAY_VERSION
		". Every job is an assay train with the configuration in its folder. The links work while this page lies "
		"in its folder.</p></header>\n",
		l->plan.began, seconds);
}

/* -- the waterfall: rates on a scale of logarithms, so that equal factors have equal widths -- */

static void bar(struct text *out, double from, double to)
{
	text_addf(out,
		  "<span class=\"track\"><span class=\"bar\" style=\"--a:%.2f%%;--w:%.2f%%\"></span></span>",
		  100 * fmin(from, to), 100 * fabs(to - from));
}

static void add_fall(struct text *out, const struct ladder *l)
{
	double lowest, highest;

	if (!ladder_rates(l, &lowest, &highest))
		return;
	text_add(out, "<h2>From the bottom to the top</h2>\n<div class=\"fall\">\n");
	for (int id = 0; id < RUNG_COUNT; id++) {
		const struct ladder_rung *r = &l->rung[id];
		char rate[48], factor[64];

		if (!isfinite(r->v.tokens_per_s))
			continue;
		ladder_rate_text(rate, sizeof(rate), r->v.tokens_per_s);
		ladder_factor_text(factor, sizeof(factor), r->factor, r->lowest, r->highest, r->rounds);
		text_addf(out, "<div class=\"step%s\"><span class=\"name\">",
			  id ? r->factor < 1 ? " odd" : " end" : " end");
		html_add(out, rung_list[id].title);
		text_add(out, "</span>");
		bar(out, r->below >= 0 ? ladder_place(l->rung[r->below].v.tokens_per_s, lowest, highest) : 0,
		    ladder_place(r->v.tokens_per_s, lowest, highest));
		text_addf(out, "<span class=\"cost\">%s%s%s</span></div>\n", rate, id ? ", times " : "",
			  id ? factor : "");
	}
	text_add(
		out,
		"</div>\n<p class=\"muted\">Each bar goes from the rate of the rung below to the rung's own rate. The scale is "
		"logarithmic: equal factors have equal widths.</p>\n");
}

static void cell(struct text *out, const char *s)
{
	html_element(out, "td", s);
}

static void quantity_cell(struct text *out, double value, const char *unit)
{
	char shown[48] = FORMAT_NONE;

	if (isfinite(value))
		units_format(shown, sizeof(shown), value, unit);
	cell(out, shown);
}

static void share_cell(struct text *out, double value)
{
	char shown[48] = FORMAT_NONE;

	if (isfinite(value))
		format_share(shown, sizeof(shown), value);
	cell(out, shown);
}

static void difference_cell(struct text *out, double share)
{
	char shown[32];

	ladder_difference_text(shown, sizeof(shown), share);
	cell(out, shown);
}

static void add_row(struct text *out, const struct ladder *l, int id)
{
	const struct ladder_rung *r = &l->rung[id];
	char factor[64], expected[32], rate[48];

	ladder_rate_text(rate, sizeof(rate), r->v.tokens_per_s);
	ladder_factor_text(factor, sizeof(factor), r->factor, r->lowest, r->highest, r->rounds);
	ladder_expected_text(expected, sizeof(expected), rung_list[id].low, rung_list[id].high);
	text_addf(out, "<tr><td>%d</td><td><a href=\"#rung-%s\">", id, rung_list[id].word);
	html_add(out, rung_list[id].title);
	text_add(out, "</a></td><td>");
	stage_page_verdict(out, r->verdict);
	text_add(out, "</td>");
	cell(out, factor);
	cell(out, expected);
	cell(out, rate);
	quantity_cell(out, r->v.memory_bytes, "B");
	share_cell(out, r->v.sm_active_share);
	share_cell(out, r->v.tensor_active_share);
	quantity_cell(out, r->v.power_w, "W");
	quantity_cell(out, r->joules_per_token, "J");
	difference_cell(out, r->loss_first_share);
	difference_cell(out, r->loss_last_share);
	text_add(out, "</tr>\n");
}

static void add_table(struct text *out, const struct ladder *l)
{
	static const char *const heads[] = {
		"",	     "rung",	  "verdict",	   "factor", "expected",	 "tokens/s",
		"memory",    "SM active", "tensor active", "power",  "energy per token", "loss before",
		"loss after"};
	const char *absent = ladder_no_telemetry(l);

	text_add(out, "<h2>Rungs</h2>\n<div class=\"wide\"><table><thead><tr>");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		text_addf(out, "<th scope=\"col\">%s</th>", heads[i]);
	text_add(out, "</tr></thead><tbody>\n");
	for (int id = 0; id < RUNG_COUNT; id++)
		add_row(out, l, id);
	text_add(
		out,
		"</tbody></table></div>\n<p class=\"muted\">Losses are differences from the baseline's held-out loss, as shares, "
		"before the first and after the last step.</p>\n");
	if (absent) {
		text_add(out, "<p>Activity, power and energy are absent: ");
		html_add(out, absent);
		text_add(out, ".</p>\n");
	}
}

static void add_lines(struct text *out, const struct ladder *l)
{
	if (!*l->plan.given)
		return;
	text_add(out, "<section id=\"lines\"><h2>Optimizations that the configuration lacks</h2>\n");
	html_element(out, "p", l->plan.given);
	if (!l->lines.size) {
		text_add(
			out,
			"<p>Nothing: it has the value of each rung that is faster in every round.</p></section>\n");
		return;
	}
	text_add(out, "<p>Change these lines:</p><pre>");
	text_add_html(out, text_str(&l->lines)); /* keeps the ends of lines */
	text_add(out, "</pre></section>\n");
}

/* Links to the reports of the rung's jobs that exist. */
static void add_jobs(struct text *out, const struct ladder *l, int id)
{
	text_add(out, "<p>");
	for (unsigned round = 0; round <= ROUND_LOSS; round++) {
		char dir[PATH_MAX + 96], path[PATH_MAX + 128];

		ladder_job_dir(l, round, (enum rung_id)id, dir);
		snprintf(path, sizeof(path), "%s/run/report.html", dir);
		if (!l->job[round][id].ended || access(path, R_OK))
			continue;
		text_add(out, "<a href=\"");
		html_add(out, path + strlen(l->dir) + 1);
		if (round == ROUND_LOSS)
			text_add(out, "\">losses</a> ");
		else
			text_addf(out, "\">round %u</a> ", round + 1);
	}
	text_add(out, "</p>\n");
}

static void add_rung(struct text *out, const struct ladder *l, int id)
{
	const struct rung *rung = &rung_list[id];
	const struct ladder_rung *r = &l->rung[id];

	text_addf(out, "<section id=\"rung-%s\"><h2>%d. ", rung->word, id);
	html_add(out, rung->title);
	text_add(out, "</h2>\n<p>");
	stage_page_verdict(out, r->verdict);
	text_add(out, " ");
	html_add(out, r->reason);
	text_add(out, "</p>\n");
	stage_page_paragraph(out, rung->says);
	text_add(out, "<pre>");
	for (const struct rung_setting *s = rung->setting; s->name; s++)
		text_addf(out, "%s: {%s: %s}\n", s->section, s->name, s->value);
	text_add(out, "</pre>\n<p class=\"muted\">Expected factor: ");
	html_add(out, rung->source);
	text_add(out, ".");
	if (rung->with && isfinite(ladder_together(l, id)))
		text_addf(out, " Measured together: %.3g.", ladder_together(l, id));
	text_add(out, "</p>\n");
	add_jobs(out, l, id);
	text_add(out, "</section>\n");
}

enum status ladder_write_page(const struct ladder *l, struct error *err)
{
	struct text out = {0};
	char path[PATH_MAX + 32];
	enum status st;

	html_begin(&out, "ladder");
	add_header(&out, l);
	text_add(&out, "<main id=\"main\">\n");
	add_fall(&out, l);
	add_table(&out, l);
	add_lines(&out, l);
	for (int id = 0; id < RUNG_COUNT; id++)
		add_rung(&out, l, id);
	text_add(&out, "</main>\n");
	html_end(&out);
	snprintf(path, sizeof(path), "%s/report.html", l->dir);
	st = out.failed ? error_set(err, STATUS_NO_RESOURCE, "no memory for report.html")
			: file_write(path, text_str(&out), out.size, err);
	text_release(&out);
	return st;
}
