/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the control plane share: control.c (how it stands and ends), receive.c
 * (what comes), join*.c, shape.c, agree.c. */
#ifndef TEAM_CONTROL_INTERNAL_H
#define TEAM_CONTROL_INTERNAL_H
#include "team/transport/channel.h"
#include "team/control/control.h"
#include "team/transport/secret.h"

enum { CONTROL_PORTION_MS = 200 }; /* the longest wait between two looks at *stop */

struct held { /* a frame that nobody waited for yet */
	struct held *next;
	enum wire_kind kind;
	size_t size;
	char payload[]; /* and a NUL */
};

struct measured {      /* a clock's readings under way */
	unsigned left; /* pings yet to send */
	uint64_t begun_ns;
	bool any;
	struct team_clock best;
};

struct peer {
	struct channel ch;
	unsigned rank;
	bool here; /* it has joined and not left */
	bool left; /* by BYE */
	char node[64], host[80];
	char last[64]; /* what it said last, of a step */
	uint64_t heard_ns, pinged_ns;
	struct held *first;
	struct measured clock;
};

struct collect; /* collect.c */

struct control {
	struct control_options o;
	const struct clock *clock;
	const struct log *log;
	struct secret secret;	    /* until this rank has joined */
	struct wire_key worker_key; /* of it: what workers' secrets are made of */
	unsigned rank, size;
	struct peer *peer; /* rank 0: by rank, its own unused; else one, rank 0 */
	unsigned peers;
	struct team_shape shape;
	struct error over; /* status OK: the team stands */
	bool over_told;	   /* came from rank 0, or went to all */
	char at[64];	   /* the step under way, "" between steps */
	char done[64];	   /* the step before */
	bool parting;	   /* control_part was called: who leaves now is not lost */
	uint64_t looked_ns;
	unsigned generation, case_ordinal;
	bool fell;
	unsigned fell_rank;
	enum ending fell_ending;
	struct collect *collect; /* rank 0: files are coming */
};

/* "rank 5 on node-b" */
void control_rank_text(const struct control *c, unsigned rank, char *out, size_t size);
/* The team is over: keeps the first sentence and tells the peers. Returns its status, fills *err. */
enum status control_over(struct control *c, const struct error *why, struct error *err);
/* Waits until done(c, arg), or the team is over, or is stopped. NO_RESOURCE with TEAM_LATE and no text told
 * to anybody: the limit has come. */
enum status control_wait(struct control *c, bool (*done)(const struct control *, const void *),
			 const void *arg, uint64_t deadline_ns, struct error *err);
/* One look: polls up to wait_ms, takes in what came, judges who is silent. */
void control_look(struct control *c, unsigned wait_ms);
/* Two halves of it, for who polls himself. */
void control_take_in(struct control *c);
void control_ping(struct control *c, struct peer *p);
unsigned control_poll_set(const struct control *c, struct pollfd *out, unsigned room);
/* To all peers that are here. */
void control_tell_all(struct control *c, enum wire_kind kind, const void *payload, size_t size);
void control_tell(struct control *c, struct peer *p, enum wire_kind kind, const void *payload, size_t size);
void control_tell_json(struct control *c, struct peer *p, enum wire_kind kind,
		       json_t *j); /* p NULL: all; takes j */
/* The first frame held of a peer, as JSON; its kind. NULL: none, or no JSON (kind then WIRE_KIND_COUNT). */
json_t *control_held_json(struct peer *p, enum wire_kind *kind);
void control_drop_held(struct peer *p);
/* Rank 0: who has said nothing yet to the step `what`, in a sentence; into *why. */
void control_name_late(const struct control *c, const char *what, unsigned limit_ms, struct error *why);
/* Rank 0: pings leaders of all nodes; the best readings go to joined or parted. */
enum status control_read_clocks(struct control *c, bool parted, struct error *err);
/* Rank 0 while files come: a frame of FILE, DATA or SENT; and a peer that is gone, which then ends nothing.
 */
void collect_frame(struct control *c, const struct peer *p, const struct wire_frame *f);
void collect_lost(struct control *c, const struct peer *p, const char *why);
uint64_t control_deadline(const struct control *c, unsigned limit_ms);
void control_free(struct control *c);

/* A sentence on its way: {"status","cause","text"}. */
json_t *control_error_json(const struct error *e);
void control_error_from(struct error *e, const json_t *j);

/* shape.c: rank 0 makes it of what each rank said of itself; the others take it from rank 0's frame. */
json_t *shape_about(const struct control *c);
enum status shape_make(struct control *c, json_t *const *said, struct error *err);
/* gpu_owners.c: of the GPUs that each rank sees, what is its own. */
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
bool join_text(char *out, size_t size, const json_t *j, const char *name); /* false: no text, or too long */
bool join_number(unsigned *out, const json_t *j, const char *name, json_int_t most);
/* Keys of both directions, from what was said. */
void join_keys(struct channel *ch, struct control *c, bool from_zero, const void *hello, size_t hello_size,
	       const void *challenge, size_t challenge_size);
/* Before the team's secret is forgotten. */
void join_worker_key(struct control *c);
enum status join_zero(struct control *c, uint64_t deadline_ns, struct error *err);
#endif
