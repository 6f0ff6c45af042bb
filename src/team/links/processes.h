/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between the workers of one generation: each has a connection to the worker of rank 0. Rank 0's
 * supervisor makes a new secret for each generation. The control plane carries it to the others, with the
 * port.
 */
#ifndef TEAM_LINKS_PROCESSES_H
#define TEAM_LINKS_PROCESSES_H
#include <signal.h>
#include "team/team.h"

enum { PROCESS_LINKS_SECRET = 33 };

struct process_links_place {
	unsigned rank, size, limit_ms;
	const char *secret, *host; /* host: of rank 0; not used by rank 0 itself */
	uint16_t port;
	const volatile sig_atomic_t *stop;
};

/* Rank 0: listens on any free port. *port: its number. Owner: caller, process_links_close. `p->secret` is
 * copied. */
enum status process_links_listen(struct team *t, const struct process_links_place *p, uint16_t *port,
				 struct error *err);
/* Rank 0: waits until all others have connected. NO_RESOURCE with TIMED_OUT names the missing ranks. */
enum status process_links_gather(struct team *t, struct error *err);
/* The others: connects to rank 0, and retries while it does not listen yet. */
enum status process_links_connect(struct team *t, const struct process_links_place *p, struct error *err);
/* Does nothing for a team without links. */
void process_links_close(struct team *t);
#endif
