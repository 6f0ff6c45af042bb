/* SPDX-License-Identifier: Apache-2.0 */
/* assay compare: one machine before and after, or several machines against each other. */
#include "judge/compare.h"
#include "cmd/command.h"
#include "core/text.h"
#include "core/units.h"
#include "report/width.h"

struct compare_opts {
	struct opt_words runs;
	uint32_t as;
	bool json, all;
	const char *expectations;
};

static const char *const as_words[] = {"auto", "history", "fleet", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct compare_opts, runs, .name = "run", .positional = true, .many = true, .shown = "DIR",
		.help = "run directories, oldest first; the last is held against those before it"),
	OPT_ROW(struct compare_opts, as, .name = "as", .preset = "auto", .choices = as_words,
		.help = "one machine over time (history) or several machines (fleet); auto: as the machines "
			"say"),
	OPT_ROW(struct compare_opts, json, .name = "json",
		.help = "the comparison as JSON instead of tables"),
	OPT_ROW(struct compare_opts, all, .name = "all", .help = "also the cases that did not change"),
	OPT_ROW(struct compare_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by this folder instead of the built-in expectations"),
};

enum { RUNS_MAX = 256 };

/* What a run needs in memory. */
struct loaded {
	struct record record;
	struct judgements judged;
};

static enum status load(struct loaded *l, const char *dir, const struct expectations *e, struct error *err)
{
	enum status status = record_read_run(&l->record, dir, err);

	return status ? status : judge_record(&l->judged, &l->record, e, NULL, err);
}

static void cell(struct text *out, unsigned columns, enum width_align align, const char *text)
{
	width_add(out, text, columns, align);
	text_add(out, "  ");
}

static void percent(char *out, size_t size, double share)
{
	snprintf(out, size, "%+.1f %%", 100 * share);
}

static void row_print(struct text *out, const struct compare_row *r)
{
	char before[32] = "-", after[32] = "-", raw[32] = "-", at_clock[32] = "-", noise[32] = "-";

	if (r->change != COMPARE_NOT_COMPARABLE) {
		units_format(before, sizeof(before), r->before, r->unit);
		units_format(after, sizeof(after), r->after, r->unit);
		percent(raw, sizeof(raw), r->raw);
		snprintf(noise, sizeof(noise), "%.1f %%",
			 100 * (r->has_normalised ? r->noise : r->noise_raw));
	}
	if (r->change != COMPARE_NOT_COMPARABLE && r->has_normalised)
		percent(at_clock, sizeof(at_clock), r->normalised);
	cell(out, 48, WIDTH_LEFT, r->key);
	cell(out, 9, WIDTH_LEFT, r->target);
	cell(out, 12, WIDTH_RIGHT, before);
	cell(out, 12, WIDTH_RIGHT, after);
	cell(out, 8, WIDTH_RIGHT, raw);
	cell(out, 9, WIDTH_RIGHT, at_clock);
	cell(out, 6, WIDTH_RIGHT, noise);
	text_add(out, compare_change_text(r->change));
	if (r->verdict_before != r->verdict_after)
		text_addf(out, "; was %s, is %s", verdict_name(r->verdict_before),
			  verdict_name(r->verdict_after));
	if (*r->why)
		text_addf(out, "; %s", r->why);
	text_add(out, "\n");
}

static void history_print(struct text *out, const struct comparison *c, bool all)
{
	size_t i, same = 0;

	cell(out, 48, WIDTH_LEFT, "case");
	cell(out, 9, WIDTH_LEFT, "target");
	cell(out, 12, WIDTH_RIGHT, "before");
	cell(out, 12, WIDTH_RIGHT, "after");
	cell(out, 8, WIDTH_RIGHT, "change");
	cell(out, 9, WIDTH_RIGHT, "at clock");
	cell(out, 6, WIDTH_RIGHT, "noise");
	text_add(out, "what it is\n");
	for (i = 0; i < c->row_count; i++)
		if (all || c->row[i].change != COMPARE_SAME ||
		    c->row[i].verdict_before != c->row[i].verdict_after)
			row_print(out, &c->row[i]);
		else
			same++;
	if (same)
		text_addf(out, "%zu more within noise (--all shows them)\n", same);
	if (c->only_before || c->only_after)
		text_addf(out, "%zu cases were in the first run alone, %zu are in the last alone\n",
			  c->only_before, c->only_after);
}

static void fleet_print(struct text *out, const struct comparison *c)
{
	size_t i;

	for (i = 0; i < c->outlier_count; i++) {
		const struct compare_outlier *o = &c->outlier[i];
		char value[32], median[32], off[32], limit[32];

		if (!i) {
			cell(out, 24, WIDTH_LEFT, "run");
			cell(out, 9, WIDTH_LEFT, "target");
			cell(out, 48, WIDTH_LEFT, "case");
			cell(out, 12, WIDTH_RIGHT, "value");
			cell(out, 12, WIDTH_RIGHT, "others");
			cell(out, 8, WIDTH_RIGHT, "off by");
			text_add(out, "limit\n");
		}
		units_format(value, sizeof(value), o->value, o->unit);
		units_format(median, sizeof(median), o->median, o->unit);
		percent(off, sizeof(off), o->deviation);
		snprintf(limit, sizeof(limit), "%.1f %% of %u", 100 * o->limit, o->siblings);
		cell(out, 24, WIDTH_LEFT, o->run);
		cell(out, 9, WIDTH_LEFT, o->target);
		cell(out, 48, WIDTH_LEFT, o->key);
		cell(out, 12, WIDTH_RIGHT, value);
		cell(out, 12, WIDTH_RIGHT, median);
		cell(out, 8, WIDTH_RIGHT, off);
		text_addf(out, "%s\n", limit);
	}
}

static void inventory_print(struct text *out, const struct comparison *c)
{
	size_t i;

	if (c->difference_count)
		text_add(out, "\nInventory\n");
	for (i = 0; i < c->difference_count; i++) {
		const struct compare_difference *d = &c->difference[i];

		cell(out, 40, WIDTH_LEFT, d->path);
		cell(out, 30, WIDTH_LEFT, d->before);
		text_add(out, "-> ");
		cell(out, 30, WIDTH_LEFT, d->after);
		width_add(out, d->run, 24, WIDTH_LEFT);
		text_add(out, "\n");
	}
}

static json_t *row_json(const struct compare_row *r)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "key", r->key, "target", r->target,
			      "unit", r->unit, "phase", r->phase, "change", compare_change_text(r->change),
			      "verdict_before", verdict_name(r->verdict_before), "verdict_after",
			      verdict_name(r->verdict_after));

	if (r->change != COMPARE_NOT_COMPARABLE) {
		json_object_set_new(o, "before", json_real(r->before));
		json_object_set_new(o, "after", json_real(r->after));
		json_object_set_new(o, "raw", json_real(r->raw));
		json_object_set_new(o, "noise", json_real(r->noise));
		json_object_set_new(o, "noise_raw", json_real(r->noise_raw));
		json_object_set_new(o, "baselines", json_integer(r->baselines));
		if (r->has_normalised)
			json_object_set_new(o, "normalised", json_real(r->normalised));
	}
	if (*r->why)
		json_object_set_new(o, "why", json_string(r->why));
	return o;
}

static void json_print(struct text *out, const struct comparison *c)
{
	json_t *root =
		json_pack("{s:i, s:s, s:s, s:i, s:i, s:i}", "schema", 1, "as", c->fleet ? "fleet" : "history",
			  "headline", c->headline, "exit_code", c->exit_code, "only_before",
			  (int)c->only_before, "only_after", (int)c->only_after);
	json_t *rows = json_array(), *outliers = json_array(), *differences = json_array();
	size_t i;
	char *data;

	for (i = 0; i < c->row_count; i++)
		json_array_append_new(rows, row_json(&c->row[i]));
	for (i = 0; i < c->outlier_count; i++) {
		const struct compare_outlier *o = &c->outlier[i];

		json_array_append_new(outliers,
				      json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:i, s:b}", "run",
						o->run, "target", o->target, "key", o->key, "unit", o->unit,
						"value", o->value, "median", o->median, "deviation",
						o->deviation, "limit", o->limit, "siblings", (int)o->siblings,
						"slower", o->slower));
	}
	for (i = 0; i < c->difference_count; i++) {
		const struct compare_difference *d = &c->difference[i];

		json_array_append_new(differences, json_pack("{s:s, s:s, s:s, s:s}", "path", d->path, "first",
							     d->before, "other", d->after, "run", d->run));
	}
	json_object_set_new(root, "cases", rows);
	json_object_set_new(root, "outliers", outliers);
	json_object_set_new(root, "inventory", differences);
	data = json_dumps(root, JSON_INDENT(1));
	text_add(out, data ? data : "{}");
	text_add(out, "\n");
	free(data);
	json_decref(root);
}

static void print(const struct comparison *c, const struct compare_opts *o)
{
	struct text out = {0};

	if (o->json) {
		json_print(&out, c);
	} else {
		text_addf(&out, "%s\n\n", c->headline);
		if (c->fleet)
			fleet_print(&out, c);
		else
			history_print(&out, c, o->all);
		inventory_print(&out, c);
	}
	fputs(text_str(&out), stdout);
	text_release(&out);
}

static int complain(const struct command_context *c, const struct error *err)
{
	log_error(c->log, LOG_TOPIC_JUDGE, "%s", err->text);
	return err->status == STATUS_BAD_INPUT ? EXIT_USAGE : EXIT_INCONCLUSIVE;
}

static int run(const struct command_context *c, const void *values)
{
	const struct compare_opts *o = values;
	size_t count = o->runs.count < RUNS_MAX ? o->runs.count : RUNS_MAX, i;
	struct loaded *loaded = calloc(count + 1, sizeof(*loaded));
	struct compare_run *runs = calloc(count + 1, sizeof(*runs));
	struct comparison result = {0};
	struct expectations *e = NULL;
	struct error err = {0};
	enum status status;
	int code;

	if (!loaded || !runs)
		status = error_set_cause(&err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %zu runs",
					 count);
	else
		status = expectations_load(&e, o->expectations, &err);
	for (i = 0; i < count && !status; i++) {
		status = load(&loaded[i], o->runs.word[i], e, &err);
		runs[i] = (struct compare_run){
			.name = o->runs.word[i], .record = &loaded[i].record, .judged = &loaded[i].judged};
	}
	if (!status)
		status = compare_runs(&result, runs, count, (enum compare_as)o->as, &err);
	if (!status)
		print(&result, o);
	code = status ? complain(c, &err) : result.exit_code;
	comparison_release(&result);
	for (i = 0; loaded && i < count; i++) {
		judgements_release(&loaded[i].judged);
		record_release(&loaded[i].record);
	}
	expectations_free(e);
	free(loaded);
	free(runs);
	return code;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "hold runs against each other: regressions of one machine, outliers among several",
	.example = "assay compare runs/monday runs/today   # what became slower, beyond noise; exit 1 if "
		   "anything did",
	.help = "One machine: the last run against the median of those before. A change counts when it "
		"leaves the noise: "
		"within-run and between-run spread, 2 % until three earlier runs tell. For compute on a GPU "
		"the change at "
		"an equal held clock stands beside the raw one, so a hotter day is told from worse software. "
		"Several "
		"machines: each value against the median of the others, beyond 2 % and three times their "
		"spread. "
		"Differences of inventory are listed. Exit codes: 0 nothing worse, 1 something slower, "
		"failing or an "
		"outlier, 2 nothing comparable.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct compare_opts)},
	.run = run,
};
