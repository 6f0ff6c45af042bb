/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank other than 0 finds rank 0 and proves that it belongs to the team. Helpers of both sides are here
 * too. */
#include <errno.h>
#include <unistd.h>
#include "core/json/member.h"
#include "core/math/random.h"
#include "core/text/text.h"
#include "team/control/internal.h"
#include "team/transport/rendezvous.h"

enum {
	HANDSHAKE_MS = 5000, /* of one whole connection attempt */
	CONNECT_MS = 2000,
	RETRY_MS_FIRST = 50,
	RETRY_MS_LAST = 500,
	GRACE_MS = 5000, /* rank 0 names the late ranks first */
};
static const uint64_t ms = 1000000;

/* Result of one attempt. */
enum tried { TRIED_JOINED, TRIED_AGAIN, TRIED_NEXT_HOST, TRIED_FINAL };

enum status join_nonce(char out[33], struct error *err)
{
	return random_hex(out, 33) ? STATUS_OK
				   : error_errno(err, errno, "cannot read random bytes to join the team");
}

bool join_text(char *out, size_t size, const json_t *j, const char *name)
{
	const json_t *value = json_object_get(j, name);

	if (!json_is_string(value) || json_string_length(value) >= size)
		return false;
	text_copy(out, size, json_string_value(value));
	return true;
}

void join_keys(struct channel *ch, struct control *c, bool from_zero, const void *hello, size_t hello_size,
	       const void *challenge, size_t challenge_size)
{
	const char *mine = from_zero ? "rank 0" : "rank", *theirs = from_zero ? "rank" : "rank 0";

	wire_key(&ch->key, c->secret.text, mine, hello, hello_size, challenge, challenge_size);
	wire_key(&ch->in.key, c->secret.text, theirs, hello, hello_size, challenge, challenge_size);
	ch->in.keyed = true;
}

void join_worker_key(struct control *c)
{
	wire_key(&c->worker_key, c->secret.text, "workers", "", 0, "", 0);
}

static void hex(char *out, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void control_worker_secret(const struct control *c, const char *nonce, char out[CONTROL_WORKER_SECRET])
{
	char root[2 * sizeof(c->worker_key.bytes) + 1];
	struct wire_key made;

	hex(root, c->worker_key.bytes, sizeof(c->worker_key.bytes));
	wire_key(&made, root, "worker", nonce, strlen(nonce), "", 0);
	hex(out, made.bytes, CONTROL_WORKER_SECRET / 2);
	explicit_bzero(root, sizeof(root));
	explicit_bzero(&made, sizeof(made));
}

/* Waits for one frame until the deadline. */
static enum status await_frame(struct control *c, struct channel *ch, uint64_t deadline, struct wire_frame *f,
			       struct error *err)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	enum wire_state state;
	enum status st;
	bool any;

	for (;;) {
		state = wire_take(&ch->in, f, err);
		if (state != WIRE_MORE)
			return state == WIRE_FRAME ? STATUS_OK : STATUS_BAD_INPUT;
		if (clock_now_ns(c->clock) >= deadline || control_asked(c))
			return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
					       "the listener there does not answer");
		poll(&p, 1, CONTROL_PORTION_MS);
		st = channel_flush(ch, err);
		if (!st)
			st = channel_read(ch, &any, err);
		if (st)
			return st;
	}
}

/* Owner: caller, free(); NULL: *err. */
static char *hello_text(const struct control *c, struct error *err)
{
	char nonce[33], *text = NULL;
	json_t *j;

	if (join_nonce(nonce, err))
		return NULL;
	j = json_pack("{s:s,s:s,s:i,s:i,s:s,s:s,s:s}", "nonce", nonce, "team", c->o.place.job, "rank",
		      (int)c->rank, "size", (int)c->size, "node", c->o.place.node, "program", ASSAY_VERSION,
		      "build", c->o.build);
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text || strlen(text) > WIRE_STRANGER_MAX) {
		error_set(err, STATUS_BAD_INPUT,
			  "node \"%.64s\" and job \"%.64s\" do not fit into a frame of %d bytes",
			  c->o.place.node, c->o.place.job, WIRE_STRANGER_MAX);
		free(text);
		text = NULL;
	}
	return text;
}

/* False: rank 0 of another team listens there. */
static bool same_team(const struct control *c, const struct wire_frame *f)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	char team[64] = "", nonce[33] = "";
	bool same = f->kind == WIRE_CHALLENGE && join_text(team, sizeof(team), j, "team") &&
		    join_text(nonce, sizeof(nonce), j, "nonce") && strlen(nonce) == 32 &&
		    !strcmp(team, c->o.place.job);

	json_decref(j);
	return same;
}

/* WELCOME or REFUSE: only a process with the secret can send it. */
static enum tried take_welcome(const struct wire_frame *f, unsigned *left_ms, struct error *err)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	enum tried tried = TRIED_FINAL;

	if (f->kind == WIRE_REFUSE)
		control_error_from(err, j);
	else if (f->kind == WIRE_WELCOME && json_member_count(left_ms, j, "left_ms", UINT32_MAX / 2))
		tried = TRIED_JOINED;
	else
		error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			"rank 0 sent a welcome of an unknown form: start the same assay on all ranks");
	json_decref(j);
	return tried;
}

static enum tried prove(struct control *c, struct channel *ch, const char *hello, uint64_t deadline,
			unsigned *left_ms, struct error *err)
{
	struct wire_frame f;
	enum status st;

	if (channel_send(ch, WIRE_HELLO, hello, strlen(hello), err) || await_frame(c, ch, deadline, &f, err))
		return TRIED_AGAIN;
	if (!same_team(c, &f)) {
		error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"rank 0 of another team listens there");
		return TRIED_AGAIN;
	}
	join_keys(ch, c, false, hello, strlen(hello), f.payload, f.size);
	ch->keyed = true;
	ch->in.most = WIRE_FRAME_MAX;
	if (channel_send(ch, WIRE_PROOF, NULL, 0, err))
		return TRIED_AGAIN;
	st = await_frame(c, ch, deadline, &f, err);
	if (!st)
		return take_welcome(&f, left_ms, err);
	if (st != STATUS_BAD_INPUT || err->cause != CAUSE_TEAM_REFUSED)
		return TRIED_AGAIN;
	error_clear(err);
	error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			"rank 0 there has another secret than rank %u", c->rank);
	return TRIED_AGAIN; /* may be another unnamed team: ours may use another port or start later */
}

static enum tried try_port(struct control *c, unsigned port, uint64_t deadline, unsigned *left_ms,
			   struct error *err)
{
	uint64_t now = clock_now_ns(c->clock), limit = now + HANDSHAKE_MS * ms;
	struct channel ch = {.fd = -1};
	struct error why = {0};
	enum tried tried;
	char *hello;
	int fd;

	if (now >= deadline)
		return TRIED_NEXT_HOST;
	if (rendezvous_connect(&fd, c->o.place.host, (uint16_t)port, c->o.interface, CONNECT_MS, err))
		return err->cause == CAUSE_TIMED_OUT ? TRIED_NEXT_HOST : TRIED_AGAIN;
	channel_open(&ch, fd);
	hello = hello_text(c, &why);
	tried = hello ? prove(c, &ch, hello, limit < deadline ? limit : deadline, left_ms, &why)
		      : TRIED_FINAL;
	free(hello);
	if (tried == TRIED_JOINED) {
		c->peer[0].ch = ch;
		return tried;
	}
	channel_close(&ch);
	if (tried == TRIED_FINAL)
		*err = why;
	else
		error_set_cause(err, why.status, why.cause, "%.200s, port %u: %.250s", c->o.place.host, port,
				why.text);
	return tried;
}

/* Tries rank 0's ports one after the other until one belongs to the team. *why: the most informative error.
 */
static enum tried try_ports(struct control *c, uint64_t deadline, unsigned *left_ms, struct error *why)
{
	unsigned first = c->o.place.port ? c->o.place.port : RENDEZVOUS_PORT;
	enum tried tried = TRIED_AGAIN;

	error_clear(why);
	for (unsigned port = first; port < first + RENDEZVOUS_PORTS && port <= 65535 && tried == TRIED_AGAIN;
	     port++) {
		struct error one = {0};

		tried = try_port(c, port, deadline, left_ms, &one);
		if (tried == TRIED_FINAL || !why->status ||
		    (one.cause == CAUSE_TEAM_REFUSED && why->cause != one.cause))
			*why = one;
	}
	return tried;
}

/* UNAVAILABLE at the deadline, with the last error. */
static enum status find_zero(struct control *c, uint64_t deadline, unsigned *left_ms, struct error *err)
{
	unsigned wait_ms = RETRY_MS_FIRST;
	struct error why = {0}, unknown = {0};
	enum tried tried;
	enum status st;

	while (clock_now_ns(c->clock) < deadline) {
		if (control_asked(c))
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request");
		error_clear(&why);
		error_clear(&unknown);
		st = secret_find(&c->secret, c->o.secret_file, &c->o.place, &c->o.env, &why);
		if (st && why.cause != CAUSE_TEAM_LATE)
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		if (st && *c->o.place.host && rendezvous_known(c->o.place.host, &unknown))
			why = unknown; /* the resolver's error explains more than a missing secret */
		tried = st ? TRIED_AGAIN : try_ports(c, deadline, left_ms, &why);
		if (tried == TRIED_JOINED)
			return STATUS_OK;
		if (tried == TRIED_FINAL)
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		clock_sleep_ns(c->clock, wait_ms * ms);
		wait_ms = 2 * wait_ms < RETRY_MS_LAST ? 2 * wait_ms : RETRY_MS_LAST;
	}
	return error_set_cause(
		err, STATUS_UNAVAILABLE, why.cause == CAUSE_TEAM_REFUSED ? why.cause : CAUSE_TEAM_LATE,
		"rank %u did not reach rank 0 within %.1f s: %.380s", c->rank, c->o.join_ms / 1e3, why.text);
}

static bool zero_spoke(const struct control *c, const void *arg)
{
	(void)arg;
	return c->peer[0].first;
}

/* Sends this rank's facts and waits for the shape of the whole team. */
static enum status take_shape(struct control *c, unsigned left_ms, struct error *err)
{
	const struct error late = {STATUS_UNAVAILABLE, CAUSE_TEAM_LATE, NULL, 0,
				   "rank 0 did not report whether all ranks have joined"};
	uint64_t deadline = control_deadline(c, left_ms + c->o.quiet_ms + GRACE_MS);
	enum wire_kind kind = WIRE_KIND_COUNT;
	enum status st;
	json_t *j;

	control_send_json(c, &c->peer[0], WIRE_SHAPE, shape_about(c));
	st = control_wait(c, zero_spoke, NULL, deadline, err);
	if (st)
		return c->over.status ? st : control_over(c, &late, err);
	j = control_held_json(&c->peer[0], &kind);
	if (kind == WIRE_SHAPE)
		st = shape_take(&c->shape, c->size, j, err);
	else
		st = error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				     "rank 0 did not send the list of nodes and ranks");
	json_decref(j);
	return st;
}

static enum status join_other(struct control *c, uint64_t deadline, struct error *err)
{
	struct peer *zero = &c->peer[0];
	unsigned left_ms = 0;
	enum status st = find_zero(c, deadline, &left_ms, err);

	if (st)
		return st;
	join_worker_key(c);
	secret_forget(&c->secret, false);
	zero->here = true;
	zero->heard_ns = clock_now_ns(c->clock);
	text_copy(zero->last, sizeof(zero->last), "its welcome");
	return take_shape(c, left_ms, err);
}

static enum status make(struct control **out, const struct control_options *o, struct error *err)
{
	struct control *c = calloc(1, sizeof(*c));
	unsigned peers = o->place.rank ? 1 : o->place.size;

	if (c)
		c->peer = calloc(peers, sizeof(*c->peer));
	if (!c || !c->peer) {
		free(c);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "a team of %u ranks",
				       o->place.size);
	}
	c->o = *o;
	c->o.join_ms = o->join_ms ? o->join_ms : CONTROL_JOIN_MS;
	c->o.quiet_ms = o->quiet_ms ? o->quiet_ms : CONTROL_QUIET_MS;
	c->clock = o->clock;
	c->log = o->log;
	c->rank = o->place.rank;
	c->size = o->place.size;
	c->peers = peers;
	for (unsigned i = 0; i < peers; i++)
		c->peer[i] = (struct peer){.ch.fd = -1, .rank = i};
	if (!*c->o.place.node && gethostname(c->o.place.node, sizeof(c->o.place.node)))
		text_copy(c->o.place.node, sizeof(c->o.place.node), "a node without a name");
	c->o.place.node[sizeof(c->o.place.node) - 1] = '\0';
	*out = c;
	return STATUS_OK;
}

enum status control_join(struct control **c, const struct control_options *o, struct error *err)
{
	uint64_t deadline;
	enum status st;

	*c = NULL;
	if (o->place.size <= 1)
		return STATUS_OK;
	if (o->place.size > CONTROL_RANKS)
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "a team can have at most %d ranks, and this one has %u", CONTROL_RANKS,
				       o->place.size);
	st = make(c, o, err);
	if (st)
		return st;
	deadline = control_deadline(*c, (*c)->o.join_ms);
	st = (*c)->rank ? join_other(*c, deadline, err) : join_zero(*c, deadline, err);
	(*c)->done[0] = '\0';
	if (st) {
		control_free(*c);
		*c = NULL;
	}
	return st;
}
