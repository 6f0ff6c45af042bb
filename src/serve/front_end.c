/* SPDX-License-Identifier: Apache-2.0 */
/* The front end's loop: the engine's messages, requests that were read, the supervisor, and HTTP. */
#include "serve/internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/file.h"
#include "core/net/listen.h"
#include "serve/http/exchange.h"
#include "serve/http/server.h"
#include "serve/link/supervisor.h"

enum { EVENTS = 256, TICK_MS = 100, PEM_BYTES_MOST = 1 << 20 };
#define SECOND_NS 1000000000u

static struct serve_limits default_limits(void)
{
	return (struct serve_limits){
		.body_bytes = 32u << 20,
		.bodies_bytes = 1u << 30,
		.header_bytes = 32u << 10,
		.messages = 4096,
		.prompt_tokens = 1u << 20,
		.connections = 10000,
		.queue = 4096,
		.unread_bytes = 1u << 20,
		.read_s = 60,
		.idle_s = 75,
		.hang_s = 10,
		.restart_s = 120,
		.drain_s = 600,
		.workers = 2,
	};
}

static void limits_fill(struct serve_limits *l)
{
	const struct serve_limits d = default_limits();

#define FILL(name) l->name = l->name ? l->name : d.name
	FILL(body_bytes);
	FILL(bodies_bytes);
	FILL(header_bytes);
	FILL(messages);
	FILL(prompt_tokens);
	FILL(connections);
	FILL(queue);
	FILL(unread_bytes);
	FILL(read_s);
	FILL(idle_s);
	FILL(hang_s);
	FILL(restart_s);
	FILL(drain_s);
	FILL(workers);
#undef FILL
}

uint64_t serve_now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* Passes an event on, and observes the time since the token before. True: the engine is to cancel it. */
static bool take_event(struct front_end *fe, struct choice *c, const struct engine_event *e)
{
	const int32_t tokens = c->tokens;
	const uint64_t last_ns = c->last_ns;
	const bool cancel = answer_event(c, e, fe->now_ns);

	if (tokens && c->tokens > tokens)
		metrics_observe(&fe->metrics, METRIC_ITL, (double)(fe->now_ns - last_ns) * 1e-9);
	return cancel;
}

/* A client that does not read must not fill the memory. */
static void on_event(void *arg, struct choice *c, const struct engine_event *e)
{
	struct front_end *fe = arg;
	struct exchange *x = c->answer->owner;
	bool was_failed = c->answer->failed;

	if (take_event(fe, c, e))
		link_cancel(fe->link, c);
	if (c->answer->failed && !was_failed)
		for (size_t i = 0; i < c->answer->count; i++)
			link_forget(fe->link, &c->answer->choices[i]);
	if (c->answer->out.size - x->sent > fe->o.limits.unread_bytes && c->answer->request->stream)
		exchange_abandon(x);
	exchange_wake(x);
}

/* Counters of the engine begin at 0 with each start: what is added is the difference. */
static void on_step(void *arg, const struct engine_facts *now)
{
	struct front_end *fe = arg;
	const struct engine_facts *before = &fe->facts;
	struct metrics *m = &fe->metrics;

	metrics_add(m, METRIC_STEPS, (double)(now->steps - before->steps));
	metrics_add(m, METRIC_TOKENS, (double)(now->tokens - before->tokens));
	metrics_add(m, METRIC_PROMPT_TOKENS, (double)(now->prompt_tokens - before->prompt_tokens));
	metrics_add(m, METRIC_CACHED_QUERIES, (double)(now->prompt_tokens - before->prompt_tokens));
	metrics_add(m, METRIC_CACHED_TOKENS, (double)(now->cached_tokens - before->cached_tokens));
	metrics_add(m, METRIC_PREEMPTIONS, (double)(now->preemptions - before->preemptions));
	metrics_add(m, METRIC_BUSY_SECONDS, now->busy_s - before->busy_s);
	fe->facts = *now;
}

static void on_ready(void *arg, const struct engine_ready *ready)
{
	struct front_end *fe = arg;
	struct exchange *next;

	if (fe->o.log)
		log_info(fe->o.log, LOG_TOPIC_RUN, "the engine is ready on %s: context %lld, %lld pages",
			 ready->device, (long long)ready->context, (long long)ready->pages);
	for (struct exchange *x = fe->exchanges; x; x = next) {
		next = x->next;
		if (x->state == EXCHANGE_RETRYING && !x->left)
			exchange_submit(x);
	}
}

static void on_lost(void *arg)
{
	struct front_end *fe = arg;

	fe->facts = (struct engine_facts){0};
	fe->link_fd = -1; /* closing removed it from the set */
	if (fe->o.log)
		log_warn(fe->o.log, LOG_TOPIC_RUN, "the engine is lost: %s", link_cause(fe->link));
	for (struct exchange *x = fe->exchanges; x; x = x->next)
		if (x->answer && !x->answer->complete && !x->left && x->state != EXCHANGE_RETRYING)
			exchange_lost(x, link_cause(fe->link));
}

static enum status watch(struct front_end *fe, int fd, uint32_t events, void *tag, struct error *err)
{
	struct epoll_event event = {.events = events, .data.ptr = tag};

	if (epoll_ctl(fe->epoll, EPOLL_CTL_ADD, fd, &event))
		return error_errno(err, errno, "cannot watch a descriptor of the server");
	return STATUS_OK;
}

static enum status read_tls(struct front_end *fe, struct error *err)
{
	enum status st;

	if (!fe->o.tls_certificate && !fe->o.tls_key)
		return STATUS_OK;
	if (!fe->o.tls_certificate || !fe->o.tls_key)
		return error_set(err, STATUS_BAD_INPUT, "TLS needs both a certificate and a key");
	st = file_read(&fe->tls_certificate, NULL, fe->o.tls_certificate, PEM_BYTES_MOST, err);
	return st ? st : file_read(&fe->tls_key, NULL, fe->o.tls_key, PEM_BYTES_MOST, err);
}

static enum status open_parts(struct front_end *fe, struct error *err)
{
	const struct link_limits link_limits = {.choices = fe->o.limits.queue,
						.hang_ns = (uint64_t)fe->o.limits.hang_s * SECOND_NS,
						.answer_ns = (uint64_t)fe->o.limits.answer_s * SECOND_NS};
	const struct link_hooks hooks = {
		.arg = fe, .event = on_event, .step = on_step, .ready = on_ready, .lost = on_lost};
	enum status st = prompter_open(&fe->prompter, fe->o.model, fe->o.chat_template, err);

	if (!st && fe->o.api_key_file)
		st = keys_read(&fe->keys, fe->o.api_key_file, err);
	if (!st)
		st = read_tls(fe, err);
	if (!st && fe->o.request_log)
		st = request_log_open(&fe->request_log, fe->o.request_log, err);
	if (!st)
		st = listen_open(&fe->listen_fd, fe->o.address ? fe->o.address : "127.0.0.1", &fe->port, err);
	if (!st)
		st = link_create(&fe->link, &link_limits, &hooks, err);
	return st;
}

static enum status open_loop(struct front_end *fe, struct error *err)
{
	enum status st;

	fe->rules = (struct request_rules){.prompter = fe->prompter,
					   .models = fe->o.models,
					   .adapters = fe->o.adapters,
					   .messages_most = fe->o.limits.messages,
					   .prompt_most = fe->o.limits.prompt_tokens};
	fe->epoll = epoll_create1(EPOLL_CLOEXEC);
	fe->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fe->epoll < 0 || fe->wake < 0)
		return error_errno(err, errno, "cannot make the descriptors of the server");
	st = preparer_create(&fe->preparer, &fe->rules, fe->o.limits.workers, fe->wake, err);
	if (!st)
		st = server_start(fe, err);
	if (!st)
		st = watch(fe, server_fd(fe), EPOLLIN, &fe->daemon, err);
	if (!st)
		st = watch(fe, fe->wake, EPOLLIN, &fe->wake, err);
	if (!st && fe->o.control >= 0)
		st = watch(fe, fe->o.control, EPOLLIN, &fe->o.control, err);
	return st;
}

enum status front_end_create(struct front_end **out, const struct serve_options *options, struct error *err)
{
	struct front_end *fe = calloc(1, sizeof(*fe));
	enum status st;

	*out = NULL;
	if (!fe)
		return error_set(err, STATUS_NO_RESOURCE, "the front end");
	fe->o = *options;
	limits_fill(&fe->o.limits);
	fe->port = options->port;
	fe->listen_fd = fe->epoll = fe->wake = fe->link_fd = fe->request_log.fd = -1;
	fe->now_ns = serve_now_ns();
	signal(SIGPIPE, SIG_IGN); /* GnuTLS writes without MSG_NOSIGNAL */
	st = open_parts(fe, err);
	if (!st)
		st = open_loop(fe, err);
	if (st)
		front_end_destroy(&fe);
	*out = fe;
	return st;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void front_end_destroy(struct front_end **fe_)
{
	struct front_end *fe = *fe_;

	*fe_ = NULL;
	if (!fe)
		return;
	preparer_destroy(&fe->preparer);
	server_stop(fe);
	link_destroy(&fe->link);
	prompter_close(&fe->prompter);
	keys_release(&fe->keys);
	if (fe->tls_key)
		explicit_bzero(fe->tls_key, strlen(fe->tls_key));
	free(fe->tls_key);
	free(fe->tls_certificate);
	text_release(&fe->noted);
	close_fd(&fe->listen_fd);
	close_fd(&fe->epoll);
	close_fd(&fe->wake);
	request_log_close(&fe->request_log);
	close_fd(&fe->o.control);
	free(fe);
}

void serve_drain(struct front_end *fe)
{
	uint64_t one = 1;
	int before = errno;
	ssize_t written;

	atomic_fetch_add(&fe->drains, 1);
	written = write(fe->wake, &one, sizeof(one));
	(void)written;
	errno = before;
}

/* Keeps the engine's socket in the epoll set. Each engine has another one. */
static void watch_link(struct front_end *fe)
{
	int fd = link_fd(fe->link);
	bool writes = link_wants_write(fe->link);
	struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = &fe->link};

	if (fd == fe->link_fd && writes == fe->link_writes)
		return;
	if (fd >= 0)
		epoll_ctl(fe->epoll, fd == fe->link_fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
	fe->link_fd = fd;
	fe->link_writes = writes;
}

static void take_engine(struct front_end *fe, const struct supervisor_message *m)
{
	link_receive(fe->link, fe->now_ns); /* the last messages of the old engine */
	if (m->kind == SUPERVISOR_ENGINE) {
		link_attach(fe->link, m->fd, m->epoch, fe->now_ns);
		fe->link_fd = -1;
		metrics_add(&fe->metrics, METRIC_ENGINE_STARTS, 1);
	} else if (m->kind == SUPERVISOR_ENDED) {
		link_lose(fe->link, m->epoch, m->cause);
	}
}

/* Without a supervisor there will be no engine either. */
static enum status take_control(struct front_end *fe, struct error *err)
{
	struct supervisor_message m;
	bool got = true;
	enum status st = STATUS_OK;

	while (!st && got) {
		st = supervisor_receive(fe->o.control, &m, &got, err);
		if (!st && got)
			take_engine(fe, &m);
	}
	if (st == STATUS_UNAVAILABLE)
		fe->finished = true;
	return st;
}

static void take_prepared(struct front_end *fe)
{
	uint64_t count;
	ssize_t got = read(fe->wake, &count, sizeof(count));
	struct prepare_job *job, *next;

	(void)got;
	for (job = preparer_done(fe->preparer); job; job = next) {
		next = job->next;
		exchange_prepared(job->owner);
	}
}

/* The port may have been any free one. A supervisor that is gone shows in take_control. */
static void report(struct front_end *fe, enum supervisor_kind kind)
{
	struct supervisor_message m = {
		.kind = kind, .epoch = link_epoch(fe->link), .port = fe->port, .fd = -1};
	struct error err = {0};

	if (fe->o.control < 0)
		return;
	text_copy(m.cause, sizeof(m.cause), link_cause(fe->link));
	supervisor_send(fe->o.control, &m, &err);
	fe->reported_ns = fe->now_ns;
}

static void tick(struct front_end *fe)
{
	if (link_tick(fe->link, fe->now_ns))
		report(fe, SUPERVISOR_HANGS);
	if (fe->now_ns - fe->reported_ns >= SECOND_NS)
		report(fe, SUPERVISOR_ALIVE);
	for (struct exchange *x = fe->exchanges; x; x = x->next) {
		struct api_error e = {.retry_s = 30};

		if (x->state != EXCHANGE_RETRYING || x->left ||
		    fe->now_ns < x->retry_ns + (uint64_t)fe->o.limits.restart_s * SECOND_NS)
			continue;
		api_fail(&e, 503, "engine_unavailable", "the engine did not come back in time: %s",
			 link_cause(fe->link));
		answer_fail(x->answer, &e);
		x->state = EXCHANGE_READY;
		exchange_wake(x);
	}
	server_tick(fe);
}

static void drain(struct front_end *fe)
{
	int drains = atomic_load(&fe->drains);

	if (drains && !fe->draining) {
		fe->draining = true;
		fe->drain_ns = fe->now_ns;
		server_quiesce(fe);
	}
	if (!fe->draining)
		return;
	if (drains > 1 || fe->now_ns > fe->drain_ns + (uint64_t)fe->o.limits.drain_s * SECOND_NS)
		fe->finished = true;
	if (!fe->exchange_count && !link_running(fe->link) && link_drain(fe->link))
		fe->finished = true;
}

static enum status dispatch(struct front_end *fe, const struct epoll_event *event, struct error *err)
{
	if (event->data.ptr == &fe->link) {
		if (event->events & EPOLLOUT)
			link_flush(fe->link);
		link_receive(fe->link, fe->now_ns);
	} else if (event->data.ptr == &fe->wake) {
		take_prepared(fe);
	} else if (event->data.ptr == &fe->o.control) {
		return take_control(fe, err);
	} else if (event->data.ptr != &fe->daemon) {
		server_peer_left(event->data.ptr);
	}
	return STATUS_OK;
}

enum status front_end_run(struct front_end *fe, struct error *err)
{
	struct epoll_event events[EVENTS];
	enum status st = STATUS_OK;
	uint64_t ticked_ns = 0;

	report(fe, SUPERVISOR_READY);
	while (!st && !fe->finished) {
		int wait = server_timeout_ms(fe), count;

		watch_link(fe);
		count = epoll_wait(fe->epoll, events, EVENTS, wait < 0 || wait > TICK_MS ? TICK_MS : wait);
		if (count < 0 && errno != EINTR)
			st = error_errno(err, errno, "the server's loop");
		fe->now_ns = serve_now_ns();
		for (int i = 0; !st && i < count; i++)
			st = dispatch(fe, &events[i], err);
		if (fe->now_ns - ticked_ns >= TICK_MS * 1000000u) {
			tick(fe);
			ticked_ns = fe->now_ns;
		}
		server_run(fe);
		server_close_cut(fe);
		drain(fe);
	}
	report(fe, SUPERVISOR_DONE);
	return st;
}
