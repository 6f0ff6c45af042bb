/* SPDX-License-Identifier: Apache-2.0 */
#include "core/net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, SPARE_FILES = 64 };

static enum status bind_failed(const char *address, uint16_t port, struct error *err)
{
	if (errno == EADDRINUSE)
		return error_set(err, STATUS_UNAVAILABLE,
				 "port %u of %s is in use by another program; choose one with --port",
				 (unsigned)port, address);
	if (errno == EACCES)
		return error_set(err, STATUS_UNAVAILABLE,
				 "port %u needs root; choose one from 1024 on with --port", (unsigned)port);
	if (errno == EADDRNOTAVAIL)
		return error_set(err, STATUS_BAD_INPUT, "%s is no address of this machine", address);
	return error_errno(err, errno, "cannot listen on port %u of %s", (unsigned)port, address);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &size))
		return 0;
	if (name.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)(void *)&name)->sin6_port);
	return ntohs(((struct sockaddr_in *)(void *)&name)->sin_port);
}

static enum status open_one(int *fd, const struct addrinfo *a, const char *address, uint16_t port,
			    struct error *err)
{
	int on = 1;

	*fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return error_errno(err, errno, "cannot make a socket for %s", address);
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(*fd, a->ai_addr, a->ai_addrlen) && !listen(*fd, BACKLOG))
		return STATUS_OK;
	bind_failed(address, port, err);
	close(*fd);
	*fd = -1;
	return err->status;
}

enum status listen_open(int *fd, const char *address, uint16_t *port, struct error *err)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	const size_t size = strlen(address);
	const bool bracketed = size > 2 && address[0] == '[' && address[size - 1] == ']';
	struct addrinfo *found = NULL;
	char bare[256], number[8];
	enum status st;
	int code;

	snprintf(number, sizeof(number), "%u", (unsigned)*port);
	snprintf(bare, sizeof(bare), "%.*s", (int)(bracketed ? size - 2 : size), address + bracketed);
	code = getaddrinfo(bare, number, &hints, &found);
	if (code)
		return error_set(err, STATUS_BAD_INPUT, "\"%.200s\" is no address to listen on: %s", address,
				 gai_strerror(code));
	st = open_one(fd, found, address, *port, err);
	freeaddrinfo(found);
	if (!st)
		*port = port_of(*fd);
	return st;
}

size_t listen_allow_files(size_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	if (limit.rlim_cur < wanted + SPARE_FILES) {
		limit.rlim_cur =
			limit.rlim_max < wanted + SPARE_FILES ? limit.rlim_max : wanted + SPARE_FILES;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted + SPARE_FILES)
		return wanted;
	return limit.rlim_cur > 2 * SPARE_FILES ? (size_t)limit.rlim_cur - SPARE_FILES : SPARE_FILES;
}
