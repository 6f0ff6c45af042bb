/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/frame/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/frame/bytes.h"
#include "engine/frame/internal.h"

enum { HEADER = 16, LAYOUT = 1, READ_BYTES = 256 << 10, QUEUE_KEPT = 1 << 20 };

struct frame_link {
	int fd;
	uint32_t epoch;
	size_t queue_most;
	struct text out; /* bytes for the peer */
	size_t out_at;	 /* those before are written */
	char *in;
	size_t in_at, in_size, in_room; /* received bytes [in_at, in_size) */
	bool ended;			/* the peer closed the socket */
	struct frame_arrays arrays;
};

enum status frame_link_create(struct frame_link **out, int fd, uint32_t epoch, size_t queue_bytes,
			      struct error *err)
{
	struct frame_link *link = calloc(1, sizeof(*link));
	int flags = fcntl(fd, F_GETFL);
	enum status st = STATUS_OK;

	*out = NULL;
	if (!link)
		st = error_set(err, STATUS_NO_RESOURCE, "a link to the engine");
	else if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		st = error_errno(err, errno, "the link between front end and engine");
	if (st) {
		close(fd);
		free(link);
		return st;
	}
	link->fd = fd;
	link->epoch = epoch;
	link->queue_most = queue_bytes ? queue_bytes : FRAME_QUEUE_DEFAULT;
	*out = link;
	return STATUS_OK;
}

void frame_link_destroy(struct frame_link **link_)
{
	struct frame_link *link = *link_;

	*link_ = NULL;
	if (!link)
		return;
	close(link->fd);
	text_release(&link->out);
	free(link->in);
	frame_arrays_release(&link->arrays);
	free(link);
}

int frame_link_fd(const struct frame_link *link)
{
	return link->fd;
}

bool frame_link_waits(const struct frame_link *link)
{
	return link->out.size > link->out_at;
}

static enum status peer_gone(struct error *err)
{
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_CRASHED, "the other process closed the link");
}

/* Forgets what is written. Moves the rest only when that is cheap. */
static void drop_written(struct frame_link *link)
{
	size_t left = link->out.size - link->out_at;

	if (!left && link->out.room > QUEUE_KEPT) {
		text_release(&link->out);
	} else if (left && link->out_at < link->out.size / 2) {
		return;
	} else if (link->out.data) {
		memmove(link->out.data, link->out.data + link->out_at, left);
		link->out.size = left;
	}
	link->out_at = 0;
}

enum status frame_flush(struct frame_link *link, struct error *err)
{
	while (frame_link_waits(link)) {
		ssize_t sent = send(link->fd, link->out.data + link->out_at, link->out.size - link->out_at,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (sent < 0)
			return errno == EPIPE || errno == ECONNRESET
				       ? peer_gone(err)
				       : error_errno(err, errno, "the link between front end and engine");
		link->out_at += (size_t)sent;
	}
	drop_written(link);
	return STATUS_OK;
}

/* Begins a frame in the queue; returns where it begins. */
static size_t begin(struct frame_link *link, enum frame_kind kind)
{
	size_t at = link->out.size;

	bytes_put(&link->out, 0, 4);
	bytes_put(&link->out, (uint64_t)kind, 2);
	bytes_put(&link->out, LAYOUT, 2);
	bytes_put(&link->out, link->epoch, 4);
	bytes_put(&link->out, 0, 4);
	return at;
}

static enum status finish(struct frame_link *link, size_t at, struct error *err)
{
	size_t size = link->out.size - at - HEADER, waiting = link->out.size - link->out_at;

	if (link->out.failed || size > FRAME_BODY_MOST || waiting > link->queue_most) {
		bool memory = link->out.failed;

		link->out.size = at;
		link->out.failed = 0;
		if (memory || size <= FRAME_BODY_MOST)
			return error_set(err, STATUS_NO_RESOURCE,
					 "%zu bytes wait for the other process, which does not read",
					 waiting);
		return error_set(err, STATUS_BAD_INPUT, "a message of %zu bytes; %d is the most", size,
				 FRAME_BODY_MOST);
	}
	for (unsigned i = 0; i < 4; i++)
		link->out.data[at + i] = (char)(size >> (8 * i) & 0xff);
	return frame_flush(link, err);
}

enum status frame_send_request(struct frame_link *link, const struct engine_request *r, struct error *err)
{
	size_t at;

	if (!r->prompt_count || r->prompt_count > FRAME_PROMPT_MOST || r->stops > ENGINE_STOPS_MOST ||
	    r->biases > ENGINE_BIAS_MOST || (r->grammar && r->grammar_size > FRAME_GRAMMAR_MOST))
		return error_set(err, STATUS_BAD_INPUT,
				 "a request with %zu tokens, %zu stop ids, %zu biases and a grammar of %zu "
				 "bytes is over a limit",
				 r->prompt_count, r->stops, r->biases, r->grammar_size);
	at = begin(link, FRAME_REQUEST);
	frame_put_request(&link->out, r);
	return finish(link, at, err);
}

enum status frame_send_cancel(struct frame_link *link, uint64_t id, struct error *err)
{
	size_t at = begin(link, FRAME_CANCEL);

	bytes_put(&link->out, id, 8);
	return finish(link, at, err);
}

enum status frame_send_drain(struct frame_link *link, struct error *err)
{
	return finish(link, begin(link, FRAME_DRAIN), err);
}

enum status frame_send_ready(struct frame_link *link, const struct engine_ready *ready, struct error *err)
{
	size_t at = begin(link, FRAME_READY);

	frame_put_ready(&link->out, ready);
	return finish(link, at, err);
}

enum status frame_send_step(struct frame_link *link, const struct engine_facts *facts,
			    const struct engine_event *events, size_t count, struct error *err)
{
	size_t at;

	if (count > FRAME_EVENTS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "a step of %zu events; %d is the most", count,
				 FRAME_EVENTS_MOST);
	at = begin(link, FRAME_STEP);
	frame_put_step(&link->out, facts, events, count);
	return finish(link, at, err);
}

enum status frame_send_heartbeat(struct frame_link *link, const struct frame_heartbeat *beat,
				 struct error *err)
{
	size_t at = begin(link, FRAME_HEARTBEAT);

	bytes_put(&link->out, beat->step, 8);
	bytes_put(&link->out, beat->expected_ns, 8);
	return finish(link, at, err);
}

/* Makes room for `need` bytes from in_at on. */
static enum status make_room(struct frame_link *link, size_t need, struct error *err)
{
	size_t held = link->in_size - link->in_at;
	char *grown;

	if (link->in_at + need <= link->in_room)
		return STATUS_OK;
	if (held)
		memmove(link->in, link->in + link->in_at, held);
	link->in_at = 0;
	link->in_size = held;
	if (need <= link->in_room)
		return STATUS_OK;
	grown = realloc(link->in, need);
	if (!grown)
		return error_set(err, STATUS_NO_RESOURCE, "a message of %zu bytes", need);
	link->in = grown;
	link->in_room = need;
	return STATUS_OK;
}

/* Reads at most what the buffer holds. Sets link->ended at the end of the stream. */
static enum status fill(struct frame_link *link, size_t need, struct error *err)
{
	size_t least = need > READ_BYTES ? need : READ_BYTES;
	enum status st = make_room(link, least, err);
	ssize_t got;

	if (st || link->ended)
		return st;
	do
		got = recv(link->fd, link->in + link->in_size, link->in_room - link->in_size, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		link->in_size += (size_t)got;
	else if (!got || errno == ECONNRESET)
		link->ended = true;
	else if (errno != EAGAIN && errno != EWOULDBLOCK)
		return error_errno(err, errno, "the link between front end and engine");
	return STATUS_OK;
}

struct header {
	size_t size;
	unsigned kind, layout;
	uint32_t epoch;
};

static enum status check_header(const struct header *h, const struct frame_link *link, struct error *err)
{
	if (h->size > FRAME_BODY_MOST || h->kind < FRAME_REQUEST || h->kind > FRAME_HEARTBEAT)
		return error_set(err, STATUS_BAD_INPUT, "a frame of kind %u with %zu bytes is damaged",
				 h->kind, h->size);
	if (h->layout != LAYOUT)
		return error_set(err, STATUS_BAD_INPUT,
				 "a frame has layout %u, this program has %d: both processes must be of one "
				 "build",
				 h->layout, LAYOUT);
	if (h->epoch != link->epoch)
		return error_set(err, STATUS_BAD_INPUT, "a frame is of start %u of the engine, not of %u",
				 (unsigned)h->epoch, (unsigned)link->epoch);
	return STATUS_OK;
}

static struct header read_header(const struct frame_link *link)
{
	struct bytes_in in = {.at = (const unsigned char *)link->in + link->in_at, .left = HEADER};
	struct header h = {.size = bytes_get(&in, 4)};

	h.kind = (unsigned)bytes_get(&in, 2);
	h.layout = (unsigned)bytes_get(&in, 2);
	h.epoch = (uint32_t)bytes_get(&in, 4);
	return h;
}

enum status frame_decode(struct frame_link *link, enum frame_kind kind, const void *body, size_t size,
			 struct frame_message *out, struct error *err)
{
	struct bytes_in in = {.at = body, .left = size};

	out->kind = kind;
	switch (kind) {
	case FRAME_REQUEST:
		return frame_get_request(&out->request, &link->arrays, body, size, err);
	case FRAME_READY:
		return frame_get_ready(&out->ready, body, size, err);
	case FRAME_STEP:
		return frame_get_step(&out->step, &link->arrays, body, size, err);
	case FRAME_CANCEL:
		out->cancel = bytes_get(&in, 8);
		break;
	case FRAME_HEARTBEAT:
		out->heartbeat.step = bytes_get(&in, 8);
		out->heartbeat.expected_ns = bytes_get(&in, 8);
		break;
	case FRAME_DRAIN:
		break;
	}
	if (in.bad || in.left)
		return error_set(err, STATUS_BAD_INPUT, "a frame of kind %d with %zu bytes is damaged",
				 (int)kind, size);
	return STATUS_OK;
}

/* Whether [in_at, in_size) holds a whole frame. Otherwise *need is the bytes that it takes. */
static enum status whole(const struct frame_link *link, struct header *h, size_t *need, struct error *err)
{
	size_t held = link->in_size - link->in_at;
	enum status st;

	*need = HEADER;
	if (held < HEADER)
		return STATUS_OK;
	*h = read_header(link);
	st = check_header(h, link, err);
	if (!st)
		*need = held >= HEADER + h->size ? 0 : HEADER + h->size;
	return st;
}

enum status frame_receive(struct frame_link *link, struct frame_message *out, bool *got, struct error *err)
{
	struct header h;
	size_t need, before;
	enum status st = whole(link, &h, &need, err);

	*got = false;
	while (!st && need) {
		before = link->in_size - link->in_at;
		st = fill(link, need, err);
		if (!st && link->in_size - link->in_at == before)
			return link->ended ? peer_gone(err) : STATUS_OK;
		if (!st)
			st = whole(link, &h, &need, err);
	}
	if (st)
		return st;
	link->in_at += HEADER + h.size;
	st = frame_decode(link, (enum frame_kind)h.kind, link->in + link->in_at - h.size, h.size, out, err);
	*got = !st;
	return st;
}
