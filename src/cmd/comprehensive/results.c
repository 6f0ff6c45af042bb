/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the stages that are runs: suites of assay check, and the load test. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/file/file.h"
#include "report/text/format.h"

enum { MESSAGES_MOST = 16 << 20, JSON_MOST = 256 << 20, FIGURES_MOST = 200 };

void stage_figure(struct stage_result *r, const char *name, double value, const char *unit, const char *note)
{
	json_t *one;

	if (!isfinite(value))
		return;
	if (!r->figures)
		r->figures = json_array();
	one = json_pack("{s:s, s:f, s:s}", "name", name, "value", value, "unit", unit);
	if (note && *note)
		json_object_set_new(one, "note", json_string(note));
	json_array_append_new(r->figures, one);
}

void stage_figure_text(struct stage_result *r, const char *name, const char *value, const char *note)
{
	json_t *one = json_pack("{s:s, s:s, s:s}", "name", name, "value", value, "unit", "");

	if (!r->figures)
		r->figures = json_array();
	if (note && *note)
		json_object_set_new(one, "note", json_string(note));
	json_array_append_new(r->figures, one);
}

void stage_say(struct stage_result *r, enum stage_verdict verdict, const char *format, ...)
{
	va_list args;

	r->verdict = verdict;
	va_start(args, format);
	vsnprintf(r->reason, sizeof(r->reason), format, args);
	va_end(args);
}

json_t *stage_read_json(const struct comprehensive *s, enum stage_id id, const char *name)
{
	char dir[PATH_MAX + 32], path[PATH_MAX + 128];
	struct error err = {0};
	json_t *out = NULL;
	char *text = NULL;
	size_t size = 0;

	stage_dir(s, id, dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!file_read(&text, &size, path, JSON_MOST, &err))
		out = json_loadb(text, size, 0, NULL);
	free(text);
	return out;
}

/* The last line of a command's messages, without its prefix; "": there is none. */
static void last_message(const struct comprehensive *s, enum stage_id id, char *out, size_t size)
{
	static const char prefix[] = "assay: error: ";
	char dir[PATH_MAX + 32], path[PATH_MAX + 64];
	struct error err = {0};
	char *text = NULL, *line, *slash;
	size_t length = 0;

	*out = '\0';
	stage_dir(s, id, dir);
	snprintf(path, sizeof(path), "%s/messages.txt", dir);
	if (file_read(&text, &length, path, MESSAGES_MOST, &err))
		return;
	while (length && text[length - 1] == '\n')
		text[--length] = '\0';
	slash = strrchr(text, '\n');
	line = slash ? slash + 1 : text;
	if (!strncmp(line, prefix, strlen(prefix)))
		line += strlen(prefix);
	text_copy(out, size, line);
	free(text);
}

void stage_say_lost(const struct comprehensive *s, struct stage_result *r, const char *what, int code)
{
	const enum stage_id id = (enum stage_id)(r - s->result);
	char message[240];

	last_message(s, id, message, sizeof(message));
	stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "%s; exit code %d%s%s", what, code, *message ? ": " : "",
		  message);
}

static const char *string_of(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

/* The headline of a run without the verdict that it begins with: the stage has its own. */
static const char *without_verdict(const char *headline)
{
	const char *colon = strstr(headline, ": ");

	return colon && !memchr(headline, ' ', (size_t)(colon - headline)) ? colon + 2 : headline;
}

static bool figure_of(const json_t *one, double *value, const char **unit)
{
	const json_t *figure = json_object_get(one, "figure");

	if (!json_is_number(json_object_get(figure, "value")))
		return false;
	*value = json_number_value(json_object_get(figure, "value"));
	*unit = string_of(figure, "unit");
	return true;
}

static void add_figures(struct stage_result *r, const json_t *cases)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach((json_t *)cases, i, one)
	{
		char name[200], note[300];
		const char *unit;
		double value;

		if (!figure_of(one, &value, &unit) || count++ >= FIGURES_MOST)
			continue;
		snprintf(name, sizeof(name), "%.120s on %.60s", string_of(one, "title"),
			 string_of(one, "target"));
		snprintf(note, sizeof(note), "%s%s%.200s", string_of(one, "verdict"),
			 *string_of(one, "reason") ? ": " : "", string_of(one, "reason"));
		stage_figure(r, name, value, unit, note);
	}
}

/* Appends "p2p 351 to 372 GB/s" for the cases of a probe whose target has this word. */
static void add_range(struct stage_result *r, const json_t *cases, const char *probe, const char *target,
		      const char *what)
{
	double low = INFINITY, high = -INFINITY;
	const char *unit = "", *shown = "";
	const size_t used = strlen(r->headline);
	const json_t *one;
	char range[64];
	size_t i;

	json_array_foreach((json_t *)cases, i, one)
	{
		double value;

		if (strcmp(string_of(one, "probe"), probe) ||
		    strncmp(string_of(one, "target"), target, strlen(target)) ||
		    !figure_of(one, &value, &unit) || (*shown && strcmp(unit, shown)))
			continue;
		shown = unit;
		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	if (low > high)
		return;
	if (low < high)
		format_range(range, sizeof(range), low, high, shown);
	else
		format_quantity(range, sizeof(range), low, 0, shown);
	snprintf(r->headline + used, sizeof(r->headline) - used, "%s%s %s", used ? "; " : "", what, range);
}

static void add_ranges(struct stage_result *r, const json_t *cases, enum stage_id id)
{
	static const struct {
		enum stage_id stage;
		const char *probe, *target, *what;
	} rows[] = {
		{STAGE_DEVICES, "gemm", "gpu", "BF16 GEMM of a GPU"},
		{STAGE_DEVICES, "gemm", "cpu", "FP32 GEMM of the CPUs"},
		{STAGE_DEVICES, "memory", "cpu", "CPU memory"},
		{STAGE_LINKS, "link", "gpu", "host link"},
		{STAGE_LINKS, "p2p", "gpu", "pair of GPUs"},
		{STAGE_LINKS, "collective", "node", "all-reduce and all-to-all"},
		{STAGE_STRESS, "stress", "gpu", "GPU"},
		{STAGE_STRESS, "stress", "cpu", "CPUs"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].stage == id)
			add_range(r, cases, rows[i].probe, rows[i].target, rows[i].what);
}

/* The verdict of a command that leaves a run directory: its exit code, with its own words. */
static void judge_run(const struct comprehensive *s, struct stage_result *r, const json_t *results, int code)
{
	const char *why = without_verdict(string_of(results, "headline"));

	if (!results || code > EXIT_INCONCLUSIVE)
		stage_say_lost(s, r, results ? "the command did not end well" : "it left no results.json",
			       code);
	else if (code == EXIT_PASS)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, code == EXIT_FAILED ? VERDICT_STAGE_FAILED : VERDICT_STAGE_INCONCLUSIVE, "%s",
			  why);
}

void judge_check(const struct comprehensive *s, struct stage_result *r, enum stage_id id, int code)
{
	json_t *results = stage_read_json(s, id, "results.json");
	const json_t *cases = json_object_get(results, "cases");

	judge_run(s, r, results, code);
	add_figures(r, cases);
	add_ranges(r, cases, id);
	json_decref(results);
}

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void add_load_figures(struct stage_result *r, const json_t *load)
{
	static const struct {
		const char *field, *name, *unit;
	} rows[] = {
		{"requests", "requests due in the window", ""},
		{"answered", "answered", ""},
		{"failed", "failed", ""},
		{"offered_rate", "offered rate", "1/s"},
		{"completed_rate", "completed rate", "1/s"},
		{"output_tokens_per_s", "output tokens", "1/s"},
		{"total_tokens_per_s", "all tokens", "1/s"},
		{"ttft_p50_s", "TTFT, P50", "s"},
		{"ttft_p95_s", "TTFT, P95", "s"},
		{"ttft_p99_s", "TTFT, P99", "s"},
		{"tpot_p50_s", "time per output token, P50", "s"},
		{"tpot_p99_s", "time per output token, P99", "s"},
		{"e2e_p50_s", "whole answer, P50", "s"},
		{"e2e_p99_s", "whole answer, P99", "s"},
		{"over_saturated", "over-saturated (1: yes)", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		stage_figure(r, rows[i].name, number(load, rows[i].field), rows[i].unit, NULL);
}

/* The percentile that the number of samples allows. */
static void load_headline(struct stage_result *r, const json_t *load)
{
	const double p95 = number(load, "ttft_p95_s"), p99 = number(load, "ttft_p99_s"),
		     p50 = number(load, "ttft_p50_s"), rate = number(load, "completed_rate"),
		     tokens = number(load, "output_tokens_per_s");
	size_t used = 0;

	if (isfinite(p95))
		used = (size_t)snprintf(r->headline, sizeof(r->headline), "TTFT P95 %.4g ms", 1e3 * p95);
	else if (isfinite(p50))
		used = (size_t)snprintf(r->headline, sizeof(r->headline), "TTFT P50 %.4g ms", 1e3 * p50);
	if (isfinite(p99))
		used += (size_t)snprintf(r->headline + used, sizeof(r->headline) - used, ", P99 %.4g ms",
					 1e3 * p99);
	if (isfinite(rate))
		used += (size_t)snprintf(r->headline + used, sizeof(r->headline) - used, "%s%.4g requests/s",
					 used ? ", " : "", rate);
	if (isfinite(tokens))
		snprintf(r->headline + used, sizeof(r->headline) - used, "%s%.5g output tokens/s",
			 used ? ", " : "", tokens);
}

/* The values of the whole run; NULL: it has none. */
static const json_t *load_values(const json_t *results)
{
	const json_t *one = json_array_get(json_object_get(results, "cases"), 0), *phase;
	size_t i;

	json_array_foreach(json_object_get(one, "phases"), i, phase)
	{
		if (!strcmp(string_of(phase, "phase"), "once"))
			return json_object_get(phase, "values");
	}
	return NULL;
}

void judge_load(const struct comprehensive *s, struct stage_result *r, int code)
{
	json_t *results = stage_read_json(s, STAGE_LOAD, "results.json");
	const json_t *values = load_values(results);

	judge_run(s, r, results, code);
	add_load_figures(r, values);
	load_headline(r, values);
	json_decref(results);
}
