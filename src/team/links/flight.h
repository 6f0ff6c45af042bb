/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight record: the collectives of a training rank, in the memory of its wait board. The worker counts each
 * collective when it asks for it, when it begins and when it ends. The supervisor reads the record while the
 * worker hangs or after it has died, and does not trust it: each value is checked against its range.
 *
 * A host enqueues collectives on a GPU long before the GPU comes to them. There the GPU's stream itself
 * writes the numbers of the collectives that it reaches and leaves. The supervisor notes when these change.
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

/* name, text of "collective 12 (all-reduce .., on the communication stream)"; "": the text has no stream */
/* clang-format off */
#define TEAM_FLIGHT_STREAMS(X) X(HOST, "") X(COMMUNICATION, "communication stream")
/* clang-format on */
#define X(name, text) TEAM_FLIGHT_STREAM_##name,
enum team_flight_stream { TEAM_FLIGHT_STREAMS(X) TEAM_FLIGHT_STREAM_COUNT };
#undef X
const char *team_flight_stream_text(enum team_flight_stream stream);

struct team_flight_named { /* a collective of the record; bytes 0: they differ between ranks */
	enum team_flight_kind kind;
	enum team_flight_stream stream;
	uint64_t bytes;
	int32_t layer;
};

enum team_flight_of { TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_OF_COPY, TEAM_FLIGHT_OFS };
/* If a host enqueues more than ENTRIES before its GPU comes to them, the kind and size of the GPU's one are
 * not in the record any more. */
enum { TEAM_FLIGHT_ENTRIES = 256, TEAM_FLIGHT_NO_LAYER = -1 };
struct team_flight_entry {
	_Atomic uint64_t number, bytes, asked_ns, begun_ns, ended_ns; /* CLOCK_MONOTONIC; 0: not yet */
	_Atomic uint32_t kind, stream;
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
	_Atomic uint32_t by_device;	      /* the device writes its words; else they stay 0 */
	struct team_flight_words {	      /* low bits of the last numbers */
		_Atomic uint32_t reached, left;
	} words[TEAM_FLIGHT_OFS];
	struct team_flight_count {
		_Atomic uint64_t asked, begun, ended;	   /* numbers of the last ones, from 1 */
		_Atomic uint64_t begun_noted, ended_noted; /* .. whose times the supervisor has noted */
		/* .. and these times: an entry is reused while the device is behind its host by ENTRIES */
		_Atomic uint64_t begun_noted_ns, ended_noted_ns;
		struct team_flight_entry
			entry[TEAM_FLIGHT_ENTRIES]; /* number n is at index n % TEAM_FLIGHT_ENTRIES */
	} of[TEAM_FLIGHT_OFS];
};

/* For the worker: one thread asks, one thread begins and ends. NULL: nothing is recorded. */
/* Returns the collective's number. */
uint64_t team_flight_ask(struct team_board *b, enum team_flight_of of, const struct team_flight_named *c);
void team_flight_begin(struct team_board *b, enum team_flight_of of);
void team_flight_end(struct team_board *b, enum team_flight_of of);
/* The same for all up to the last one that was asked for. */
void team_flight_begin_all(struct team_board *b, enum team_flight_of of);
void team_flight_end_all(struct team_board *b, enum team_flight_of of);
/* The words for the device, [TEAM_FLIGHT_OFS], in memory that the process shares with its supervisor; NULL:
 * no board. by_device says from now on whether the device writes them. */
struct team_flight_words *team_flight_words(struct team_board *b);
void team_flight_by_device(struct team_board *b, bool writes);
/* The device got work; all work of the device so far has ended. On CPUs both are one. */
void team_flight_give(struct team_board *b);
void team_flight_worked(struct team_board *b);

/* For the supervisor, several times a second: notes when the device reached and left its collectives. */
void team_flight_note(struct team_board *b, uint64_t now_ns);
/* The supervisor tells its worker about the GPU. NULL: nobody is told, or nothing is known. */
void team_facts_set(struct team_board *b, const struct team_facts *facts);
struct team_facts team_facts_get(const struct team_board *b);

/* The state of one count of a rank's record. A `named` of kind NONE: the record does not have it any more. */
struct team_flight_state {
	uint64_t asked, begun, ended;
	bool by_device;			   /* the device wrote begun and ended */
	struct team_flight_named last, at; /* the last one asked for, and the last one begun */
	double since_s;			   /* since the last of these three counts changed */
	double given_s, worked_s; /* since the device got work, and since its work ended; -1: never */
};
/* False: there is no record, or it holds impossible values. */
bool team_flight_read(struct team_flight_state *out, const struct team_board *b, enum team_flight_of of,
		      uint64_t now_ns);
/* It has begun its last collective and not ended it. */
bool team_flight_inside(const struct team_flight_state *f);
/* It has ended its last collective, and asked for the next one without beginning it. Either its own work
 * before the next one has not ended, or it compares the next one with the other ranks. */
bool team_flight_before(const struct team_flight_state *f);
/*
 * Names the rank that keeps the others waiting; -1: no rank is behind. The ranks that began the fewest
 * collectives are compared:
 *
 * 1. a rank that has not asked for the next collective
 * 2. a rank that is inside its last collective, if it is the only one
 * 3. a rank that has asked for the next collective and not reached it
 *
 * `state`: by rank. `known`: whether a rank has a state.
 */
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
