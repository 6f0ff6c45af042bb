/* SPDX-License-Identifier: Apache-2.0 */
#include "team/transport/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

struct address {
	struct sockaddr_storage a;
	socklen_t size; /* 0: none */
};

static void set_port(struct address *a, uint16_t port)
{
	if (a->a.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->a)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->a)->sin_port = htons(port);
}

static socklen_t size_of(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Parses an address, also "fe80::1%eth0". */
static bool from_text(struct address *out, int family, const char *text)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *found = NULL;

	if (getaddrinfo(text, NULL, &hints, &found))
		return false;
	memcpy(&out->a, found->ai_addr, found->ai_addrlen);
	out->size = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

static bool is_link_local(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* The interface's address of that family; a link-local one only if it has no other. */
static bool from_interface(struct address *out, int family, const char *name)
{
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family || strcmp(i->ifa_name, name))
			continue;
		if (out->size && is_link_local(i->ifa_addr))
			continue;
		memcpy(&out->a, i->ifa_addr, size_of(family));
		out->size = size_of(family);
		if (!is_link_local(i->ifa_addr))
			break;
	}
	freeifaddrs(all);
	return out->size;
}

/* The address of `interface`; NULL: any address. False: it has none of that family. */
static bool own_address(struct address *out, int family, const char *interface)
{
	*out = (struct address){0};
	if (interface)
		return from_text(out, family, interface) || from_interface(out, family, interface);
	out->a.ss_family = (sa_family_t)family;
	out->size = size_of(family);
	return true;
}

/* Returns a listening socket, or -1 with errno. */
static int listen_at(struct address *a, uint16_t port)
{
	int on = 1, failed, fd = socket(a->a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	set_port(a, port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->a.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&a->a, a->size) && !listen(fd, BACKLOG))
		return fd;
	failed = errno;
	close(fd);
	errno = failed;
	return -1;
}

/* Listens for both families on one port. Returns 0 or an errno; a family that the host lacks is not an error.
 */
static int listen_both(struct listener *l, uint16_t port, const char *interface)
{
	static const int families[2] = {AF_INET, AF_INET6};
	struct address a;
	int failed = 0;

	*l = (struct listener){.fd = {-1, -1}, .port = port};
	for (int i = 0; i < 2; i++) {
		if (!own_address(&a, families[i], interface))
			continue;
		l->fd[i] = listen_at(&a, port);
		if (l->fd[i] < 0 && (errno == EADDRINUSE || !failed))
			failed = errno;
		if (failed == EADDRINUSE)
			break;
	}
	if (failed != EADDRINUSE && (l->fd[0] >= 0 || l->fd[1] >= 0))
		return 0;
	rendezvous_close(l);
	return failed ? failed : EADDRNOTAVAIL;
}

enum status rendezvous_listen(struct listener *l, uint16_t port, const char *interface, struct error *err)
{
	unsigned first = port ? port : RENDEZVOUS_PORT, last = first + RENDEZVOUS_PORTS - 1, at;
	int failed = 0;

	if (last > 65535)
		last = 65535;
	for (at = first; at <= last; at++) {
		failed = listen_both(l, (uint16_t)at, interface);
		if (!failed)
			return STATUS_OK;
		if (failed != EADDRINUSE)
			break;
	}
	if (failed == EADDRINUSE)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			"rank 0 cannot listen: ports %u to %u of this host are in use; choose another port with --master "
			"HOST:PORT",
			first, last);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			       "rank 0 cannot listen on %s, port %u: %s",
			       interface ? interface : "any address", at, strerror(failed));
}

static void address_text(char *out, const struct address *a)
{
	char host[64] = "?", port[8] = "?";

	getnameinfo((const struct sockaddr *)&a->a, a->size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(out, RENDEZVOUS_ADDRESS, a->a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

int rendezvous_accept(const struct listener *l, char address[RENDEZVOUS_ADDRESS])
{
	struct address a = {.size = sizeof(a.a)};

	for (int i = 0; i < 2; i++) {
		int fd = l->fd[i] < 0 ? -1
				      : accept4(l->fd[i], (struct sockaddr *)&a.a, &a.size,
						SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			continue;
		address_text(address, &a);
		return fd;
	}
	return -1;
}

void rendezvous_close(struct listener *l)
{
	for (int i = 0; i < 2; i++) {
		if (l->fd[i] >= 0)
			close(l->fd[i]);
		l->fd[i] = -1;
	}
}

/* Returns 0 or an errno. */
static int connect_within(int fd, const struct addrinfo *to, unsigned limit_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int failed = 0;

	if (!connect(fd, to->ai_addr, to->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&p, 1, (int)limit_ms) <= 0) /* a signal also ends this attempt */
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) ? errno : failed;
}

/* A socket that connects to a port of its own host, where no process listens, can connect to itself. */
static bool met_itself(int fd)
{
	struct address a = {.size = sizeof(a.a)}, b = {.size = sizeof(b.a)};

	return !getsockname(fd, (struct sockaddr *)&a.a, &a.size) &&
	       !getpeername(fd, (struct sockaddr *)&b.a, &b.size) && a.size == b.size &&
	       !memcmp(&a.a, &b.a, a.size);
}

static int try_one(int *out, const struct addrinfo *to, const char *interface, unsigned limit_ms)
{
	struct address from;
	int failed = 0, fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return errno;
	if (interface && !own_address(&from, to->ai_family, interface))
		failed = EADDRNOTAVAIL;
	else if (interface && bind(fd, (struct sockaddr *)&from.a, from.size))
		failed = errno;
	if (!failed)
		failed = connect_within(fd, to, limit_ms);
	if (!failed && met_itself(fd))
		failed = ECONNREFUSED;
	if (failed)
		close(fd);
	else
		*out = fd;
	return failed;
}

static enum status look_up(struct addrinfo **all, const char *host, const char *service, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	int unknown = getaddrinfo(host, service, &hints, all);

	return unknown ? error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
					 "rank 0's host \"%.200s\": %s", host, gai_strerror(unknown))
		       : STATUS_OK;
}

enum status rendezvous_known(const char *host, struct error *err)
{
	struct addrinfo *all = NULL;
	enum status st = look_up(&all, host, "0", err);

	if (!st)
		freeaddrinfo(all);
	return st;
}

enum status rendezvous_connect(int *fd, const char *host, uint16_t port, const char *interface,
			       unsigned limit_ms, struct error *err)
{
	struct addrinfo *all = NULL;
	int failed = EADDRNOTAVAIL;
	char service[8];
	enum status st;

	snprintf(service, sizeof(service), "%u", port);
	st = look_up(&all, host, service, err);
	if (st)
		return st;
	for (const struct addrinfo *to = all; to && failed; to = to->ai_next)
		failed = try_one(fd, to, interface, limit_ms);
	freeaddrinfo(all);
	if (!failed)
		return STATUS_OK;
	return error_set_cause(err, STATUS_UNAVAILABLE,
			       failed == ETIMEDOUT ? CAUSE_TIMED_OUT : CAUSE_TEAM_LATE,
			       "%.200s, port %u%s%s: %s", host, port, interface ? ", from " : "",
			       interface ? interface : "", strerror(failed));
}
