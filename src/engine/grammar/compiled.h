/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled grammar and the states of sequences in it, as the files of this folder see them. */
#ifndef ENGINE_GRAMMAR_COMPILED_H
#define ENGINE_GRAMMAR_COMPILED_H
#include <pthread.h>
#include "engine/grammar/states.h"
#include "engine/grammar/vocab.h"

struct grammar {
	pthread_mutex_t lock; /* protects references, sequences and states */
	size_t references;
	const struct grammar_vocab *vocab;
	struct automaton automaton;
	struct states states;
	struct grammar_state *sequences; /* all that exist, so that their states survive a sweep */
	char *warnings[GRAMMAR_WARNINGS_MOST];
	size_t warning_count;
};

struct grammar_state {
	struct grammar *grammar;
	struct grammar_state *before, *behind;
	struct state *at; /* after the last token */
};
/* Computes the set of tokens that may follow, if it is not known. False: memory or the budget is exceeded.
 * The caller holds the lock. */
bool find_allowed(struct grammar *g, struct state *state);
/* Writes one bit per token. */
void write_mask(const struct grammar_vocab *v, const struct state *state, uint32_t *words);
#endif
