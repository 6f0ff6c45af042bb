/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between workers: a connection of each to rank 0's, for one generation. Its secret is made anew by
 * rank 0's supervisor and comes to the others over the control plane, with the port.
 */
#ifndef TEAM_WIRES_H
#define TEAM_WIRES_H
#include <signal.h>
#include "team/team.h"

enum { WIRES_SECRET = 33 };

struct wires_place {
	unsigned rank, size, limit_ms;
	const char *secret, *host; /* host: of rank 0; rank 0 itself: not used */
	uint16_t port;
	const volatile sig_atomic_t *stop;
};

/* Rank 0: listens at any free port, *port. Owner: caller, wires_close. `p->secret` is copied. */
enum status wires_listen(struct team *t, const struct wires_place *p, uint16_t *port, struct error *err);
/* Rank 0: until all others have come. NO_RESOURCE with TIMED_OUT names who has not. */
enum status wires_gather(struct team *t, struct error *err);
/* The others: to rank 0, which may not listen yet. */
enum status wires_connect(struct team *t, const struct wires_place *p, struct error *err);
/* A team without links is fine. */
void wires_close(struct team *t);
#endif
