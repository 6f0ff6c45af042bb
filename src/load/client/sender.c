/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/sender.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"

/*
 * A wait returns all events, so that the bound on how late they are read is known. After each GROUP of them
 * requests are sent that became due. With more than DENSE events/ms, a wait begins ROUND_NS after the end of
 * the one before, because a wait costs more than a read.
 */
enum {
	EVENTS = 2048,
	GROUP = 32,
	DENSE = 20,
	ROUND_NS = 200000,
	COUNT_NS = 1000000,
	LOOK_NS = 50000000 /* at the stop flag */,
	PAUSE_NS = 1000000000,
	TURN_NS = 100000,
	SLEPT_NS = 20000,
	COLLECT_NS = 1000 /* the kernel needs less for an event that a wait returns */
};

static uint64_t now_ns(const struct sender *s)
{
	return clock_now_ns(clock_monotonic()) - s->epoch_ns;
}

/* curl asks for events of a socket. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct sender *s = arg;
	struct epoll_event event = {.data.fd = fd};

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(s->poll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	if (known || epoll_ctl(s->poll, EPOLL_CTL_ADD, fd, &event))
		epoll_ctl(s->poll, EPOLL_CTL_MOD, fd, &event);
	if (!known)
		s->spec->http->curl.multi_assign(s->multi, fd, s);
	return 0;
}

/* curl asks to be called after a time; -1: not at all. */
static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct sender *s = arg;

	(void)multi;
	s->curl_due_ns = ms < 0 ? UINT64_MAX : now_ns(s) + (uint64_t)ms * 1000000;
	return 0;
}

static enum status open_poll(struct sender *s, struct error *err)
{
	struct epoll_event wake = {.events = EPOLLIN, .data.fd = s->wake};
	struct epoll_event timer = {.events = EPOLLIN};

	s->poll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	timer.data.fd = s->timer;
	if (s->poll < 0 || s->timer < 0 || epoll_ctl(s->poll, EPOLL_CTL_ADD, s->timer, &timer) ||
	    epoll_ctl(s->poll, EPOLL_CTL_ADD, s->wake, &wake))
		return error_errno(err, errno, "the descriptors of a sender thread");
	return STATUS_OK;
}

static enum status open_multi(struct sender *s, struct error *err)
{
	const struct curl *c = &s->spec->http->curl;

	s->multi = c->multi_init();
	if (!s->multi)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a sender thread");
	c->multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	c->multi_setopt(s->multi, CURLMOPT_SOCKETDATA, s);
	c->multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	c->multi_setopt(s->multi, CURLMOPT_TIMERDATA, s);
	c->multi_setopt(s->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	c->multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, (long)s->connections);
	return STATUS_OK;
}

enum status sender_create(struct sender *s, struct error *err)
{
	s->back = (struct flight_queue)FLIGHT_QUEUE_NEW;
	s->poll = s->timer = -1;
	s->curl_due_ns = UINT64_MAX;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0)
		return error_errno(err, errno, "the descriptors of a sender thread");
	return agenda_create(&s->agenda, s->plan, s->begin_ns, s->number, s->spec->threads, err);
}

static void destroy_all(struct sender *s, struct flight *list)
{
	while (list) {
		struct flight *f = list;

		list = f->next;
		flight_destroy(s->spec->http, f);
	}
}

void sender_release(struct sender *s)
{
	destroy_all(s, flight_queue_take(&s->back, false));
	destroy_all(s, s->spare);
	destroy_all(s, s->prepared);
	if (s->multi)
		s->spec->http->curl.multi_cleanup(s->multi);
	agenda_destroy(&s->agenda);
	if (s->poll >= 0)
		close(s->poll);
	if (s->timer >= 0)
		close(s->timer);
	if (s->wake >= 0)
		close(s->wake);
}

void sender_give_back(struct sender *s, struct flight *f)
{
	flight_queue_add(&s->back, f);
	if (s->spec->dialogue)
		eventfd_write(s->wake, 1);
}

static bool fail(struct sender *s, enum status status)
{
	s->status = status;
	return false;
}

/* After a refusal the next request of the session waits, so that a closed loop does not become a storm. */
static uint64_t next_ns(const struct flight *f)
{
	return f->record.end_ns + (f->record.error == LOAD_ERROR_NONE ? 0 : PAUSE_NS);
}

/* Takes what the parser gave back. In a dialogue these answers were read, so the next turns have their times
 * now. */
static void take_back(struct sender *s)
{
	struct flight *list = flight_queue_take(&s->back, false);

	while (list) {
		struct flight *f = list;

		list = f->next;
		if (s->spec->dialogue) {
			s->unread--;
			s->dropped += agenda_answered(s->agenda, f->request, next_ns(f),
						      f->record.error == LOAD_ERROR_NONE);
		}
		if (f->used_up) {
			flight_destroy(s->spec->http, f);
			continue;
		}
		f->next = s->spare;
		s->spare = f;
	}
}

/* A flight for another request. Its connection belongs to the multi handle. */
static struct flight *take_spare(struct sender *s)
{
	struct flight *f = s->spare;

	if (!f) {
		take_back(s);
		f = s->spare;
	}
	if (!f)
		return flight_create(s->spec->http, s->spec->path, s->epoch_ns);
	s->spare = f->next;
	return f;
}

/* Where the prepared flight of a request is linked; its target is NULL if there is none. */
static struct flight **prepared_for(struct sender *s, const struct load_request *r)
{
	struct flight **link = &s->prepared;

	while (*link && (*link)->request != r)
		link = &(*link)->next;
	return link;
}

/* Makes the body of a request before it is due. A body is made once, because making it adds to a
 * conversation. It is kept if another request turns out to be earlier. */
static bool prepare(struct sender *s, const struct load_request *r)
{
	struct flight *f = *prepared_for(s, r);

	if (f)
		return true;
	f = take_spare(s);
	if (!f)
		return fail(s, error_set_cause(&s->error, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for another request; %u are in flight",
					       (unsigned)s->open.count));
	flight_begin(f, r);
	f->next = s->prepared;
	s->prepared = f;
	f->record.index = (uint64_t)(r - s->plan->request);
	s->status = s->spec->body(s->spec->arg, s->number, r, &f->body, &f->record, &s->error);
	if (!s->status && f->body.failed)
		s->status = error_set_cause(&s->error, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					    "no memory for the text of a request");
	return !s->status;
}

static bool send_next(struct sender *s, const struct load_request *r, uint64_t due_ns)
{
	const struct curl *c = &s->spec->http->curl;
	struct flight **link, *f;

	if (!prepare(s, r))
		return false;
	link = prepared_for(s, r);
	f = *link;
	*link = f->next;
	f->record.scheduled_ns = due_ns;
	c->easy_setopt(f->easy, CURLOPT_POSTFIELDS, text_str(&f->body));
	c->easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)f->body.size);
	f->record.handed_ns = now_ns(s);
	flight_list_add(&s->open, f, f->record.handed_ns);
	if (!c->multi_add_handle(s->multi, f->easy))
		return true;
	return fail(s, error_set(&s->error, STATUS_NO_RESOURCE,
				 "curl took no further request; %u are in flight", (unsigned)s->open.count));
}

/* The answer ended, in whatever way: it goes to the parser, and the session goes on. */
static void finish(struct sender *s, struct flight *f, CURLcode code)
{
	const struct load_request *r = f->request;

	flight_end(s->spec->http, f, code, now_ns(s));
	s->spec->http->curl.multi_remove_handle(s->multi, f->easy);
	flight_list_remove(&s->open, f);
	if (s->spec->dialogue)
		s->unread++;
	else
		agenda_answered(s->agenda, r, next_ns(f), true);
	flight_queue_add(s->finished, f);
}

/* On a new connection, if the server had closed the reused one. */
static bool send_again(struct sender *s, struct flight *f, CURLcode code)
{
	const struct curl *c = &s->spec->http->curl;

	if (!code || !flight_may_resend(s->spec->http, f, code, now_ns(s)))
		return false;
	c->multi_remove_handle(s->multi, f->easy);
	flight_resend(s->spec->http, f);
	flight_list_remove(&s->open, f);
	flight_list_add(&s->open, f, now_ns(s));
	return !c->multi_add_handle(s->multi, f->easy);
}

static void finish_ended(struct sender *s)
{
	const struct curl *c = &s->spec->http->curl;
	CURLMsg *message;
	int left;

	while ((message = c->multi_info_read(s->multi, &left)) != NULL) {
		const CURLcode code = message->data.result;
		char *private = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		c->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		if (!send_again(s, (struct flight *)(void *)private, code))
			finish(s, (struct flight *)(void *)private, code);
	}
}

static void act(struct sender *s, curl_socket_t fd, int events)
{
	int running;

	s->spec->http->curl.multi_socket_action(s->multi, fd, events, &running);
}

/* Sends what is due. New transfers begin with one call for all of them. */
static bool send_due(struct sender *s)
{
	const struct load_request *r;
	uint64_t due_ns;
	unsigned count = 0;

	while (agenda_due(s->agenda) <= now_ns(s) && agenda_due(s->agenda) < s->send_end_ns) {
		if (s->open.count >= s->connections) {
			s->full_ns = now_ns(s);
			break;
		}
		if (count == GROUP) /* let curl begin with them */
			break;
		agenda_take(s->agenda, UINT64_MAX, &r, &due_ns);
		s->waited += due_ns < s->full_ns; /* it was due while the cap was reached */
		if (!send_next(s, r, due_ns))
			return false;
		count++;
	}
	if (count)
		act(s, CURL_SOCKET_TIMEOUT, 0);
	return true;
}

/* The parser has given flights of a dialogue back. */
static void heed_parser(struct sender *s)
{
	eventfd_t count;

	eventfd_read(s->wake, &count);
	take_back(s);
}

/* The time at which something is to be done, whatever arrives. */
static uint64_t next_due(struct sender *s, uint64_t end_ns)
{
	const uint64_t send_ns = s->open.count < s->connections ? agenda_due(s->agenda) : UINT64_MAX;
	uint64_t due_ns;

	flight_list_limit(&s->open, &s->spec->http->o, &due_ns);
	due_ns = s->curl_due_ns < due_ns ? s->curl_due_ns : due_ns;
	due_ns = send_ns < due_ns ? send_ns : due_ns;
	return end_ns < due_ns ? end_ns : due_ns;
}

static struct timespec absolute(const struct sender *s, uint64_t at_ns)
{
	at_ns += s->epoch_ns;
	return (struct timespec){.tv_sec = (time_t)(at_ns / 1000000000),
				 .tv_nsec = (long)(at_ns % 1000000000)};
}

/* Sets the timer, unless it ends early enough. */
static void arm(struct sender *s, uint64_t due_ns)
{
	const uint64_t now = now_ns(s);
	struct itimerspec when = {0};

	if (s->armed_ns > now && s->armed_ns <= due_ns)
		return;
	s->armed_ns = now + LOOK_NS < due_ns ? now + LOOK_NS : due_ns;
	when.it_value = absolute(s, s->armed_ns);
	timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* With dense events: lets some of them come. They are not earlier than the end of the wait before. */
static void let_come(const struct sender *s, uint64_t due_ns)
{
	const uint64_t full_ns = s->clear_ns + ROUND_NS, end_ns = full_ns < due_ns ? full_ns : due_ns;
	const struct timespec until = absolute(s, end_ns);

	if (s->dense && end_ns > now_ns(s))
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void count_events(struct sender *s, int count, uint64_t now)
{
	s->counted += (unsigned)count;
	if (now - s->counted_ns < COUNT_NS)
		return;
	s->dense = s->counted > DENSE * (now - s->counted_ns) / 1000000;
	s->counted = 0;
	s->counted_ns = now;
}

static void take_event(struct sender *s, const struct epoll_event *event, uint64_t earliest_ns)
{
	const int fd = event->data.fd;
	uint64_t ticks;

	if (fd == s->timer) {
		(void)!read(fd, &ticks, sizeof(ticks));
		return;
	}
	if (fd == s->wake) {
		heed_parser(s);
		return;
	}
	load_times_add(&s->late, now_ns(s) - earliest_ns);
	act(s, fd,
	    (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		    (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		    (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
}

/* Ends the requests whose time limits are over. */
static void end_late(struct sender *s)
{
	const uint64_t now = now_ns(s);
	struct flight *f;
	uint64_t end_ns;

	while ((f = flight_list_limit(&s->open, &s->spec->http->o, &end_ns)) != NULL && end_ns <= now)
		finish(s, f, CURLE_OPERATION_TIMEDOUT);
}

/* False: an error. */
static bool take_events(struct sender *s)
{
	struct epoll_event events[EVENTS];
	const uint64_t before_ns = now_ns(s);
	const int count = epoll_wait(s->poll, events, EVENTS, -1);
	const uint64_t after_ns = now_ns(s);
	/* After a sleep, what woke us arrived before the kernel collected the events. Otherwise it came after
	 * the wait before, if that one took all. */
	const uint64_t collect_ns = COLLECT_NS * (uint64_t)(count > 0 ? count : 0);
	const uint64_t earliest_ns =
		after_ns - before_ns > SLEPT_NS + collect_ns ? after_ns - collect_ns : s->clear_ns;

	for (int i = 0; i < count; i++) {
		take_event(s, &events[i], earliest_ns);
		if (i % GROUP == GROUP - 1) {
			finish_ended(s);
			if (!send_due(s))
				return false;
		}
	}
	if (count < EVENTS)
		s->clear_ns = after_ns;
	count_events(s, count, after_ns);
	if (s->curl_due_ns <= now_ns(s)) {
		s->curl_due_ns = UINT64_MAX;
		act(s, CURL_SOCKET_TIMEOUT, 0);
	}
	finish_ended(s);
	end_late(s);
	return true;
}

static void cancel_open(struct sender *s)
{
	while (s->open.first) {
		struct flight *f = s->open.first;

		s->spec->http->curl.multi_remove_handle(s->multi, f->easy);
		flight_list_remove(&s->open, f);
		flight_end(s->spec->http, f, CURLE_ABORTED_BY_CALLBACK, now_ns(s));
		f->record.error = LOAD_ERROR_CANCELLED;
		flight_queue_add(s->finished, f);
	}
}

static double thread_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Requests that were due, and waited for the cap until the end. */
static bool cancel_due(struct sender *s)
{
	const uint64_t now = now_ns(s), end_ns = now < s->send_end_ns ? now : s->send_end_ns;
	const struct load_request *r;
	uint64_t due_ns;

	while (agenda_due(s->agenda) < end_ns && agenda_take(s->agenda, now, &r, &due_ns)) {
		struct flight *f = take_spare(s);

		if (!f)
			return fail(s, error_set_cause(&s->error, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						       "no memory for the requests that were not sent"));
		flight_begin(f, r);
		f->record.index = (uint64_t)(r - s->plan->request);
		f->record.scheduled_ns = due_ns;
		f->record.error = LOAD_ERROR_CANCELLED;
		f->record.end_ns = now;
		flight_queue_add(s->finished, f);
	}
	return true;
}

/* Whether a request is still to be sent, or an answer is awaited. */
static bool goes_on(const struct sender *s, uint64_t end_ns)
{
	if (s->status || *s->spec->stop || atomic_load(s->failed) || now_ns(s) >= end_ns)
		return false;
	return s->open.count || s->unread || agenda_due(s->agenda) < s->send_end_ns;
}

/* Makes the next request while there is time. */
static bool prepare_next(struct sender *s)
{
	const struct load_request *next = agenda_next(s->agenda);

	return !next || s->open.count >= s->connections || agenda_due(s->agenda) <= now_ns(s) ||
	       prepare(s, next);
}

static void loop(struct sender *s)
{
	const uint64_t end_ns = s->send_end_ns + s->spec->grace_ns;

	while (goes_on(s, end_ns)) {
		let_come(s, next_due(s, end_ns));
		if (!send_due(s) || !prepare_next(s))
			break;
		arm(s, next_due(s, end_ns));
		if (!take_events(s))
			break;
	}
	if (s->status)
		atomic_store(s->failed, true);
	cancel_open(s);
	if (!s->status)
		cancel_due(s);
}

/* Asks the kernel for short turns, so that a sender that wakes up need not wait for the end of a longer one
 * of another thread. Kernels before 6.12 ignore it. Also asks for sleeps that end in time. */
static void ask_for_short_turns(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} turns = {.size = sizeof(turns), .policy = SCHED_OTHER, .runtime = TURN_NS};

	syscall(SYS_sched_setattr, 0, &turns, 0);
	prctl(PR_SET_TIMERSLACK, 1);
}

void *sender_main(void *arg)
{
	struct sender *s = arg;
	const double cpu_s = thread_cpu_s();
	uint64_t from_ns;

	ask_for_short_turns();
	s->status = open_poll(s, &s->error);
	if (!s->status)
		s->status = open_multi(s, &s->error);
	from_ns = now_ns(s);
	s->send_end_ns = s->begin_ns + (uint64_t)(s->plan->duration_s * 1e9);
	if (!s->status)
		loop(s);
	s->cpu_share = (thread_cpu_s() - cpu_s) / (1e-9 * (double)(now_ns(s) - from_ns) + 1e-9);
	return NULL;
}
