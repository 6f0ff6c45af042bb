/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/exchange.h"

#include <sys/socket.h>

#include "serve/http/request_log.h"
#include "serve/http/routes.h"
#include "serve/http/server.h"

struct exchange *exchange_create(struct front_end *fe, struct MHD_Connection *connection,
				 const struct route *route)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->fe = fe;
	x->connection = connection;
	x->route = route;
	x->begun_ns = serve_now_ns();
	x->type = "application/json";
	x->next = fe->exchanges;
	x->link = &fe->exchanges;
	if (x->next)
		x->next->link = &x->next;
	fe->exchanges = x;
	fe->exchange_count++;
	return x;
}

static void drop_body(struct exchange *x)
{
	x->fe->body_bytes -= x->body.room;
	text_release(&x->body);
}

static void forget_choices(struct exchange *x)
{
	for (size_t i = 0; x->answer && i < x->answer->count; i++)
		link_forget(x->fe->link, &x->answer->choices[i]);
}

static void count_end(struct exchange *x, bool sent)
{
	struct metrics *m = &x->fe->metrics;
	const struct answer *a = x->answer;
	int http = a ? a->http : x->http;
	bool generates = x->route && x->route->protocol <= PROTOCOL_MESSAGES && !x->route->get;

	if (!generates)
		return;
	metrics_add(m, METRIC_REQUESTS, 1);
	if (x->left || !sent)
		metrics_add(m, METRIC_REQUESTS_LEFT, 1);
	else if (a && a->complete && !a->failed)
		metrics_add(m, METRIC_REQUESTS_OK, 1);
	else if (http == 429)
		metrics_add(m, METRIC_REQUESTS_LIMITED, 1);
	else if (http >= 400 && http < 500)
		metrics_add(m, METRIC_REQUESTS_REFUSED, 1);
	else
		metrics_add(m, METRIC_REQUESTS_FAILED, 1);
}

static void observe(const struct exchange *x)
{
	struct metrics *m = &x->fe->metrics;
	const struct answer *a = x->answer;
	struct answer_usage u;

	if (!a || !a->first_ns)
		return;
	u = answer_usage(a);
	metrics_observe(m, METRIC_TTFT, (double)(a->first_ns - a->began_ns) * 1e-9);
	metrics_observe(m, METRIC_LATENCY, (double)(x->fe->now_ns - a->began_ns) * 1e-9);
	metrics_observe(m, METRIC_PROMPT_LENGTH, (double)u.prompt);
	metrics_observe(m, METRIC_TEXT_LENGTH, (double)u.tokens);
	if (u.tokens > (int64_t)a->count)
		metrics_observe(m, METRIC_TPOT,
				(double)(a->last_ns - a->first_ns) * 1e-9 /
					((double)u.tokens / (double)a->count - 1));
}

void exchange_end(struct exchange *x, bool sent)
{
	forget_choices(x);
	count_end(x, sent);
	if (!x->left && sent)
		observe(x);
	request_log_write(x, sent);
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	x->fe->exchange_count--;
	drop_body(x);
	text_release(&x->reply);
	request_destroy(&x->job.request);
	answer_destroy(&x->answer);
	free(x);
}

void exchange_error(struct exchange *x, const struct api_error *e)
{
	x->reply.size = 0;
	if (x->route && x->route->protocol == PROTOCOL_MESSAGES && !x->route->get)
		api_error_body_messages(&x->reply, e);
	else
		api_error_body(&x->reply, e);
	x->http = e->http;
	x->retry_s = e->retry_s;
	x->state = EXCHANGE_READY;
}

void exchange_suspend(struct exchange *x)
{
	if (x->suspended)
		return;
	x->suspended = true;
	x->fe->mhd.suspend_connection(x->connection);
}

static void resume(struct exchange *x)
{
	if (!x->suspended)
		return;
	x->suspended = false;
	x->fe->mhd.resume_connection(x->connection);
}

void exchange_wake(struct exchange *x)
{
	const struct answer *a = x->answer;

	if (x->state == EXCHANGE_RUNNING && a && (a->streaming || a->complete))
		x->state = EXCHANGE_READY;
	if (x->left || x->state == EXCHANGE_READY ||
	    (x->state == EXCHANGE_SENDING && a && (a->complete || a->out.size > x->sent)))
		resume(x);
}

static bool queue_full(const struct front_end *fe, size_t more, struct api_error *e)
{
	e->retry_s = 1;
	return api_fail(
		e, 429, "queue_full",
		"%zu answers run or wait, this request asks for %zu, and the limit is %zu; try again later",
		fe->preparing + link_running(fe->link), more, fe->o.limits.queue);
}

static bool check_room(struct exchange *x)
{
	struct front_end *fe = x->fe;
	struct api_error e = {0};

	if (fe->draining) {
		e.retry_s = 5;
		api_fail(&e, 503, "draining", "the server is shutting down");
	} else if (fe->preparing >= fe->o.limits.queue || link_running(fe->link) >= fe->o.limits.queue) {
		queue_full(fe, 1, &e);
	}
	if (e.http)
		exchange_error(x, &e);
	return !e.http;
}

void exchange_prepare(struct exchange *x)
{
	x->complete_ns = x->fe->now_ns = serve_now_ns();
	if (!check_room(x))
		return;
	x->job = (struct prepare_job){
		.protocol = x->route->protocol, .body = text_str(&x->body), .size = x->body.size, .owner = x};
	x->state = EXCHANGE_PREPARING;
	x->fe->preparing++;
	exchange_suspend(x);
	preparer_submit(x->fe->preparer, &x->job);
}

/* The worker has written all but the context, which only the engine knows. */
static void reply_tokens(struct exchange *x)
{
	struct request *r = x->job.request;

	x->reply = r->reply;
	r->reply = (struct text){0};
	if (r->protocol == PROTOCOL_TOKENIZE)
		text_addf(&x->reply, ",\"max_model_len\":%lld", (long long)link_ready(x->fe->link)->context);
	text_add(&x->reply, "}");
}

/* Logs a sentence that was not logged before. */
static void log_once(struct front_end *fe, const char *sentence)
{
	enum { NOTED_MOST = 16384 };
	struct text line = {0};

	text_addf(&line, "\n%s\n", sentence);
	if (fe->noted.size < NOTED_MOST && (!fe->noted.data || !strstr(fe->noted.data, text_str(&line)))) {
		text_add(&fe->noted, text_str(&line));
		if (fe->o.log)
			log_info(fe->o.log, LOG_TOPIC_RUN, "%s", sentence);
	}
	text_release(&line);
}

/* Fields that no endpoint reads are ignored, because clients send fields of other servers. The log names only
 * fields that are known of other servers. Any other name is the client's text, so the log has their number.
 */
static void note_ignored(struct exchange *x)
{
	const struct request *r = x->job.request;
	char sentence[160];

	for (size_t i = 0; r && i < r->ignored_count; i++) {
		snprintf(sentence, sizeof(sentence),
			 "requests have a field of another server, which is ignored: %s", r->ignored[i]);
		log_once(x->fe, sentence);
	}
	if (!r || !r->unknown_count)
		return;
	snprintf(sentence, sizeof(sentence), "a request has %zu %s, which this server ignores",
		 r->unknown_count,
		 r->unknown_count == 1 ? "field that is not known" : "fields that are not known");
	log_once(x->fe, sentence);
}

/* Tokens that the context must have room for behind the prompt. */
static int64_t length_needed(const struct request *r)
{
	if (r->own_length)
		return r->engine.min_tokens > 1 ? r->engine.min_tokens : 1;
	return r->engine.max_tokens > 0 ? r->engine.max_tokens : r->engine.max_tokens == 0;
}

static bool check_context(const struct exchange *x, const struct request *r, struct api_error *e)
{
	int64_t context = link_ready(x->fe->link)->context;
	for (size_t i = 0; context && i < r->prompt_count; i++) {
		int64_t prompt = (int64_t)r->prompts[i].count, text = length_needed(r);
		char more[64];

		if (prompt + text <= context)
			continue;
		snprintf(more, sizeof(more), " and asks for %lld more", (long long)text);
		api_fail(
			e, 400, "context_length_exceeded",
			"this model's maximum context length is %lld tokens; the request has %lld tokens in the "
			"prompt%s",
			(long long)context, (long long)prompt, text ? more : "");
		text_copy(e->param, sizeof(e->param), request_prompt_field(r->protocol));
		return false;
	}
	return true;
}

static bool begin_answer(struct exchange *x, struct api_error *e)
{
	struct request *r = x->job.request;
	struct error err = {0};

	if (!check_context(x, r, e))
		return false;
	if (link_running(x->fe->link) + r->prompt_count * r->n > x->fe->o.limits.queue)
		return queue_full(x->fe, r->prompt_count * r->n, e);
	x->job.request = NULL;
	if (answer_create(&x->answer, r, x->fe->prompter, x->complete_ns, &err))
		return api_from(e, "", &err);
	x->answer->owner = x;
	return true;
}

void exchange_prepared(struct exchange *x)
{
	struct api_error e = x->job.error;
	const struct request *r = x->job.request;

	x->fe->preparing--;
	if (!x->fe->o.log_requests)
		drop_body(x);
	note_ignored(x);
	if (x->left) {
		exchange_wake(x);
		return;
	}
	x->http = 200;
	x->state = EXCHANGE_READY;
	if (!r) {
		exchange_error(x, &e);
	} else if (r->protocol == PROTOCOL_TOKENIZE || r->protocol == PROTOCOL_DETOKENIZE) {
		reply_tokens(x);
	} else if (!begin_answer(x, &e)) {
		exchange_error(x, &e);
	} else {
		exchange_submit(x);
	}
	exchange_wake(x);
}

void exchange_submit(struct exchange *x)
{
	struct api_error e = {0};

	x->state = EXCHANGE_RUNNING;
	for (size_t i = 0; i < x->answer->count; i++)
		if (!link_submit(x->fe->link, &x->answer->choices[i], x->client, &e)) {
			forget_choices(x);
			answer_fail(x->answer, &e);
			x->state = EXCHANGE_RUNNING; /* the loss of the engine may have changed it */
			break;
		}
	exchange_wake(x);
}

/* MHD waits until the socket takes more: this ends the wait, and drops what the client does not read. */
static void reset(int fd)
{
	const struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	shutdown(fd, SHUT_RDWR);
}

void exchange_abandon(struct exchange *x)
{
	if (x->left)
		return;
	x->left = true;
	forget_choices(x);
	if (!x->suspended && x->peer)
		reset(x->peer->fd);
	if (x->state != EXCHANGE_PREPARING) /* the preparer holds the body */
		exchange_wake(x);
}

void exchange_stop(struct exchange *x)
{
	x->left = true;
	forget_choices(x);
	resume(x);
}

/* A choice that is finished for the client waits only for the engine's last word. */
static void end_finished(struct answer *a)
{
	struct engine_event e = {.kind = ENGINE_EVENT_END, .end = ENGINE_END_STOP};

	for (size_t i = 0; i < a->count; i++)
		if (a->choices[i].finished && !a->choices[i].ended)
			answer_event(&a->choices[i], &e, 0);
}

void exchange_lost(struct exchange *x, const char *cause)
{
	struct answer *a = x->answer;
	struct api_error e = {.retry_s = 5};

	end_finished(a);
	a->crashes++;
	if (a->complete) {
		exchange_wake(x);
		return;
	}
	if (!a->streaming && a->crashes < 2 && !x->fe->draining) {
		answer_restart(a);
		if (a->complete) {
			exchange_wake(x);
			return;
		}
		x->state = EXCHANGE_RETRYING;
		x->retry_ns = x->fe->now_ns;
		metrics_add(&x->fe->metrics, METRIC_REQUESTS_RETRIED, 1);
		return;
	}
	if (a->crashes > 1) {
		e.retry_s = 0;
		api_fail(
			&e, 503, "engine_lost_twice",
			"the engine was lost twice while it ran this request, the last time because: %s; it is not "
			"submitted again",
			cause);
	} else {
		api_fail(&e, 503, "engine_lost", "the engine was lost while it ran this request: %s", cause);
	}
	answer_fail(a, &e);
	exchange_wake(x);
}
