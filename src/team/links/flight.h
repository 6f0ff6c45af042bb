/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight record: the collectives of a training rank, in the memory of its wait board. The worker counts each
 * collective when it asks for it, when it begins and when it ends. The supervisor reads the record while the
 * worker hangs or after it has died, and does not trust it: each value is checked against its range.
 *
 * There are two counts. One has the collectives that all ranks make in the same order. The other has those
 * within a copy of the model (tensor parallel): their number differs between copies, so only the ranks of one
 * copy can be compared.
 */
#ifndef TEAM_LINKS_FLIGHT_H
#define TEAM_LINKS_FLIGHT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct team_board;

/* name, text of ".. never entered collective 12 (all-reduce ..)" */
/* clang-format off */
#define TEAM_FLIGHTS(X) \
	X(NONE, "nothing") X(JOIN, "start of the library") X(ALL_REDUCE, "all-reduce of the gradient") \
	X(REDUCE_SCATTER, "reduce-scatter of the gradient") X(ALL_GATHER, "all-gather of the weights") \
	X(BROADCAST, "broadcast of the parameters") X(GATHER, "gather of the ranks' figures") X(SHARE, "broadcast of rank 0's state") \
	X(ACTIVATIONS_SUM, "reduce-scatter of activations") X(ACTIVATIONS, "all-gather of activations")
/* clang-format on */
#define X(name, text) TEAM_FLIGHT_##name,
enum team_flight_kind { TEAM_FLIGHTS(X) TEAM_FLIGHT_COUNT };
#undef X
const char *team_flight_text(enum team_flight_kind kind);

enum team_flight_of { TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_OF_COPY, TEAM_FLIGHT_OFS };
enum { TEAM_FLIGHT_ENTRIES = 64, TEAM_FLIGHT_NO_LAYER = -1 };
struct team_flight_entry {
	_Atomic uint64_t number, bytes, asked_ns, begun_ns, ended_ns; /* CLOCK_MONOTONIC; 0: not yet */
	_Atomic uint32_t kind;
	_Atomic int32_t layer; /* lowest layer whose gradient or weights it has; TEAM_FLIGHT_NO_LAYER: all */
};
/* Facts about the rank's GPU that only its supervisor reads; 0: not known. */
/* clang-format off */
#define TEAM_FACTS(X) X(clock_hz) X(slowed_share) X(link_rate) X(tensor_share) X(memory_share) X(sm_share)
/* clang-format on */
struct team_facts {
#define X(name) double name;
	TEAM_FACTS(X)
#undef X
};
struct team_flight {
#define X(name) _Atomic uint64_t name; /* the bits of a double */
	TEAM_FACTS(X)
#undef X
	_Atomic uint64_t given_ns, worked_ns; /* last work that the device got; end of the last work seen */
	struct team_flight_count {
		_Atomic uint64_t asked, begun, ended; /* numbers of the last ones, from 1 */
		struct team_flight_entry
			entry[TEAM_FLIGHT_ENTRIES]; /* number n is at index n % TEAM_FLIGHT_ENTRIES */
	} of[TEAM_FLIGHT_OFS];
};

/* For the worker: one thread asks, one thread begins and ends. NULL: nothing is recorded. */
void team_flight_ask(struct team_board *b, enum team_flight_of of, enum team_flight_kind kind, uint64_t bytes,
		     int32_t layer);
void team_flight_begin(struct team_board *b, enum team_flight_of of);
void team_flight_end(struct team_board *b, enum team_flight_of of);
/* The device got work; all work of the device so far has ended. On CPUs both are one. */
void team_flight_give(struct team_board *b);
void team_flight_worked(struct team_board *b);

/* The supervisor tells its worker about the GPU. NULL: nobody is told, or nothing is known. */
void team_facts_set(struct team_board *b, const struct team_facts *facts);
struct team_facts team_facts_get(const struct team_board *b);

/* The state of one count of a rank's record, and its last asked collective. */
struct team_flight_state {
	uint64_t asked, begun, ended, bytes;
	enum team_flight_kind kind;
	int32_t layer;
	double since_s;		  /* since the last of these three counts changed */
	double given_s, worked_s; /* since the device got work, and since its work ended; -1: never */
};
/* False: there is no record, or it holds impossible values. */
bool team_flight_read(struct team_flight_state *out, const struct team_board *b, enum team_flight_of of,
		      uint64_t now_ns);
/* Names the rank that keeps the others waiting: the one that asked for the fewest collectives, else the one
 * that entered the fewest. -1: no rank is behind. `state`: by rank; `known`: whether it has one. */
int team_flight_behind(const struct team_flight_state *state, const bool *known, unsigned ranks);
/* The same with tensor parallel, where `tensor` neighbouring ranks share a copy. A rank that hangs within a
 * copy stops the others of it at the same count of `all`. Of these, `copy` shows the one that is behind, and
 * then `within` is set. If it does not show one, `shared` is set, because any rank of that copy may be it. */
struct team_flight_found {
	int rank; /* -1: no rank is behind */
	bool within, shared;
};
struct team_flight_found team_flight_behind_copies(const struct team_flight_state *all,
						   const struct team_flight_state *copy, const bool *known,
						   unsigned ranks, unsigned tensor);
/* Whether two ranks asked for different collectives under one number; *a and *b: the first such pair. */
bool team_flight_differs(const struct team_flight_state *state, const bool *known, unsigned ranks,
			 unsigned *a, unsigned *b);
#endif
