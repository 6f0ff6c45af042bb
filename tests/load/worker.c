/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "load/conn.h"
#include "load/routes.h"
#include "load/truth.h"
#include "load/worker.h"

#define LINGER_NS UINT64_C(1000000000)

enum { EVENTS = 256, STEPS = 256, ACCEPTS = 64 };

struct worker {
	struct workers *all;
	const struct stub_options *options;
	int epoll_fd, timer_fd, listen_fd, stop_fd, spare_fd;
	bool stopped;
	uint64_t armed_ns; /* the timer's; 0: not armed */
	struct timers timers;
	struct buf out;
	struct truth truth;
	struct counters counters;
	struct late late;
	struct conn *conns, *spare;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int watch(const struct worker *w, int fd, uint32_t events, void *what)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

struct worker *worker_create(struct workers *all, int listen_fd)
{
	struct worker *w = must_alloc(sizeof(*w));

	w->all = all;
	w->options = all->options;
	w->listen_fd = listen_fd;
	w->truth.fd = all->truth_fd;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* Edge-triggered, the timer needs no read: setting it again clears it. */
	if (watch(w, listen_fd, EPOLLIN, &w->listen_fd) ||
	    watch(w, w->timer_fd, EPOLLIN | EPOLLET, &w->timer_fd) ||
	    watch(w, w->stop_fd, EPOLLIN, &w->stop_fd)) {
		perror("stub_server: epoll");
		worker_destroy(w);
		return NULL;
	}
	return w;
}

/* ---- connections ---- */

static void close_conn(struct worker *w, struct conn *c, bool reset)
{
	timers_clear(&w->timers, &c->timer);
	conn_close(c, reset);
	c->next_spare = w->spare;
	w->spare = c;
}

static void end_answer(struct worker *w, struct conn *c, uint64_t at_ns)
{
	struct answer *a = &c->answer;

	timers_clear(&w->timers, &c->timer);
	c->active = false;
	truth_add(&w->truth, a, at_ns);
	counter_add(&w->counters, COUNTER_ENDED, 1);
	if (!strcmp(a->end, "complete"))
		counter_add(&w->counters, COUNTER_COMPLETE, 1);
	if (!strcmp(a->end, "left"))
		counter_add(&w->counters, COUNTER_LEFT, 1);
	counter_add(&w->counters, COUNTER_CACHED_TOKENS, a->usage.cached_tokens);
}

static void lose_conn(struct worker *w, struct conn *c)
{
	if (c->active) {
		c->answer.end = "left";
		end_answer(w, c, now_ns());
	}
	close_conn(w, c, false);
}

/* False: the connection is gone. */
static bool settle(struct worker *w, struct conn *c, enum conn_state state)
{
	bool want = state == CONN_BLOCKED;
	struct epoll_event e = {.events = EPOLLIN | (want ? EPOLLOUT : 0), .data.ptr = c};

	if (state == CONN_LOST) {
		lose_conn(w, c);
		return false;
	}
	if (!want && c->active && c->answer.end) { /* its last byte is sent */
		end_answer(w, c, c->end_ns);
		c->closing = c->closes;
	}
	if (c->closing && !want) {
		close_conn(w, c, false);
		return false;
	}
	if (want != c->waits_out)
		epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
	c->waits_out = want;
	return true;
}

/* ---- answers ---- */

static void late_add(struct late *l, uint64_t late_ns)
{
	uint64_t us = late_ns / 1000;

	l->count++;
	l->bucket[us < LATE_BUCKETS ? us : LATE_BUCKETS - 1]++;
	if (late_ns > l->max_ns)
		l->max_ns = late_ns;
}

static void count_step(struct worker *w, const struct answer *a, uint32_t sent, uint32_t events)
{
	if (!sent && a->sent) {
		counter_add(&w->counters, COUNTER_PROMPT_TOKENS, a->request.prompt_tokens);
		counter_add_ttft(&w->counters, now_ns() - a->received_ns);
	}
	counter_add(&w->counters, COUNTER_TOKENS, a->sent - sent);
	counter_add(&w->counters, COUNTER_CHUNKS, a->events - events);
}

/* Bytes that come after the scratch buffer, of an answer with filler. */
static void take_filler(struct conn *c)
{
	struct buf empty = c->after;

	if (!c->answer.fill || !c->answer.end)
		return;
	c->fill = c->answer.fill;
	c->after = c->answer.after;
	empty.size = 0;
	c->answer.after = empty;
}

/* One step of the answer. False: the connection is gone. */
static bool step(struct worker *w, struct conn *c)
{
	struct answer *a = &c->answer;
	uint32_t sent = a->sent, events = a->events;
	uint64_t due_ns = a->due_ns, at_ns = now_ns();
	enum answer_next next;
	enum conn_state state;

	w->out.size = 0;
	next = answer_step(a, &w->out, at_ns);
	take_filler(c);
	at_ns = now_ns();
	answer_stamp(a, at_ns);
	if (a->sent > sent)
		late_add(&w->late, at_ns - due_ns);
	count_step(w, a, sent, events);
	state = conn_send(c, &w->out);
	if (next == ANSWER_WAITS) {
		if (state != CONN_LOST)
			timers_set(&w->timers, &c->timer, a->due_ns);
		return settle(w, c, state);
	}
	timers_clear(&w->timers, &c->timer);
	c->end_ns = at_ns;
	c->closes = next == ANSWER_CLOSES;
	if (next != ANSWER_RESETS)
		return settle(w, c, state);
	end_answer(w, c, at_ns);
	close_conn(w, c, true);
	return false;
}

/* ---- requests ---- */

static bool respond(struct worker *w, struct conn *c)
{
	c->closing = c->request.close;
	return settle(w, c, conn_send(c, &w->out));
}

static bool refuse(struct worker *w, struct conn *c, const char *message)
{
	w->out.size = 0;
	route_refuse(&w->out, 400, message, c->request.close);
	return respond(w, c);
}

/* When the answer to a request that came at `at_ns` begins. */
static uint64_t turn_ns(struct workers *all, uint64_t at_ns)
{
	uint64_t next = atomic_load(&all->next_turn_ns), begin;

	if (!(all->options->rate_most > 0))
		return at_ns;
	do
		begin = next > at_ns ? next : at_ns;
	while (!atomic_compare_exchange_weak(&all->next_turn_ns, &next, begin + (uint64_t)(1e9 / all->options->rate_most)));
	return begin;
}

static bool generate(struct worker *w, struct conn *c, const char *body, uint64_t at_ns)
{
	const char *message;
	uint64_t number;

	if (request_read_body(&c->request, body, &message))
		return refuse(w, c, message);
	number = atomic_fetch_add(&w->all->next_request, 1);
	counter_add(&w->counters, COUNTER_REQUESTS, 1);
	answer_begin(&c->answer, w->options, &c->request, body, number, at_ns,
		     turn_ns(w->all, at_ns));
	if (c->answer.plan.fault == STUB_FAULT_STALE && c->used) {
		close_conn(w, c, false);
		return false;
	}
	c->active = c->used = true;
	timers_set(&w->timers, &c->timer, c->answer.due_ns);
	return true;
}

static bool route(struct worker *w, struct conn *c, const char *body, uint64_t at_ns)
{
	struct counters sum = {0};

	if (route_generates(&c->request))
		return generate(w, c, body, at_ns);
	for (unsigned i = 0; i < w->all->count; i++)
		counters_sum(&sum, &w->all->worker[i]->counters);
	w->out.size = 0;
	route_respond(&c->request, w->options, &sum, &w->out);
	return respond(w, c);
}

/* What the client still sends is read and dropped for a while: closed at once, the connection would be reset,
 * and the client might lose the answer. */
static void refuse_header(struct worker *w, struct conn *c, int status)
{
	c->in.size = w->out.size = 0;
	route_refuse(&w->out, status, "the header cannot be read", true);
	if (!settle(w, c, conn_send(c, &w->out)))
		return;
	c->discards = true;
	timers_set(&w->timers, &c->timer, now_ns() + LINGER_NS);
	shutdown(c->fd, SHUT_WR);
}

static bool say_continue(struct worker *w, struct conn *c)
{
	if (!c->request.expect || c->continued)
		return true;
	c->continued = true;
	w->out.size = 0;
	buf_adds(&w->out, "HTTP/1.1 100 Continue\r\n\r\n");
	return settle(w, c, conn_send(c, &w->out));
}

/* Takes the requests that have arrived, one after the other. */
static void take_requests(struct worker *w, struct conn *c, uint64_t at_ns)
{
	struct request *r = &c->request;

	while (c->in.size && !c->active && !c->closing && conn_sent_all(c)) {
		int status = r->head ? 0 : request_read_header(r, c->in.data, c->in.size);
		size_t size = r->head + r->body;

		if (status) {
			refuse_header(w, c, status);
			return;
		}
		if (!r->head)
			return;
		if (c->in.size < size) {
			say_continue(w, c);
			return;
		}
		if (!route(w, c, c->in.data + r->head, at_ns))
			return;
		buf_drop(&c->in, size);
		c->continued = false;
		*r = (struct request){0};
	}
}

/* ---- the loop ---- */

static struct conn *spare_conn(struct worker *w)
{
	struct conn *c = w->spare;

	if (c) {
		w->spare = c->next_spare;
		return c;
	}
	c = must_alloc(sizeof(*c));
	c->fd = -1;
	c->next = w->conns;
	w->conns = c;
	return c;
}

/* Without descriptors, the client gets a closed connection instead of waiting in the queue. */
static void turn_away(struct worker *w)
{
	int fd;

	close(w->spare_fd);
	fd = accept(w->listen_fd, NULL, NULL);
	if (fd >= 0)
		close(fd);
	w->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	counter_add(&w->counters, COUNTER_REFUSED, 1);
}

static void open_conn(struct worker *w, int fd)
{
	uint64_t number = atomic_fetch_add(&w->all->next_connection, 1);
	struct conn *c;
	int on = 1;

	counter_add(&w->counters, COUNTER_CONNECTIONS, 1);
	if (stub_plan_refuses(w->options, number)) {
		counter_add(&w->counters, COUNTER_REFUSED, 1);
		truth_add_refused(&w->truth, number, now_ns());
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = spare_conn(w);
	c->fd = fd;
	if (watch(w, fd, EPOLLIN, c))
		close_conn(w, c, true);
}

static void accept_all(struct worker *w)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(w->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			open_conn(w, fd);
		else if (errno == EMFILE || errno == ENFILE)
			turn_away(w);
		else
			return;
	}
}

static void serve(struct worker *w, struct conn *c, uint32_t events)
{
	if (c->fd < 0)
		return;
	if (events & EPOLLOUT) {
		c->end_ns = now_ns();
		if (!settle(w, c, conn_flush(c)))
			return;
	}
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && conn_receive(c) == CONN_LOST) {
		lose_conn(w, c);
		return;
	}
	if (c->discards)
		c->in.size = 0;
	take_requests(w, c, now_ns());
}

/* All tokens that are due; a bounded number, so that new requests are read in between. */
static void run_due(struct worker *w)
{
	for (int i = 0; i < STEPS; i++) {
		struct timer *first = timers_first(&w->timers);
		struct conn *c = (struct conn *)(void *)first;

		if (!first || first->due_ns > now_ns())
			return;
		if (c->discards)
			close_conn(w, c, false);
		else if (step(w, c) && !c->active)
			take_requests(w, c, now_ns());
	}
}

/* Returns the wait of epoll: 0 if something is due. */
static int arm(struct worker *w)
{
	const struct timer *first = timers_first(&w->timers);
	struct itimerspec when = {0};

	if (!first || first->due_ns == UINT64_MAX)
		return -1;
	if (first->due_ns <= now_ns())
		return 0;
	if (first->due_ns != w->armed_ns) {
		w->armed_ns = first->due_ns;
		when.it_value.tv_sec = (time_t)(first->due_ns / 1000000000);
		when.it_value.tv_nsec = (long)(first->due_ns % 1000000000);
		timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	}
	return -1;
}

static void handle(struct worker *w, const struct epoll_event *e)
{
	if (e->data.ptr == &w->listen_fd)
		accept_all(w);
	else if (e->data.ptr == &w->stop_fd)
		w->stopped = true;
	else if (e->data.ptr != &w->timer_fd)
		serve(w, e->data.ptr, e->events);
}

static void stop_answers(struct worker *w)
{
	for (struct conn *c = w->conns; c; c = c->next)
		if (c->fd >= 0 && c->active) {
			c->answer.end = "stopped";
			end_answer(w, c, now_ns());
		}
	truth_flush(&w->truth);
}

void *worker_run(void *worker)
{
	struct epoll_event events[EVENTS];
	struct worker *w = worker;

	while (!w->stopped) {
		int n = epoll_wait(w->epoll_fd, events, EVENTS, arm(w));

		for (int i = 0; i < n; i++)
			handle(w, &events[i]);
		run_due(w);
	}
	stop_answers(w);
	return NULL;
}

void worker_stop(const struct worker *w)
{
	const uint64_t one = 1;

	if (write(w->stop_fd, &one, sizeof(one)) != sizeof(one))
		perror("stub_server: stop");
}

const struct counters *worker_counters(const struct worker *w)
{
	return &w->counters;
}

const struct late *worker_late(const struct worker *w)
{
	return &w->late;
}

bool worker_failed(const struct worker *w)
{
	return w->truth.failed;
}

void worker_destroy(struct worker *w)
{
	struct conn *c, *next;

	for (c = w->conns; c; c = next) {
		next = c->next;
		conn_release(c);
		free(c);
	}
	close(w->listen_fd);
	close(w->stop_fd);
	close(w->spare_fd);
	close(w->timer_fd);
	close(w->epoll_fd);
	timers_release(&w->timers);
	buf_release(&w->out);
	buf_release(&w->truth.lines);
	free(w);
}
