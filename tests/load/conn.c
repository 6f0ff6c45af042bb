/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "load/conn.h"

enum { RECEIVE_BYTES = 16384, FILL_BYTES = 1 << 18 };

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* Bytes sent; 0: no room; -1: lost */
static ssize_t send_some(int fd, const char *bytes, size_t size)
{
	ssize_t n;

	do
		n = send(fd, bytes, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 && would_block() ? 0 : n;
}

bool conn_sent_all(const struct conn *c)
{
	return !c->out.size && !c->fill && !c->after.size;
}

/* The next part of the filler, and after it what follows, becomes out. */
static void refill(struct conn *c)
{
	size_t part = c->fill < FILL_BYTES ? (size_t)c->fill : FILL_BYTES;

	c->out.size = c->out_done = 0;
	memset(buf_reserve(&c->out, part), 'x', part);
	c->out.size = part;
	c->fill -= part;
	if (!c->fill) {
		buf_add(&c->out, c->after.data, c->after.size);
		c->after.size = 0;
	}
}

enum conn_state conn_flush(struct conn *c)
{
	while (!conn_sent_all(c)) {
		ssize_t n;

		if (!c->out.size)
			refill(c);
		n = send_some(c->fd, c->out.data + c->out_done, c->out.size - c->out_done);
		if (n < 0)
			return CONN_LOST;
		c->out_done += (size_t)n;
		if (c->out_done < c->out.size)
			return CONN_BLOCKED;
		c->out.size = c->out_done = 0;
	}
	return CONN_OK;
}

enum conn_state conn_send(struct conn *c, const struct buf *bytes)
{
	ssize_t n = 0;

	if (c->out.size) {
		buf_add(&c->out, bytes->data, bytes->size);
		return conn_flush(c);
	}
	if (bytes->size)
		n = send_some(c->fd, bytes->data, bytes->size);
	if (n < 0)
		return CONN_LOST;
	if ((size_t)n < bytes->size)
		buf_add(&c->out, bytes->data + n, bytes->size - (size_t)n);
	return c->out.size ? CONN_BLOCKED : conn_flush(c);
}

enum conn_state conn_receive(struct conn *c)
{
	ssize_t n;

	do
		n = recv(c->fd, buf_reserve(&c->in, RECEIVE_BYTES), RECEIVE_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && would_block())
		return CONN_OK;
	if (n <= 0)
		return CONN_LOST;
	c->in.size += (size_t)n;
	return CONN_OK;
}

void conn_close(struct conn *c, bool reset)
{
	const struct linger now = {.l_onoff = 1};

	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->fd);
	c->fd = -1;
	c->active = c->used = c->closing = c->waits_out = c->continued = c->discards = false;
	c->in.size = c->out.size = c->out_done = c->after.size = 0;
	c->fill = 0;
	c->request = (struct request){0};
}

void conn_release(struct conn *c)
{
	if (c->fd >= 0)
		conn_close(c, false);
	buf_release(&c->in);
	buf_release(&c->out);
	buf_release(&c->after);
	answer_release(&c->answer);
}
