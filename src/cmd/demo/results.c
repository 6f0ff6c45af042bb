/* SPDX-License-Identifier: Apache-2.0 */
/* Verdict, headline and figures of a step, from what its command left in its folder. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/demo/demo.h"
#include "core/json/member.h"
#include "report/text/format.h"

void judge_text(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	size_t size = 0;
	char *text = stage_read_text(dir, "output.txt", &size);

	(void)d;
	if (code > EXIT_INCONCLUSIVE || code < 0 || !text || !*text)
		stage_say_lost(r, dir, "it printed no result", code);
	else if (code == EXIT_PASS)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, stage_verdict_of(code), "exit code %d", code);
	if (text && code >= 0 && code <= EXIT_INCONCLUSIVE)
		snprintf(r->headline, sizeof(r->headline), "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
}

void judge_noise(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	judge_text(d, r, dir, code);
	*r->headline = '\0';
}

void judge_machine(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	judge_text(d, r, dir, code);
	text_copy(r->headline, sizeof(r->headline), d->host);
}

/* -- suites -- */

/* Whether the figure of a case may stand without a caveat. */
static bool is_trusted(const json_t *one)
{
	const char *verdict = json_member_text(one, "verdict");

	return !strcmp(verdict, "pass") || !strcmp(verdict, "warn") || !strcmp(verdict, "measured");
}

/* The case with the highest trusted figure, of those whose target and title begin with these words. */
static const json_t *best_case(const json_t *results, const char *target, const char *title, const char *unit,
			       double *best)
{
	const json_t *one, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(results, "cases"), i, one)
	{
		const char *its_unit;
		double value;

		if (strncmp(json_member_text(one, "target"), target, strlen(target)) ||
		    strncmp(json_member_text(one, "title"), title, strlen(title)) || !is_trusted(one) ||
		    !stage_case_figure(one, &value, &its_unit) || strcmp(its_unit, unit) ||
		    (found && value <= *best))
			continue;
		found = one;
		*best = value;
	}
	return found;
}

/* The best figures in the headline: "BF16 GEMM 8192, cuBLASLt 665 TFLOP/s". */
static void add_best(struct stage_result *r, const json_t *results)
{
	static const struct {
		const char *target, *title, *unit;
	} rows[] = {
		{"gpu", "BF16 GEMM", "FLOP/s"},	     {"gpu", "memory copy", "B/s"},
		{"gpu", "FP16 attention", "FLOP/s"}, {"gpu", "GPU to GPU", "B/s"},
		{"node", "all-reduce", "B/s"},	     {"cpu", "memory copy", "B/s"},
		{"cpu", "FP32 GEMM", "FLOP/s"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t used = strlen(r->headline);
		double value = 0;
		const json_t *one = best_case(results, rows[i].target, rows[i].title, rows[i].unit, &value);
		char figure[64];

		if (!one)
			continue;
		format_quantity(figure, sizeof(figure), value, 0, rows[i].unit);
		snprintf(r->headline + used, sizeof(r->headline) - used, "%s%s %s", used ? "; " : "",
			 json_member_text(one, "title"), figure);
	}
}

void judge_suite(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	json_t *results = stage_read_json(dir, "results.json");

	(void)d;
	stage_take_run(r, dir, results, code);
	stage_take_cases(r, results);
	if (r->verdict == VERDICT_STAGE_PASSED)
		snprintf(r->headline, sizeof(r->headline), "%.*s",
			 (int)strcspn(stage_run_headline(results), ";"), stage_run_headline(results));
	add_best(r, results);
	json_decref(results);
}

void judge_roofline(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	char path[PATH_MAX + 96];

	(void)d;
	snprintf(path, sizeof(path), "%s/roofline.svg", dir);
	if (code || access(path, R_OK)) {
		stage_say_lost(r, dir, "there is no plot", code);
		return;
	}
	r->verdict = VERDICT_STAGE_PASSED;
	snprintf(r->headline, sizeof(r->headline), "%s/roofline.svg", strrchr(dir, '/') + 1);
}

/* -- training -- */

static void add_training(struct stage_result *r, const json_t *values)
{
	static const struct {
		const char *field, *name, *unit, *note;
		double factor;
	} rows[] = {
		{"loss_first", "loss, first step", "", NULL, 1},
		{"loss", "loss, last step", "", NULL, 1},
		{"steps", "steps", "", NULL, 1},
		{"tokens_per_s", "tokens per second", "1/s", "steady steps only", 1},
		{"flop_rate", "arithmetic", "FLOPS", NULL, 1},
		{"mfu", "share of the GEMM rate", "%", NULL, 100},
		{"memory_bytes", "memory used", "B", NULL, 1},
		{"memory_planned_bytes", "memory planned", "B", NULL, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		stage_figure(r, rows[i].name, rows[i].factor * json_member_number(values, rows[i].field),
			     rows[i].unit, rows[i].note);
}

void judge_train(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	json_t *results = stage_read_json(dir, "run/results.json");
	const json_t *values = stage_job_values(results);
	const double first = json_member_number(values, "loss_first"),
		     last = json_member_number(values, "loss"),
		     rate = json_member_number(values, "tokens_per_s");

	(void)d;
	stage_take_run(r, dir, results, code);
	add_training(r, values);
	if (isfinite(first) && isfinite(last))
		snprintf(r->headline, sizeof(r->headline), "the loss fell from %.3g to %.3g", first, last);
	if (isfinite(first) && isfinite(last) && last >= first)
		snprintf(r->headline, sizeof(r->headline), "the loss went from %.3g to %.3g", first, last);
	if (isfinite(rate))
		snprintf(r->headline + strlen(r->headline), sizeof(r->headline) - strlen(r->headline),
			 "%s%.0f tokens/s", *r->headline ? "; " : "", rate);
	json_decref(results);
}

void judge_answer(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	size_t size = 0;
	char *text;

	judge_text(d, r, dir, code);
	if (r->verdict != VERDICT_STAGE_PASSED)
		return;
	text = stage_read_text(dir, "output.txt", &size);
	while (size && text[size - 1] == '\n')
		text[--size] = '\0';
	if (strcmp(text, demo_taught))
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE,
			  "the answer is not the taught sentence after %u steps; --train-steps takes more",
			  d->o->train_steps);
	free(text);
}

/* -- serving -- */

void judge_request_load(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	json_t *results = stage_read_json(dir, "results.json");

	(void)d;
	stage_take_run(r, dir, results, code);
	stage_take_load(r, results);
	json_decref(results);
}

void judge_sweep(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	json_t *results = stage_read_json(dir, "results.json");
	const json_t *values = stage_job_values(results);
	const double met = json_member_number(values, "sweep_met_rate"),
		     missed = json_member_number(values, "sweep_missed_rate");

	(void)d;
	stage_take_run(r, dir, results, code);
	/* 0: there was none */
	stage_figure(r, "highest rate that met the limits", met > 0 ? met : (double)NAN, "1/s", NULL);
	stage_figure(r, "lowest rate that missed them", missed > 0 ? missed : (double)NAN, "1/s", NULL);
	if (met > 0)
		snprintf(r->headline, sizeof(r->headline), "%.4g requests/s met the limits", met);
	json_decref(results);
}

/* -- comprehensive -- */

void judge_prove(const struct demo *d, struct stage_result *r, const char *dir, int code)
{
	json_t *summary = stage_read_json(dir, "run/summary.json");
	const json_t *stage;
	size_t i;

	(void)d;
	if (!summary || code > EXIT_INCONCLUSIVE || code < 0) {
		stage_say_lost(r, dir, "it left no summary.json", code);
		json_decref(summary);
		return;
	}
	if (code == EXIT_PASS)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, stage_verdict_of(code), "%s", json_member_text(summary, "verdict"));
	json_array_foreach(json_object_get(summary, "stages"), i, stage)
	{
		if (json_is_true(json_object_get(stage, "asked")))
			stage_figure_text(r, json_member_text(stage, "title"),
					  json_member_text(stage, "verdict"),
					  json_member_text(stage, "headline"));
	}
	json_decref(summary);
}
