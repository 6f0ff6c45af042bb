/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/stage.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/clock.h"

enum { SETTLE_NS = 50000000, ORDER_NS = 200, THREADS_MOST = 8 };
static const double edge_share = 0.1, edge_most = 0.4, edge_most_s = 30;

/* A stage while it runs. */
struct running {
	struct load_stages *s;
	struct load_records all;
	struct text line;
	double flushed_s;
	struct load_worker **workers; /* [threads + 1]; the last one counts the answers' tokens */
	unsigned threads;
	struct load_dialogue **dialogues; /* [sessions]; NULL: single requests */
	uint32_t sessions;
};

static enum status make_body(void *arg, unsigned thread, const struct load_request *r, struct text *out,
			     struct load_record *record, struct error *err)
{
	struct running *run = arg;
	struct load_dialogue **d = run->dialogues ? &run->dialogues[r->session] : NULL;
	struct load_asked asked = {0};
	enum status st = d && !*d ? load_dialogue_create(d, err) : STATUS_OK;

	if (!st)
		st = load_worker_body(run->workers[thread], r, record->index, d ? *d : NULL, out, &asked,
				      err);
	record->prompt_asked = asked.prompt_tokens;
	record->output_asked = asked.output_tokens;
	return st;
}

/* Once a second, so that little is lost if this process dies. */
static bool flush(struct running *run)
{
	const double now_s = clock_now_s();

	if (now_s - run->flushed_s < 1)
		return true;
	run->flushed_s = now_s;
	return !fflush(run->s->requests);
}

/* The run goes on without its file if the disk is full; the figures are made from memory. */
static void write_record(struct running *run, const struct load_record *r)
{
	struct load_stages *s = run->s;

	run->line.size = 0;
	load_record_write(&run->line, r);
	if (s->written)
		return;
	if (fwrite(text_str(&run->line), 1, run->line.size, s->requests) == run->line.size && flush(run))
		return;
	s->written = error_errno(&s->error, errno, "requests.jsonl");
}

static enum status take_answer(void *arg, const struct load_request *r, struct load_record *record,
			       const struct load_answer_text *text, struct error *err)
{
	struct running *run = arg;
	const char *said = text_str(&text->content);
	enum status st = STATUS_OK;

	record->stage = run->s->count;
	/* calls and thoughts are tokens too, and their text as the model wrote it is not known */
	if (record->error == LOAD_ERROR_NONE && !text->reasoning.size && !text->calls)
		record->output_counted =
			load_worker_count(run->workers[run->threads], said, text->content.size);
	if (run->dialogues && record->error == LOAD_ERROR_NONE)
		st = load_dialogue_answer(run->dialogues[r->session], said, text->content.size, err);
	live_add(&run->s->live, record);
	write_record(run, record);
	return load_records_add(&run->all, record, st ? NULL : err) && !st ? STATUS_NO_RESOURCE : st;
}

static unsigned cpus(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

static struct load_client_spec client_spec(struct running *run)
{
	const struct load_run_spec *o = run->s->spec;

	return (struct load_client_spec){
		.http = run->s->http,
		.path = run->s->path,
		.stream = o->stream,
		.usage = true,
		.completion = o->content.completion,
		.dialogue = run->dialogues != NULL,
		.threads = run->threads,
		.connections = o->connections,
		.grace_ns = (uint64_t)(o->grace_s * 1e9),
		.stop = o->stop,
		.body = make_body,
		.answered = take_answer,
		.arg = run,
	};
}

/* Seconds that are not measured at the begin of a schedule, and as many at its end: the server fills, and
 * later it empties. */
static double edge_seconds(const struct load_run_spec *o, double duration_s)
{
	return o->warmup_s >= 0 ? fmin(o->warmup_s, edge_most * duration_s)
				: fmin(edge_share * duration_s, edge_most_s);
}

/* The whole schedule, or the part before the run was stopped. */
static struct load_measure_spec measure_spec(const struct running *run, const struct load_plan *plan,
					     uint64_t begin_ns, uint64_t end_ns, bool cut,
					     const struct load_client_result *result)
{
	const struct load_run_spec *o = run->s->spec;
	const double edge_s = edge_seconds(o, plan->duration_s);
	const uint64_t tail_ns = begin_ns + (uint64_t)((plan->duration_s - edge_s) * 1e9);

	return (struct load_measure_spec){
		.from_ns = begin_ns + (uint64_t)(edge_s * 1e9),
		.to_ns = cut && end_ns < tail_ns ? end_ns : tail_ns,
		.offered = plan->offered,
		.slo = o->slo,
		.slo_count = o->slo_count,
		.attainment = o->attainment,
		.ignores_end = o->content.ignore_eos,
		.shared_tokens = load_content_shared_tokens(run->s->content),
		.expect_cached = !o->content.salt || o->plan.prefix_tokens || o->plan.turns > 1 ||
				 o->plan.arrival == LOAD_TRACE,
		.closed_loop = !(plan->offered > 0),
		.cut = cut,
		.use = result->use,
	};
}

static void release(struct running *run)
{
	for (uint32_t i = 0; run->dialogues && i < run->sessions; i++)
		load_dialogue_destroy(&run->dialogues[i]);
	for (unsigned i = 0; run->workers && i <= run->threads; i++)
		load_worker_destroy(&run->workers[i]);
	free(run->workers);
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

static enum status make_workers(struct running *run, struct error *err)
{
	const struct load_run_spec *o = run->s->spec;
	const unsigned half = (cpus() + 1) / 2 < THREADS_MOST ? (cpus() + 1) / 2 : THREADS_MOST;
	enum status st = STATUS_OK;

	run->threads = o->threads ? o->threads : half;
	if (run->threads > o->connections)
		run->threads = o->connections;
	run->workers = calloc(run->threads + 1u, sizeof(struct load_worker *));
	if (!run->workers)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %u threads",
				       run->threads);
	for (unsigned i = 0; i <= run->threads && !st; i++)
		st = load_worker_create(&run->workers[i], run->s->content, err);
	return st;
}

static enum status send_plan(struct running *run, const struct load_plan *plan, json_t **values,
			     struct error *err)
{
	struct load_stages *s = run->s;
	const struct load_client_spec client = client_spec(run);
	/* the threads put the plan's requests in order first */
	const uint64_t begin_ns =
		clock_now_ns(clock_monotonic()) + SETTLE_NS + plan->count * ORDER_NS - s->epoch_ns;
	struct load_client_result result = {0};
	struct load_measure_spec measure;
	enum status st;

	live_begin(&s->live, plan->count, clock_now_s() + plan->duration_s);
	st = load_client_run(&client, plan, s->epoch_ns, begin_ns, &result, err);

	fflush(s->requests);
	if (st && !run->all.count)
		return st;
	measure = measure_spec(run, plan, begin_ns, clock_now_ns(clock_monotonic()) - s->epoch_ns,
			       st || *s->spec->stop, &result);
	if (measure.to_ns <= measure.from_ns) /* it was stopped within the part that is not measured */
		measure.from_ns = begin_ns;
	*values = load_summary(&run->all, &measure);
	if (!*values)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the figures of %zu requests", run->all.count);
	/* absolute times of the measured window, for the phases of the journal */
	json_object_set_new(*values, "from_ns", json_integer((json_int_t)(s->epoch_ns + measure.from_ns)));
	json_object_set_new(*values, "to_ns", json_integer((json_int_t)(s->epoch_ns + measure.to_ns)));
	json_object_set_new(*values, "dropped_turns", json_real((double)result.dropped));
	json_object_set_new(*values, "in_flight_most", json_real(result.open_most));
	return st; /* with an error too, the figures are those of the time before it */
}

static void warn_edge(const struct load_run_spec *o, double duration_s)
{
	const double edge_s = edge_seconds(o, duration_s);

	if (o->warmup_s > edge_s)
		log_warn(
			o->log, LOG_TOPIC_RUN,
			"--warmup %g s is too long for a schedule of %.4g s: %.4g s at its begin and at its end are not "
			"measured, %.0f %% each",
			o->warmup_s, duration_s, edge_s, 100 * edge_most);
}

enum status load_stage_check(const struct load_stages *s, struct load_plan *plan, struct error *err)
{
	uint64_t raised = 0;
	enum status st = load_content_check(s->content, plan, &raised, err);

	if (!st && !plan->count)
		st = error_set(err, STATUS_BAD_INPUT,
			       "the schedule of %g s has no request: raise --rate or --duration",
			       plan->duration_s);
	if (!st && !s->count)
		warn_edge(s->spec, plan->duration_s);
	if (!st && plan->skipped && !s->count)
		log_info(s->spec->log, LOG_TOPIC_RUN,
			 "%llu rows of the trace have no prompt or no answer and were left out",
			 (unsigned long long)plan->skipped);
	if (!st && plan->cut && !s->count && s->spec->plan.arrival != LOAD_CLOSED)
		log_info(s->spec->log, LOG_TOPIC_RUN,
			 "the schedule ends after %zu requests, the limit of --max-requests", plan->count);
	if (!st && raised && !s->count)
		log_info(s->spec->log, LOG_TOPIC_RUN,
			 "%llu prompts of the trace are shorter than the chat template and were made longer",
			 (unsigned long long)raised);
	return st;
}

enum status load_stage_run(struct load_stages *s, const struct load_plan_spec *spec, json_t **values,
			   struct error *err)
{
	struct running run = {.s = s};
	struct load_plan plan = {0};
	enum status st = load_plan_make(&plan, spec, err);

	*values = NULL;
	if (!st)
		st = load_stage_check(s, &plan, err);
	if (!st)
		st = make_workers(&run, err);
	if (!st)
		st = make_dialogues(&run, &plan, err);
	if (!st)
		st = send_plan(&run, &plan, values, err);
	s->count++;
	release(&run);
	load_plan_release(&plan);
	return st;
}
