/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/stage.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/clock.h"

enum { SETTLE_NS = 50000000, CONNECTIONS_DEFAULT = 4096, THREADS_MOST = 8 };
static const double warmup_share = 0.1, warmup_most_s = 30;

/* A stage while it runs. */
struct running {
	struct load_stages *s;
	struct load_records all;
	struct text line;
	struct load_dialogue **dialogues; /* [sessions]; NULL: single requests */
	uint32_t sessions;
};

static enum status make_body(void *arg, const struct load_request *r, struct text *out, struct error *err)
{
	struct running *run = arg;

	return load_content_body(run->s->content, r, run->dialogues ? run->dialogues[r->session] : NULL, out,
				 err);
}

/* The run goes on without its file if the disk is full; the figures are made from memory. */
static void write_record(struct running *run, const struct load_record *r)
{
	struct load_stages *s = run->s;

	run->line.size = 0;
	load_record_write(&run->line, r);
	if (s->written || fwrite(text_str(&run->line), 1, run->line.size, s->requests) == run->line.size)
		return;
	s->written = error_errno(&s->error, errno, "requests.jsonl");
}

static enum status take_answer(void *arg, const struct load_request *r, struct load_record *record,
			       const struct load_answer_text *text, struct error *err)
{
	struct running *run = arg;
	enum status st = STATUS_OK;

	record->stage = run->s->count;
	if (record->error == LOAD_ERROR_NONE)
		st = load_content_count(run->s->content, text, &record->output_counted, err);
	if (!st && run->dialogues && record->error == LOAD_ERROR_NONE)
		st = load_dialogue_add(&run->dialogues[r->session], run->s->content, r, text, err);
	live_add(&run->s->live, record);
	write_record(run, record);
	return st ? st : load_records_add(&run->all, record, err);
}

static unsigned cpus(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

static struct load_client_spec client_spec(struct running *run)
{
	const struct load_run_spec *o = run->s->spec;
	const unsigned half = (cpus() + 1) / 2;

	return (struct load_client_spec){
		.http = run->s->http,
		.path = load_content_path(run->s->content),
		.stream = o->stream,
		.usage = true,
		.completion = o->content.completion,
		.dialogue = run->dialogues != NULL,
		.threads = o->threads		 ? o->threads
			   : half < THREADS_MOST ? half
						 : THREADS_MOST,
		.connections = o->connections ? o->connections : CONNECTIONS_DEFAULT,
		.grace_ns = (uint64_t)(o->grace_s * 1e9),
		.stop = o->stop,
		.body = make_body,
		.answered = take_answer,
		.arg = run,
	};
}

static double warmup(const struct load_run_spec *o, double duration_s)
{
	return o->warmup_s >= 0 ? fmin(o->warmup_s, duration_s)
				: fmin(warmup_share * duration_s, warmup_most_s);
}

/* The whole schedule, or the part before the run was stopped. */
static struct load_measure_spec measure_spec(const struct running *run, const struct load_plan *plan,
					     uint64_t begin_ns, uint64_t end_ns,
					     const struct load_client_result *result)
{
	const struct load_run_spec *o = run->s->spec;
	const uint64_t planned_ns = begin_ns + (uint64_t)(plan->duration_s * 1e9);

	return (struct load_measure_spec){
		.from_ns = begin_ns + (uint64_t)(warmup(o, plan->duration_s) * 1e9),
		.to_ns = *o->stop && end_ns < planned_ns ? end_ns : planned_ns,
		.offered = plan->offered,
		.slo = o->slo,
		.slo_count = o->slo_count,
		.attainment = o->attainment,
		.expect_cached = o->content.warm || o->plan.prefix_tokens || o->plan.turns > 1,
		.closed_loop = o->plan.arrival == LOAD_CLOSED,
		.cut = *o->stop,
		.use = result->use,
	};
}

static void release(struct running *run)
{
	for (uint32_t i = 0; run->dialogues && i < run->sessions; i++)
		load_dialogue_free(&run->dialogues[i]);
	free(run->dialogues);
	text_release(&run->line);
	load_records_release(&run->all);
}

static enum status make_dialogues(struct running *run, const struct load_plan *plan, struct error *err)
{
	if (run->s->spec->plan.turns < 2)
		return STATUS_OK;
	run->sessions = plan->sessions;
	run->dialogues = calloc(plan->sessions, sizeof(*run->dialogues));
	return run->dialogues ? STATUS_OK
			      : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						"no memory for %u conversations", (unsigned)plan->sessions);
}

static enum status send_plan(struct running *run, const struct load_plan *plan, json_t **values,
			     struct error *err)
{
	struct load_stages *s = run->s;
	const struct load_client_spec client = client_spec(run);
	const uint64_t begin_ns = clock_now_ns(clock_monotonic()) + SETTLE_NS - s->epoch_ns;
	struct load_client_result result;
	struct load_measure_spec measure;
	enum status st = load_client_run(&client, plan, s->epoch_ns, begin_ns, &result, err);

	fflush(s->requests);
	if (st)
		return st;
	measure = measure_spec(run, plan, begin_ns, clock_now_ns(clock_monotonic()) - s->epoch_ns, &result);
	*values = load_summary(&run->all, &measure);
	if (!*values)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the figures of %zu requests", run->all.count);
	json_object_set_new(*values, "dropped_turns", json_real((double)result.dropped));
	json_object_set_new(*values, "in_flight_most", json_real(result.open_most));
	return STATUS_OK;
}

enum status load_stage_run(struct load_stages *s, const struct load_plan_spec *spec, json_t **values,
			   struct error *err)
{
	struct running run = {.s = s};
	struct load_plan plan = {0};
	enum status st = load_plan_make(&plan, spec, err);

	*values = NULL;
	pthread_mutex_lock(&s->live.lock);
	s->planned = plan.count;
	s->live.ended = s->live.errors = s->live.output_tokens = 0;
	s->live.ttft = s->live.e2e = (struct load_times){0};
	pthread_mutex_unlock(&s->live.lock);
	if (!st)
		st = make_dialogues(&run, &plan, err);
	if (!st)
		st = send_plan(&run, &plan, values, err);
	s->count++;
	release(&run);
	load_plan_release(&plan);
	return st;
}
