/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between workers: a connection of each to rank 0's, for one generation. Its secret is made anew by
 * rank 0's supervisor and comes to the others over the control plane, with the port.
 */
#ifndef TEAM_LINKS_PROCESSES_H
#define TEAM_LINKS_PROCESSES_H
#include <signal.h>
#include "team/team.h"

enum { PROCESS_LINKS_SECRET = 33 };

struct process_links_place {
	unsigned rank, size, limit_ms;
	const char *secret, *host; /* host: of rank 0; rank 0 itself: not used */
	uint16_t port;
	const volatile sig_atomic_t *stop;
};

/* Rank 0: listens at any free port, *port. Owner: caller, process_links_close. `p->secret` is copied. */
enum status process_links_listen(struct team *t, const struct process_links_place *p, uint16_t *port,
				 struct error *err);
/* Rank 0: until all others have come. NO_RESOURCE with TIMED_OUT names who has not. */
enum status process_links_gather(struct team *t, struct error *err);
/* The others: to rank 0, which may not listen yet. */
enum status process_links_connect(struct team *t, const struct process_links_place *p, struct error *err);
/* A team without links is fine. */
void process_links_close(struct team *t);
#endif
