/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between processes: a star around rank 0. Received frames are stored until a call takes them: parts of
 * a meeting, answers, commands, and reports of ranks that left. Only rank 0 completes a meeting; it sends the
 * result to all.
 */
#include "team/links/processes_internal.h"
#include <errno.h>
#include "core/clock.h"
#include "core/text/text.h"

enum {
	LOOK_MS = 100,
	SEND_AT_ONCE = 1 << 19, /* bytes of an answer in one frame */
	WAITING_MAX = 1 << 20,	/* bytes queued for a peer before the sender waits for it */
	GRACE_MS = 5000,	/* rank 0 names the late ranks first */
	LOOK_AGAIN_NS = 1000000 /* between two polls, for callers of team_left in a loop */
};
static const uint64_t ms = 1000000;

static struct process_links *process_links_of(const struct team *t)
{
	return (struct process_links *)t->links;
}

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* One step of a wait. Not OK: a request to stop, or the deadline has passed. */
static enum status wait_once(struct team *t, uint64_t deadline, const char *what, struct error *err)
{
	uint64_t now = now_ns();

	if (t->stop && *t->stop)
		return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
	if (now >= deadline)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT, "%s within %.1f s", what,
				       t->limit_ms / 1e3);
	process_links_look(process_links_of(t),
			   (deadline - now) / ms < LOOK_MS ? (unsigned)((deadline - now) / ms) + 1 : LOOK_MS);
	return STATUS_OK;
}

static enum status left_error(const struct process_links *w, struct error *err)
{
	return error_set_cause(err, w->left.status, w->left.cause, "%s", w->left.text);
}

/* -- meetings -- */

static bool all_meet(const struct process_links *w)
{
	for (unsigned r = 1; r < w->size; r++)
		if (!w->peer[r].meets)
			return false;
	return true;
}

static void name_late(struct team *t)
{
	struct process_links *w = process_links_of(t);
	struct error why = {0};
	bool *here = calloc(w->size, sizeof(*here));

	for (unsigned r = 0; here && r < w->size; r++)
		here[r] = !r || w->peer[r].meets;
	if (here)
		team_late(t, here, "an agreement step", &why);
	else
		error_errno(&why, ENOMEM, "no memory for an agreement of %u ranks", w->size);
	free(here);
	process_links_take_left(w, &why, 0, false);
}

/* Makes the result of a meeting, as all ranks get it. Owner: caller. NULL: no memory, or the ranks are in
 * different meetings. */
static unsigned char *deal(struct process_links *w, enum team_meeting kind, const void *mine, size_t size,
			   size_t *whole)
{
	unsigned char *out = calloc(w->size, size + 1);
	struct team_verdict worst;

	for (unsigned r = 1; out && r < w->size; r++)
		if (w->peer[r].kind != kind || (kind != TEAM_MEET_SHARE && w->peer[r].size != size)) {
			free(out);
			return NULL;
		}
	if (!out)
		return NULL;
	*whole = kind == TEAM_MEET_GATHER ? w->size * size : size;
	memcpy(out, mine, size);
	for (unsigned r = 1; kind == TEAM_MEET_GATHER && r < w->size; r++)
		memcpy(out + r * size, w->peer[r].part, size);
	if (kind != TEAM_MEET_AGREE)
		return out;
	memcpy(&worst, mine, sizeof(worst));
	for (unsigned r = 1; r < w->size; r++) {
		struct team_verdict v;

		memcpy(&v, w->peer[r].part, sizeof(v));
		v.text[sizeof(v.text) - 1] = '\0';
		if (v.status > worst.status && v.status < STATUS_COUNT && v.cause < CAUSE_COUNT)
			worst = v;
	}
	memcpy(out, &worst, sizeof(worst));
	return out;
}

static enum status send_word(struct link_peer *m, enum wire_kind wire, enum team_meeting kind,
			     const void *bytes, size_t size, struct error *err)
{
	struct meet_head head = {.kind = kind, .size = (uint32_t)size};
	unsigned char *frame = malloc(sizeof(head) + size);
	enum status st;

	if (!frame)
		return error_errno(err, ENOMEM, "no memory for a frame of %zu bytes", size);
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), bytes, size);
	st = channel_send(&m->ch, wire, frame, sizeof(head) + size, err);
	free(frame);
	return st;
}

static enum status lead(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	struct process_links *w = process_links_of(t);
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	unsigned char *out = NULL;
	struct error why = {0};
	size_t whole = 0;

	while (!w->left.status && !all_meet(w))
		if (wait_once(t, deadline, "", &why)) {
			if (why.status == STATUS_CANCELLED)
				process_links_take_left(w, &why, 0, false);
			else
				name_late(t);
		}
	if (w->left.status)
		return left_error(w, err);
	out = deal(w, kind, mine, size, &whole);
	for (unsigned r = 1; r < w->size; r++)
		w->peer[r].meets = false;
	if (!out) {
		error_set(&why, STATUS_BUG, "the ranks are in different agreement steps");
		process_links_take_left(w, &why, 0, false);
		return left_error(w, err);
	}
	for (unsigned r = 1; r < w->size; r++)
		if (w->peer[r].here && send_word(&w->peer[r], WIRE_MET, kind, out, whole, &why))
			process_links_lose(w, r, why.text);
	memcpy(all, out, whole);
	free(out);
	return STATUS_OK;
}

static enum status come(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	struct process_links *w = process_links_of(t);
	struct link_peer *m = w->peer;
	size_t whole = kind == TEAM_MEET_GATHER ? w->size * size : size;
	uint64_t deadline = now_ns() + (t->limit_ms + GRACE_MS) * ms;
	struct error why = {0};
	enum status st = STATUS_OK;

	if (w->left.status)
		return left_error(w, err);
	m->meets = false;
	if (m->here && send_word(m, WIRE_MEET, kind, mine, kind == TEAM_MEET_SHARE ? 0 : size, &why))
		process_links_lose(w, 0, why.text);
	while (!st && !m->meets && !w->left.status)
		st = wait_once(t, deadline, "rank 0 did not answer", err);
	if (st)
		return st;
	if (!m->meets)
		return left_error(w, err);
	m->meets = false;
	if (m->size != whole || m->kind != kind)
		return error_set(err, STATUS_BUG, "rank 0 is in another agreement step");
	memcpy(all, m->part, whole);
	return STATUS_OK;
}

static enum status meet(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	if (kind == TEAM_MEET_GATHER && t->size * size > WIRE_FRAME_MAX / 2)
		return error_set(err, STATUS_BUG, "%zu bytes from each of %u ranks do not fit into a frame",
				 size, t->size);
	return t->rank ? come(t, kind, mine, size, all, err) : lead(t, kind, mine, size, all, err);
}

static void leave(struct team *t, const struct error *why)
{
	struct error named = *why;

	team_named(t, &named);
	process_links_take_left(process_links_of(t), &named, UINT32_MAX, false);
}

static bool left(struct team *t, struct error *why)
{
	struct process_links *w = process_links_of(t);

	if (!w->left.status && now_ns() - w->looked_ns > LOOK_AGAIN_NS)
		process_links_look(w, 0);
	if (w->left.status)
		*why = w->left;
	return w->left.status != STATUS_OK;
}

/* A lost peer stays lost. */
static void begin(struct team *t)
{
	struct process_links *w = process_links_of(t);

	w->left = (struct error){0};
	w->fresh = true;
	for (unsigned r = 1; r < w->size; r++) {
		w->peer[r].meets = false;
		if (!w->peer[r].here)
			process_links_lose(w, r, "it was lost earlier");
	}
}

/* -- commands and answers -- */

/* Waits until few bytes are queued for the peer. */
static enum status let_flow(struct team *t, struct link_peer *m, uint64_t deadline, struct error *err)
{
	while (m->here && m->ch.out_size > WAITING_MAX) {
		enum status st = wait_once(t, deadline, "a rank did not read its frames", err);

		if (st)
			return st;
	}
	return STATUS_OK;
}

static enum status post(struct team *t, const struct team_command *c, struct error *err)
{
	struct process_links *w = process_links_of(t);
	struct command_frame frame = {.command = *c, .fresh = w->fresh};
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	enum status st = STATUS_OK;

	w->fresh = false;
	for (unsigned r = 1; !st && r < w->size; r++) {
		struct error why = {0};

		if (w->peer[r].here &&
		    channel_send(&w->peer[r].ch, WIRE_COMMAND, &frame, sizeof(frame), &why))
			process_links_lose(w, r, why.text);
		st = let_flow(t, &w->peer[r], deadline, err);
	}
	return st;
}

static struct packet *take_packet(struct link_peer *m)
{
	struct packet *p = m->first;

	if (!p || p->size < p->whole)
		return NULL;
	m->first = p->next;
	if (!m->first)
		m->last = NULL;
	return p;
}

static enum status follow(struct team *t, struct team_command *c, struct error *err)
{
	struct process_links *w = process_links_of(t);
	struct command_frame frame;
	struct packet *p;

	while (!(p = take_packet(w->peer))) {
		if (!w->peer->here)
			return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
					       "rank 0's worker is gone");
		if (t->stop && *t->stop)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request");
		process_links_look(w, LOOK_MS);
	}
	memcpy(&frame, p->bytes, sizeof(frame));
	free(p);
	*c = frame.command;
	if (frame.fresh)
		w->left = (struct error){0};
	return STATUS_OK;
}

static enum status answer(struct team *t, const void *bytes, size_t size, struct error *err)
{
	struct process_links *w = process_links_of(t);
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	unsigned char *frame =
		malloc(sizeof(struct answer_head) + (size < SEND_AT_ONCE ? size : SEND_AT_ONCE));
	enum status st =
		frame ? STATUS_OK : error_errno(err, ENOMEM, "no memory for an answer of %zu bytes", size);

	for (size_t at = 0; !st && (at < size || !at);) {
		size_t part = size - at < SEND_AT_ONCE ? size - at : SEND_AT_ONCE;
		struct answer_head head = {.whole = size, .at = at};

		memcpy(frame, &head, sizeof(head));
		memcpy(frame + sizeof(head), (const char *)bytes + at, part);
		st = channel_send(&w->peer->ch, WIRE_ANSWER, frame, sizeof(head) + part, err);
		if (!st)
			st = let_flow(t, w->peer, deadline, err);
		at += part;
		if (!size)
			break;
	}
	free(frame);
	return st;
}

static enum status collect(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			   struct error *err)
{
	struct process_links *w = process_links_of(t);
	struct link_peer *m = &w->peer[rank];
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	struct packet *p;
	char what[48];

	snprintf(what, sizeof(what), "rank %u did not answer", rank);
	while (!(p = take_packet(m))) {
		enum status st =
			m->here ? wait_once(t, deadline, what, err)
				: error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "%s",
						  w->left.status ? w->left.text : "a rank's worker is gone");

		if (st)
			return st;
	}
	*size = p->size < room ? p->size : room;
	memcpy(bytes, p->bytes, *size);
	free(p);
	return STATUS_OK;
}

const struct team_links_ops process_links_ops = {
	.meet = meet,
	.post = post,
	.follow = follow,
	.answer = answer,
	.collect = collect,
	.leave = leave,
	.left = left,
	.begin = begin,
};

void process_links_close(struct team *t)
{
	struct process_links *w = t->links ? process_links_of(t) : NULL;

	if (!w)
		return;
	for (unsigned i = 0; i < w->peers; i++) {
		struct link_peer *m = &w->peer[i];

		while (m->first) {
			struct packet *p = m->first;

			m->first = p->next;
			free(p);
		}
		free(m->part);
		channel_close(&m->ch);
	}
	rendezvous_close(&w->listener);
	free(w->peer);
	free(w);
	t->links = NULL;
}
