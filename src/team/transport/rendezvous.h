/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets by which the ranks find each other: rank 0 listens on both families, the others connect. */
#ifndef TEAM_TRANSPORT_RENDEZVOUS_H
#define TEAM_TRANSPORT_RENDEZVOUS_H
#include <stdint.h>
#include "core/error.h"

enum { RENDEZVOUS_PORT = 29611, RENDEZVOUS_PORTS = 8, RENDEZVOUS_ADDRESS = 80 };

struct listener {
	int fd[2]; /* IPv4, IPv6; -1: none */
	uint16_t port;
};

/* The first of eight ports from `port` on that is free (0: RENDEZVOUS_PORT). `interface`: NULL (all), a name
 * or an address of this host. */
enum status rendezvous_listen(struct listener *l, uint16_t port, const char *interface, struct error *err);
/* -1: nobody there. Who it is goes to `address`. */
int rendezvous_accept(const struct listener *l, char address[RENDEZVOUS_ADDRESS]);
void rendezvous_close(struct listener *l);

/* UNAVAILABLE where the system's resolver knows no such name. */
enum status rendezvous_known(const char *host, struct error *err);
/* Each address of `host` in turn, limit_ms each. UNAVAILABLE with what the last one answered. `interface` as
 * above: what we connect from. A name is looked up by the system's resolver, whose own limit holds there. */
enum status rendezvous_connect(int *fd, const char *host, uint16_t port, const char *interface,
			       unsigned limit_ms, struct error *err);
#endif
