/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/link/supervisor.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both processes are of one build, so the layout is the compiler's. */
struct packet {
	uint32_t kind, epoch, port;
	char cause[320];
};

enum status supervisor_send(int socket, const struct supervisor_message *m, struct error *err)
{
	struct packet p = {.kind = (uint32_t)m->kind, .epoch = m->epoch, .port = m->port};
	struct iovec part = {.iov_base = &p, .iov_len = sizeof(p)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} room = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	memcpy(p.cause, m->cause, sizeof(p.cause));
	if (m->kind == SUPERVISOR_ENGINE) {
		struct cmsghdr *head;

		message.msg_control = room.bytes;
		message.msg_controllen = sizeof(room.bytes);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &m->fd, sizeof(int));
	}
	if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return STATUS_OK;
	if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED)
		return error_set(err, STATUS_UNAVAILABLE, "the other process of the server is gone");
	return error_errno(err, errno, "a message between the processes of the server");
}

static int descriptor_of(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(int));
	return fd;
}

enum status supervisor_receive(int socket, struct supervisor_message *m, bool *got, struct error *err)
{
	struct packet p;
	struct iovec part = {.iov_base = &p, .iov_len = sizeof(p)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} room;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room.bytes,
				 .msg_controllen = sizeof(room.bytes)};
	ssize_t size;

	*got = false;
	do
		size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return STATUS_OK;
	if (size < 0 && errno != ECONNRESET)
		return error_errno(err, errno, "a message between the processes of the server");
	if (size <= 0)
		return error_set(err, STATUS_UNAVAILABLE, "the other process of the server is gone");
	*m = (struct supervisor_message){
		.kind = (enum supervisor_kind)p.kind, .epoch = p.epoch, .port = p.port};
	m->fd = descriptor_of(&message);
	memcpy(m->cause, p.cause, sizeof(m->cause));
	m->cause[sizeof(m->cause) - 1] = '\0';
	if (size != sizeof(p) || p.kind < SUPERVISOR_ENGINE || p.kind > SUPERVISOR_DONE ||
	    (p.kind == SUPERVISOR_ENGINE && m->fd < 0)) {
		if (m->fd >= 0)
			close(m->fd);
		return error_set(err, STATUS_BAD_INPUT,
				 "a message between the processes of the server is damaged");
	}
	*got = true;
	return STATUS_OK;
}
