/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/model/generate_rows.h"
#include "cmd/model/answer_lines.h"
#include "cmd/model/one_text.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"

enum { STOPS = 2, TELL_NS = 1000000000 };

enum { TOGETHER = 8 }; /* answers that are generated at once */

struct question {
	struct answer_task task;
	struct token_list ids;
	char *grammar; /* source; NULL: any text */
	/* its answer */
	struct text text;
	struct token_stream stream;
	uint64_t made;
	bool stopped;
	struct engine_event end;
	bool ended;
};

struct answering {
	const struct command_context *c;
	const struct generate_rows_ask *ask;
	struct rows rows;
	struct question *questions;
	size_t count;
	struct tokenizer *tokenizer;
	struct template *template;
	struct call_grammar grammar;
	struct engine *engine;
	struct one_text asked;	/* the same for all rows */
	size_t submitted, done; /* questions; those before `done` are judged, in their order */
	struct file_new out;
	struct answer_totals totals;
	uint64_t prompt_tokens, tokens, begin_ns, told_ns;
};

static enum status encode(struct answering *a, struct tokenizer_worker *w, struct question *q,
			  struct error *err)
{
	struct template_text text = {0};
	struct template_tokens tokens = {0};
	enum status st = template_render(a->template, &q->task.prompt, &a->ask->rendering, &text, err);

	if (!st)
		st = template_encode(w, &text, &tokens, err);
	if (!st)
		st = call_grammar_source(&a->grammar, q->task.prompt.tools, &text.text, &q->grammar, err);
	if (!st) {
		q->ids = tokens.ids;
		tokens.ids = (struct token_list){0};
	}
	template_tokens_release(&tokens);
	template_text_release(&text);
	return st;
}

/* Reads all prompts before the model is loaded. So errors in a row are reported early, and the length of
 * the longest prompt is known. */
static enum status read_questions(struct answering *a, struct error *err)
{
	struct tokenizer_worker *w = NULL;
	enum status st = rows_open(&a->rows, a->ask->rows, err);
	size_t count;

	if (st)
		return st;
	count = a->ask->rows_max && a->ask->rows_max < a->rows.count ? a->ask->rows_max : a->rows.count;
	a->questions = calloc(count, sizeof(*a->questions));
	if (!a->questions)
		return error_set(err, STATUS_NO_RESOURCE, "out of memory for %zu rows", count);
	st = tokenizer_worker_create(&w, a->tokenizer, err);
	for (; !st && a->count < count; a->count++) {
		struct question *q = &a->questions[a->count];
		struct error why = {0};

		st = answer_task_read(&q->task, &a->rows, a->count, ROWS_AUTO, err);
		if (st)
			break;
		st = encode(a, w, q, &why);
		if (st) {
			answer_task_release(&q->task);
			free(q->grammar);
			error_set(err, st, "%s:%zu: %s", a->ask->rows, a->rows.place[a->count].line,
				  why.text);
			break;
		}
	}
	tokenizer_worker_destroy(&w);
	return st;
}

/* Shows the progress once per second on one line. */
static void tell(struct answering *a, size_t done)
{
	uint64_t now = clock_now_ns(clock_monotonic());

	if (!a->c->terminal || now - a->told_ns < TELL_NS)
		return;
	a->told_ns = now;
	fprintf(stderr, "\r\033[Krow %zu of %zu, %llu accepted", done, a->count,
		(unsigned long long)a->totals.exact);
	fflush(stderr);
}

static enum status keep(struct answering *a, size_t row, const struct tool_calls *calls,
			const struct answer_verdict *v, struct error *err)
{
	json_t *line = answer_lines_line(row, text_str(&a->questions[row - 1].text), calls, v);
	char *text = json_dumps(line, JSON_COMPACT);
	enum status st;

	json_decref(line);
	if (!text)
		return error_set(err, STATUS_NO_RESOURCE, "out of memory for an answer");
	st = file_new_write(&a->out, text, strlen(text), err);
	if (!st)
		st = file_new_write(&a->out, "\n", 1, err);
	free(text);
	return st;
}

static enum status judge(struct answering *a, size_t i, struct error *err)
{
	const enum answer_end end = one_text_end(&a->questions[i].end);
	struct answer_verdict verdict;
	struct tool_calls calls;
	enum status st = tool_calls_read(&calls, a->template, text_str(&a->questions[i].text), err);

	if (st)
		return st;
	answer_judge(&verdict, &a->questions[i].task, &calls);
	if (end == ANSWER_REFUSED)
		snprintf(verdict.why, sizeof(verdict.why), "no grammar: %.200s", a->questions[i].end.text);
	answer_count(&a->totals, &verdict, end);
	if (a->ask->out)
		st = keep(a, i + 1, &calls, &verdict, err);
	tool_calls_release(&calls);
	return st;
}

/* Rows are answered in any order and judged in their own. */
static enum status conclude_row(struct answering *a, size_t i, struct error *err)
{
	struct question *q = &a->questions[i];
	const bool refused = one_text_end(&q->end) == ANSWER_REFUSED;
	enum status st = refused ? STATUS_OK : one_text_error(&q->end, err);

	if (st)
		return st;
	if (refused)
		log_warn(a->c->log, LOG_TOPIC_RUN,
			 "%s:%zu: no answer, because there is no grammar of its tools: %s", a->ask->rows,
			 a->rows.place[i].line, q->end.text);
	token_stream_end(&q->stream, &q->text);
	a->prompt_tokens += q->ids.count;
	a->tokens += q->made;
	st = judge(a, i, err);
	text_release(&q->text);
	return st;
}

static void on_event(struct answering *a, const struct engine_event *event)
{
	struct question *q = &a->questions[event->id];

	if (event->kind == ENGINE_EVENT_END) {
		q->end = *event;
		q->ended = true;
	}
	if (event->kind != ENGINE_EVENT_TOKEN || q->stopped)
		return;
	q->stopped = one_text_stops(&a->asked, event->token);
	if (q->stopped)
		return;
	q->made++;
	token_stream_add(&q->stream, a->tokenizer, event->token, false, &q->text);
}

/* Keeps as many questions in the engine as it answers at once, and as many waiting. */
static enum status submit_some(struct answering *a, struct error *err)
{
	const struct engine_facts f = engine_facts(a->engine);
	const size_t room = 2 * (size_t)engine_loaded(a->engine)->most.sequences;
	enum status st = STATUS_OK;

	for (size_t held = (size_t)(f.running + f.waiting); !st && held < room && a->submitted < a->count;
	     held++) {
		const struct question *q = &a->questions[a->submitted];
		int32_t stop[ENGINE_STOPS_MOST];
		struct engine_request r = one_text_request(&a->asked, q->ids.id, q->ids.count, stop);

		r.id = a->submitted++;
		r.sampling.seed += r.id; /* rows are drawn independently */
		r.grammar = q->grammar;
		r.grammar_size = q->grammar ? strlen(q->grammar) : 0;
		st = engine_submit(a->engine, &r, err);
	}
	return st;
}

static enum status conclude_rows(struct answering *a, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && a->done < a->count && a->questions[a->done].ended) {
		struct error why = {0};

		st = conclude_row(a, a->done, &why);
		if (st)
			error_set_cause(err, st, why.cause, "%s:%zu: %s", a->ask->rows,
					a->rows.place[a->done].line, why.text);
		a->done++;
	}
	return st;
}

static enum status answer_some(struct answering *a, struct error *err)
{
	const struct engine_event *event;
	struct error why = {0};
	size_t count;
	bool idle;
	enum status st = submit_some(a, err);

	if (st)
		return st;
	st = engine_step(a->engine, &idle, &why);
	if (st)
		return one_text_step_error(a->engine, st, &why, err);
	one_text_wait(a->engine, idle);
	count = engine_events(a->engine, &event);
	for (size_t i = 0; i < count; i++)
		on_event(a, &event[i]);
	return conclude_rows(a, err);
}

static enum status answer_all(struct answering *a, struct error *err)
{
	const int32_t stop[STOPS] = {tokenizer_eos(a->tokenizer),
				     tokenizer_added(a->tokenizer, template_end(a->template))};
	enum status st =
		tokenizer_check_rows(a->tokenizer, engine_loaded(a->engine)->weights.shape.vocab, err);

	a->asked = (struct one_text){.sampling = a->ask->sampling,
				     .tokens = (int64_t)a->ask->tokens,
				     .stop = stop,
				     .stops = STOPS};
	a->begin_ns = clock_now_ns(clock_monotonic());
	while (!st && a->done < a->count && !*a->c->stop) {
		tell(a, a->done);
		st = answer_some(a, err);
	}
	a->asked.stop = NULL;
	a->asked.stops = 0;
	if (a->c->terminal)
		fputs("\r\033[K", stderr);
	return st;
}

static enum status load(struct answering *a, struct error *err)
{
	struct engine_options options = {.load = a->ask->model, .vocab = a->grammar.vocab};
	int64_t positions = 0;

	for (size_t i = 0; i < a->count; i++) {
		int64_t all = (int64_t)(a->questions[i].ids.count + a->ask->tokens);

		positions = all > positions ? all : positions;
	}
	one_text_room(&options.load, positions, TOGETHER, tokenizer_size(a->tokenizer));
	return engine_create(&a->engine, &options, err);
}

static enum status show(const struct answering *a, struct error *err)
{
	double seconds = (double)(clock_now_ns(clock_monotonic()) - a->begin_ns) * 1e-9;
	json_t *out;
	bool shown;

	if (a->totals.cut)
		log_warn(a->c->log, LOG_TOPIC_RUN,
			 "%llu answers were cut at %llu tokens; --tokens raises the limit",
			 (unsigned long long)a->totals.cut, (unsigned long long)a->ask->tokens);
	if (!a->ask->json) {
		answer_lines_show(&a->totals);
		answer_lines_show_ended(&a->totals);
		log_info(a->c->log, LOG_TOPIC_RUN, "%llu tokens after prompts of %llu tokens in %.1f s",
			 (unsigned long long)a->tokens, (unsigned long long)a->prompt_tokens, seconds);
		return STATUS_OK;
	}
	out = answer_totals_json(&a->totals);
	json_object_set_new(out, "prompt_tokens", json_integer((json_int_t)a->prompt_tokens));
	json_object_set_new(out, "tokens", json_integer((json_int_t)a->tokens));
	answer_totals_ended_json(&a->totals, out);
	json_object_set_new(out, "seconds", json_real(seconds));
	json_object_set_new(out, "device", json_string(load_facts(engine_loaded(a->engine)).device));
	shown = show_json(out, JSON_INDENT(1));
	json_decref(out);
	return shown ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "cannot write the totals to stdout");
}

/* Saves the answers before a failure, because they may be hours of work, and says so. Not after a full
 * disk. */
static void keep_some(struct answering *a, enum status st, const struct error *why)
{
	const bool kept = a->totals.rows && a->ask->out && why->cause != CAUSE_DISK_FULL &&
			  !file_new_end(&a->out, STATUS_OK, NULL);

	if (kept)
		log_warn(a->c->log, LOG_TOPIC_RUN, "%s: saved the answers to the first %llu of %zu rows",
			 a->ask->out, (unsigned long long)a->totals.rows, a->count);
	else
		file_new_end(&a->out, st, NULL);
}

/* After a stop request, saves and counts the answers so far. */
static enum status conclude(struct answering *a, struct error *err)
{
	enum status st = a->ask->out ? file_new_end(&a->out, STATUS_OK, err) : STATUS_OK;

	if (!st)
		st = show(a, err);
	if (!st && a->totals.rows < a->count)
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				     "stopped on request after %llu of %zu rows",
				     (unsigned long long)a->totals.rows, a->count);
	return st;
}

static void release(struct answering *a)
{
	for (size_t i = 0; i < a->count; i++) {
		answer_task_release(&a->questions[i].task);
		token_list_release(&a->questions[i].ids);
		free(a->questions[i].grammar);
		text_release(&a->questions[i].text);
	}
	free(a->questions);
	rows_release(&a->rows);
	engine_destroy(&a->engine);
	call_grammar_close(&a->grammar);
	template_close(&a->template);
	tokenizer_close(&a->tokenizer);
}

enum status generate_rows(const struct command_context *c, const struct generate_rows_ask *ask,
			  struct error *err)
{
	struct answering a = {.c = c, .ask = ask, .out = {.fd = -1}};
	const char *files = ask->tokenizer ? ask->tokenizer : ask->model.model;
	enum status st = tokenizer_open(&a.tokenizer, files, err);

	if (!st)
		st = template_open(&a.template, ask->template, ask->rendering.setting, a.tokenizer, err);
	if (!st)
		st = call_grammar_open(&a.grammar, ask->grammar, a.template, a.tokenizer, files, err);
	if (!st)
		st = read_questions(&a, err);
	if (!st && ask->out)
		st = file_new_begin(&a.out, ask->out, err);
	if (!st)
		st = load(&a, err);
	if (!st)
		st = answer_all(&a, err);
	if (!st)
		st = conclude(&a, err);
	else
		keep_some(&a, st, err);
	release(&a);
	return st;
}
