/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a load test: server, idle power, load, report. */
#include "cmd/load/load.h"
#include "cmd/shared/show.h"
#include "cmd/shared/single_process.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "load/run/stage.h"

enum { KEY_FILE_MOST = 64 << 10, AUTHORITIES_MOST = 16 << 20, LOOK_NS = 100000000 };

/* The first line of the file. */
static enum status read_key(struct loading *l, struct error *err)
{
	char *text = NULL;
	size_t size;
	enum status st;

	if (!l->o->key_file)
		return STATUS_OK;
	st = file_read(&text, &size, l->o->key_file, KEY_FILE_MOST, err);
	if (!st) {
		text[strcspn(text, "\r\n")] = '\0';
		text_copy(l->key, sizeof(l->key), text);
		if (!*l->key || strlen(text) >= sizeof(l->key))
			st = error_set(err, STATUS_BAD_INPUT, "%s: its first line is no API key",
				       l->o->key_file);
	}
	free(text);
	return st;
}

/* A TLS library may take a file without certificates for an empty list. */
static enum status check_authorities(const struct load_opts *o, struct error *err)
{
	char *text = NULL;
	size_t size;
	enum status st;

	if (!o->authorities)
		return STATUS_OK;
	st = file_read(&text, &size, o->authorities, AUTHORITIES_MOST, err);
	if (!st && !strstr(text, "-----BEGIN "))
		st = error_set(
			err, STATUS_BAD_INPUT,
			"--ca-file %.200s: it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)",
			o->authorities);
	else if (st)
		st = err->status = STATUS_BAD_INPUT;
	free(text);
	return st;
}

/* Idle power, before anything is sent. */
static void measure_idle(struct loading *l)
{
	const uint64_t from_ns = clock_now_ns(clock_monotonic());
	const uint64_t idle_ns = (uint64_t)(l->o->idle * 1e9);

	if (!l->o->sample || !idle_ns)
		return;
	while (clock_now_ns(clock_monotonic()) - from_ns < idle_ns && !*l->c->stop) {
		job_receive(l->job);
		load_node_read(l);
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	}
	job_phase(l->job, "idle", from_ns, clock_now_ns(clock_monotonic()), NULL);
}

static enum status load_it(struct loading *l, struct error *err)
{
	enum status st = load_server_start(l, err);

	if (!st)
		st = load_node_start(l, err);
	if (!st)
		measure_idle(l);
	if (!st && !*l->c->stop)
		st = load_follow(l, err);
	load_node_stop(l);
	load_server_stop(l);
	if (!st && !l->end.status && *l->c->stop) {
		l->end.status = STATUS_CANCELLED;
		l->end.cause = CAUSE_NONE; /* the advice for it is to resume, which a load test cannot */
		snprintf(l->end.text, sizeof(l->end.text),
			 "stopped on request; the figures are those of the time before");
	}
	if (st && !l->end.said) {
		l->end.status = st;
		l->end.cause = err->cause;
		text_copy(l->end.text, sizeof(l->end.text), err->text);
	}
	return st;
}

/* How many requests users send follows from the answers, so the plan knows only the limit. */
static void print_plan(const struct loading *l, const struct load_plan *plan)
{
	const struct load_plan_tokens tokens = load_plan_tokens(plan);
	const double most_s = plan->duration_s + l->spec.grace_s;

	if (l->spec.plan.arrival == LOAD_CLOSED)
		printf("%u users for %.0f s, each with its next request after the answer; at most %.0f s with the last "
		       "answers, and at most %zu requests\n",
		       (unsigned)l->spec.plan.users, plan->duration_s, most_s, plan->count);
	else
		printf("%zu requests in %.0f s, at most %.0f s with the last answers; %.0f prompt tokens, %.0f output "
		       "tokens%s\n",
		       plan->count, plan->duration_s, most_s, tokens.prompt, tokens.output,
		       l->spec.sweep ? "; each stage of the sweep is as long" : "");
}

static int show_plan(struct loading *l, struct error *err)
{
	struct load_plan plan = {0};
	enum status st = load_plan_make(&plan, &l->spec.plan, err);

	if (!st)
		print_plan(l, &plan);
	l->spec.log = l->c->log;
	if (!st)
		load_stage_warn_edge(&l->spec, plan.duration_s);
	load_plan_release(&plan);
	return st ? command_complain(l->c, err) : EXIT_PASS;
}

int load_perform(const struct command_context *c, const void *opts)
{
	struct loading l = {.c = c, .o = opts};
	struct error err = {0};
	enum status st = load_opts_check(opts, &err);
	int code;

	if (!st)
		st = single_process_check("load", &err);
	if (!st)
		st = load_opts_spec(&l.spec, l.o, &err);
	if (!st && l.o->plan)
		return show_plan(&l, &err);
	if (!st)
		st = read_key(&l, &err);
	if (!st)
		st = check_authorities(l.o, &err);
	if (!st && l.o->url)
		text_copy(l.url, sizeof(l.url), l.o->url);
	if (!st)
		st = load_record_begin(&l, &err);
	if (st)
		return command_complain(c, &err);
	st = load_it(&l, &err);
	if (l.end.status && l.end.status != STATUS_CANCELLED)
		log_line(c->log, LOG_ERROR, LOG_TOPIC_RUN, "%s", l.end.text);
	error_clear(&err);
	code = load_record_end(&l, &err);
	load_node_release(&l);
	child_end_release(&l.end);
	return code;
}
