/* SPDX-License-Identifier: Apache-2.0 */
/* The plan, and the one-page summary as Markdown and JSON. */
#include <math.h>
#include "cmd/comprehensive/comprehensive.h"
#include "cmd/shared/show.h"
#include "cmd/stages/stage_page.h"
#include "core/file/file.h"

enum { SCHEMA_VERSION = 1 };

static const char *what_could_not(const struct comprehensive *s)
{
	if (s->size.gpus)
		return s->o->quick
			       ? "--quick: a small model and short stages, so the marks for the load test do not apply"
			       : NULL;
	return "no usable GPU: the engine ran on the CPUs with a small load. Links, NVLink and the marks for the load "
	       "test were not tested";
}

static double expected_s(const struct comprehensive *s)
{
	double all = s->own_model ? s->size.model_s : 0;

	for (int i = 0; i < STAGE_COUNT; i++)
		all += s->result[i].expected_s;
	return all;
}

static void plan_row(struct text *out, const struct comprehensive *s, int id)
{
	const struct stage *stage = &stage_list[id];
	const char *why = stage->skip ? stage->skip(s) : NULL;
	struct stage_command k = {0};

	text_addf(out, "%2d  %-8s  %-8s  ", id + 1, stage->word, stage->core ? "core" : "optional");
	if (!s->result[id].asked) {
		text_add(out, "not asked for\n");
	} else if (why) {
		text_addf(out, "skipped: %s\n", why);
	} else {
		stage->command(s, &k);
		text_addf(out, "about %.0f s: %s\n%24s", s->result[id].expected_s, stage->says, "");
		stage_command_text(out, &k);
		text_add(out, "\n");
	}
}

void comprehensive_show_plan(const struct comprehensive *s)
{
	struct text out = {0};

	text_addf(&out, "comprehensive on %s; about %.0f s in all; results in %s\n", s->size.device,
		  expected_s(s), s->dir);
	if (s->own_model)
		text_addf(&out, " -  model     about %.0f s: assay make-model --shape %s --out %s\n",
			  s->size.model_s, s->size.shape, s->model);
	for (int i = 0; i < STAGE_COUNT; i++)
		plan_row(&out, s, i);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static void add_row(struct text *out, const struct comprehensive *s, int id)
{
	const struct stage_result *r = &s->result[id];

	text_addf(out, "| %d | ", id + 1);
	if (*r->page)
		text_addf(out, "[%s](%s)", stage_list[id].title, r->page);
	else
		text_add(out, stage_list[id].title);
	text_addf(out, " | %s%s | ", stage_verdict_word(r->verdict), stage_list[id].core ? " (core)" : "");
	stage_page_cell(out, r->headline);
	text_add(out, *r->headline && *r->reason ? "; " : "");
	stage_page_cell(out, r->reason);
	if (r->seconds > 0)
		text_addf(out, " | %.0f s |\n", r->seconds);
	else
		text_add(out, " | – |\n");
}

void comprehensive_add_summary(struct text *out, const struct comprehensive *s)
{
	unsigned count[VERDICT_STAGE_SKIPPED + 1] = {0};
	const char *lacks = what_could_not(s);

	for (int i = 0; i < STAGE_COUNT; i++)
		count[s->result[i].verdict]++;
	text_addf(out, "# assay comprehensive: %s\n\n%s, %.0f s, ",
		  stage_verdict_word(stage_verdict_of(comprehensive_code(s))), s->began, s->seconds);
	if (s->size.gpus)
		text_addf(out, "%u GPU%s. ", s->size.gpus, s->size.gpus > 1 ? "s" : "");
	else
		text_add(out, "no GPU. ");
	text_addf(out, "Stages: %u passed, %u failed, %u inconclusive, %u skipped, %u not run.\n\n",
		  count[VERDICT_STAGE_PASSED], count[VERDICT_STAGE_FAILED], count[VERDICT_STAGE_INCONCLUSIVE],
		  count[VERDICT_STAGE_SKIPPED], count[VERDICT_STAGE_NOT_RUN]);
	text_add(out, "| | stage | verdict | headline | time |\n|---|---|---|---|---|\n");
	for (int i = 0; i < STAGE_COUNT; i++)
		add_row(out, s, i);
	text_addf(out, "\nModel: %s%s%s.\n", s->own_model ? "shape " : "",
		  s->own_model ? s->size.shape : s->model, s->own_model ? ", random weights" : "");
	text_addf(out, "Load: %g requests/s for %g s, prompts of %s tokens, answers of %s tokens.\n",
		  s->size.rate, s->size.duration_s, s->size.input, s->size.output);
	if (lacks)
		text_addf(out, "Not possible here: %s.\n", lacks);
}

static json_t *stage_json(const struct comprehensive *s, int id)
{
	const struct stage_result *r = &s->result[id];
	json_t *out =
		json_pack("{s:i, s:s, s:s, s:b, s:b, s:s}", "stage", id + 1, "name", stage_list[id].word,
			  "title", stage_list[id].title, "core", stage_list[id].core, "asked", r->asked,
			  "verdict", stage_verdict_word(r->verdict));
	struct text command = {0};

	if (*r->reason)
		json_object_set_new(out, "reason", json_string(r->reason));
	if (*r->headline)
		json_object_set_new(out, "headline", json_string(r->headline));
	if (*r->page)
		json_object_set_new(out, "page", json_string(r->page));
	if (r->command.count) {
		stage_command_text(&command, &r->command);
		json_object_set_new(out, "command", json_string(text_str(&command)));
		json_object_set_new(out, "seconds", json_real(r->seconds));
		json_object_set_new(out, "expected_s", json_real(r->expected_s));
	}
	if (r->figures)
		json_object_set(out, "figures", r->figures);
	text_release(&command);
	return out;
}

json_t *comprehensive_json(const struct comprehensive *s)
{
	json_t *stages = json_array(), *out;
	const char *lacks = what_could_not(s);

	for (int i = 0; i < STAGE_COUNT; i++)
		json_array_append_new(stages, stage_json(s, i));
	out = json_pack("{s:s, s:i, s:s, s:i, s:s, s:f, s:s, s:i, s:b, s:s, s:o}", "schema",
			"assay.comprehensive", "schema_version", SCHEMA_VERSION, "verdict",
			stage_verdict_word(stage_verdict_of(comprehensive_code(s))), "exit_code",
			comprehensive_code(s), "began", s->began, "seconds", s->seconds, "device",
			s->size.device, "gpus", (int)s->size.gpus, "quick", s->o->quick, "model",
			s->own_model ? s->size.shape : s->model, "stages", stages);
	if (lacks)
		json_object_set_new(out, "not_possible", json_string(lacks));
	return out;
}

static enum status write_text(const char *dir, const char *name, const struct text *t, struct error *err)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_write(path, text_str(t), t->size, err);
}

enum status comprehensive_write(struct comprehensive *s, struct error *err)
{
	enum status st = comprehensive_write_pages(s, err);
	json_t *all = comprehensive_json(s);
	char *json = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	struct text out = {0};

	comprehensive_add_summary(&out, s);
	if (!st)
		st = write_text(s->dir, "SUMMARY.md", &out, err);
	text_release(&out);
	text_addf(&out, "%s\n", json ? json : "");
	if (!st)
		st = json ? write_text(s->dir, "summary.json", &out, err)
			  : error_set(err, STATUS_NO_RESOURCE, "no memory for summary.json");
	text_release(&out);
	free(json);
	json_decref(all);
	return st;
}
