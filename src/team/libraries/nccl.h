/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators of a team's ranks: made when first asked for, kept as long as the team is. In workers only.
 * All functions but the table are for all ranks together, in the same order.
 */
#ifndef TEAM_LIBRARIES_NCCL_H
#define TEAM_LIBRARIES_NCCL_H
#include "core/clock.h"
#include "gpu/device/gpu.h"
#include "team/team.h"
#include "vendor/nccl.h"

/* What makes a communicator another one. */
struct team_comm_spec {
	char algorithm[16], protocol[16]; /* "": NCCL's choice; else NCCL_ALGO, NCCL_PROTO while it is made */
	unsigned ctas;			  /* 0: NCCL's */
};

struct team_comm { /* lent, as long as the team is */
	struct team_comm *next;
	struct team_comm_spec spec;
	ncclComm_t comm; /* NULL: it was given up */
	double init_ms;	 /* what making it took */
};

/* The library, on every rank, of one version. UNAVAILABLE names the rank that lacks it. */
enum status team_nccl_open(struct team *t, struct error *err);
/* After team_nccl_open. Lent. */
const struct nccl *team_nccl_table(const struct team *t);
/* A blocking communicator: one of the other kind puts every call on a thread of its own
 * (docs/explanation/design/collective.md), so a rank that does not come is ended by the case's limit, and the
 * board says who waited. */
enum status team_nccl_comm(struct team *t, const struct team_comm_spec *spec, struct team_comm **out,
			   struct error *err);
/* This rank alone: until what it put on `s` is done; `mark` is an event of its own for that. A rank that left
 * ends the wait, and the communicator with it. */
enum status team_nccl_wait(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
			   const struct clock *clock, struct error *err);
/* This rank alone, before memory is freed: a collective that never ends would hold it, so its communicator is
 * given up. `mark` and `c` may be NULL. */
void team_nccl_drain(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
		     const struct clock *clock);
/* This rank alone: what is still on the device ends, and the communicator is no more. */
void team_nccl_abort(struct team *t, struct team_comm *c);
#endif
