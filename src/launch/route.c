/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/route.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/text/text.h"

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

/* This host's address on the route: a connected UDP socket has it, and connecting sends no packet. */
static bool source_address(struct sockaddr_storage *own, const struct addrinfo *to)
{
	socklen_t size = sizeof(*own);
	int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && !connect(fd, to->ai_addr, to->ai_addrlen) &&
		     !getsockname(fd, (struct sockaddr *)own, &size);

	if (fd >= 0)
		close(fd);
	return found;
}

static bool interface_of(char *out, size_t size, const struct sockaddr_storage *own)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		found = i->ifa_addr && !(i->ifa_flags & IFF_LOOPBACK) &&
			same_address(i->ifa_addr, (const struct sockaddr *)own);
		if (found)
			text_copy(out, size, i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

bool route_interface(char *out, size_t size, const char *host)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct addrinfo *list = NULL;
	struct sockaddr_storage own;
	bool found = false;

	if (getaddrinfo(host, "9", &hints, &list))
		return false;
	for (const struct addrinfo *a = list; a && !found; a = a->ai_next)
		found = source_address(&own, a) && interface_of(out, size, &own);
	freeaddrinfo(list);
	return found;
}
