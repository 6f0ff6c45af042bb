/* SPDX-License-Identifier: Apache-2.0 */
/* assay compare: compares runs of one machine over time, or of several machines with each other. */
#include "cmd/compare/compare.h"
#include <math.h>
#include "cmd/command.h"
#include "cmd/shared/loaded_runs.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"

struct compare_opts {
	struct opt_words runs;
	uint32_t as;
	bool json, all;
	const char *expectations;
};

static const char *const as_words[] = {"auto", "history", "fleet", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct compare_opts, runs, .name = "run", .positional = true, .many = true, .shown = "DIR",
		.help = "run directories, oldest first; the last one is compared with the earlier ones, or the "
			"runs after -- with the runs before it"),
	OPT_ROW(struct compare_opts, as, .name = "as", .preset = "auto", .choices = as_words,
		.help = "one machine over time (history) or several machines (fleet); auto: decided by the machines"),
	OPT_ROW(struct compare_opts, json, .name = "json",
		.help = "the comparison as JSON instead of tables"),
	OPT_ROW(struct compare_opts, all, .name = "all", .help = "also show the cases that did not change"),
	OPT_ROW(struct compare_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by the expectations in this folder, not by those saved with each run or the built-in "
			"ones"),
};

static json_t *row_json(const struct compare_row *r)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "key", r->key, "target", r->target,
			      "unit", r->unit, "phase", r->phase, "change", compare_change_text(r->change),
			      "verdict_before", verdict_name(r->verdict_before), "verdict_after",
			      verdict_name(r->verdict_after));

	if (r->field)
		json_object_set_new(o, "field", json_string(r->field));
	json_object_set_new(o, "judged", json_boolean(r->judged));
	if (r->change != COMPARE_NOT_COMPARABLE) {
		json_object_set_new(o, "before", json_real(r->before));
		json_object_set_new(o, "after", json_real(r->after));
		json_object_set_new(o, "raw", json_real(r->raw));
		json_object_set_new(o, "noise", json_real(r->noise));
		json_object_set_new(o, "noise_raw", json_real(r->noise_raw));
		json_object_set_new(o, "baselines", json_integer(r->baselines));
		if (r->has_normalised)
			json_object_set_new(o, "normalised", json_real(r->normalised));
		if (r->floats && isfinite(r->support))
			json_object_set_new(o, "drift_factor", json_real(exp(r->support)));
	}
	if (*r->why)
		json_object_set_new(o, "why", json_string(r->why));
	return o;
}

static void json_print(const struct comparison *c, const struct scaled_runs *scaling)
{
	json_t *root =
		json_pack("{s:i, s:s, s:s, s:i, s:i, s:i}", "schema", 1, "as", c->fleet ? "fleet" : "history",
			  "headline", c->headline, "exit_code", c->exit_code, "only_before",
			  (int)c->only_before, "only_after", (int)c->only_after);
	json_t *rows = json_array(), *outliers = json_array(), *differences = json_array();
	json_t *pairs = json_array();
	size_t i;

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
	for (i = 0; i < c->pair_count; i++) {
		const struct compare_pair *p = &c->pair[i];

		json_array_append_new(pairs, json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f}", "run",
						       p->run, "target", p->c->where, "key", p->c->key,
						       "unit", p->unit, "phase", p->phase, "first", p->first,
						       "other", p->other, "ratio", p->ratio));
	}
	for (i = 0; i < c->difference_count; i++) {
		const struct compare_difference *d = &c->difference[i];

		json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "path", d->path, "first", d->before, "other",
					d->after, "run", d->run);

		if (*d->node) {
			json_object_set_new(one, "node", json_string(d->node));
			json_object_set_new(one, "nodes", json_integer(d->nodes));
		}
		json_array_append_new(differences, one);
	}
	if (scaling)
		json_object_set_new(root, "scaling", compare_scaling_json(scaling));
	if (*c->advice)
		json_object_set_new(root, "advice", json_string(c->advice));
	json_object_set_new(root, "cases", rows);
	json_object_set_new(root, "outliers", outliers);
	json_object_set_new(root, "side_by_side", pairs);
	json_object_set_new(root, "inventory", differences);
	show_json(root, JSON_INDENT(1));
	json_decref(root);
}

/* `scaling`: NULL if the runs do not differ in their ranks. */
static void print(const struct comparison *c, const struct scaled_runs *scaling,
		  const struct compare_run *runs, size_t count, const struct compare_opts *o)
{
	struct text out = {0};

	if (o->json) {
		json_print(c, scaling);
		return;
	}
	if (scaling)
		compare_scaling_show(&out, scaling, runs, count);
	compare_show(&out, c, runs, count, o->all);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static int complain(const struct command_context *c, const struct error *err)
{
	log_error(c->log, LOG_TOPIC_JUDGE, "%s", err->text);
	return command_code(err->status);
}

/* Puts both sides into one list. *before is the number of runs before "--", or of all runs if none follow
 * it. */
static enum status take_words(struct opt_words *out, size_t *before, const struct command_context *c,
			      const struct opt_words *given, struct error *err)
{
	struct opt_words first = {0}, second = {0};
	enum status status = run_dirs_pick(&first, given, c->log, err);
	const char **all = NULL;

	if (!status)
		status = run_dirs_pick(&second, &c->rest, c->log, err);
	if (!status)
		all = calloc(first.count + second.count + 1, sizeof(*all));
	if (!status && !all)
		status = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					 "out of memory for %zu runs", first.count + second.count);
	if (!status) {
		memcpy(all, first.word, first.count * sizeof(*all));
		memcpy(all + first.count, second.word, second.count * sizeof(*all));
	}
	*out = (struct opt_words){.word = all, .count = status ? 0 : first.count + second.count};
	*before = second.count ? first.count : out->count;
	free((void *)first.word);
	free((void *)second.word);
	return status;
}

static int run(const struct command_context *c, const void *values)
{
	const struct compare_opts *o = values;
	struct opt_words words = {0};
	struct error err = {0};
	size_t before;
	enum status status = take_words(&words, &before, c, &o->runs, &err);
	struct loaded_runs loaded = {0};
	struct comparison result = {0};
	struct scaled_runs *scaling = calloc(1, sizeof(*scaling));
	bool scales = false;
	int code;

	if (!scaling && !status)
		status = error_set_cause(&err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					 "out of memory for the runs");

	if (!status)
		status = loaded_runs_read(&loaded, &words, o->expectations, &err);
	for (size_t i = before; i && i < loaded.count; i++)
		loaded.run[i].after = true;
	if (!status)
		status = compare_runs(&result, loaded.run, loaded.count, (enum compare_as)o->as, &err);
	if (!status)
		scales = compare_scaling(scaling, loaded.run, loaded.count);
	if (scales &&
	    !result.row_count) /* runs with other numbers of ranks are no regression of each other */
		snprintf(result.headline, sizeof(result.headline),
			 "runs with %u to %u ranks: an efficiency of %.1f %% with the most ranks",
			 scaling->run[0].ranks, scaling->run[scaling->count - 1].ranks,
			 100 * scaling->run[scaling->count - 1].efficiency);
	if (scales && !result.row_count)
		result.exit_code = EXIT_PASS;
	if (!status)
		print(&result, scales ? scaling : NULL, loaded.run, loaded.count, o);
	code = status ? complain(c, &err) : result.exit_code;
	free(scaling);
	comparison_release(&result);
	loaded_runs_release(&loaded);
	free((void *)words.word);
	return code;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "compare runs: find regressions of one machine, or outliers among several machines",
	.example =
		"assay compare runs/monday runs/today   # what became slower, beyond noise; exit code 1 if "
		"a judged case did",
	.help = "One machine: compares the last run with the median of the earlier runs. With --, compares "
		"the runs after it with those before it: assay compare A1 A2 -- B1 B2. A change counts if it "
		"is larger than the noise. The noise is the spread within and between the runs. With fewer "
		"than three earlier runs it is at least 2 % (5 % on a CPU). For compute on a GPU, the table "
		"shows the change at equal clock next to the raw change. On a CPU without a stable clock, "
		"for example in a virtual machine, the rounds of both sides show how far the clock drifts. "
		"If each side has one round, only a change of more than 40 % counts; a smaller one is "
		"reported as not supported by the noise.\n\n"
		"A load test has a row for each figure: medians, P99 of the time to first token, rates, and "
		"the share that met the limits. A change counts if the 95 % intervals of both sides do not "
		"overlap and it exceeds the noise between runs. These rows count for the exit code in the "
		"same way as judged cases.\n\n"
		"Several machines: compares each value with the median of the others. An outlier differs by "
		"more than 2 % and by more than three times their spread. For two machines, assay prints "
		"ratios without a verdict. It also lists differences in hardware and software.\n\n"
		"Scaling: a table compares training runs of one model, or cases of the probe scaling, with "
		"different numbers of ranks. It shows the efficiency of each run, relative to the run with "
		"the fewest ranks. It also shows the share of the time that each run lost to computation, "
		"communication, waiting, rows, checkpoints and the host. For each run, a sentence names the "
		"largest loss and the setting to change.\n\n"
		"Exit codes: 0 nothing became worse. 1 a judged case is slower or fails, or there is an "
		"outlier. 2 no verdict: no cases can be compared, or a judged case is slower but the noise "
		"is too large to be sure, or there are fewer than four devices of the same kind.",
	.rest = "[-- DIR...]",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct compare_opts)},
	.alone = true,
	.run = run,
};
