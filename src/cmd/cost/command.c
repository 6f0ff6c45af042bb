/* SPDX-License-Identifier: Apache-2.0 */
/* assay cost: energy and price of the tokens of runs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cmd/command.h"
#include "cmd/cost/cost.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"

enum { RUNS_MAX = 64, FORMAT_TEXT = 0, FORMAT_JSON, FORMAT_CSV };

static const char *const formats[] = {"text", "json", "csv", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct cost_opts, prices, .name = "prices", .shown = "FILE",
		.help = "file of prices, instead of the built-in ones"),
	OPT_ROW(struct cost_opts, electricity, .name = "electricity", .shown = "NAME",
		.help = "the price of electricity in the file that break-even and sensitivity use (default: the "
			"first one)"),
	OPT_ROW(struct cost_opts, api, .name = "api", .shown = "MODEL",
		.help = "compare only with this API (default: all APIs of the file)"),
	OPT_ROW(struct cost_opts, price_per_hour, .name = "price-per-hour", .shown = "DOLLARS", .preset = "0",
		.min = 0, .max = 1e6,
		.help = "price of the whole machine per hour, in addition to the list prices"),
	OPT_ROW(struct cost_opts, capital, .name = "capital", .shown = "DOLLARS", .preset = "0", .min = 0,
		.max = 1e9, .help = "price of the whole machine, instead of the list prices of its GPUs"),
	OPT_ROW(struct cost_opts, years, .name = "years", .preset = "0", .min = 0, .max = 30,
		.help = "years over which the purchase price is spread; 0: the years in the price file, or 3"),
	OPT_ROW(struct cost_opts, idle_share, .name = "idle-share", .preset = "0", .min = 0, .max = 0.99,
		.help = "share of all time in which the machine is idle; its idle energy is added to the electricity"),
	OPT_ROW(struct cost_opts, idle_power, .name = "idle-power", .preset = "0", .unit = "W", .min = 0,
		.max = 1e6, .help = "idle power, instead of the one recorded before the load"),
	OPT_ROW(struct cost_opts, node_power, .name = "node-power", .preset = "0", .unit = "W", .min = 0,
		.max = 1e6,
		.help = "mean power of the whole node during the load, from its BMC or a meter, instead of the counters"),
	OPT_ROW(struct cost_opts, sku, .name = "sku", .shown = "SKU",
		.help = "GPU type of a server on another machine, as in the price file"),
	OPT_ROW(struct cost_opts, gpus, .name = "gpus", .preset = "0", .min = 0, .max = 100000,
		.help = "with --sku: number of GPUs of the server; 0: as many as the node's telemetry shows, or one"),
	OPT_ROW(struct cost_opts, same_server, .name = "same-server",
		.help = "all runs used the same server: fit the energy of prefill and decode over them"),
	OPT_ROW(struct cost_opts, date, .name = "date", .shown = "YYYY-MM-DD",
		.help = "date at which the age of the prices is computed (default: today)"),
	OPT_ROW(struct cost_opts, format, .name = "format", .preset = "text", .choices = formats,
		.help = "form of the output"),
	OPT_ROW(struct cost_opts, json, .name = "json", .help = "the same as --format json"),
	OPT_ROW(struct cost_opts, runs, .name = "runs", .positional = true, .many = true, .shown = "RUN",
		.help = "run directories of load, serve or train"),
};

static enum status check_options(struct cost_opts *o, char today[11], struct error *err)
{
	time_t now = time(NULL);
	struct tm day;
	int days;

	gmtime_r(&now, &day);
	strftime(today, 11, "%Y-%m-%d", &day);
	if (!o->runs.count)
		return error_set(err, STATUS_BAD_INPUT, "no run directory given: assay cost DIR");
	if (o->runs.count > RUNS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%zu runs given; cost accepts at most %d",
				 o->runs.count, RUNS_MAX);
	if (o->date &&
	    (!price_age_days(o->date, today, &days) || (strlen(o->date) != 10 && strlen(o->date) != 7)))
		return error_set(err, STATUS_BAD_INPUT, "--date %s is not YYYY-MM-DD", o->date);
	if (o->gpus && !o->sku)
		return error_set(err, STATUS_BAD_INPUT,
				 "--gpus needs --sku: without it the run's own GPUs count");
	if (!o->date)
		o->date = today;
	if (o->json && o->format == FORMAT_CSV)
		return error_set(err, STATUS_BAD_INPUT, "--json and --format csv exclude each other");
	if (o->json)
		o->format = FORMAT_JSON;
	return STATUS_OK;
}

static enum status check_api(const struct prices *p, const char *api, struct error *err)
{
	size_t count;
	const struct price_api *a = prices_apis(p, &count);
	const char *names[64], *near;

	for (size_t i = 0; i < count && api; i++)
		if (!strcmp(a[i].model, api))
			return STATUS_OK;
	if (!api)
		return STATUS_OK;
	for (size_t i = 0; i < count && i < 64; i++)
		names[i] = a[i].model;
	near = opt_nearest(api, names, count < 64 ? count : 64);
	return error_set(err, STATUS_BAD_INPUT, "--api %s: %s has no API of this name%s%s", api,
			 prices_file(p), near ? "; did you mean " : "", near ? near : "");
}

struct all {
	struct cost_subject subject[RUNS_MAX];
	struct cost_ways ways[RUNS_MAX];
	struct cost_report report[RUNS_MAX];
	size_t count;
};

/* Every run is a stage of the same server. */
static void fit_over_runs(struct all *a)
{
	struct split_stage stage[RUNS_MAX];
	struct split split;
	size_t count = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct cost_subject *s = &a->subject[i];

		if (s->kind != COST_TRAIN && s->energy.known && !isnan(s->input) && !isnan(s->output))
			stage[count++] = (struct split_stage){s->input - (isnan(s->cached) ? 0 : s->cached),
							      s->output, s->energy.joules};
	}
	split_fit(&split, stage, count);
	for (size_t i = 0; i < a->count; i++)
		a->subject[i].split = split;
}

static enum status read_all(struct all *a, const struct prices *p, const struct cost_opts *o,
			    struct error *err)
{
	struct expectations *e = NULL;
	enum status st = expectations_load(&e, NULL, err);

	for (size_t i = 0; i < o->runs.count && !st; i++) {
		st = run_dirs_whole(o->runs.word[i], err);
		if (!st)
			st = cost_subject_read(&a->subject[i], o->runs.word[i], o, e, err);
		a->count += !st;
	}
	expectations_free(e);
	if (!st && o->same_server)
		fit_over_runs(a);
	for (size_t i = 0; i < a->count && !st; i++) {
		st = cost_ways_make(&a->ways[i], &a->subject[i], p, o, err);
		if (!st)
			cost_report_make(&a->report[i], &a->subject[i], &a->ways[i], p, o);
		if (!st && a->report[i].failed)
			st = error_errno(err, ENOMEM, "%s: the tables", o->runs.word[i]);
	}
	return st;
}

static void print(const struct all *a, const struct cost_opts *o)
{
	struct text out = {0};
	json_t *root = o->format == FORMAT_JSON ? json_array() : NULL;

	for (size_t i = 0; i < a->count; i++) {
		if (root)
			json_array_append_new(root, cost_show_json(&a->report[i]));
		else if (o->format == FORMAT_CSV)
			cost_show_csv(&out, &a->report[i], !i);
		else
			text_add(&out, i ? "\n" : ""), cost_show_text(&out, &a->report[i]);
	}
	if (root)
		show_json(root, JSON_INDENT(1));
	else
		show_text(&out, UTF8_KEEP_NOTHING);
	json_decref(root);
	text_release(&out);
}

static bool any_price(const struct cost_ways *w)
{
	bool any = false;

	for (size_t i = 0; i < w->count; i++)
		any = any || !isnan(w->way[i].per_s);
	return any;
}

/* Counts the dated rows of a run's prices and of the APIs', and those that are old. */
static void count_old(const struct cost_report *r, unsigned *old, unsigned *total)
{
	for (size_t i = 0; i < r->tables; i++) {
		const struct cost_table *t = &r->table[i];

		if (strcmp(t->name, "price") != 0 && strcmp(t->name, "break_even") != 0)
			continue;
		for (size_t k = 0; k < t->rows; k++) {
			*old += t->row[k].old;
			*total += *t->row[k].date != 0;
		}
	}
}

static int conclude(const struct command_context *c, const struct all *a, const struct cost_opts *o)
{
	unsigned old = 0, total = 0;
	bool priced = true;
	int code;

	for (size_t i = 0; i < a->count; i++) {
		priced = priced && any_price(&a->ways[i]);
		count_old(&a->report[i], &old, &total);
	}
	if (old)
		log_warn(
			c->log, LOG_TOPIC_RUN,
			"%u of %u prices are more than %d days old on %s; give newer ones with --prices FILE",
			old, total, PRICE_OLD_DAYS, o->date);
	code = priced ? EXIT_PASS : EXIT_INCONCLUSIVE;
	if (code)
		log_error(c->log, LOG_TOPIC_RUN, "no price is known: the tables give the reasons");
	for (size_t i = 0; i < a->count; i++) {
		const struct cost_subject *s = a->report[i].subject;

		if (!s->doubt[0])
			continue;
		log_error(c->log, LOG_TOPIC_RUN, "%s is untrusted, so its prices may be wrong: %s", s->run,
			  s->doubt);
		code = EXIT_INCONCLUSIVE;
	}
	return code;
}

static int run(const struct command_context *c, const void *values)
{
	struct cost_opts o = *(const struct cost_opts *)values;
	struct all *a = calloc(1, sizeof(*a));
	struct prices *p = NULL;
	struct error err = {0};
	char today[11];
	int code;
	enum status st = a ? check_options(&o, today, &err) : error_errno(&err, ENOMEM, "cost: the runs");

	if (!st)
		st = prices_load(&p, o.prices, &err);
	if (!st)
		st = check_api(p, o.api, &err);
	if (!st)
		st = read_all(a, p, &o, &err);
	if (!st)
		print(a, &o);
	code = st ? command_complain(c, &err) : conclude(c, a, &o);
	for (size_t i = 0; a && i < a->count; i++)
		cost_report_release(&a->report[i]);
	prices_free(p);
	free(a);
	return code;
}

const struct command command_cost = {
	.name = "cost",
	.summary = "compute the price of the tokens of a load test, a server or a training run",
	.example =
		"assay cost assay-runs/2026-11-28-load   # dollars per million tokens, by several ways to pay",
	.help = "Computes the price of a run from its tokens, its time, its energy, and dated prices. Prints "
		"dollars per million tokens for electricity, for rented GPU-hours, and for a purchase at 10 "
		"to 100 % utilization. Also prints joules per token, prices with cached input, and which "
		"price or quantity changes the result most. The break-even is the utilization at which the "
		"machine costs as much as an API.\n\n"
		"All prices come from one file with sources and dates: prices/prices.yaml, or the file of "
		"--prices. If a price is more than 90 days old, assay marks it and prints a warning.\n\n"
		"An unknown value is absent, and the reason is below its table. For separate prices of input "
		"and output, assay needs the energy of prefill and of decode. It fits both over at least "
		"three stages with different ratios of input to output. These are the stages of a sweep or, "
		"with --same-server, all runs of the command.\n\n"
		"Exit codes: 0 every run has a price. 2 a run has no price, has no tokens or is untrusted. 64 wrong usage.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct cost_opts)},
	.alone = true,
	.run = run,
};
