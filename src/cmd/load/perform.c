/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a load test: server, idle power, load, report. */
#include "cmd/load/load.h"
#include "cmd/shared/single_process.h"
#include "core/clock.h"
#include "core/text/text.h"

enum { LOOK_NS = 100000000 };

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
	if (!st)
		st = load_inputs_read(&l, &err);
	if (!st && l.o->plan)
		return load_plan_show(&l, &err);
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
