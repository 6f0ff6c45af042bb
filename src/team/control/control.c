/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a team after it has formed: sending, waiting, and the end of the team. */
#include "team/control/internal.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include "core/text/text.h"

enum {
	FAREWELL_MS = 1000, /* to send the last frames */
	NAMED_MAX = 4,	    /* ranks named in one message */
	POLL_MAX = CONTROL_RANKS,
	ROOM_MS = 5000,		/* for the ranks to read queued bytes before more are queued */
	QUEUED_MOST = 64 << 20, /* bytes queued for all ranks together */
};
static const uint64_t ms = 1000000;

uint64_t control_deadline(const struct control *c, unsigned limit_ms)
{
	return clock_now_ns(c->clock) + limit_ms * ms;
}

static const char *node_of(const struct control *c, unsigned rank)
{
	if (c->shape.rank)
		return c->shape.node[c->shape.rank[rank].node].shown; /* the message goes into the journal */
	if (rank == c->rank)
		return c->o.place.node;
	for (unsigned i = 0; i < c->peers; i++)
		if (c->peer[i].rank == rank)
			return c->peer[i].node;
	return "";
}

void control_rank_text(const struct control *c, unsigned rank, char *out, size_t size)
{
	const char *node = node_of(c, rank);

	snprintf(out, size, "rank %u%s%s", rank, *node ? " on " : "", node);
}

json_t *control_error_json(const struct error *e)
{
	return json_pack("{s:s,s:s,s:s}", "status", status_name(e->status), "cause", cause_name(e->cause),
			 "text", e->text);
}

void control_error_from(struct error *e, const json_t *j)
{
	const char *text = json_string_value(json_object_get(j, "text"));
	enum status status = STATUS_UNAVAILABLE;
	enum cause cause = CAUSE_TEAM_LOST;

	status_from_name(json_string_value(json_object_get(j, "status")), &status);
	cause_from_name(json_string_value(json_object_get(j, "cause")), &cause);
	if (status)
		error_set_cause(e, status, cause, "%s", text ? text : "the team ended without a message");
}

void control_send(struct control *c, struct peer *p, enum wire_kind kind, const void *payload, size_t size)
{
	struct error err = {0};

	if (p->here)
		channel_send(&p->ch, kind, payload, size, &err); /* a broken one shows at the next read */
	if (err.status)
		log_debug(c->log, LOG_TOPIC_RUN, "rank %u: %s", p->rank, err.text);
}

static size_t queued(const struct control *c)
{
	size_t sum = 0;

	for (unsigned i = 0; i < c->peers; i++)
		sum += c->peer[i].here ? c->peer[i].ch.out_size : 0;
	return sum;
}

/* A frame of a megabyte to thousands of ranks would queue gigabytes, so this waits until `deadline` for
 * queued bytes to leave. */
static void make_room(struct control *c, size_t size, uint64_t deadline)
{
	struct pollfd set[POLL_MAX];

	while (queued(c) + size > QUEUED_MOST && clock_now_ns(c->clock) < deadline) {
		unsigned count = 0;

		for (unsigned i = 0; i < c->peers && count < POLL_MAX; i++)
			if (c->peer[i].here && c->peer[i].ch.out_size)
				set[count++] = (struct pollfd){.fd = c->peer[i].ch.fd, .events = POLLOUT};
		if (!count || (poll(set, count, CONTROL_PORTION_MS) < 0 && errno != EINTR))
			return;
		for (unsigned i = 0; i < c->peers; i++)
			if (c->peer[i].here && c->peer[i].ch.out_size)
				channel_flush(&c->peer[i].ch, NULL); /* a broken one shows at the next read */
	}
}

void control_send_all(struct control *c, enum wire_kind kind, const void *payload, size_t size)
{
	uint64_t deadline = control_deadline(c, ROOM_MS);

	for (unsigned i = 0; i < c->peers; i++) {
		if ((i + 1) * size > QUEUED_MOST)
			make_room(c, size, deadline);
		control_send(c, &c->peer[i], kind, payload, size);
	}
}

void control_send_json(struct control *c, struct peer *p, enum wire_kind kind, json_t *j)
{
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	const struct error why = {STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, NULL, 0, "out of memory for a frame"};

	json_decref(j);
	if (!text)
		control_over(c, &why, NULL);
	else if (p)
		control_send(c, p, kind, text, strlen(text));
	else
		control_send_all(c, kind, text, strlen(text));
	free(text);
}

/* The last frames must leave before the connections close. A peer that does not read them within a second
 * loses them. */
static void flush_all(struct control *c)
{
	uint64_t deadline = control_deadline(c, FAREWELL_MS);
	struct pollfd p;
	unsigned i = 0;

	while (i < c->peers && clock_now_ns(c->clock) < deadline) {
		if (!c->peer[i].here || !c->peer[i].ch.out_size || channel_flush(&c->peer[i].ch, NULL)) {
			i++;
			continue;
		}
		p = (struct pollfd){.fd = c->peer[i].ch.fd, .events = POLLOUT};
		if (c->peer[i].ch.out_size && poll(&p, 1, CONTROL_PORTION_MS) < 0 && errno != EINTR)
			return;
	}
}

enum status control_over(struct control *c, const struct error *why, struct error *err)
{
	if (!c->over.status) {
		c->over = *why;
		log_debug(c->log, LOG_TOPIC_RUN, "team over: %s", why->text);
		if (!c->over_told) {
			c->over_told = true;
			control_send_json(c, NULL, WIRE_STOP, control_error_json(why));
			flush_all(c);
		}
	}
	return error_set_cause(err, c->over.status, c->over.cause, "%s", c->over.text);
}

void control_drop_held(struct peer *p)
{
	struct held *h = p->first;

	p->first = h->next;
	free(h);
}

json_t *control_held_json(struct peer *p, enum wire_kind *kind)
{
	json_t *j;

	if (!p->first)
		return NULL;
	j = json_loadb(p->first->payload, p->first->size, JSON_REJECT_DUPLICATES, NULL);
	*kind = j && json_is_object(j) ? p->first->kind : WIRE_KIND_COUNT;
	control_drop_held(p);
	return j;
}

unsigned control_poll_set(const struct control *c, struct pollfd *out, unsigned room)
{
	unsigned count = 0;

	for (unsigned i = 0; i < c->peers; i++) {
		const struct channel *ch = &c->peer[i].ch;

		if (ch->fd < 0 || !c->peer[i].here)
			continue;
		if (count < room)
			out[count] = (struct pollfd){.fd = ch->fd,
						     .events = ch->out_size ? POLLIN | POLLOUT : POLLIN};
		count++;
	}
	return count;
}

void control_poll(struct control *c, unsigned wait_ms)
{
	struct pollfd set[POLL_MAX];
	unsigned count = control_poll_set(c, set, POLL_MAX);

	poll(set, count < POLL_MAX ? count : POLL_MAX, (int)wait_ms);
	control_take_in(c);
}

enum status control_wait(struct control *c, bool (*done)(const struct control *, const void *),
			 const void *arg, uint64_t deadline_ns, struct error *err)
{
	const struct error stopped = {STATUS_CANCELLED, CAUSE_INTERRUPTED, NULL, 0, "stopped on request"};
	uint64_t now, left_ms;

	for (;;) {
		if (done(c, arg))
			return STATUS_OK;
		if (c->over.status)
			return control_over(c, &c->over, err);
		if (control_asked(c))
			return control_over(c, &stopped, err);
		now = clock_now_ns(c->clock);
		if (now >= deadline_ns)
			return STATUS_NO_RESOURCE;
		left_ms = (deadline_ns - now) / ms + 1;
		control_poll(c, left_ms < CONTROL_PORTION_MS ? (unsigned)left_ms : CONTROL_PORTION_MS);
	}
}

/* Adds a late rank; only the first few are named. */
static void name_one(struct text *t, const struct control *c, unsigned rank, const char *last,
		     unsigned *count)
{
	char who[96];

	if ((*count)++ >= NAMED_MAX)
		return;
	control_rank_text(c, rank, who, sizeof(who));
	text_addf(t, "%s%s", *count > 1 ? ", " : "", who);
	if (last && *last)
		text_addf(t, " (last: %s)", last);
}

void control_name_late(const struct control *c, const char *what, unsigned limit_ms, struct error *why)
{
	struct text t = {0};
	unsigned count = 0;

	if (!*c->at)
		name_one(&t, c, 0, c->done, &count);
	for (unsigned i = 1; i < c->peers; i++)
		if (!c->peer[i].first)
			name_one(&t, c, i, c->peer[i].last, &count);
	if (count > NAMED_MAX)
		text_addf(&t, " and %u others", count - NAMED_MAX);
	error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE, "%s did not reach %.60s within %.1f s",
			count ? text_str(&t) : "an unknown rank", what ? what : "a step", limit_ms / 1e3);
	text_release(&t);
}

static bool clocks_read(const struct control *c, const void *arg)
{
	(void)arg;
	for (unsigned i = 1; i < c->peers; i++)
		if (c->peer[i].clock.left)
			return false;
	return true;
}

enum status control_read_clocks(struct control *c, bool parted, struct error *err)
{
	struct error why = {0};
	enum status st;

	for (unsigned n = 0; n < c->shape.nodes; n++) {
		struct peer *p = &c->peer[c->shape.node[n].leader];

		if (!c->shape.node[n].leader)
			continue;
		p->clock = (struct measured){.left = CONTROL_PINGS, .begun_ns = clock_now_ns(c->clock)};
		control_ping(c, p);
	}
	st = control_wait(c, clocks_read, NULL, control_deadline(c, c->o.quiet_ms), err);
	if (st == STATUS_NO_RESOURCE && !c->over.status) {
		error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
				"the clocks of the nodes could not be read within %.1f s",
				c->o.quiet_ms / 1e3);
		return control_over(c, &why, err);
	}
	for (unsigned n = 0; n < c->shape.nodes && !st; n++) {
		struct team_node *node = &c->shape.node[n];

		*(parted ? &node->parted : &node->joined) = c->peer[node->leader].clock.best;
	}
	return st;
}

void control_free(struct control *c)
{
	for (unsigned i = 0; i < c->peers; i++) {
		while (c->peer[i].first)
			control_drop_held(&c->peer[i]);
		channel_close(&c->peer[i].ch);
	}
	shape_release(&c->shape);
	secret_forget(&c->secret, c->rank == 0);
	explicit_bzero(&c->worker_key, sizeof(c->worker_key));
	free(c->peer);
	free(c);
}

const struct team_shape *control_shape(const struct control *c)
{
	return c ? &c->shape : NULL;
}

/* The address at which this rank joined. */
static void zero_host(const struct control *c, char out[80])
{
	struct sockaddr_storage a;
	socklen_t size = sizeof(a);

	if (c->rank && !getpeername(c->peer[0].ch.fd, (struct sockaddr *)&a, &size))
		getnameinfo((struct sockaddr *)&a, size, out, 80, NULL, 0, NI_NUMERICHOST);
}

/* The host part of "10.0.0.7:41000" or "[fe80::7]:41000". */
static void host_of(const char *address, char out[80])
{
	const char *port = strrchr(address, ':');

	snprintf(out, 80, "%.*s", (int)(port ? port - address : 0), address);
	if (*out == '[') {
		memmove(out, out + 1, strlen(out));
		out[strcspn(out, "]")] = '\0';
	}
}

void control_rank_host(const struct control *c, unsigned rank, char out[80])
{
	unsigned node = c ? c->shape.rank[rank].node : 0;

	text_copy(out, 80, "127.0.0.1");
	if (!c)
		return;
	if (node == c->shape.rank[0].node)
		zero_host(c, out);
	else if (node != c->shape.rank[c->rank].node)
		host_of(c->shape.node[node].host, out);
}

unsigned control_fds(const struct control *c, struct pollfd *out, unsigned room)
{
	return c ? control_poll_set(c, out, room) : 0;
}

enum status control_attend(struct control *c, bool *fell, struct error *err)
{
	*fell = false;
	if (!c)
		return STATUS_OK;
	if (!c->over.status)
		control_take_in(c);
	*fell = c->fell;
	return c->over.status ? control_over(c, &c->over, err) : STATUS_OK;
}

void control_leave(struct control **c)
{
	if (!*c)
		return;
	if (!(*c)->over.status)
		control_send_json(*c, NULL, WIRE_BYE, json_object());
	flush_all(*c);
	control_free(*c);
	*c = NULL;
}

void control_bear_stops(struct control *c, int requests)
{
	c->patience = requests;
}
