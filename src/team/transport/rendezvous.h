/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets by which the ranks meet: rank 0 listens for IPv4 and IPv6, the others connect. */
#ifndef TEAM_TRANSPORT_RENDEZVOUS_H
#define TEAM_TRANSPORT_RENDEZVOUS_H
#include <stdint.h>
#include "core/error.h"

enum { RENDEZVOUS_PORT = 29611, RENDEZVOUS_PORTS = 8, RENDEZVOUS_ADDRESS = 80 };

struct listener {
	int fd[2]; /* IPv4, IPv6; -1: none */
	uint16_t port;
};

/* Listens on the first free one of eight ports from `port` on (0: RENDEZVOUS_PORT). `interface`: a name or an
 * address of this host; NULL: all. */
enum status rendezvous_listen(struct listener *l, uint16_t port, const char *interface, struct error *err);
/* Accepts a connection and writes its peer to `address`. -1: no connection is waiting. */
int rendezvous_accept(const struct listener *l, char address[RENDEZVOUS_ADDRESS]);
void rendezvous_close(struct listener *l);

/* UNAVAILABLE: the system's resolver does not know this name. */
enum status rendezvous_known(const char *host, struct error *err);
/* Connects to the addresses of `host` one after the other, limit_ms each. UNAVAILABLE with the error of the
 * last one. `interface` as above: where to connect from. The system's resolver looks the name up, within its
 * own limit. */
enum status rendezvous_connect(int *fd, const char *host, uint16_t port, const char *interface,
			       unsigned limit_ms, struct error *err);
#endif
