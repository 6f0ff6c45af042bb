/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL communicators of a team's ranks. Each is made on first use and lives as long as the team. Used in
 * workers only. Unless a comment says otherwise, all ranks call these functions together, in the same order.
 */
#ifndef TEAM_LIBRARIES_NCCL_H
#define TEAM_LIBRARIES_NCCL_H
#include "core/clock.h"
#include "gpu/device/gpu.h"
#include "team/team.h"
#include "vendor/nccl.h"

/* Settings of a communicator; each combination has a communicator of its own. */
struct team_comm_spec {
	char algorithm[16], protocol[16]; /* NCCL_ALGO and NCCL_PROTO while it is made; "": NCCL's choice */
	unsigned ctas;			  /* thread blocks; 0: NCCL's choice */
};

struct team_comm { /* borrowed; lives as long as the team */
	struct team_comm *next;
	struct team_comm_spec spec;
	ncclComm_t comm; /* NULL: it was aborted */
	double init_ms;	 /* duration of ncclCommInit.. */
	bool is_group;	 /* of some ranks (team_nccl_group) */
};

/* Opens NCCL on every rank and checks that the versions match. UNAVAILABLE names the rank without it. */
enum status team_nccl_open(struct team *t, struct error *err);
/* NCCL's functions, after team_nccl_open. This rank alone. Borrowed. */
const struct nccl *team_nccl_table(const struct team *t);
/* Finds or makes a blocking communicator. A non-blocking one would run every call on a thread of its own
 * (docs/explanation/design/collective.md). So if a rank does not arrive, the case's time limit ends the wait,
 * and the wait board shows which ranks waited. */
enum status team_nccl_comm(struct team *t, const struct team_comm_spec *spec, struct team_comm **out,
			   struct error *err);
/* Makes a communicator of `count` ranks: first, first + stride, .. This rank is one of these. All ranks of
 * the team call it together, each for its own group. */
enum status team_nccl_group(struct team *t, unsigned first, unsigned stride, unsigned count,
			    struct team_comm **out, struct error *err);
/* This rank alone: waits until its work on `s` is done, by the event `mark`. If a rank has left the step, the
 * wait ends and the communicator is aborted. */
enum status team_nccl_wait(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
			   const struct clock *clock, struct error *err);
/* This rank alone, before it frees memory: waits for the work on `s`. If a collective does not end, its
 * communicator is aborted. `mark` and `c` may be NULL. */
void team_nccl_drain(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
		     const struct clock *clock);
#endif
