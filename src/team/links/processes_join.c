/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers come together. The frames are those of the control plane's door: HELLO (rank, nonce), CHALLENGE
 * (nonce), PROOF and WELCOME, the first ones with a MAC. Its rules are that door's too: a stranger has 512
 * bytes, five seconds and one of 64 places; his place is another's after half a second at the earliest, and
 * who finds none waits to be taken in.
 */
#include <errno.h>
#include <poll.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "team/control/internal.h"
#include "team/links/processes_internal.h"

enum { KNOCKS = 64, HANDSHAKE_MS = 5000, KNOCK_OLD_MS = 500, RETRY_MS = 50, LOOK_MS = 100, BASES = 8 };
static const uint64_t ms = 1000000;

struct hello_bytes {
	uint32_t rank;
	char nonce[36];
};

struct knock { /* at rank 0's door */
	struct channel ch;
	struct hello_bytes hello;
	bool challenged;
	uint64_t since_ns;
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static bool stopped(const struct team *t)
{
	return t->stop && *t->stop;
}

static enum status stop_told(struct error *err)
{
	return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
}

static enum status make(struct team *t, const struct process_links_place *p, struct error *err)
{
	struct process_links *w = calloc(1, sizeof(*w));

	if (w) {
		w->mates = p->rank ? 1 : p->size;
		w->mate = calloc(w->mates, sizeof(*w->mate));
	}
	if (!w || !w->mate) {
		free(w);
		return error_errno(err, ENOMEM, "links between %u ranks", p->size);
	}
	for (unsigned i = 0; i < w->mates; i++)
		w->mate[i].ch.fd = -1;
	w->links.ops = &process_links_ops;
	w->door = (struct listener){.fd = {-1, -1}};
	w->rank = p->rank;
	w->size = p->size;
	text_copy(w->secret, sizeof(w->secret), p->secret);
	t->links = &w->links;
	t->rank = p->rank;
	t->size = p->size;
	t->limit_ms = p->limit_ms;
	t->stop = p->stop;
	return STATUS_OK;
}

static void set_keys(struct process_links *w, struct channel *ch, const struct hello_bytes *hello,
		     const void *challenge, size_t size)
{
	const char *mine = w->rank ? "worker" : "worker 0", *theirs = w->rank ? "worker 0" : "worker";

	wire_key(&ch->key, w->secret, mine, hello, sizeof(*hello), challenge, size);
	wire_key(&ch->in.key, w->secret, theirs, hello, sizeof(*hello), challenge, size);
	ch->in.keyed = true;
}

/* -- rank 0 -- */

enum status process_links_listen(struct team *t, const struct process_links_place *p, uint16_t *port,
				 struct error *err)
{
	enum status st = make(t, p, err);
	struct process_links *w = (struct process_links *)t->links;

	for (unsigned i = 0; !st && i < BASES; i++) {
		char nonce[33];
		uint16_t base;

		st = join_nonce(nonce, err);
		if (st)
			break;
		base = (uint16_t)(32768 + strtoul(nonce + 28, NULL, 16) % 28000);
		st = rendezvous_listen(&w->door, base, NULL, i + 1 < BASES ? NULL : err);
		if (!st)
			break;
		st = i + 1 < BASES ? STATUS_OK : st;
	}
	if (st)
		return st;
	*port = w->door.port;
	return STATUS_OK;
}

static void admit(struct process_links *w, struct knock *k)
{
	struct mate *m = &w->mate[k->hello.rank];

	k->ch.in.most = WIRE_FRAME_MAX;
	m->ch = k->ch;
	m->here = true;
	k->ch = (struct channel){.fd = -1};
	channel_send(&m->ch, WIRE_WELCOME, "", 0, NULL);
}

/* False: it is none of ours. */
static bool on_knock(struct process_links *w, struct knock *k, const struct wire_frame *f)
{
	char nonce[36] = "";

	if (k->challenged) {
		if (f->kind != WIRE_PROOF || w->mate[k->hello.rank].here)
			return false;
		admit(w, k);
		return true;
	}
	if (f->kind != WIRE_HELLO || f->size != sizeof(k->hello))
		return false;
	memcpy(&k->hello, f->payload, sizeof(k->hello));
	if (!k->hello.rank || k->hello.rank >= w->size || join_nonce(nonce, NULL))
		return false;
	if (channel_send(&k->ch, WIRE_CHALLENGE, nonce, sizeof(nonce), NULL))
		return false;
	set_keys(w, &k->ch, &k->hello, nonce, sizeof(nonce));
	k->ch.keyed = true;
	k->challenged = true;
	return true;
}

static void hear_knock(struct process_links *w, struct knock *k)
{
	struct wire_frame f;
	bool any, good = true;

	if (k->ch.fd < 0)
		return;
	good = now_ns() - k->since_ns < HANDSHAKE_MS * ms && !channel_flush(&k->ch, NULL) &&
	       !channel_read(&k->ch, &any, NULL);
	while (good && k->ch.fd >= 0) {
		enum wire_state state = wire_take(&k->ch.in, &f, NULL);

		if (state == WIRE_MORE)
			return;
		good = state == WIRE_FRAME && on_knock(w, k, &f);
	}
	if (!good)
		channel_close(&k->ch);
}

static unsigned absent(const struct process_links *w)
{
	unsigned count = 0;

	for (unsigned r = 1; r < w->size; r++)
		count += !w->mate[r].here;
	return count;
}

/* A free place; the oldest one's where it had time enough. NULL: none now. */
static struct knock *free_place(struct knock *knock, uint64_t now)
{
	struct knock *oldest = knock;

	for (unsigned i = 0; i < KNOCKS; i++) {
		if (knock[i].ch.fd < 0)
			return &knock[i];
		if (knock[i].since_ns < oldest->since_ns)
			oldest = &knock[i];
	}
	if (now - oldest->since_ns < KNOCK_OLD_MS * ms)
		return NULL;
	return oldest;
}

static void open_door(struct process_links *w, struct knock *knock)
{
	char address[RENDEZVOUS_ADDRESS];
	uint64_t now = now_ns();
	struct knock *k;
	int fd;

	while ((k = free_place(knock, now)) && (fd = rendezvous_accept(&w->door, address)) >= 0) {
		channel_close(&k->ch);
		*k = (struct knock){.since_ns = now};
		channel_open(&k->ch, fd);
	}
}

static void await_knocks(const struct process_links *w, const struct knock *knock)
{
	struct pollfd set[KNOCKS + 2];
	nfds_t count = 0;

	for (unsigned i = 0; i < KNOCKS; i++)
		if (knock[i].ch.fd >= 0)
			set[count++] = (struct pollfd){.fd = knock[i].ch.fd, .events = POLLIN};
	for (unsigned i = 0; i < 2 && count < KNOCKS; i++) /* no place: who knocks waits */
		if (w->door.fd[i] >= 0)
			set[count++] = (struct pollfd){.fd = w->door.fd[i], .events = POLLIN};
	poll(set, count, LOOK_MS);
}

static enum status name_absent(const struct team *t, const struct process_links *w, struct error *err)
{
	bool *here = calloc(w->size, sizeof(*here));
	enum status st;

	if (!here)
		return error_errno(err, ENOMEM, "links between %u ranks", w->size);
	for (unsigned r = 0; r < w->size; r++)
		here[r] = !r || w->mate[r].here;
	st = team_late(t, here, "rank 0's worker", err);
	free(here);
	return st;
}

enum status process_links_gather(struct team *t, struct error *err)
{
	struct process_links *w = (struct process_links *)t->links;
	struct knock *knock = calloc(KNOCKS, sizeof(*knock));
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	enum status st = STATUS_OK;

	if (!knock)
		return error_errno(err, ENOMEM, "a door for %u ranks", w->size);
	for (unsigned i = 0; i < KNOCKS; i++)
		knock[i].ch.fd = -1;
	team_at(t->board, TEAM_OP_LINK);
	while (!st && absent(w)) {
		if (stopped(t))
			st = stop_told(err);
		else if (now_ns() >= deadline)
			st = name_absent(t, w, err);
		if (st)
			break;
		await_knocks(w, knock);
		open_door(w, knock);
		for (unsigned i = 0; i < KNOCKS; i++)
			hear_knock(w, &knock[i]);
	}
	for (unsigned i = 0; i < KNOCKS; i++)
		channel_close(&knock[i].ch);
	rendezvous_close(&w->door);
	team_at(t->board, TEAM_OP_IDLE);
	free(knock);
	return st;
}

/* -- the others -- */

/* One frame of this kind within the deadline. */
static enum status await_frame(const struct team *t, struct channel *ch, enum wire_kind kind,
			       uint64_t deadline, struct wire_frame *f, struct error *err)
{
	for (;;) {
		struct pollfd p = {.fd = ch->fd, .events = POLLIN};
		enum wire_state state = wire_take(&ch->in, f, err);
		enum status st;
		bool any;

		if (state == WIRE_FRAME && f->kind == kind)
			return STATUS_OK;
		if (state != WIRE_MORE)
			return error_set(err, STATUS_BAD_INPUT, "rank 0's worker says another word");
		if (stopped(t))
			return stop_told(err);
		if (now_ns() >= deadline)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT,
					       "rank 0's worker does not answer");
		poll(&p, 1, LOOK_MS);
		st = channel_flush(ch, err);
		if (!st)
			st = channel_read(ch, &any, err);
		if (st)
			return st;
	}
}

static enum status shake_hands(const struct team *t, struct process_links *w, struct channel *ch,
			       struct error *err)
{
	struct hello_bytes hello = {.rank = w->rank};
	uint64_t deadline = now_ns() + HANDSHAKE_MS * ms;
	struct wire_frame f;
	enum status st = join_nonce(hello.nonce, err);

	if (!st)
		st = channel_send(ch, WIRE_HELLO, &hello, sizeof(hello), err);
	if (!st)
		st = await_frame(t, ch, WIRE_CHALLENGE, deadline, &f, err);
	if (st)
		return st;
	set_keys(w, ch, &hello, f.payload, f.size);
	ch->keyed = true;
	st = channel_send(ch, WIRE_PROOF, "", 0, err);
	if (!st)
		st = await_frame(t, ch, WIRE_WELCOME, deadline, &f, err);
	ch->in.most = WIRE_FRAME_MAX;
	return st;
}

static enum status knock_once(struct team *t, const struct process_links_place *p, struct error *err)
{
	struct process_links *w = (struct process_links *)t->links;
	struct channel ch = {.fd = -1};
	enum status st;
	int fd;

	st = rendezvous_connect(&fd, p->host, p->port, NULL, HANDSHAKE_MS, err);
	if (st)
		return st;
	channel_open(&ch, fd);
	st = shake_hands(t, w, &ch, err);
	if (st) {
		channel_close(&ch);
		return st;
	}
	w->mate[0].ch = ch;
	w->mate[0].here = true;
	process_links_take(w, 0); /* a first command may have come with the welcome */
	return STATUS_OK;
}

enum status process_links_connect(struct team *t, const struct process_links_place *p, struct error *err)
{
	uint64_t deadline = now_ns() + p->limit_ms * ms;
	enum status st = make(t, p, err);
	struct error why;

	if (st)
		return st;
	team_at(t->board, TEAM_OP_LINK);
	for (;;) {
		why = (struct error){0};
		st = knock_once(t, p, &why);
		if (!st || stopped(t) || now_ns() >= deadline)
			break;
		clock_sleep_ns(clock_monotonic(), RETRY_MS * ms);
	}
	team_at(t->board, TEAM_OP_IDLE);
	if (!st)
		return STATUS_OK;
	if (stopped(t))
		return stop_told(err);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "rank 0's worker at %.80s: %.300s",
			       p->host, why.text);
}
