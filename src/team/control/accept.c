/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 takes the others in. Who has not proved himself costs a few hundred bytes, five seconds and one line
 * of the log. */
#include <errno.h>
#include <sys/resource.h>
#include "core/text/text.h"
#include "team/control/internal.h"
#include "team/transport/rendezvous.h"

enum {
	STRANGERS = 64,	    /* at once */
	STRANGER_MS = 5000, /* for the whole handshake, not for each read: who drips bytes lives no longer */
	STRANGER_OLD_MS = 500, /* then another may have the place */
	LINGER_MS = 2000,      /* who comes after the team was refused is told too */
	PORTION_MS = 100,
	SECRET_RETRY_MS = 200,
	POLL_ROOM = 2 + STRANGERS + CONTROL_RANKS,
	FILES_OWN = 64, /* open beside those of the ranks and of strangers */
};
static const uint64_t ms = 1000000;

struct stranger {
	struct channel ch; /* fd -1: a free place */
	uint64_t since_ns;
	bool challenged;
	char address[RENDEZVOUS_ADDRESS];
	struct hello said;
	unsigned char hello[WIRE_STRANGER_MAX];
	size_t hello_size;
};

struct door { /* rank 0's while it waits for the others */
	struct control *c;
	struct listener listener;
	struct stranger stranger[STRANGERS];
	json_t **said; /* SHAPE of each rank */
	unsigned here, shaped, refused;
	bool warned;
	char note[160]; /* the last one that came with another secret */
	uint64_t deadline;
};

static void drop(struct door *d, struct stranger *s, const char *why)
{
	if (why && !d->warned) {
		log_warn(d->c->log, LOG_TOPIC_RUN,
			 "team: %s was turned away: %s (the next ones are not told)", s->address, why);
		d->warned = true;
	}
	channel_close(&s->ch);
	*s = (struct stranger){.ch.fd = -1};
}

/* A free place; the oldest stranger's where it had time enough. NULL: none now. */
static struct stranger *free_place(struct door *d, uint64_t now)
{
	struct stranger *oldest = &d->stranger[0];

	for (unsigned i = 0; i < STRANGERS; i++) {
		if (d->stranger[i].ch.fd < 0)
			return &d->stranger[i];
		if (d->stranger[i].since_ns < oldest->since_ns)
			oldest = &d->stranger[i];
	}
	if (now - oldest->since_ns < STRANGER_OLD_MS * ms)
		return NULL;
	drop(d, oldest, "its place was needed");
	return oldest;
}

static void accept_all(struct door *d)
{
	uint64_t now = clock_now_ns(d->c->clock);
	char address[RENDEZVOUS_ADDRESS];
	struct stranger *s;
	int fd;

	while ((s = free_place(d, now)) && (fd = rendezvous_accept(&d->listener, address)) >= 0) {
		*s = (struct stranger){.since_ns = now};
		channel_open(&s->ch, fd);
		text_copy(s->address, sizeof(s->address), address);
	}
}

static bool take_hello(struct hello *h, const struct wire_frame *f)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	bool sound = join_number(&h->rank, j, "rank", INT32_MAX) &&
		     join_number(&h->size, j, "size", INT32_MAX) &&
		     join_text(h->nonce, sizeof(h->nonce), j, "nonce") &&
		     join_text(h->team, sizeof(h->team), j, "team") &&
		     join_text(h->node, sizeof(h->node), j, "node") &&
		     join_text(h->program, sizeof(h->program), j, "program") &&
		     join_text(h->build, sizeof(h->build), j, "build");

	json_decref(j);
	return sound;
}

/* HELLO: what it says of itself is believed once it is proved. */
static void challenge(struct door *d, struct stranger *s, const struct wire_frame *f)
{
	char nonce[33], text[256];
	int size;

	if (f->kind != WIRE_HELLO || !take_hello(&s->said, f) || join_nonce(nonce, NULL)) {
		drop(d, s, "its first word is no greeting");
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

/* Why one that has the secret is no rank of this team; nothing is set where it is. */
static void judge(const struct door *d, const struct stranger *s, struct error *why)
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
				"rank %u on %s takes the team for one of %u ranks, and rank 0 for one of %u",
				h->rank, h->node, h->size, c->size);
	else if (!h->rank || h->rank >= c->size)
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"%s says that it is rank %u of %u", h->node, h->rank, c->size);
	else if (c->peer[h->rank].here) {
		control_rank_text(c, h->rank, other, sizeof(other));
		error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"two processes say that they are %s: %s and %s (%s)", other,
				c->peer[h->rank].host, s->address, h->node);
	}
}

static void refuse(struct door *d, struct stranger *s, const struct error *why)
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

static void welcome(struct door *d, struct stranger *s)
{
	uint64_t now = clock_now_ns(d->c->clock), left = d->deadline > now ? d->deadline - now : 0;
	struct peer *p = &d->c->peer[s->said.rank];

	*p = (struct peer){.ch = s->ch, .rank = s->said.rank, .here = true, .heard_ns = now};
	p->ch.in.most = WIRE_FRAME_MAX;
	text_copy(p->node, sizeof(p->node), s->said.node);
	text_copy(p->host, sizeof(p->host), s->address);
	text_copy(p->last, sizeof(p->last), "its greeting");
	control_tell_json(d->c, p, WIRE_WELCOME, json_pack("{s:I}", "left_ms", (json_int_t)(left / ms)));
	*s = (struct stranger){.ch.fd = -1};
	d->here++;
}

static void on_proof(struct door *d, struct stranger *s, const struct wire_frame *f)
{
	struct error why = {0};

	if (f->kind != WIRE_PROOF) {
		drop(d, s, "it did not prove itself");
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

/* Whoever has another secret learns nothing but that: our refusal is keyed too. */
static void wrong(struct door *d, struct stranger *s, const struct error *err)
{
	if (s->challenged && err->cause == CAUSE_TEAM_REFUSED && !strcmp(s->said.team, d->c->o.place.job)) {
		snprintf(d->note, sizeof(d->note), "; %s came as rank %u with another secret", s->address,
			 s->said.rank);
		channel_send(&s->ch, WIRE_REFUSE, "{}", 2, NULL);
	}
	drop(d, s, err->text);
}

static void hear(struct door *d, struct stranger *s)
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
			return; /* its place may be a rank's now */
		} else if (state == WIRE_FRAME)
			challenge(d, s, &f);
	}
}

static void look_at_strangers(struct door *d)
{
	for (unsigned i = 0; i < STRANGERS; i++) {
		struct stranger *s = &d->stranger[i];

		if (s->ch.fd >= 0)
			hear(d, s);
		if (s->ch.fd >= 0 && clock_now_ns(d->c->clock) - s->since_ns > STRANGER_MS * ms)
			drop(d, s, "it took too long to say who it is");
	}
}

/* What the ranks say of themselves, as it comes. */
static void take_said(struct door *d)
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

static void look(struct door *d, unsigned wait_ms)
{
	struct pollfd set[POLL_ROOM];
	unsigned count = 0;

	for (unsigned i = 0; i < STRANGERS; i++)
		if (d->stranger[i].ch.fd >= 0)
			set[count++] = (struct pollfd){.fd = d->stranger[i].ch.fd, .events = POLLIN};
	for (unsigned i = 0; i < 2 && count < STRANGERS; i++) /* no place: who knocks waits */
		if (d->listener.fd[i] >= 0)
			set[count++] = (struct pollfd){.fd = d->listener.fd[i], .events = POLLIN};
	count += control_poll_set(d->c, set + count, POLL_ROOM - count);
	poll(set, count, (int)wait_ms);
	accept_all(d);
	look_at_strangers(d);
	control_take_in(d->c);
	take_said(d);
}

static void name_missing(struct door *d)
{
	struct error why = {0};
	struct text t = {0};
	unsigned missing = 0;

	for (unsigned r = 1; r < d->c->size; r++)
		if (!d->said[r] && missing++ < 16)
			text_addf(&t, "%s%u", missing > 1 ? ", " : "", r);
	error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"%u of %u ranks did not come within %.1f s: rank %s%s%s", missing, d->c->size,
			d->c->o.join_ms / 1e3, text_str(&t), missing > 16 ? " .." : "", d->note);
	text_release(&t);
	control_over(d->c, &why, NULL);
}

/* Those that knock after the team was refused hear why, for a while. */
static void linger(struct door *d)
{
	uint64_t deadline = control_deadline(d->c, LINGER_MS);

	while (d->here + d->refused < d->c->size - 1 && clock_now_ns(d->c->clock) < deadline &&
	       !(d->c->o.stop && *d->c->o.stop))
		look(d, PORTION_MS);
}

static enum status gather(struct door *d, struct error *err)
{
	const struct error stopped = {STATUS_CANCELLED, CAUSE_INTERRUPTED, NULL, 0, "stopped on request"};
	struct control *c = d->c;

	while (d->shaped < c->size - 1 && !c->over.status) {
		if (c->o.stop && *c->o.stop)
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

/* All have come: who is where, and what their clocks show. */
static enum status settle(struct door *d, struct error *err)
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
	control_tell_json(d->c, NULL, WIRE_SHAPE, shape_json(&d->c->shape));
	return d->c->over.status ? control_over(d->c, &d->c->over, err) : STATUS_OK;
}

/* A connection a rank: as many as the hard limit lets us. */
static enum status open_files(unsigned ranks, struct error *err)
{
	rlim_t need = ranks + STRANGERS + FILES_OWN;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= need)
		return STATUS_OK;
	if (l.rlim_max < need)
		return error_set_cause(
			err, STATUS_NO_RESOURCE, CAUSE_TEAM_REFUSED,
			"rank 0 of %u ranks needs %lu open files, and may have %lu: ulimit -Hn", ranks,
			(unsigned long)need, (unsigned long)l.rlim_max);
	l.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &l)
		       ? error_errno(err, errno, "%lu open files for rank 0", (unsigned long)need)
		       : STATUS_OK;
}

/* A file that the launcher has laid may come late to the node of rank 0 as well. */
static enum status await_secret(struct control *c, uint64_t deadline_ns, struct error *err)
{
	for (;;) {
		struct error why = {0};
		enum status st = secret_find(&c->secret, c->o.secret_file, &c->o.place, &c->o.env, &why);

		if (!st)
			return STATUS_OK;
		if (why.cause != CAUSE_TEAM_LATE || clock_now_ns(c->clock) >= deadline_ns)
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		if (c->o.stop && *c->o.stop)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request");
		clock_sleep_ns(c->clock, SECRET_RETRY_MS * ms);
	}
}

enum status join_zero(struct control *c, uint64_t deadline_ns, struct error *err)
{
	enum status st = open_files(c->size, err);
	struct door *d;

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
	for (unsigned i = 0; i < STRANGERS; i++)
		d->stranger[i].ch.fd = -1;
	d->listener = (struct listener){.fd = {-1, -1}};
	st = rendezvous_listen(&d->listener, c->o.place.port, c->o.interface, err);
	if (!st) /* after the port is ours: a second rank 0 must not lay a secret of its own */
		st = await_secret(c, deadline_ns, err);
	if (!st)
		st = gather(d, err);
	if (!st)
		st = settle(d, err);
	for (unsigned i = 0; i < STRANGERS; i++)
		channel_close(&d->stranger[i].ch);
	for (unsigned r = 0; r < c->size; r++)
		json_decref(d->said[r]);
	rendezvous_close(&d->listener);
	join_worker_key(c);
	secret_forget(&c->secret, true);
	free(d->said);
	free(d);
	return st;
}
