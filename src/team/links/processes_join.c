/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers connect. The handshake is that of the control plane: HELLO (rank, nonce), CHALLENGE (nonce),
 * PROOF and WELCOME; the last two are the first frames with a MAC. The limits are the same too: an unproved
 * connection has 512 bytes, five seconds and one of 64 slots. After half a second another connection may take
 * its slot. Without a free slot new connections wait.
 */
#include <errno.h>
#include <poll.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "team/control/internal.h"
#include "team/links/processes_internal.h"

enum { PENDING_MAX = 64, HANDSHAKE_MS = 5000, PENDING_OLD_MS = 500, RETRY_MS = 50, LOOK_MS = 100, BASES = 8 };
static const uint64_t ms = 1000000;

struct hello_bytes {
	uint32_t rank;
	char nonce[36];
};

struct pending { /* at rank 0: a connection that has not proved its membership yet */
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

static enum status stopped_error(struct error *err)
{
	return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
}

static enum status make(struct team *t, const struct process_links_place *p, struct error *err)
{
	struct process_links *w = calloc(1, sizeof(*w));

	if (w) {
		w->peers = p->rank ? 1 : p->size;
		w->peer = calloc(w->peers, sizeof(*w->peer));
	}
	if (!w || !w->peer) {
		free(w);
		return error_errno(err, ENOMEM, "no memory for links between %u ranks", p->size);
	}
	for (unsigned i = 0; i < w->peers; i++)
		w->peer[i].ch.fd = -1;
	w->links.ops = &process_links_ops;
	w->listener = (struct listener){.fd = {-1, -1}};
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
		st = rendezvous_listen(&w->listener, base, NULL, i + 1 < BASES ? NULL : err);
		if (!st)
			break;
		st = i + 1 < BASES ? STATUS_OK : st;
	}
	if (st)
		return st;
	*port = w->listener.port;
	return STATUS_OK;
}

static void admit(struct process_links *w, struct pending *k)
{
	struct link_peer *m = &w->peer[k->hello.rank];

	k->ch.in.most = WIRE_FRAME_MAX;
	m->ch = k->ch;
	m->here = true;
	k->ch = (struct channel){.fd = -1};
	channel_send(&m->ch, WIRE_WELCOME, "", 0, NULL);
}

/* False: the connection does not belong to this team. */
static bool on_pending(struct process_links *w, struct pending *k, const struct wire_frame *f)
{
	char nonce[36] = "";

	if (k->challenged) {
		if (f->kind != WIRE_PROOF || w->peer[k->hello.rank].here)
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

static void read_pending(struct process_links *w, struct pending *k)
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
		good = state == WIRE_FRAME && on_pending(w, k, &f);
	}
	if (!good)
		channel_close(&k->ch);
}

static unsigned absent(const struct process_links *w)
{
	unsigned count = 0;

	for (unsigned r = 1; r < w->size; r++)
		count += !w->peer[r].here;
	return count;
}

/* A free slot, or that of the oldest connection if it had time enough. NULL: no slot now. */
static struct pending *free_place(struct pending *pending, uint64_t now)
{
	struct pending *oldest = pending;

	for (unsigned i = 0; i < PENDING_MAX; i++) {
		if (pending[i].ch.fd < 0)
			return &pending[i];
		if (pending[i].since_ns < oldest->since_ns)
			oldest = &pending[i];
	}
	if (now - oldest->since_ns < PENDING_OLD_MS * ms)
		return NULL;
	return oldest;
}

static void serve_pending(struct process_links *w, struct pending *pending)
{
	char address[RENDEZVOUS_ADDRESS];
	uint64_t now = now_ns();
	struct pending *k;
	int fd;

	while ((k = free_place(pending, now)) && (fd = rendezvous_accept(&w->listener, address)) >= 0) {
		channel_close(&k->ch);
		*k = (struct pending){.since_ns = now};
		channel_open(&k->ch, fd);
	}
}

static void poll_pending(const struct process_links *w, const struct pending *pending)
{
	struct pollfd set[PENDING_MAX + 2];
	nfds_t count = 0;

	for (unsigned i = 0; i < PENDING_MAX; i++)
		if (pending[i].ch.fd >= 0)
			set[count++] = (struct pollfd){.fd = pending[i].ch.fd, .events = POLLIN};
	for (unsigned i = 0; i < 2 && count < PENDING_MAX;
	     i++) /* without a free slot new connections wait in the backlog */
		if (w->listener.fd[i] >= 0)
			set[count++] = (struct pollfd){.fd = w->listener.fd[i], .events = POLLIN};
	poll(set, count, LOOK_MS);
}

static enum status name_absent(const struct team *t, const struct process_links *w, struct error *err)
{
	bool *here = calloc(w->size, sizeof(*here));
	enum status st;

	if (!here)
		return error_errno(err, ENOMEM, "no memory for links between %u ranks", w->size);
	for (unsigned r = 0; r < w->size; r++)
		here[r] = !r || w->peer[r].here;
	st = team_late(t, here, "rank 0's worker", err);
	free(here);
	return st;
}

enum status process_links_gather(struct team *t, struct error *err)
{
	struct process_links *w = (struct process_links *)t->links;
	struct pending *pending = calloc(PENDING_MAX, sizeof(*pending));
	uint64_t deadline = now_ns() + t->limit_ms * ms;
	enum status st = STATUS_OK;

	if (!pending)
		return error_errno(err, ENOMEM, "no memory to accept %u ranks", w->size);
	for (unsigned i = 0; i < PENDING_MAX; i++)
		pending[i].ch.fd = -1;
	team_at(t->board, TEAM_OP_LINK);
	while (!st && absent(w)) {
		if (stopped(t))
			st = stopped_error(err);
		else if (now_ns() >= deadline)
			st = name_absent(t, w, err);
		if (st)
			break;
		poll_pending(w, pending);
		serve_pending(w, pending);
		for (unsigned i = 0; i < PENDING_MAX; i++)
			read_pending(w, &pending[i]);
	}
	for (unsigned i = 0; i < PENDING_MAX; i++)
		channel_close(&pending[i].ch);
	rendezvous_close(&w->listener);
	team_at(t->board, TEAM_OP_IDLE);
	free(pending);
	return st;
}

/* -- the others -- */

/* Waits for one frame of this kind until the deadline. */
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
			return error_set(err, STATUS_BAD_INPUT,
					 "rank 0's worker sent another frame than expected");
		if (stopped(t))
			return stopped_error(err);
		if (now_ns() >= deadline)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT,
					       "rank 0's worker did not answer in time");
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

static enum status connect_once(struct team *t, const struct process_links_place *p, struct error *err)
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
	w->peer[0].ch = ch;
	w->peer[0].here = true;
	process_links_take(w, 0); /* a first command may have arrived with the welcome */
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
		st = connect_once(t, p, &why);
		if (!st || stopped(t) || now_ns() >= deadline)
			break;
		clock_sleep_ns(clock_monotonic(), RETRY_MS * ms);
	}
	team_at(t->board, TEAM_OP_IDLE);
	if (!st)
		return STATUS_OK;
	if (stopped(t))
		return stopped_error(err);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "rank 0's worker at %.80s: %.300s",
			       p->host, why.text);
}
