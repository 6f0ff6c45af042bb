/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 accepts the other ranks. A connection that has not proved its membership costs at most a few hundred
 * bytes, five seconds and one line of the log. */
#include <errno.h>
#include <sys/resource.h>
#include "core/json/member.h"
#include "core/text/text.h"
#include "team/control/internal.h"
#include "team/transport/rendezvous.h"

enum {
	PENDING_MAX = 64,  /* at once */
	PENDING_MS = 5000, /* for the whole handshake, not for each read, so that slow senders gain nothing */
	PENDING_OLD_MS = 500, /* after this time another connection may take the slot */
	LINGER_MS = 2000,     /* so that ranks that connect after a refusal learn the reason */
	PORTION_MS = 100,
	SECRET_RETRY_MS = 200,
	POLL_ROOM = 2 + PENDING_MAX + CONTROL_RANKS,
	FILES_OWN = 64, /* other open files of this process */
};
static const uint64_t ms = 1000000;

/* A connection that has not yet proved that it belongs to the team. */
struct pending {
	struct channel ch; /* fd -1: a free slot */
	uint64_t since_ns;
	bool challenged;
	char address[RENDEZVOUS_ADDRESS];
	struct hello said;
	unsigned char hello[WIRE_STRANGER_MAX];
	size_t hello_size;
};

/* State of rank 0 while it waits for the other ranks. */
struct acceptor {
	struct control *c;
	struct listener listener;
	struct pending pending[PENDING_MAX];
	json_t **said; /* the SHAPE frame of each rank */
	unsigned here, shaped, refused;
	bool warned;
	char note[160]; /* the last rank that came with another secret */
	uint64_t deadline;
};

static void drop(struct acceptor *d, struct pending *s, const char *why)
{
	if (why && !d->warned) {
		log_warn(d->c->log, LOG_TOPIC_RUN,
			 "team: refused a connection from %s: %s (further refusals are not logged)",
			 s->address, why);
		d->warned = true;
	}
	channel_close(&s->ch);
	*s = (struct pending){.ch.fd = -1};
}

/* A free slot, or that of the oldest connection if it had time enough. NULL: no slot now. */
static struct pending *free_place(struct acceptor *d, uint64_t now)
{
	struct pending *oldest = &d->pending[0];

	for (unsigned i = 0; i < PENDING_MAX; i++) {
		if (d->pending[i].ch.fd < 0)
			return &d->pending[i];
		if (d->pending[i].since_ns < oldest->since_ns)
			oldest = &d->pending[i];
	}
	if (now - oldest->since_ns < PENDING_OLD_MS * ms)
		return NULL;
	drop(d, oldest, "its slot was needed for another connection");
	return oldest;
}

static void accept_all(struct acceptor *d)
{
	uint64_t now = clock_now_ns(d->c->clock);
	char address[RENDEZVOUS_ADDRESS];
	struct pending *s;
	int fd;

	while ((s = free_place(d, now)) && (fd = rendezvous_accept(&d->listener, address)) >= 0) {
		*s = (struct pending){.since_ns = now};
		channel_open(&s->ch, fd);
		text_copy(s->address, sizeof(s->address), address);
	}
}

static bool take_hello(struct hello *h, const struct wire_frame *f)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	bool sound = json_member_count(&h->rank, j, "rank", INT32_MAX) &&
		     json_member_count(&h->size, j, "size", INT32_MAX) &&
		     join_text(h->nonce, sizeof(h->nonce), j, "nonce") &&
		     join_text(h->team, sizeof(h->team), j, "team") &&
		     join_text(h->node, sizeof(h->node), j, "node") &&
		     join_text(h->program, sizeof(h->program), j, "program") &&
		     join_text(h->build, sizeof(h->build), j, "build");

	json_decref(j);
	return sound;
}

/* HELLO: its contents are used only after PROOF. */
static void challenge(struct acceptor *d, struct pending *s, const struct wire_frame *f)
{
	char nonce[33], text[256];
	int size;

	if (f->kind != WIRE_HELLO || !take_hello(&s->said, f) || join_nonce(nonce, NULL)) {
		drop(d, s, "its first frame is not a greeting");
		return;
	}
	memcpy(s->hello, f->payload, f->size);
	s->hello_size = f->size;
	size = snprintf(text, sizeof(text), "{\"nonce\":\"%s\",\"team\":\"%s\"}", nonce, d->c->o.place.job);
	if (size >= (int)sizeof(text) || channel_send(&s->ch, WIRE_CHALLENGE, text, (size_t)size, NULL)) {
		drop(d, s, NULL);
		return;
	}
	join_keys(&s->ch, d->c, true, s->hello, s->hello_size, text, (size_t)size);
	s->ch.keyed = true;
	s->challenged = true;
}

/* Checks whether a process that has the secret is a rank of this team. *why: why not; unchanged if it is. */
static void judge(const struct acceptor *d, const struct pending *s, struct error *why)
{
	const struct control *c = d->c;
	const struct hello *h = &s->said;
	char other[96];

	if (strcmp(h->program, ASSAY_VERSION) || strcmp(h->build, c->o.build))
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
				"rank %u on %s runs assay %s, build %s, and rank 0 on %s runs %s, build %s",
				h->rank, h->node, h->program, h->build, c->o.place.node, ASSAY_VERSION,
				c->o.build);
	else if (h->size != c->size)
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"rank %u on %s was started for a team of %u ranks, and rank 0 for one of %u",
				h->rank, h->node, h->size, c->size);
	else if (!h->rank || h->rank >= c->size)
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED, "%s claims to be rank %u of %u",
				h->node, h->rank, c->size);
	else if (c->peer[h->rank].here) {
		control_rank_text(c, h->rank, other, sizeof(other));
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"two processes claim to be %s: %s and %s (%s)", other, c->peer[h->rank].host,
				s->address, h->node);
	}
}

static void refuse(struct acceptor *d, struct pending *s, const struct error *why)
{
	json_t *j = control_error_json(why);
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	if (text)
		channel_send(&s->ch, WIRE_REFUSE, text, strlen(text), NULL);
	free(text);
	json_decref(j);
	d->refused++;
	drop(d, s, NULL);
}

static void welcome(struct acceptor *d, struct pending *s)
{
	uint64_t now = clock_now_ns(d->c->clock), left = d->deadline > now ? d->deadline - now : 0;
	struct peer *p = &d->c->peer[s->said.rank];

	*p = (struct peer){.ch = s->ch, .rank = s->said.rank, .here = true, .heard_ns = now};
	p->ch.in.most = WIRE_FRAME_MAX;
	text_copy(p->node, sizeof(p->node), s->said.node);
	text_copy(p->host, sizeof(p->host), s->address);
	text_copy(p->last, sizeof(p->last), "its greeting");
	control_send_json(d->c, p, WIRE_WELCOME, json_pack("{s:I}", "left_ms", (json_int_t)(left / ms)));
	*s = (struct pending){.ch.fd = -1};
	d->here++;
}

static void on_proof(struct acceptor *d, struct pending *s, const struct wire_frame *f)
{
	struct error why = {0};

	if (f->kind != WIRE_PROOF) {
		drop(d, s, "it did not prove that it has the team's secret");
		return;
	}
	if (!d->c->over.status)
		judge(d, s, &why);
	if (why.status)
		control_over(d->c, &why, NULL);
	if (d->c->over.status)
		refuse(d, s, &d->c->over);
	else
		welcome(d, s);
}

/* A peer with another secret learns only that: the refusal has a MAC too. */
static void wrong(struct acceptor *d, struct pending *s, const struct error *err)
{
	if (s->challenged && err->cause == CAUSE_TEAM_REFUSED && !strcmp(s->said.team, d->c->o.place.job)) {
		snprintf(d->note, sizeof(d->note), "; %s came as rank %u with another secret", s->address,
			 s->said.rank);
		channel_send(&s->ch, WIRE_REFUSE, "{}", 2, NULL);
	}
	drop(d, s, err->text);
}

static void hear(struct acceptor *d, struct pending *s)
{
	struct error err = {0};
	struct wire_frame f;
	enum wire_state state = WIRE_MORE;
	bool any = true;

	while (s->ch.fd >= 0 && any) {
		if (channel_read(&s->ch, &any, &err)) {
			drop(d, s, s->challenged ? NULL : err.text);
			return;
		}
		state = wire_take(&s->ch.in, &f, &err);
		if (state == WIRE_BROKEN)
			wrong(d, s, &err);
		else if (state == WIRE_FRAME && s->challenged) {
			on_proof(d, s, &f);
			return; /* the connection may belong to a rank now */
		} else if (state == WIRE_FRAME)
			challenge(d, s, &f);
	}
}

static void read_pending(struct acceptor *d)
{
	for (unsigned i = 0; i < PENDING_MAX; i++) {
		struct pending *s = &d->pending[i];

		if (s->ch.fd >= 0)
			hear(d, s);
		if (s->ch.fd >= 0 && clock_now_ns(d->c->clock) - s->since_ns > PENDING_MS * ms)
			drop(d, s, "its handshake took too long");
	}
}

/* Takes the SHAPE frames of the ranks as they arrive. */
static void take_said(struct acceptor *d)
{
	struct control *c = d->c;
	enum wire_kind kind;

	for (unsigned r = 1; r < c->size; r++) {
		json_t *j = control_held_json(&c->peer[r], &kind);

		if (!j)
			continue;
		if (kind == WIRE_SHAPE && !d->said[r]) {
			d->said[r] = json_incref(j);
			d->shaped++;
		}
		json_decref(j);
	}
}

static void look(struct acceptor *d, unsigned wait_ms)
{
	struct pollfd set[POLL_ROOM];
	unsigned count = 0;

	for (unsigned i = 0; i < PENDING_MAX; i++)
		if (d->pending[i].ch.fd >= 0)
			set[count++] = (struct pollfd){.fd = d->pending[i].ch.fd, .events = POLLIN};
	for (unsigned i = 0; i < 2 && count < PENDING_MAX;
	     i++) /* without a free slot new connections wait in the backlog */
		if (d->listener.fd[i] >= 0)
			set[count++] = (struct pollfd){.fd = d->listener.fd[i], .events = POLLIN};
	count += control_poll_set(d->c, set + count, POLL_ROOM - count);
	poll(set, count, (int)wait_ms);
	accept_all(d);
	read_pending(d);
	control_take_in(d->c);
	take_said(d);
}

static void name_missing(struct acceptor *d)
{
	struct error why = {0};
	struct text t = {0};
	unsigned missing = 0;

	for (unsigned r = 1; r < d->c->size; r++)
		if (!d->said[r] && missing++ < 16)
			text_addf(&t, "%s%u", missing > 1 ? ", " : "", r);
	error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"%u of %u ranks did not join within %.1f s: rank %s%s%s", missing, d->c->size,
			d->c->o.join_ms / 1e3, text_str(&t), missing > 16 ? " .." : "", d->note);
	text_release(&t);
	control_over(d->c, &why, NULL);
}

/* For a while, ranks that connect after the refusal learn its reason. */
static void linger(struct acceptor *d)
{
	uint64_t deadline = control_deadline(d->c, LINGER_MS);

	while (d->here + d->refused < d->c->size - 1 && clock_now_ns(d->c->clock) < deadline &&
	       !control_asked(d->c))
		look(d, PORTION_MS);
}

static enum status gather(struct acceptor *d, struct error *err)
{
	const struct error stopped = {STATUS_CANCELLED, CAUSE_INTERRUPTED, NULL, 0, "stopped on request"};
	struct control *c = d->c;

	while (d->shaped < c->size - 1 && !c->over.status) {
		if (control_asked(c))
			control_over(c, &stopped, NULL);
		else if (clock_now_ns(c->clock) >= d->deadline)
			name_missing(d);
		else
			look(d, PORTION_MS);
	}
	if (!c->over.status)
		return STATUS_OK;
	linger(d);
	return control_over(c, &c->over, err);
}

/* All ranks have joined: makes the shape, reads the clocks and sends both to all. */
static enum status settle(struct acceptor *d, struct error *err)
{
	struct error why = {0};
	enum status st;

	d->said[0] = shape_about(d->c);
	st = shape_make(d->c, d->said, &why);
	if (st)
		return control_over(d->c, &why, err);
	st = control_read_clocks(d->c, false, err);
	if (st)
		return st;
	control_send_json(d->c, NULL, WIRE_SHAPE, shape_json(&d->c->shape));
	return d->c->over.status ? control_over(d->c, &d->c->over, err) : STATUS_OK;
}

/* Raises the soft limit of open files: rank 0 needs one connection for each rank. */
static enum status open_files(unsigned ranks, struct error *err)
{
	rlim_t need = ranks + PENDING_MAX + FILES_OWN;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= need)
		return STATUS_OK;
	if (l.rlim_max < need)
		return error_set_cause(
			err, STATUS_NO_RESOURCE, CAUSE_TEAM_REFUSED,
			"rank 0 of %u ranks needs %lu open files, and the hard limit is %lu: raise it with ulimit -Hn",
			ranks, (unsigned long)need, (unsigned long)l.rlim_max);
	l.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &l)
		       ? error_errno(err, errno, "%lu open files for rank 0", (unsigned long)need)
		       : STATUS_OK;
}

/* A secret file written by the launcher may also appear late on the node of rank 0. */
static enum status await_secret(struct control *c, uint64_t deadline_ns, struct error *err)
{
	for (;;) {
		struct error why = {0};
		enum status st = secret_find(&c->secret, c->o.secret_file, &c->o.place, &c->o.env, &why);

		if (!st)
			return STATUS_OK;
		if (why.cause != CAUSE_TEAM_LATE || clock_now_ns(c->clock) >= deadline_ns)
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		if (control_asked(c))
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request");
		clock_sleep_ns(c->clock, SECRET_RETRY_MS * ms);
	}
}

enum status join_zero(struct control *c, uint64_t deadline_ns, struct error *err)
{
	enum status st = open_files(c->size, err);
	struct acceptor *d;

	if (st)
		return st;
	d = calloc(1, sizeof(*d));
	if (d)
		d->said = calloc(c->size, sizeof(*d->said));
	if (!d || !d->said) {
		free(d);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "a team of %u ranks",
				       c->size);
	}
	d->c = c;
	d->deadline = deadline_ns;
	for (unsigned i = 0; i < PENDING_MAX; i++)
		d->pending[i].ch.fd = -1;
	d->listener = (struct listener){.fd = {-1, -1}};
	st = rendezvous_listen(&d->listener, c->o.place.port, c->o.interface, err);
	if (!st) /* only once this process has the port: a second rank 0 must not write its own secret */
		st = await_secret(c, deadline_ns, err);
	if (!st)
		st = gather(d, err);
	if (!st)
		st = settle(d, err);
	for (unsigned i = 0; i < PENDING_MAX; i++)
		channel_close(&d->pending[i].ch);
	for (unsigned r = 0; r < c->size; r++)
		json_decref(d->said[r]);
	rendezvous_close(&d->listener);
	join_worker_key(c);
	secret_forget(&c->secret, true);
	free(d->said);
	free(d);
	return st;
}
