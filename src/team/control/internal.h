/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the control plane: control.c (connections and the end of the team), receive.c
 * (received frames), join.c and accept.c (joining), shape.c and gpu_owners.c (which rank is where), agree.c
 * (agreements), collect.c (files). */
#ifndef TEAM_CONTROL_INTERNAL_H
#define TEAM_CONTROL_INTERNAL_H
#include "team/transport/channel.h"
#include "team/control/control.h"
#include "team/transport/secret.h"

enum { CONTROL_PORTION_MS = 200 }; /* the longest wait between two looks at *stop */

struct held { /* a received frame that no call has taken yet */
	struct held *next;
	enum wire_kind kind;
	size_t size;
	char payload[]; /* and a NUL */
};

struct measured {      /* clock readings in progress */
	unsigned left; /* pings still to send */
	uint64_t begun_ns;
	bool any;
	struct team_clock best;
};

struct peer {
	struct channel ch;
	unsigned rank;
	bool here; /* it has joined and not left */
	bool left; /* it sent BYE */
	char node[64], host[80];
	char last[64]; /* its last message about a step */
	uint64_t heard_ns, pinged_ns;
	struct held *first;
	struct measured clock;
};

struct collect; /* collect.c */

struct control {
	struct control_options o;
	const struct clock *clock;
	const struct log *log;
	struct secret secret;	    /* kept until this rank has joined */
	struct wire_key worker_key; /* derived from it; the workers' secrets are derived from this key */
	unsigned rank, size;
	struct peer *peer; /* on rank 0: by rank, its own unused; on others: one, rank 0 */
	unsigned peers;
	struct team_shape shape;
	struct error over;     /* why the team ended; status OK: it has not */
	sig_atomic_t patience; /* requests to stop that do not end the team */
	bool over_told;	       /* it came from rank 0, or was sent to all */
	char at[64];	       /* the current step, "" between steps */
	char done[64];	       /* the previous step */
	bool parting;	       /* control_part was called: a peer that leaves now is not lost */
	uint64_t looked_ns;
	unsigned generation, case_ordinal;
	bool fell;
	unsigned fell_rank;
	enum ending fell_ending;
	struct collect *collect; /* rank 0: while it receives files */
};

/* Whether a request to stop ends the team. */
static inline bool control_asked(const struct control *c)
{
	return c->o.stop && *c->o.stop > c->patience;
}
/* "rank 5 on node-b" */
void control_rank_text(const struct control *c, unsigned rank, char *out, size_t size);
/* Ends the team: keeps the first error and sends it to the peers. Returns its status and fills *err with it.
 */
enum status control_over(struct control *c, const struct error *why, struct error *err);
/* Waits until done(c, arg), the end of the team or a request to stop. NO_RESOURCE with TEAM_LATE and no text:
 * the deadline has passed; no peer was told. */
enum status control_wait(struct control *c, bool (*done)(const struct control *, const void *),
			 const void *arg, uint64_t deadline_ns, struct error *err);
/* Polls once for up to wait_ms, handles received frames and drops peers that were silent too long. */
void control_poll(struct control *c, unsigned wait_ms);
/* Parts of it, for callers with a poll of their own. */
void control_take_in(struct control *c);
void control_ping(struct control *c, struct peer *p);
unsigned control_poll_set(const struct control *c, struct pollfd *out, unsigned room);
/* Sends to all connected peers. */
void control_send_all(struct control *c, enum wire_kind kind, const void *payload, size_t size);
void control_send(struct control *c, struct peer *p, enum wire_kind kind, const void *payload, size_t size);
void control_send_json(struct control *c, struct peer *p, enum wire_kind kind,
		       json_t *j); /* p NULL: to all; takes ownership of j */
/* Takes the first held frame of a peer, as JSON, and its kind. NULL: no frame, or no JSON (kind is then
 * WIRE_KIND_COUNT). */
json_t *control_held_json(struct peer *p, enum wire_kind *kind);
void control_drop_held(struct peer *p);
/* Rank 0: fills *why with a message that names the ranks that have not reached the step `what`. */
void control_name_late(const struct control *c, const char *what, unsigned limit_ms, struct error *why);
/* Rank 0: reads the clocks of all nodes by pings to their lowest ranks. The best readings go to `joined`, or
 * with `parted` to that member. */
enum status control_read_clocks(struct control *c, bool parted, struct error *err);
/* Rank 0, while it receives files: handles a frame of kind FILE, DATA or SENT; handles a lost peer, which
 * then does not end the team. */
void collect_frame(struct control *c, const struct peer *p, const struct wire_frame *f);
void collect_lost(struct control *c, const struct peer *p, const char *why);
uint64_t control_deadline(const struct control *c, unsigned limit_ms);
void control_free(struct control *c);

/* An error as a frame carries it: {"status","cause","text"}. */
json_t *control_error_json(const struct error *e);
void control_error_from(struct error *e, const json_t *j);

/* shape.c: rank 0 makes the shape from the facts that each rank sent (shape_about); the others read it from
 * rank 0's frame. */
json_t *shape_about(const struct control *c);
enum status shape_make(struct control *c, json_t *const *said, struct error *err);
/* gpu_owners.c: reduces the GPUs that each rank sees to those assigned to it. */
enum status shape_own_gpus(struct team_shape *s, json_t *const *said, struct error *err);
json_t *shape_json(const struct team_shape *s);
enum status shape_take(struct team_shape *s, unsigned size, const json_t *j, struct error *err);
void shape_clocks_take(struct team_shape *s, const json_t *j);
void shape_release(struct team_shape *s);

/* join.c and accept.c */
struct hello {
	unsigned rank, size;
	char nonce[33], team[64], node[64], program[32], build[32];
};
enum status join_nonce(char out[33], struct error *err);
bool join_text(char *out, size_t size, const json_t *j,
	       const char *name); /* false: not a text, or too long */
/* Derives the keys of both directions from the handshake. */
void join_keys(struct channel *ch, struct control *c, bool from_zero, const void *hello, size_t hello_size,
	       const void *challenge, size_t challenge_size);
/* Derives worker_key. Call it before the team's secret is wiped. */
void join_worker_key(struct control *c);
enum status join_zero(struct control *c, uint64_t deadline_ns, struct error *err);
#endif
