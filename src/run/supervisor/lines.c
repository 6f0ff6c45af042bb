/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervisor/lines.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "journal/journal.h"

enum { BLOCK = 1 << 16 };

void lines_release(struct lines *l)
{
	free(l->data);
	*l = (struct lines){0};
}

static bool make_room(struct lines *l)
{
	size_t room = l->room ? 2 * l->room : 2 * BLOCK;
	char *grown;

	if (l->room - l->size >= BLOCK)
		return true;
	grown = realloc(l->data, room);
	if (!grown)
		return false;
	l->data = grown;
	l->room = room;
	return true;
}

/* Passes on the complete lines and moves the rest to the front. */
static bool hand_out(struct lines *l, size_t from, bool (*take)(void *arg, const char *line, size_t size),
		     void *arg)
{
	size_t at = 0;
	char *newline;
	bool go_on = true;

	while (go_on && (newline = memchr(l->data + (at > from ? at : from), '\n',
					  l->size - (at > from ? at : from)))) {
		size_t size = (size_t)(newline - (l->data + at));

		go_on = take(arg, l->data + at, size);
		at += size + 1;
	}
	memmove(l->data, l->data + at, l->size - at);
	l->size -= at;
	return go_on;
}

enum lines_state lines_read(struct lines *l, int fd, bool (*take)(void *arg, const char *line, size_t size),
			    void *arg)
{
	for (;;) {
		size_t from = l->size; /* without a newline, as all text before `from` */
		ssize_t got;

		if (l->size > JOURNAL_LINE_MAX || !make_room(l))
			return LINES_BROKEN;
		got = recv(fd, l->data + l->size, BLOCK, MSG_DONTWAIT);
		if (got < 0 && errno == ENOTSOCK)
			got = read(fd, l->data + l->size, BLOCK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? LINES_MORE
			       : errno == ECONNRESET		       ? LINES_END
								       : LINES_BROKEN;
		if (!got)
			return LINES_END;
		l->size += (size_t)got;
		if (!hand_out(l, from, take, arg))
			return LINES_MORE;
	}
}

enum status lines_write(int fd, const char *text, size_t size, struct error *err)
{
	for (size_t done = 0; done < size;) {
		struct pollfd room = {.fd = fd, .events = POLLOUT};
		ssize_t put = send(fd, text + done, size - done, MSG_NOSIGNAL);

		if (put >= 0)
			done += (size_t)put;
		else if (errno == EAGAIN)
			poll(&room, 1, 1000);
		else if (errno != EINTR)
			return error_errno(err, errno, "the channel to another process of assay");
	}
	return STATUS_OK;
}

enum status lines_send(int fd, json_t *line, unsigned digits, pthread_mutex_t *writing, struct error *err)
{
	char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL;
	bool lost = line && !text;
	enum status st;
	size_t size;

	json_decref(line);
	if (lost)
		return error_set(err, STATUS_BUG, "a line to another process of assay is not valid JSON");
	if (!text)
		return error_errno(err, ENOMEM, "a line to another process of assay");
	size = strlen(text);
	text[size] = '\n'; /* replaces the NUL */
	if (writing)
		pthread_mutex_lock(writing);
	st = lines_write(fd, text, size + 1, err);
	if (writing)
		pthread_mutex_unlock(writing);
	free(text);
	return st;
}
