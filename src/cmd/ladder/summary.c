/* SPDX-License-Identifier: Apache-2.0 */
/* The plan, and the summary as Markdown and JSON. */
#include <math.h>
#include <stdlib.h>
#include "cmd/ladder/ladder.h"
#include "cmd/shared/show.h"
#include "cmd/stages/stage_page.h"
#include "core/file/file.h"
#include "core/text/units.h"
#include "report/text/format.h"

enum { SCHEMA_VERSION = 1 };

void ladder_factor_text(char *out, size_t size, double factor, double lowest, double highest, unsigned rounds)
{
	if (!isfinite(factor))
		snprintf(out, size, FORMAT_NONE);
	else if (rounds < 2)
		snprintf(out, size, "%.3g (one round, no interval)", factor);
	else
		snprintf(out, size, "%.3g (%.3g to %.3g)", factor, lowest, highest);
}

void ladder_expected_text(char *out, size_t size, double low, double high)
{
	if (low <= 0)
		snprintf(out, size, FORMAT_NONE);
	else if (low < high)
		snprintf(out, size, "%.3g to %.3g", low, high);
	else
		snprintf(out, size, "%.3g", low);
}

void ladder_rate_text(char *out, size_t size, double tokens_per_s)
{
	if (!isfinite(tokens_per_s))
		snprintf(out, size, FORMAT_NONE);
	else
		snprintf(out, size, tokens_per_s < 100 ? "%.3g tokens/s" : "%.0f tokens/s", tokens_per_s);
}

void ladder_difference_text(char *out, size_t size, double share)
{
	if (!isfinite(share))
		snprintf(out, size, FORMAT_NONE);
	else
		snprintf(out, size, share > 0 ? "%.1e" : "0", share);
}

double ladder_together(const struct ladder *l, int id)
{
	double factor = l->rung[id].factor;

	for (unsigned i = 1; i <= rung_list[id].with; i++)
		factor *= l->rung[(unsigned)id - i].factor;
	return factor;
}

const char *ladder_no_telemetry(const struct ladder *l)
{
	for (int id = 0; id < RUNG_COUNT; id++)
		if (isfinite(l->rung[id].v.power_w) || isfinite(l->rung[id].v.sm_active_share))
			return NULL;
	return l->plan.gpu ? "the GPU reported neither its utilization nor its power during the jobs"
			   : "assay reads utilization and power of GPUs only, and this ladder ran on a CPU";
}

static const char *weights_words(const struct ladder *l)
{
	if (*l->plan.loss_model)
		return "losses are those of jobs with the weights of the loss model";
	return l->plan.random
		       ? "losses are those of random weights, because no model with real weights was named "
			 "(--model or --loss-model)"
		       : "losses are those of the model's own weights";
}

/* -- the plan -- */

void ladder_show_plan(const struct ladder *l)
{
	struct text out = {0};

	text_addf(
		&out,
		"ladder on %s; %s; %llu round%s of %llu steps, no round begins that would end after %.0f s\n",
		l->plan.host, *l->plan.shape ? l->plan.shape : l->plan.model,
		(unsigned long long)l->plan.rounds, l->plan.rounds == 1 ? "" : "s",
		(unsigned long long)l->plan.steps, l->plan.within_s);
	for (int id = 0; id < RUNG_COUNT; id++) {
		const struct rung_setting *s = rung_list[id].setting;

		text_addf(&out, "%2d  %-10s ", id, rung_list[id].word);
		if (*l->rung[id].lacks) {
			text_addf(&out, "skipped: %s\n", l->rung[id].lacks);
			continue;
		}
		for (bool first = true; s->name; s++, first = false)
			text_addf(&out, "%s%s: %s", first ? "" : ", ", s->name, s->value);
		text_add(&out, "\n");
	}
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

/* -- Markdown -- */

static void quantity(char out[48], double value, const char *unit)
{
	if (isfinite(value))
		units_format(out, 48, value, unit);
	else
		snprintf(out, 48, FORMAT_NONE);
}

static void share(char out[48], double value)
{
	if (isfinite(value))
		format_share(out, 48, value);
	else
		snprintf(out, 48, FORMAT_NONE);
}

static void add_row(struct text *out, const struct ladder *l, int id)
{
	const struct ladder_rung *r = &l->rung[id];
	char factor[64], expected[32], rate[48], memory[48], busy[48], power[48], energy[48];

	ladder_factor_text(factor, sizeof(factor), r->factor, r->lowest, r->highest, r->rounds);
	ladder_expected_text(expected, sizeof(expected), rung_list[id].low, rung_list[id].high);
	ladder_rate_text(rate, sizeof(rate), r->v.tokens_per_s);
	quantity(memory, r->v.memory_bytes, "B");
	share(busy, r->v.sm_active_share);
	quantity(power, r->v.power_w, "W");
	quantity(energy, r->joules_per_token, "J");
	text_addf(out, "| %d | %s | %s%s%s | %s | %s | %s | %s | %s | %s | %s |\n", id, rung_list[id].title,
		  factor, r->below > 0 && isfinite(r->factor) ? ", over " : "",
		  r->below > 0 && isfinite(r->factor) ? rung_list[r->below].word : "", expected, rate, memory,
		  busy, power, energy, stage_verdict_word(r->verdict));
}

static void add_reasons(struct text *out, const struct ladder *l)
{
	text_add(out, "\n");
	for (int id = 0; id < RUNG_COUNT; id++) {
		const struct ladder_rung *r = &l->rung[id];

		if (!*r->reason)
			continue;
		text_addf(out, "- %s, %s: ", rung_list[id].word, stage_verdict_word(r->verdict));
		stage_page_cell(out, r->reason);
		text_add(out, "\n");
	}
}

/* Rungs whose published factor is theirs together. */
static void add_together(struct text *out, const struct ladder *l)
{
	for (int id = 0; id < RUNG_COUNT; id++)
		if (rung_list[id].with && isfinite(ladder_together(l, id)))
			text_addf(out, "- %s to %s together: %.3g, expected %.3g to %.3g\n",
				  rung_list[(unsigned)id - rung_list[id].with].word, rung_list[id].word,
				  ladder_together(l, id), rung_list[id].low, rung_list[id].high);
}

static bool is_held_out_trained(const struct ladder *l)
{
	const struct config_data *d = &l->base.data;

	return d->eval.count && d->train.count && !strcmp(d->eval.word[0], d->train.word[0]);
}

static void add_losses(struct text *out, const struct ladder *l)
{
	text_addf(
		out,
		"\n## Losses\n\nThe same rows and the same seed on each rung; %s. A difference is a share of the baseline's held-out loss.\n\n",
		weights_words(l));
	if (is_held_out_trained(l))
		text_add(
			out,
			"The configuration names no held-out rows, so these are rows of the training set.\n\n");
	text_add(out, "| rung | before the first step | after the last step |\n|---|---|---|\n");
	for (int id = 0; id < RUNG_COUNT; id++) {
		char first[48], last[48];

		if (!isfinite(l->rung[id].loss_first_share))
			continue;
		ladder_difference_text(first, sizeof(first), l->rung[id].loss_first_share);
		ladder_difference_text(last, sizeof(last), l->rung[id].loss_last_share);
		text_addf(out, "| %s | %s | %s |\n", rung_list[id].word, first, last);
	}
}

static void add_sources(struct text *out)
{
	text_add(out, "\n## Where the expected factors come from\n\n");
	for (int id = 1; id < RUNG_COUNT; id++)
		text_addf(out, "- %s: %s\n", rung_list[id].word, rung_list[id].source);
	text_add(out, "- all together: 8 to 12, the training optimization guide for H100\n");
}

static void add_lines(struct text *out, const struct ladder *l)
{
	if (!*l->plan.given)
		return;
	text_addf(out,
		  "\n"
		  "## Optimizations that %s lacks\n\n",
		  l->plan.given);
	if (l->lines.size)
		text_addf(out, "Change these lines:\n\n```yaml\n%s```\n", text_str(&l->lines));
	else
		text_add(out, "Nothing: it has the value of each rung that is faster in every round.\n");
}

void ladder_add_summary(struct text *out, const struct ladder *l)
{
	const char *absent = ladder_no_telemetry(l);
	char total[64];

	ladder_factor_text(total, sizeof(total), l->total, l->total_lowest, l->total_highest,
			   l->top > 0 ? l->rung[l->top].rounds : 0);
	text_addf(out, "# assay ladder: %s\n\n%s, %s. ", stage_verdict_word(stage_verdict_of(ladder_code(l))),
		  l->plan.began, l->plan.host);
	if (l->top > 0)
		text_addf(
			out,
			"All rungs up to %s together: %s times the baseline. A published training guide expects 8 to 12 on an H100.\n\n",
			rung_list[l->top].word, total);
	else
		text_add(out, "No rung has a factor.\n\n");
	text_add(
		out,
		"| | rung | factor | expected | rate | memory | SM active | power | energy per token | verdict |\n"
		"|---|---|---|---|---|---|---|---|---|---|\n");
	for (int id = 0; id < RUNG_COUNT; id++)
		add_row(out, l, id);
	add_reasons(out, l);
	add_together(out, l);
	if (absent)
		text_addf(out, "\nSM activity, power and energy are absent: %s.\n", absent);
	else
		text_add(
			out,
			"\nA dash at SM activity, power or energy: the GPU reported no such value during the job.\n");
	text_addf(
		out,
		"\nModel: %s%s. The factor of a rung is its rate divided by that of the rung below, as the median of the rounds, "
		"with the lowest and the highest round.\n",
		*l->plan.shape ? "the shape of " : "", *l->plan.shape ? l->plan.shape : l->plan.model);
	add_losses(out, l);
	add_lines(out, l);
	add_sources(out);
}

/* -- JSON -- */

static void set_number(json_t *to, const char *name, double value)
{
	if (isfinite(value))
		json_object_set_new(to, name, json_real(value));
}

static json_t *settings_json(int id)
{
	json_t *out = json_object();

	for (const struct rung_setting *s = rung_list[id].setting; s->name; s++) {
		char name[96];

		snprintf(name, sizeof(name), "%s.%s", s->section, s->name);
		json_object_set_new(out, name, json_string(s->value));
	}
	return out;
}

static json_t *rung_json(const struct ladder *l, int id)
{
	const struct ladder_rung *r = &l->rung[id];
	json_t *out = json_pack("{s:s, s:s, s:s, s:o, s:o}", "rung", rung_list[id].word, "title",
				rung_list[id].title, "verdict", stage_verdict_word(r->verdict), "settings",
				settings_json(id), "values", ladder_values_json(&r->v));

	if (*r->reason)
		json_object_set_new(out, "reason", json_string(r->reason));
	if (r->below >= 0)
		json_object_set_new(out, "below", json_string(rung_list[r->below].word));
	set_number(out, "factor", r->factor);
	if (r->rounds > 1) {
		set_number(out, "factor_lowest", r->lowest);
		set_number(out, "factor_highest", r->highest);
	}
	json_object_set_new(out, "rounds", json_integer((json_int_t)r->rounds));
	if (rung_list[id].low > 0) {
		set_number(out, "expected_low", rung_list[id].low);
		set_number(out, "expected_high", rung_list[id].high);
	}
	json_object_set_new(out, "source", json_string(rung_list[id].source));
	set_number(out, "joules_per_token", r->joules_per_token);
	set_number(out, "loss_first_difference", r->loss_first_share);
	set_number(out, "loss_last_difference", r->loss_last_share);
	if (rung_list[id].with)
		set_number(out, "factor_together", ladder_together(l, id));
	return out;
}

json_t *ladder_json(const struct ladder *l)
{
	const char *absent = ladder_no_telemetry(l);
	json_t *rungs = json_array(), *out;

	for (int id = 0; id < RUNG_COUNT; id++)
		json_array_append_new(rungs, rung_json(l, id));
	out = json_pack("{s:s, s:i, s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:s, s:f, s:o}", "schema",
			"assay.ladder.summary", "schema_version", SCHEMA_VERSION, "verdict",
			stage_verdict_word(stage_verdict_of(ladder_code(l))), "exit_code", ladder_code(l),
			"began", l->plan.began, "host", l->plan.host, "device", l->plan.gpu ? "gpu" : "cpu",
			"model", *l->plan.shape ? l->plan.shape : l->plan.model, "random_weights",
			l->plan.random, "losses", weights_words(l), "seconds", l->seconds, "rungs", rungs);
	set_number(out, "total_factor", l->total);
	set_number(out, "total_lowest", l->total_lowest);
	set_number(out, "total_highest", l->total_highest);
	if (absent)
		json_object_set_new(out, "no_telemetry", json_string(absent));
	if (*l->plan.given)
		json_object_set_new(out, "lines", json_string(text_str(&l->lines)));
	return out;
}

enum status ladder_write(struct ladder *l, struct error *err)
{
	enum status st = ladder_write_page(l, err);
	json_t *all = ladder_json(l);
	char *json = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	struct text out = {0};

	if (!st)
		st = ladder_write_waterfall(l, err);
	ladder_add_summary(&out, l);
	text_add(&out, "\n![rates of the rungs](waterfall.svg)\n");
	if (!st)
		st = ladder_write_text(l, "SUMMARY.md", &out, err);
	text_release(&out);
	text_addf(&out, "%s\n", json ? json : "");
	if (!st)
		st = json ? ladder_write_text(l, "summary.json", &out, err)
			  : error_set(err, STATUS_NO_RESOURCE, "no memory for summary.json");
	text_release(&out);
	free(json);
	json_decref(all);
	return st;
}
