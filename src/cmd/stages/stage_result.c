/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stages/stage_result.h"
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include "cmd/command.h"
#include "core/file/file.h"
#include "core/json/member.h"
#include "report/text/format.h"

enum { TEXT_MOST = 16 << 20, JSON_MOST = 256 << 20, FIGURES_MOST = 200 };

const char *stage_verdict_word(enum stage_verdict verdict)
{
#define X(id, word, class) word,
	static const char *const words[] = {STAGE_VERDICTS(X)};
#undef X

	return words[verdict];
}

const char *stage_verdict_class(enum stage_verdict verdict)
{
#define X(id, word, class) class,
	static const char *const classes[] = {STAGE_VERDICTS(X)};
#undef X

	return classes[verdict];
}

enum stage_verdict stage_verdict_of(int code)
{
	return code == EXIT_PASS     ? VERDICT_STAGE_PASSED
	       : code == EXIT_FAILED ? VERDICT_STAGE_FAILED
				     : VERDICT_STAGE_INCONCLUSIVE;
}

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

void stage_figure_value(char *out, size_t size, const json_t *figure)
{
	const json_t *value = json_object_get(figure, "value");

	if (json_is_string(value))
		snprintf(out, size, "%s", json_string_value(value));
	else
		format_quantity(out, size, json_number_value(value), 0, json_member_text(figure, "unit"));
}

static char *read_file(const char *dir, const char *name, size_t most, size_t *size)
{
	char path[PATH_MAX + 128];
	struct error err = {0};
	char *text = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_read(&text, size, path, most, &err) ? NULL : text;
}

char *stage_read_text(const char *dir, const char *name, size_t *size)
{
	return read_file(dir, name, TEXT_MOST, size);
}

json_t *stage_read_json(const char *dir, const char *name)
{
	size_t size = 0;
	char *text = read_file(dir, name, JSON_MOST, &size);
	json_t *out = text ? json_loadb(text, size, 0, NULL) : NULL;

	free(text);
	return out;
}

/* The last line of a command's messages, without its prefix; "": there is none. */
static void last_message(const char *dir, char *out, size_t size)
{
	static const char prefix[] = "assay: error: ";
	size_t length = 0;
	char *text = stage_read_text(dir, "messages.txt", &length), *line, *slash;

	*out = '\0';
	if (!text)
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

void stage_say_lost(struct stage_result *r, const char *dir, const char *what, int code)
{
	char message[240];

	last_message(dir, message, sizeof(message));
	stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "%s; exit code %d%s%s", what, code, *message ? ": " : "",
		  message);
}

const char *stage_run_headline(const json_t *results)
{
	const char *headline = json_member_text(results, "headline");
	const char *colon = strstr(headline, ": ");

	return colon && !memchr(headline, ' ', (size_t)(colon - headline)) ? colon + 2 : headline;
}

bool stage_case_figure(const json_t *one, double *value, const char **unit)
{
	const json_t *figure = json_object_get(one, "figure");

	if (!json_is_number(json_object_get(figure, "value")))
		return false;
	*value = json_number_value(json_object_get(figure, "value"));
	*unit = json_member_text(figure, "unit");
	return true;
}

void stage_take_cases(struct stage_result *r, const json_t *results)
{
	const json_t *cases = json_object_get(results, "cases");
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach((json_t *)cases, i, one)
	{
		char name[200], note[300];
		const char *unit;
		double value;

		if (!stage_case_figure(one, &value, &unit) || count++ >= FIGURES_MOST)
			continue;
		snprintf(name, sizeof(name), "%.120s on %.60s", json_member_text(one, "title"),
			 json_member_text(one, "target"));
		snprintf(note, sizeof(note), "%s%s%.200s", json_member_text(one, "verdict"),
			 *json_member_text(one, "reason") ? ": " : "", json_member_text(one, "reason"));
		stage_figure(r, name, value, unit, note);
	}
}

void stage_take_run(struct stage_result *r, const char *dir, const json_t *results, int code)
{
	const char *why = stage_run_headline(results);

	if (!results || code > EXIT_INCONCLUSIVE)
		stage_say_lost(r, dir, results ? "the command did not end well" : "it left no results.json",
			       code);
	else if (code == EXIT_PASS)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, stage_verdict_of(code), "%s", why);
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
		stage_figure(r, rows[i].name, json_member_number(load, rows[i].field), rows[i].unit, NULL);
}

/* The percentile that the number of samples allows. */
static void load_headline(struct stage_result *r, const json_t *load)
{
	const double p95 = json_member_number(load, "ttft_p95_s"),
		     p99 = json_member_number(load, "ttft_p99_s"),
		     p50 = json_member_number(load, "ttft_p50_s"),
		     rate = json_member_number(load, "completed_rate"),
		     tokens = json_member_number(load, "output_tokens_per_s");
	size_t used = 0;

	if (isfinite(p95))
		used = (size_t)snprintf(r->headline, sizeof(r->headline), "TTFT P95 %.4g ms", 1e3 * p95);
	else if (isfinite(p50))
		used = (size_t)snprintf(r->headline, sizeof(r->headline), "TTFT P50 %.4g ms", 1e3 * p50);
	if (isfinite(p99))
		used += (size_t)snprintf(r->headline + used, sizeof(r->headline) - used, ", P99 %.4g ms",
					 1e3 * p99);
	/* A rate of 0 beside tokens: each answer ended after the measured window. */
	if (rate > 0 || (isfinite(rate) && !(tokens > 0)))
		used += (size_t)snprintf(r->headline + used, sizeof(r->headline) - used, "%s%.4g requests/s",
					 used ? ", " : "", rate);
	if (isfinite(tokens))
		snprintf(r->headline + used, sizeof(r->headline) - used, "%s%.5g output tokens/s",
			 used ? ", " : "", tokens);
}

const json_t *stage_phase_values(const json_t *results, const char *name)
{
	const json_t *one = json_array_get(json_object_get(results, "cases"), 0), *phase;
	size_t i;

	json_array_foreach(json_object_get(one, "phases"), i, phase)
	{
		if (!strcmp(json_member_text(phase, "phase"), name))
			return json_object_get(phase, "values");
	}
	return NULL;
}

const json_t *stage_job_values(const json_t *results)
{
	return stage_phase_values(results, "once");
}

void stage_take_load(struct stage_result *r, const json_t *results)
{
	const json_t *values = stage_job_values(results);

	add_load_figures(r, values);
	load_headline(r, values);
}
