/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data plane: communication between the ranks that measure together. The ranks are threads of one worker, or
 * one worker process each. Rank 0 leads: it posts each call on its own engine and meter to the other ranks.
 * They make the same call and answer. So the other ranks run no loop of their own and decide nothing.
 *
 * Every call except team_wait_for_lead waits `limit_ms` at most. A wait uses no CPU time, because the
 * measured work needs it.
 */
#ifndef TEAM_TEAM_H
#define TEAM_TEAM_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "team/links/wait_board.h"

struct team_nccl;
struct team_mpi;
struct team_links;

/* One rank's view of its team. The engine borrows it for one case. It lives as long as the worker's ranks. */
struct team {
	unsigned rank, size, local_rank, local_size, node, nodes, generation;
	unsigned launched; /* number among all launched ranks, also in a team of some of them */
	bool in_process;   /* all ranks are threads of this worker, so they can exchange pointers */
	unsigned limit_ms; /* of each call below except team_wait_for_lead */
	const volatile sig_atomic_t *stop; /* not 0: all waits end with CANCELLED; NULL: never */
	char name[48];			   /* for messages: "rank 2 (gpu2)" */
	struct team_board *board;	   /* where this rank records its waits; NULL: nowhere */
	struct team_links *links;
	struct team_nccl *nccl; /* engines keep these from case to case */
	struct team_mpi *mpi;
	/* Frees `nccl` and `mpi` on this rank's thread when it ends; NULL: neither is set. */
	void (*close)(struct team *t);
};

enum { TEAM_LIMIT_MS = 60000, TEAM_BYTES_MAX = 1 << 16 /* of one share, or of one rank in a gather */ };

/*
 * For engines: inside prepare, select, verify and finish; never inside enqueue or release. All ranks call the
 * same functions in the same order. t NULL is a team of one. If a rank leaves the step with an error, the
 * calls of all others end at once with its message. NO_RESOURCE with TIMED_OUT names the ranks that did not
 * arrive.
 */
/* Compares the status of all ranks, so that no rank enters a blocking library call alone. Returns the worst;
 * if several ranks have it, that of the lowest rank. *err is replaced and names that rank. `err` NULL: `mine`
 * has no message. */
enum status team_agree(struct team *t, enum status mine, struct error *err);
/* Copies rank 0's bytes to all ranks. */
enum status team_share(struct team *t, void *bytes, size_t size, struct error *err);
/* Copies the bytes of every rank to all ranks: `all` has room for t->size times `size`. */
enum status team_gather(struct team *t, const void *mine, size_t size, void *all, struct error *err);

/* For the code that runs the ranks of a worker (run/worker/ranks.c). */
struct team_command {
	uint32_t word, variant;
	uint64_t batch, number;
};
/* Rank 0: sends a command to every other rank, without waiting for its execution. */
enum status team_post(struct team *t, const struct team_command *c, struct error *err);
/* Other ranks: waits for the next command, without a limit. CANCELLED: rank 0 is gone. */
enum status team_wait_for_lead(struct team *t, struct team_command *c, struct error *err);
/* Other ranks: leaves an answer for rank 0 to collect. `bytes` are copied. */
enum status team_answer(struct team *t, const void *bytes, size_t size, struct error *err);
/* Rank 0: takes the oldest answer of `rank`. Copies at most `room` bytes; *size: how many. */
enum status team_collect(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			 struct error *err);
/* Puts "rank 2 (gpu2): " before a message that names no rank. */
void team_named(const struct team *t, struct error *err);
/* This rank takes part in no more agreements of this step, because of `why`. Ranks that wait for it learn it
 * at once. Rank 0's team_begin ends this state. */
void team_leave(struct team *t, const struct error *why);
/* Has any rank left this step? *why: its error. Does not wait, so a loop that polls a device can call it. */
bool team_left(struct team *t, struct error *why);
/* Rank 0, while all others wait for a command: begins a step that no rank has left. */
void team_begin(struct team *t);

/* Makes a team whose ranks are threads of this process. Fills `ranks` (room for `size`); one thread uses
 * each. Owner: caller, team_threads_destroy after team_threads_end and the end of all other threads. */
enum status team_threads_create(struct team *ranks, unsigned size, struct error *err);
/* All calls of team_wait_for_lead return CANCELLED, from now on. */
void team_threads_end(struct team *ranks);
void team_threads_destroy(struct team *ranks);
#endif
