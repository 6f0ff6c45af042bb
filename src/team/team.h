/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data plane: the ranks that measure together, threads of one worker or a worker each. Rank 0 conducts: what
 * it does to its own engine and meter it posts to the others, which do the same and answer. So followers run
 * no loop of their own and decide nothing.
 *
 * Everything here waits `limit_ms` at most, without using the CPU: what is measured has it.
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

struct team { /* one rank's view; lent to the engine for the case, lives as long as the worker's ranks do */
	unsigned rank, size, local_rank, local_size, node, nodes, generation;
	unsigned launched; /* this rank among all that were launched, of a part of them too */
	bool in_process;   /* all ranks are threads of this worker: pointers can be exchanged */
	unsigned limit_ms; /* of each call below */
	const volatile sig_atomic_t *stop; /* not 0: all waits end, CANCELLED; NULL: never */
	char name[48];			   /* "rank 2 (gpu2)": for sentences */
	struct team_board *board;	   /* this rank's line; NULL: nobody looks */
	struct team_links *links;
	struct team_nccl *nccl; /* what engines keep from case to case */
	struct team_mpi *mpi;
	void (*close)(
		struct team *t); /* frees those on this rank's thread at its end; NULL: nothing is kept */
};

enum { TEAM_LIMIT_MS = 60000, TEAM_BYTES_MAX = 1 << 16 /* of one share or one rank's gather */ };

/*
 * For engines: inside prepare, select, verify, finish; never inside enqueue, nor in release. All ranks call
 * the same ones in the same order; t NULL is a team of one. A rank that left the step with an error ends the
 * wait of all others at once, with its own words. NO_RESOURCE with TIMED_OUT names the ranks that did not
 * come.
 */
/* Everybody's status: returns the worst, of the lowest rank; *err, whatever it held, says whose it was. So
 * nobody enters a blocking library call alone. `err` NULL: mine has no words. */
enum status team_agree(struct team *t, enum status mine, struct error *err);
/* Rank 0's bytes to all. */
enum status team_share(struct team *t, void *bytes, size_t size, struct error *err);
/* Everybody's bytes to all: `all` has room for t->size times `size`. */
enum status team_gather(struct team *t, const void *mine, size_t size, void *all, struct error *err);

/* For whoever conducts (run/worker/ranks.c). */
struct team_command {
	uint32_t word, variant;
	uint64_t batch, number;
};
/* Conductor: a command to every other rank; waits for nobody. */
enum status team_post(struct team *t, const struct team_command *c, struct error *err);
/* Follower: the next command, however long it takes; CANCELLED where the conductor is gone. */
enum status team_follow(struct team *t, struct team_command *c, struct error *err);
/* Follower: what the conductor collects. Copied. */
enum status team_answer(struct team *t, const void *bytes, size_t size, struct error *err);
/* Conductor: the oldest answer of this rank; at most `room` bytes, *size of them. */
enum status team_collect(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			 struct error *err);
/* "rank 2 (gpu2): " before a sentence that names no rank. */
void team_named(const struct team *t, struct error *err);
/* This rank comes to no more agreements of this step, and why: who waits for it hears it at once. Over with
 * the conductor's team_begin. */
void team_leave(struct team *t, const struct error *why);
/* Has any rank left this step? *why: its words. Looks, and waits for nothing: for who waits for a device in
 * turns. */
bool team_left(struct team *t, struct error *why);
/* Conductor, when all others wait for a command: nobody has left, nobody waits. */
void team_begin(struct team *t);

/* Ranks as threads of this process: fills `ranks` (room for `size`), each to be used by one thread. Owner:
 * caller, team_threads_destroy when all other threads have ended or wait in team_follow: those end. */
enum status team_threads_create(struct team *ranks, unsigned size, struct error *err);
/* All that wait in team_follow hear CANCELLED, now and from now on. */
void team_threads_end(struct team *ranks);
void team_threads_destroy(struct team *ranks);
#endif
