/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control plane: how the supervisors of a team communicate. Each supervisor has one TCP connection to the
 * supervisor of rank 0 during the whole run. The control plane makes no GPU call, uses no MPI and starts no
 * thread: its descriptors join the supervisor's poll. Every wait has a limit. When it expires, the message
 * names the late ranks ("rank 5 on node-b (last: end of case 30) did not reach begin of case 31 within 12.0
 * s"). An error that ends the team ends it for good: every later call returns the same message at once. All
 * ranks call the same functions in the same order.
 */
#ifndef TEAM_CONTROL_CONTROL_H
#define TEAM_CONTROL_CONTROL_H
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/text/text.h"
#include "team/launcher/place.h"

struct control; /* NULL: a run without a team. Every function accepts NULL and then acts as a team of one */

enum {
	CONTROL_RANKS = 4096, /* most ranks of a team: 512 nodes of eight */
	CONTROL_GPUS = 16,
	CONTROL_PCI = 16,
	CONTROL_JOIN_MS = 60000,
	CONTROL_QUIET_MS = 15000,
	CONTROL_PINGS = 32,
	CONTROL_COLLECT_MS = 20000
};

/* Everything pointed to must outlive the control. */
struct control_options {
	struct team_place place;
	struct environment env;	 /* where secret_find looks */
	const char *secret_file; /* NULL: from the environment, else the job's file */
	const char *interface;	 /* "ib0", or an address; NULL: the one that routes to rank 0 */
	const char *build;	 /* identifies the program (process_build); equal on all ranks */
	unsigned join_ms;	 /* limit until all ranks have joined; 0: CONTROL_JOIN_MS */
	unsigned quiet_ms;	 /* a peer silent for so long counts as lost; 0: CONTROL_QUIET_MS */
	/* Facts about this rank; may be NULL. Read here: "boot": text; "gpus": PCI addresses of the GPUs that
	 * it sees; "given": true if it was given exactly one GPU; "shown": the node's name in files and
	 * reports; "network": {"rate": B/s of all the node's ports one way, "gpus": number of the node's
	 * GPUs}. */
	const json_t *about;
	const volatile sig_atomic_t *stop;
	const struct clock *clock;
	const struct log *log;
};

/* After control_join every rank has all of this. */
struct team_rank {
	unsigned node, local_rank; /* local_rank: its index among the ranks of its node */
	unsigned gpu_count;	   /* GPUs assigned to it, docs/explanation/design/team.md */
	char pci[CONTROL_GPUS][CONTROL_PCI];
};
/* A node's CLOCK_MONOTONIC minus that of rank 0's node, measured at at_ns of rank 0's clock. The error is at
 * most error_ns. */
struct team_clock {
	int64_t offset_ns;
	uint64_t error_ns, at_ns;
};
struct team_node {
	char name[64], boot[48], host[80]; /* host: address as rank 0 sees it, with a port */
	char shown[64];			   /* name in files and reports, unique in the team */
	unsigned leader, ranks;		   /* its lowest rank; number of ranks */
	double network;			   /* B/s one way, all its ports together; 0: not known */
	unsigned gpus;			   /* all its GPUs, also those without a rank; 0: not known */
	struct team_clock joined, parted;
};
struct team_shape {
	unsigned size, nodes;
	struct team_rank *rank;
	struct team_node *node;
};

/* Joins the team. Rank 0 listens (IPv4 and IPv6); the others connect and retry until join_ms. On failure
 * every rank that can still be reached gets UNAVAILABLE with TEAM_LATE, TEAM_REFUSED, VERSION_MISMATCH or
 * TEAM_LOST, and the message names the ranks. For a place of size 1, *c is NULL. Owner: caller,
 * control_leave. */
enum status control_join(struct control **c, const struct control_options *o, struct error *err);
const struct team_shape *control_shape(const struct control *c); /* NULL c: NULL */

/* Number of this node's ranks that the GPU is assigned to. `lowest` (may be NULL): the lowest of them.
 * Appends their numbers to `names` (may be NULL), for example "0-3, 6". A GPU of several ranks gets no case:
 * run/suite/target_team.h. */
unsigned control_gpu_ranks(const struct team_shape *s, unsigned node, const char *pci, unsigned *lowest,
			   struct text *names);

/* The `team` object for the journal of rank `rank`: of its `open` line, or with `parted` of its `close` line
 * (journal/journal.h). NULL: no shape, or no memory. Caller decrefs. */
json_t *control_team_json(const struct team_shape *s, unsigned rank, bool parted);

/* Synchronizes all ranks before line `line` of round `round` of the suite, so that its local cases start at
 * one time. *work_ms (may be NULL): in, the most time that this rank's cases of the line may take; out, the
 * largest such time of all ranks, which the others must allow for. */
enum status control_line(struct control *c, unsigned round, unsigned line, unsigned *work_ms,
			 unsigned limit_ms, struct error *err);
/* Begins a team case. If the ranks' `key` differs, their suites differ, and the team ends. `mine`: OK, or why
 * this rank's plan skips the case. *agreed: the worst of all ranks, naming its rank. *generation: number of
 * the worker generation to use; it grows after a case in which a worker fell. */
enum status control_begin(struct control *c, unsigned ordinal, const char *key, const struct error *mine,
			  struct error *agreed, unsigned *generation, unsigned limit_ms, struct error *err);
/* Call at once when this rank's worker has fallen, was killed, or has ended its case. Returns when all ranks
 * have ended the case. *worst, *rank: ending and rank of the first worker that fell; DONE: none fell. */
enum status control_end(struct control *c, enum ending mine, enum ending *worst, unsigned *rank,
			unsigned limit_ms, struct error *err);
/* Copies rank 0's bytes to all ranks. `size` is equal on all, at most WIRE_FRAME_MAX. */
enum status control_share(struct control *c, void *bytes, size_t size, unsigned limit_ms, struct error *err);

/* Gives every rank the JSON object of each rank: (*all)[rank], with "what" added to it. Takes ownership of
 * `mine`. Owner of *all: caller; NULL on failure. `what` names the exchange and is equal on all ranks. All
 * objects together have at most WIRE_FRAME_MAX bytes. A rank that waits for rank 0 for more than 10 s logs
 * it. */
enum status control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
			   struct error *err);

/* Secret of the workers of one generation. Each rank derives it from the team's secret and the nonce, so only
 * the nonce is sent. */
enum { CONTROL_WORKER_SECRET = 33 };
void control_worker_secret(const struct control *c, const char *nonce, char out[CONTROL_WORKER_SECRET]);

/* Address at which this rank reaches a process of rank `rank`. For rank 0's node it is the address that this
 * rank joined at; for another node, the one that rank 0 sees; "127.0.0.1" for this rank's own node. */
void control_rank_host(const struct control *c, unsigned rank, char out[80]);

/* Call both between the calls above, several times a second. control_fds fills `out` (room for `room`) with
 * the descriptors to poll and returns their number. control_attend handles received frames. *fell: a peer's
 * worker fell in this case, so the caller must kill its own. Not OK: the team is over. */
unsigned control_fds(const struct control *c, struct pollfd *out, unsigned room);
enum status control_attend(struct control *c, bool *fell, struct error *err);

/* The last agreement: all ranks have reached the end of the run. The shape then holds the second clock
 * readings. */
enum status control_part(struct control *c, unsigned limit_ms, struct error *err);
/* Copies the files of each other rank (its journal, from `dir`) to rank 0's `dir`/nodes/NAME/rank-R
 * (journal/file/rank_dir.h). Call it with the journal closed, after control_part or after the team ended
 * early; then only ranks that are still connected take part. Rank 0: OK unless it was stopped; for each rank
 * whose files did not arrive whole within limit_ms, *missing gains a sentence. Other ranks: UNAVAILABLE if
 * rank 0 is gone, or did not ask for the files or take them within limit_ms; they stay in `dir`. Ignores
 * other frames and never ends the team. */
enum status control_collect(struct control *c, const char *dir, unsigned limit_ms, struct text *missing,
			    struct error *err);
/* On ranks other than 0, after control_collect: waits until rank 0 has left, limit_ms at most. MPI launchers
 * end all ranks when one exits with a code other than 0, but rank 0 must still write the report. */
void control_await_zero(struct control *c, unsigned limit_ms);
/* From now on, this many requests to stop do not end the team: the run of the ranks ends by itself after
 * them. */
void control_bear_stops(struct control *c, int requests);
/* Tells the other ranks that this one leaves, and frees *c. Without an earlier control_part this ends the
 * team of the others. */
void control_leave(struct control **c);
#endif
