/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/measure.h"
#include <stdlib.h>
#include "cmd/model/one_text.h"
#include "cmd/shared/saved_kernels.h"
#include "core/clock.h"

enum { TOGETHER = 8, OUTPUTS = 256, STOPS = 2, TELL_NS = 1000000000 };

/* A window or a question in the engine. Its number is the request's id; windows come first. */
struct job {
	size_t seen; /* log probabilities of a window so far */
	struct text text;
	struct token_stream stream;
	bool stopped;
};

struct measuring {
	struct eval_measured *m;
	struct eval_task *task;
	struct engine *engine;
	struct job *jobs;
	size_t count, submitted, ended;
	int32_t stop[STOPS];
	struct one_text asked;
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for the results");
}

static bool is_window(const struct measuring *x, uint64_t id)
{
	return id < x->task->windows->count;
}

static size_t question_of(const struct measuring *x, uint64_t id)
{
	return (size_t)id - x->task->windows->count;
}

/* The line of the file that a request comes from. */
static size_t line_of(const struct measuring *x, uint64_t id)
{
	const struct eval_data *d = x->task->data;

	return is_window(x, id) ? d->documents[x->task->windows->window[id].document].line
				: d->questions[question_of(x, id)].line;
}

/* Shows the progress once per second on one line. */
static void tell(struct measuring *x)
{
	uint64_t now = clock_now_ns(clock_monotonic());

	if (!x->task->c->terminal || now - x->task->told_ns < TELL_NS)
		return;
	x->task->told_ns = now;
	fprintf(stderr, "\r\033[K%s: %zu of %zu windows and answers", x->m->name, x->ended, x->count);
	fflush(stderr);
}

static void settle_kernels(void *arg)
{
	struct eval_task *task = arg;
	struct cpu_kernels kernels;
	char id[USER_CACHE_ID];

	if (!task->settled)
		saved_kernels_settle(&kernels, id, NULL, true, task->c->log, task->c->stop);
	task->settled = true;
}

static enum status load(struct measuring *x, const struct eval_side *side, struct error *err)
{
	const struct eval_precision_row *p = &eval_precisions[side->precision];
	struct engine_options options = {.vocab = x->task->data->grammar.vocab,
					 .load = {.device = side->device,
						  .model = side->model,
						  .log = x->task->c->log,
						  .before_cpu = settle_kernels,
						  .arg = x->task,
						  .cache_e4m3 = p->cache_e4m3,
						  .weights_e4m3 = p->weights_e4m3,
						  .weights_f32 = p->weights_f32}};

	one_text_room(&options.load, x->task->positions, TOGETHER, 0);
	options.load.outputs = OUTPUTS;
	return engine_create(&x->engine, &options, err);
}

static struct engine_request window_request(const struct measuring *x, size_t i)
{
	const struct eval_window *w = &x->task->windows->window[i];

	return (struct engine_request){.prompt = x->task->data->documents[w->document].ids.id + w->begin,
				       .prompt_count = w->count,
				       .adapter = -1,
				       .max_tokens = -1,
				       .sampling = {.top_p = 1, .repetition = 1},
				       .logprobs = -1};
}

static enum status submit_some(struct measuring *x, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && x->submitted < x->count && x->submitted - x->ended < (size_t)2 * TOGETHER) {
		const uint64_t id = x->submitted++;
		int32_t stop[ENGINE_STOPS_MOST];
		const struct eval_question *q =
			is_window(x, id) ? NULL : &x->task->data->questions[question_of(x, id)];
		struct engine_request r = q ? one_text_request(&x->asked, q->ids.id, q->ids.count, stop)
					    : window_request(x, id);

		r.id = id;
		if (q && q->grammar) {
			r.grammar = q->grammar;
			r.grammar_size = strlen(q->grammar);
		}
		x->m->tokens += r.prompt_count;
		st = engine_submit(x->engine, &r, err);
	}
	return st;
}

static void on_prompt(struct measuring *x, const struct engine_event *event)
{
	const struct eval_window *w = &x->task->windows->window[event->id];
	const size_t token = w->begin + 1 + x->jobs[event->id].seen++;

	if (!eval_window_scores(w, &x->task->data->documents[w->document], token))
		return;
	x->m->score[event->id].loss -= (double)event->logprob;
	x->m->score[event->id].tokens++;
}

static void on_token(struct measuring *x, const struct engine_event *event)
{
	struct job *job = &x->jobs[event->id];

	x->m->tokens++;
	if (job->stopped)
		return;
	job->stopped = one_text_stops(&x->asked, event->token);
	if (!job->stopped)
		token_stream_add(&job->stream, x->task->data->tokenizer, event->token, false, &job->text);
}

static enum status judge(struct measuring *x, size_t question, struct job *job, enum answer_end end,
			 struct error *err)
{
	const struct eval_question *q = &x->task->data->questions[question];
	struct answer_verdict verdict;
	struct tool_calls calls;
	enum status st;

	token_stream_end(&job->stream, &job->text);
	st = tool_calls_read(&calls, x->task->data->template, text_str(&job->text), err);
	if (st)
		return st;
	answer_judge(&verdict, &q->task, &calls);
	answer_count(&x->m->calls, &verdict, end);
	x->m->exact[question] = verdict.exact;
	tool_calls_release(&calls);
	return STATUS_OK;
}

static enum status on_end(struct measuring *x, const struct engine_event *event, struct error *err)
{
	struct job *job = &x->jobs[event->id];
	struct error why = {0};
	const enum answer_end end = one_text_end(event);
	enum status st = end == ANSWER_REFUSED ? STATUS_OK : one_text_error(event, &why);

	x->ended++;
	if (end == ANSWER_REFUSED)
		log_warn(x->task->c->log, LOG_TOPIC_RUN,
			 "%s:%zu: no answer, because there is no grammar of its tools: %s", x->task->path,
			 line_of(x, event->id), event->text);
	if (st == STATUS_MISMATCH) {
		snprintf(x->m->broken, sizeof(x->m->broken), "%s:%zu: NaN or infinity in the logits",
			 x->task->path, line_of(x, event->id));
		return STATUS_OK;
	}
	if (st)
		return error_set_cause(err, st, why.cause, "%s:%zu: %s", x->task->path, line_of(x, event->id),
				       why.text);
	if (!is_window(x, event->id))
		st = judge(x, question_of(x, event->id), job, end, err);
	text_release(&job->text);
	return st;
}

static enum status read_events(struct measuring *x, struct error *err)
{
	const struct engine_event *event;
	const size_t count = engine_events(x->engine, &event);
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++) {
		if (event[i].kind == ENGINE_EVENT_PROMPT)
			on_prompt(x, &event[i]);
		else if (event[i].kind == ENGINE_EVENT_TOKEN)
			on_token(x, &event[i]);
		else if (event[i].kind == ENGINE_EVENT_END)
			st = on_end(x, &event[i], err);
	}
	return st;
}

static enum status step(struct measuring *x, struct error *err)
{
	struct error why = {0};
	bool idle;
	enum status st = submit_some(x, err);

	if (!st && (st = engine_step(x->engine, &idle, &why)))
		return one_text_step_error(x->engine, st, &why, err);
	if (!st)
		one_text_wait(x->engine, idle);
	return st ? st : read_events(x, err);
}

static enum status run_all(struct measuring *x, struct error *err)
{
	const uint64_t begin_ns = clock_now_ns(clock_monotonic());
	enum status st = STATUS_OK;

	while (!st && x->ended < x->count && !*x->m->broken && !*x->task->c->stop) {
		tell(x);
		st = step(x, err);
	}
	if (x->task->c->terminal)
		fputs("\r\033[K", stderr);
	x->m->seconds = (double)(clock_now_ns(clock_monotonic()) - begin_ns) * 1e-9;
	if (!st && *x->task->c->stop)
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				     "stopped on request after %zu of %zu windows and answers of %s",
				     x->ended, x->count, x->m->name);
	return st;
}

static void note_device(struct measuring *x)
{
	const struct load_facts f = load_facts(engine_loaded(x->engine));

	snprintf(x->m->device, sizeof(x->m->device), "%s", f.device);
	x->m->gpu = f.gpu;
	x->m->load_s = engine_ready(x->engine).load_s;
}

static void set_question(struct measuring *x)
{
	const struct eval_data *d = x->task->data;

	if (!d->question_count)
		return;
	x->stop[0] = tokenizer_eos(d->tokenizer);
	x->stop[1] = tokenizer_added(d->tokenizer, template_end(d->template));
	x->asked = (struct one_text){.sampling = {.top_p = 1, .repetition = 1},
				     .tokens = x->task->tokens,
				     .stop = x->stop,
				     .stops = STOPS};
}

static enum status make_tables(struct measuring *x, struct error *err)
{
	const size_t windows = x->task->windows->count, questions = x->task->data->question_count;

	x->count = windows + questions;
	x->jobs = calloc(x->count, sizeof(*x->jobs));
	x->m->score = calloc(windows + 1, sizeof(*x->m->score));
	x->m->exact = calloc(questions + 1, sizeof(*x->m->exact));
	return x->jobs && x->m->score && x->m->exact ? STATUS_OK : no_memory(err);
}

static void release(struct measuring *x)
{
	for (size_t i = 0; x->jobs && i < x->count; i++)
		text_release(&x->jobs[i].text);
	free(x->jobs);
	engine_destroy(&x->engine);
}

enum status eval_measure(struct eval_measured *m, struct eval_task *task, const struct eval_side *side,
			 struct error *err)
{
	struct measuring x = {.m = m, .task = task};
	enum status st;

	*m = (struct eval_measured){0};
	snprintf(m->name, sizeof(m->name), "%s", side->name);
	set_question(&x);
	st = make_tables(&x, err);
	if (!st)
		st = load(&x, side, err);
	if (!st && task->data->tokenizer)
		st = tokenizer_check_rows(task->data->tokenizer, engine_loaded(x.engine)->weights.shape.vocab,
					  err);
	if (!st) {
		note_device(&x);
		st = run_all(&x, err);
		engine_memory_read(&x.m->memory, x.engine);
	}
	release(&x);
	return st;
}

void eval_measured_release(struct eval_measured *m)
{
	free(m->score);
	free(m->exact);
	*m = (struct eval_measured){0};
}
