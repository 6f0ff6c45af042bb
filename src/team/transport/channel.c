/* SPDX-License-Identifier: Apache-2.0 */
#include "team/transport/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OUT_MAX = 4 * WIRE_FRAME_MAX, OUT_KEPT = 4096 };

void channel_open(struct channel *ch, int fd)
{
	int on = 1;

	*ch = (struct channel){.fd = fd};
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
		   sizeof(on)); /* fails on the tests' socket pairs, which need no such option */
}

static enum status gone(int errnum, struct error *err)
{
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "the connection broke: %s",
			       strerror(errnum));
}

enum status channel_flush(struct channel *ch, struct error *err)
{
	size_t sent = 0;
	ssize_t n = 0;

	while (sent < ch->out_size) {
		n = send(ch->fd, ch->out + sent, ch->out_size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		return gone(errno, err);
	ch->out_size -= sent;
	if (sent)
		memmove(ch->out, ch->out + sent, ch->out_size);
	if (!ch->out_size && ch->out_room > OUT_KEPT) { /* thousands of channels would hold gigabytes */
		free(ch->out);
		ch->out = NULL;
		ch->out_room = 0;
	}
	return STATUS_OK;
}

static enum status grow(struct channel *ch, size_t more, struct error *err)
{
	size_t room = ch->out_room ? ch->out_room : 1024;
	unsigned char *out;

	if (ch->out_size + more > OUT_MAX)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
				       "it does not read its frames");
	while (room < ch->out_size + more)
		room *= 2;
	if (room == ch->out_room)
		return STATUS_OK;
	out = realloc(ch->out, room);
	if (!out)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%zu bytes for a frame",
				       room);
	ch->out = out;
	ch->out_room = room;
	return STATUS_OK;
}

enum status channel_send(struct channel *ch, enum wire_kind kind, const void *payload, size_t size,
			 struct error *err)
{
	enum status st;

	if (size > WIRE_FRAME_MAX)
		return error_set(err, STATUS_BAD_INPUT, "a frame of %zu bytes is too large: the limit is %d",
				 size, WIRE_FRAME_MAX);
	st = grow(ch, WIRE_HEADER + size + WIRE_MAC, err);
	if (st)
		return st;
	ch->out_size += wire_build(ch->out + ch->out_size, kind, payload, (uint32_t)size, ch->sequence++,
				   ch->keyed ? &ch->key : NULL);
	return channel_flush(ch, err);
}

enum status channel_read(struct channel *ch, bool *any, struct error *err)
{
	/* Until the sender has proved its membership, at most one frame is buffered. */
	unsigned char chunk[WIRE_CHUNK];
	size_t room = ch->in.most ? sizeof(chunk)
				  : WIRE_HEADER + WIRE_STRANGER_MAX + WIRE_MAC - (ch->in.size - ch->in.taken);
	ssize_t n;

	*any = false;
	if (!room)
		return error_set(err, STATUS_BAD_INPUT, "the first frame is too long");
	do
		n = recv(ch->fd, chunk, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? STATUS_OK : gone(errno, err);
	if (!n)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "it closed the connection");
	*any = true;
	return wire_put(&ch->in, chunk, (size_t)n, err);
}

void channel_close(struct channel *ch)
{
	if (ch->fd >= 0)
		close(ch->fd);
	wire_release(&ch->in);
	free(ch->out);
	*ch = (struct channel){.fd = -1};
}
