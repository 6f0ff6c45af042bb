/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states that texts of one grammar reach, made when they are first reached. A state is the set of all
 * pairs of node and frame that the text may have reached. A frame is a linked stack of open calls. Equal
 * states are one object, so their transitions and masks are computed once for all sequences.
 *
 * The owner's lock protects all functions. Memory is bounded: the owner marks the states in use and sweeps
 * the rest when `bytes` exceeds its budget.
 */
#ifndef ENGINE_GRAMMAR_STATES_H
#define ENGINE_GRAMMAR_STATES_H
#include "engine/grammar/automaton/automaton.h"

struct config {
	uint32_t node, frame;
};

/* The tokens that a state allows: a whole slice of the vocabulary and single ids or a whole row. */
struct token_set {
	int slice; /* -1: none */
	bool row;
	uint32_t count; /* ids, or words of the row */
	uint32_t data[];
};

struct state {
	struct state *chain;	   /* next of the same hash bucket */
	struct token_set *allowed; /* NULL: not computed yet */
	int32_t plain; /* plain characters that may always follow, see state_plain; -1: not computed yet */
	struct state *far; /* the one state after far_chars plain characters in any order; NULL: not known */
	uint32_t far_chars;
	uint32_t hash, count;
	bool complete; /* the text may end here */
	bool marked;
	struct config *configs; /* sorted; behind `next` in the same block */
	struct state *next[];	/* per byte class; NULL: not computed yet; &state_dead: refused */
};
extern struct state state_dead;

struct frame {
	uint32_t edge, count, parent, chain;
	uint16_t depth;
	bool marked, used;
};

struct config_list {
	struct config *items;
	size_t count, room;
};

struct states {
	const struct automaton *a;
	size_t bytes, budget;
	size_t steps, steps_left; /* work that one call of the owner may do, and what is left of it */
	struct state **buckets;
	size_t bucket_count, state_count;
	struct frame *frames; /* frame 0: no open call */
	uint32_t *frame_buckets;
	size_t frame_count, frame_room, frame_bucket_count;
	uint32_t free_frame; /* chain of unused frames; 0: none */
	/* workspace of one transition */
	struct config_list work, found;
	uint32_t *seen; /* hash table of indices into work, plus 1 */
	size_t seen_room;
	bool complete, failed;
	/* per plain ASCII character's class; each once */
	uint8_t plain_class[256];
	unsigned plain_classes;
	struct state *start;
};

enum status states_init(struct states *s, const struct automaton *a, size_t budget, size_t steps,
			struct error *err);
void states_release(struct states *s);
/* Begins a call of the owner: all steps are allowed again. */
static inline void states_begin(struct states *s)
{
	s->steps_left = s->steps;
}
/* The state before the first byte; NULL: the limit or memory is exceeded. */
struct state *states_start(struct states *s);
/* The state after one more byte; &state_dead: refused; NULL: the limit or memory is exceeded. */
struct state *state_step(struct states *s, struct state *from, uint8_t byte);
/* At least so many plain characters (vocab.h) may follow in every order: 0 to PLAIN_CHARS, or PLAIN_FOREVER.
 * If a limit or memory is exceeded, the answer is smaller, which is always right. */
enum { PLAIN_CHARS = 32, PLAIN_FOREVER = 1 << 20 };
uint32_t state_plain(struct states *s, struct state *from);
/* Frees all states that are not marked, and the masks of those that are. Marks are cleared. */
void states_sweep(struct states *s);
#endif
