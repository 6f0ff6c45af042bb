/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_loop.h"
#include <poll.h>
#include "core/clock.h"
#include "engine/frame/frame.h"

enum {
	IDLE_MS = 500,
	BEAT_NS = 500000000,
	SLOWEST = 20, /* a step is not hung before it has taken this many times its predicted time */
};
static const double long_step_preset_s = 0.5;

struct looping {
	const struct engine_loop *loop;
	struct frame_link *link;
	bool draining, closed;
	uint64_t beat_ns;   /* time of the last heartbeat */
	enum status beaten; /* of a heartbeat within a step */
	struct error why;
};

static bool drains(const struct looping *l)
{
	return l->draining || (l->loop->drain && *l->loop->drain);
}

/* A request that comes during a drain ends at once. */
static enum status refuse(struct looping *l, uint64_t id, struct error *err)
{
	const struct engine_event end = {.kind = ENGINE_EVENT_END,
					 .id = id,
					 .end = ENGINE_END_REFUSED,
					 .text = "the server is shutting down"};
	const struct engine_facts facts = engine_facts(l->loop->engine);

	return frame_send_step(l->link, &facts, &end, 1, err);
}

static enum status on_message(struct looping *l, const struct frame_message *m, struct error *err)
{
	switch (m->kind) {
	case FRAME_REQUEST:
		return drains(l) ? refuse(l, m->request.id, err)
				 : engine_submit(l->loop->engine, &m->request, err);
	case FRAME_CANCEL:
		return engine_cancel(l->loop->engine, m->cancel, err);
	case FRAME_DRAIN:
		l->draining = true;
		return STATUS_OK;
	default:
		return error_set(err, STATUS_BAD_INPUT, "the front end sent a frame of kind %d",
				 (int)m->kind);
	}
}

/* Takes every message that has arrived. */
static enum status receive(struct looping *l, struct error *err)
{
	struct frame_message m;
	struct error why = {0};
	bool got = true;
	enum status st = STATUS_OK;

	while (!st && got) {
		st = frame_receive(l->link, &m, &got, &why);
		if (!st && got)
			st = on_message(l, &m, &why);
	}
	if (st == STATUS_UNAVAILABLE) {
		l->closed = true;
		return STATUS_OK;
	}
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

/* The front end has closed its socket: it is about to be told by its own supervisor. */
static enum status forgive_closed(struct looping *l, enum status st, const struct error *why,
				  struct error *err)
{
	if (st == STATUS_UNAVAILABLE) {
		l->closed = true;
		return STATUS_OK;
	}
	return st ? error_set_cause(err, st, why->cause, "%s", why->text) : STATUS_OK;
}

static enum status send_beat(struct looping *l, double expected_s, struct error *err)
{
	const struct frame_heartbeat heartbeat = {.step = engine_facts(l->loop->engine).steps,
						  .expected_ns = (uint64_t)(expected_s * 1e9)};
	struct error why = {0};
	enum status st;

	l->beat_ns = clock_now_ns(clock_monotonic());
	if (l->loop->alive)
		l->loop->alive(l->loop->arg, expected_s);
	st = frame_send_heartbeat(l->link, &heartbeat, &why);
	return forgive_closed(l, st, &why, err);
}

static enum status beat(struct looping *l, struct error *err)
{
	return clock_now_ns(clock_monotonic()) - l->beat_ns < BEAT_NS ? STATUS_OK : send_beat(l, 0, err);
}

/* A long step is announced, so that it is not taken for a hung one. */
static void on_plan(void *arg, double seconds)
{
	struct looping *l = arg;
	const double least = l->loop->long_step_s > 0 ? l->loop->long_step_s : long_step_preset_s;

	if (seconds >= least && !l->beaten)
		l->beaten = send_beat(l, SLOWEST * seconds, &l->why);
}

static enum status step(struct looping *l, bool *idle, struct error *err)
{
	enum status st = engine_step(l->loop->engine, idle, err);

	return st || !l->beaten ? st : error_set_cause(err, l->beaten, l->why.cause, "%s", l->why.text);
}

/* How long an idle engine may sleep: until its next deadline, at most IDLE_MS. */
static int idle_ms(const struct looping *l)
{
	const uint64_t now = clock_now_ns(clock_monotonic()), wake = engine_wake(l->loop->engine);

	if (wake <= now)
		return 0;
	return wake - now < (uint64_t)IDLE_MS * 1000000 ? (int)((wake - now) / 1000000) + 1 : IDLE_MS;
}

static uint64_t held_until(const struct looping *l)
{
	return l->loop->hold ? l->loop->hold(l->loop->engine) : engine_hold(l->loop->engine);
}

/* How long the loop may wait for a message: while there is nothing to compute, or until the next step must be
 * planned. At most IDLE_MS. */
static struct timespec wait_time(const struct looping *l, bool idle)
{
	const uint64_t now = clock_now_ns(clock_monotonic()), until = held_until(l);
	uint64_t ns = idle ? (uint64_t)idle_ms(l) * 1000000 : until > now ? until - now : 0;

	if (ns > (uint64_t)IDLE_MS * 1000000)
		ns = (uint64_t)IDLE_MS * 1000000;
	return (struct timespec){.tv_nsec = (long)ns};
}

/* Waits for a message, and for room in the socket if bytes wait. A compiled grammar ends the wait only if
 * there is nothing to compute, because engine_step takes it. */
static enum status wait_for_work(struct looping *l, bool idle, struct error *err)
{
	struct pollfd p[2] = {{.fd = frame_link_fd(l->link),
			       .events = (short)(POLLIN | (frame_link_waits(l->link) ? POLLOUT : 0))},
			      {.fd = idle ? engine_fd(l->loop->engine) : -1, .events = POLLIN}};
	const struct timespec time = wait_time(l, idle);
	struct error why = {0};
	enum status st;

	ppoll(p, 2, &time, NULL);
	if (!frame_link_waits(l->link))
		return STATUS_OK;
	st = frame_flush(l->link, &why);
	return forgive_closed(l, st, &why, err);
}

static enum status send_events(struct looping *l, struct error *err)
{
	const struct engine_facts facts = engine_facts(l->loop->engine);
	const struct engine_event *events;
	size_t count = engine_events(l->loop->engine, &events);
	enum status st = STATUS_OK;
	struct error why = {0};

	while (!st && count) {
		const size_t some = count < FRAME_EVENTS_MOST ? count : FRAME_EVENTS_MOST;

		st = frame_send_step(l->link, &facts, events, some, &why);
		events += some;
		count -= some;
	}
	return forgive_closed(l, st, &why, err);
}

/* Takes messages until more work must be enqueued. A request that comes while a step runs joins the next one,
 * instead of the one after it. A request that is cancelled meanwhile ends at once. */
static enum status gather(struct looping *l, bool idle, struct error *err)
{
	enum status st;

	do {
		st = wait_for_work(l, idle, err);
		if (!st)
			st = receive(l, err);
		if (!st)
			st = send_events(l, err);
		if (!st)
			st = beat(l, err);
	} while (!st && !l->closed && held_until(l) > clock_now_ns(clock_monotonic()));
	return st;
}

/* Whether a drain is complete. */
static bool is_drained(const struct looping *l, bool idle)
{
	const struct engine_facts f = engine_facts(l->loop->engine);

	return idle && drains(l) && !f.running && !f.waiting && !frame_link_waits(l->link);
}

static enum status run(struct looping *l, struct error *err)
{
	enum status st = STATUS_OK;
	bool idle = true;

	while (!st && !l->closed && !is_drained(l, idle)) {
		st = gather(l, idle, err);
		if (!st)
			st = step(l, &idle, err);
		if (!st)
			st = send_events(l, err);
	}
	return st;
}

enum status engine_loop(const struct engine_loop *loop, struct error *err)
{
	struct looping l = {.loop = loop};
	const struct engine_ready ready = engine_ready(loop->engine);
	enum status st = frame_link_create(&l.link, loop->fd, loop->epoch, 0, err);

	if (!st)
		st = frame_send_ready(l.link, &ready, err);
	engine_tell(loop->engine, on_plan, &l);
	if (!st)
		st = run(&l, err);
	engine_tell(loop->engine, NULL, NULL);
	frame_link_destroy(&l.link);
	return st;
}
