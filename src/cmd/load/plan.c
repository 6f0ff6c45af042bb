/* SPDX-License-Identifier: Apache-2.0 */
/* What a load test plans: shown with --plan, and before a run. */
#include <stdio.h>
#include "cmd/load/load.h"
#include "cmd/shared/checked_expectations.h"
#include "cmd/shared/show.h"
#include "core/text/text.h"
#include "load/run/planned.h"
#include "load/run/stage.h"

static double number(const json_t *planned, const char *name)
{
	return json_number_value(json_object_get(planned, name));
}

static void add_lengths(struct text *out, const json_t *planned)
{
	if (json_object_get(planned, "dataset_rows"))
		text_addf(out, "prompts and lengths of answers from the dataset's %.0f rows",
			  number(planned, "dataset_rows"));
	else
		text_addf(out, "%.0f prompt tokens, %.0f output tokens", number(planned, "prompt_tokens"),
			  number(planned, "output_tokens"));
}

static void print_users(const json_t *planned)
{
	printf("%.0f users for %.0f s, each with its next request after the answer; at most %.0f s with the last "
	       "answers, and at most %.0f requests\n",
	       number(planned, "users"), number(planned, "duration_s"), number(planned, "most_s"),
	       number(planned, "requests_most"));
}

static void print_schedule(const struct loading *l, const json_t *planned)
{
	struct text lengths = {0};

	add_lengths(&lengths, planned);
	printf("%.0f requests in %.0f s, at most %.0f s with the last answers; %s%s\n",
	       number(planned, "requests"), number(planned, "duration_s"), number(planned, "most_s"),
	       text_str(&lengths), l->spec.sweep ? "; each stage of the sweep is as long" : "");
	text_release(&lengths);
}

static enum status print_plan(const struct loading *l, const struct load_plan *plan, struct error *err)
{
	json_t *planned = load_planned(&l->spec, plan);

	if (!planned)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the plan");
	if (l->o->json)
		show_json(planned, JSON_INDENT(1));
	else if (l->spec.plan.arrival == LOAD_CLOSED)
		print_users(planned);
	else
		print_schedule(l, planned);
	json_decref(planned);
	return STATUS_OK;
}

static enum status check_expectations(const struct load_opts *o, struct error *err)
{
	struct expectations *e = NULL;
	enum status st = checked_expectations_load(&e, o->expectations, err);

	expectations_free(e);
	return st == STATUS_UNAVAILABLE ? (err->status = STATUS_BAD_INPUT) : st;
}

/* Makes the plan as the client process does, with the same tokenizer, template and dataset. */
static enum status make_plan(struct loading *l, struct load_content *content, struct load_plan *plan,
			     struct error *err)
{
	const struct load_stages stages = {.spec = &l->spec, .content = content};
	enum status st;

	l->spec.log = l->c->log;
	l->spec.plan.dataset_rows = load_content_rows(content);
	st = load_plan_make(plan, &l->spec.plan, err);
	return st ? st : load_stage_check(&stages, plan, err);
}

int load_plan_show(struct loading *l, struct error *err)
{
	struct load_content *content = NULL;
	struct load_plan plan = {0};
	enum status st = check_expectations(l->o, err);

	l->spec.content.model = l->spec.model;
	if (!st)
		st = load_content_open(&content, &l->spec.content, err);
	if (!st)
		st = make_plan(l, content, &plan, err);
	if (!st)
		st = print_plan(l, &plan, err);
	load_plan_release(&plan);
	load_content_close(&content);
	return st ? command_complain(l->c, err) : EXIT_PASS;
}

void load_show_planned(const struct loading *l, const json_t *line)
{
	struct text lengths = {0};

	if (json_object_get(line, "stages")) {
		log_info(
			l->c->log, LOG_TOPIC_RUN,
			"%s: at most %.0f stages of %.0f s each; a stage stops after %llu requests or %.0f s",
			l->url, number(line, "stages"), number(line, "duration_s"),
			(unsigned long long)l->o->requests, l->o->duration);
		return;
	}
	if (number(line, "users") > 0) {
		log_info(
			l->c->log, LOG_TOPIC_RUN,
			"%s: %.0f users for %.0f s, each with its next request after the answer; it stops after %llu "
			"requests or %.0f s",
			l->url, number(line, "users"), number(line, "duration_s"),
			(unsigned long long)l->o->requests, l->o->duration);
		return;
	}
	add_lengths(&lengths, line);
	log_info(
		l->c->log, LOG_TOPIC_RUN,
		"%s: %.0f requests in %.0f s (at most %.0f s with the last answers), %s; it stops after %llu requests "
		"or %.0f s",
		l->url, number(line, "requests"), number(line, "duration_s"), number(line, "most_s"),
		text_str(&lengths), (unsigned long long)l->o->requests, l->o->duration);
	text_release(&lengths);
}
