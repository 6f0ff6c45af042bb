/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control plane: supervisors of a team, a TCP connection each to rank 0's for the whole run. No GPU call, no
 * MPI, no thread: descriptors in the supervisor's poll. Every wait has a limit and ends with the names of
 * those who are late
 * ("rank 5 on node-b did not come to begin of case 31 within 12 s, last: end of case 30"). What ends a team
 * ends it for good: every later call returns the same sentence at once. All ranks call the same functions in
 * the same order.
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

struct control; /* NULL: alone; every function takes NULL and is then a team of one */

enum {
	CONTROL_RANKS = 4096, /* of a team, at most: 512 nodes of eight */
	CONTROL_GPUS = 16,
	CONTROL_PCI = 16,
	CONTROL_JOIN_MS = 60000,
	CONTROL_QUIET_MS = 15000,
	CONTROL_PINGS = 32,
	CONTROL_COLLECT_MS = 20000
};

struct control_options { /* what is pointed to outlives the control */
	struct team_place place;
	struct environment env;	    /* for the secret */
	const char *secret_file;    /* NULL: as the environment has it, else the file of the job */
	const char *interface;	    /* NULL: the one that routes to rank 0; "ib0", or an address */
	const char *build;	    /* which program this is (process_build); all ranks have the same */
	unsigned join_ms, quiet_ms; /* 0: CONTROL_JOIN_MS: all have joined; CONTROL_QUIET_MS: who says nothing
				       is dead */
	const json_t *about; /* this rank's own, may be NULL. Read here: "boot": text, "gpus": [PCI addresses]
				that it sees, "given": whether one alone was given to it, "shown": what files
				and reports call the node, "network": {"rate": B/s that the node's ports carry
				one way, "gpus": of the node} */
	const volatile sig_atomic_t *stop;
	const struct clock *clock;
	const struct log *log;
};

/* All know all of it after join. */
struct team_rank {
	unsigned node, local_rank; /* local_rank: the how many-th of its node */
	unsigned gpu_count;	   /* of its own: of what it sees as docs/explanation/design/team.md has it */
	char pci[CONTROL_GPUS][CONTROL_PCI];
};
struct team_clock { /* a node's CLOCK_MONOTONIC less rank 0's; wrong by error_ns at most. Read at at_ns of
		       rank 0's */
	int64_t offset_ns;
	uint64_t error_ns, at_ns;
};
struct team_node {
	char name[64], boot[48], host[80]; /* host: its address as rank 0 sees it, with a port */
	char shown[64];			   /* in files and reports: no two nodes' are the same */
	unsigned leader, ranks;		   /* its lowest rank; how many */
	double network;			   /* B/s one way, all its ports together; 0: not known */
	unsigned gpus;			   /* that it has, a rank's or not; 0: not known */
	struct team_clock joined, parted;
};
struct team_shape {
	unsigned size, nodes;
	struct team_rank *rank;
	struct team_node *node;
};

/* Rank 0 listens (both families), the others connect and try again until join_ms. UNAVAILABLE with TEAM_LATE,
 * TEAM_REFUSED, VERSION_MISMATCH or TEAM_LOST and the ranks: on every rank that can still be
 * told. A place of one: *c is NULL. Owner: control_leave. */
enum status control_join(struct control **c, const struct control_options *o, struct error *err);
const struct team_shape *control_shape(const struct control *c); /* NULL c: NULL */

/* How many ranks of this node have the GPU. `lowest` (may be NULL): of them; `names` (may be NULL) gains
 * "0-3, 6". A GPU that several have is no case of theirs: run/suite/target_team.h. */
unsigned control_gpu_ranks(const struct team_shape *s, unsigned node, const char *pci, unsigned *lowest,
			   struct text *names);

/* What the journal of rank `rank` says of its team (journal/journal.h, `open` and, where `parted`, `close`).
 * NULL shape, or no memory: NULL. Caller decrefs. */
json_t *control_team_json(const struct team_shape *s, unsigned rank, bool parted);

/* Where all stand before line `line` of round `round` of the suite: the local cases of a line start at one
 * time. *work_ms (may be NULL): what this rank's cases of the line may take; after it what they may take on
 * the rank that has most to do, which is how long others have to wait for it. */
enum status control_line(struct control *c, unsigned round, unsigned line, unsigned *work_ms,
			 unsigned limit_ms, struct error *err);
/* Begins a team case: every rank's `key` is the same, or their suites differ, which ends the team. `mine` is
 * what this rank's plan says of it (its status OK, or its skip); *agreed: the worst of all with whose it was;
 * *generation: of the workers to use, a new number where the last case fell. */
enum status control_begin(struct control *c, unsigned ordinal, const char *key, const struct error *mine,
			  struct error *agreed, unsigned *generation, unsigned limit_ms, struct error *err);
/* At once when the own worker fell, was killed, or its case ended; returns when all have ended. *worst,
 * *rank: of the first that fell; DONE where none did. */
enum status control_end(struct control *c, enum ending mine, enum ending *worst, unsigned *rank,
			unsigned limit_ms, struct error *err);
/* Rank 0's bytes to all, `size` on each; at most WIRE_FRAME_MAX. */
enum status control_share(struct control *c, void *bytes, size_t size, unsigned limit_ms, struct error *err);

/* Every rank's word, an object, to all: (*all)[rank], in which "what" is added. Takes `mine`; owner of *all:
 * caller, NULL where it fails. `what` is the same on all ranks. All words together are at most
 * WIRE_FRAME_MAX. Who waits for rank 0 for more than 10 s says so in the log. */
enum status control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
			   struct error *err);

/* What the workers of one generation know and nobody else: each rank makes it of the team's secret and the
 * nonce, so that the nonce alone travels. */
enum { CONTROL_WORKER_SECRET = 33 };
void control_worker_secret(const struct control *c, const char *nonce, char out[CONTROL_WORKER_SECRET]);

/* Where this rank reaches a process of rank `rank`: on rank 0's node the address that it has joined at, on
 * another as rank 0 sees it. "127.0.0.1" on its own node. */
void control_rank_host(const struct control *c, unsigned rank, char out[80]);

/* Between the calls above, several times a second: descriptors to poll (how many there are; `out` has room
 * for `room`), then what came. *fell: a peer's worker fell in this case: kill yours. Not OK: the team is
 * over. */
unsigned control_fds(const struct control *c, struct pollfd *out, unsigned room);
enum status control_attend(struct control *c, bool *fell, struct error *err);

/* The last agreement: all have come to the end; the second readings of the clocks are in the shape. */
enum status control_part(struct control *c, unsigned limit_ms, struct error *err);
/* After control_part, the journal closed; or after the team ended early, from all who are still there. The
 * files of each other rank (its journal, from `dir`) to rank 0's `dir`/nodes/NAME/rank-R
 * (journal/file/rank_dir.h). Rank 0: OK unless it was stopped; *missing gains a sentence a rank whose files
 * did not come whole within limit_ms. Others: UNAVAILABLE where rank 0 is gone, did not ask or did not take
 * them within limit_ms: they stay in `dir`. Hears nothing else, ends no team. */
enum status control_collect(struct control *c, const char *dir, unsigned limit_ms, struct text *missing,
			    struct error *err);
/* After control_collect, on the others: returns when rank 0 has left, or at limit_ms. Launchers of MPI end
 * all ranks when one ends with a code that is not 0, and rank 0 still has the report to write. */
void control_await_zero(struct control *c, unsigned limit_ms);
/* Tells the others and frees. Without control_part before it, the others' team ends with it. */
void control_leave(struct control **c);
#endif
