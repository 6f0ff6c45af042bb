/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that a state allows. If the state accepts many plain characters in any order, a slice of the
 * vocabulary is allowed as a whole, and the walk skips it. */
#include "engine/grammar/compiled.h"

/* The largest slice whose tokens are all allowed; -1: none. */
static int allowed_slice(const struct grammar_vocab *v, uint32_t plain)
{
	int slice = -1;

	for (int k = 0; k < VOCAB_SLICES; k++)
		if (plain >= vocab_slice_chars[k] || plain >= v->longest)
			slice = k;
	return plain ? slice : -1;
}

/* Sets the bits of all tokens outside the slice that the state accepts. */
static bool walk(struct grammar *g, struct state *from, int slice, uint32_t *row, uint32_t *count)
{
	const struct grammar_vocab *v = g->vocab;
	const uint8_t skip = slice < 0 ? 0 : (uint8_t)(1u << slice), *class_of = g->automaton.class_of;
	struct state *reached[GRAMMAR_TOKEN_BYTES_MOST + 1] = {from};

	for (uint32_t i = 0; i < v->node_count;) {
		const struct vocab_node *node = &v->nodes[i];
		struct state *at, *next;

		if (node->inside & skip) {
			i = node->next;
			continue;
		}
		at = reached[node->depth - 1];
		next = at->next[class_of[node->byte]];
		if (!next && !(next = state_step(&g->states, at, node->byte)))
			return false;
		if (next == &state_dead) {
			i = node->next;
			continue;
		}
		reached[node->depth] = next;
		for (int32_t id = node->token; id >= 0; id = v->same[id], ++*count)
			row[id / 32] |= 1u << id % 32;
		i++;
	}
	return true;
}

/* A copy of the row, or the list of its ids if that is smaller. */
static struct token_set *pack(const uint32_t *row, size_t words, uint32_t count)
{
	bool whole = count > words;
	struct token_set *set = malloc(sizeof(*set) + (whole ? words : count) * sizeof(uint32_t));
	uint32_t used = 0;

	if (!set)
		return NULL;
	*set = (struct token_set){.row = whole, .count = whole ? (uint32_t)words : count};
	if (whole) {
		memcpy(set->data, row, words * sizeof(*row));
		return set;
	}
	for (size_t i = 0; i < words; i++)
		for (uint32_t bits = row[i]; bits; bits &= bits - 1)
			set->data[used++] = (uint32_t)(i * 32 + (size_t)__builtin_ctz(bits));
	return set;
}

bool find_allowed(struct grammar *g, struct state *state)
{
	uint32_t count = 0, *row;
	struct token_set *set = NULL;
	int slice;
	size_t bytes;

	if (state->allowed)
		return true;
	slice = allowed_slice(g->vocab, state_plain(&g->states, state));
	row = calloc(g->vocab->words, sizeof(*row));
	if (row && walk(g, state, slice, row, &count))
		set = pack(row, g->vocab->words, count);
	free(row);
	if (!set)
		return false;
	set->slice = slice;
	bytes = sizeof(*set) + set->count * sizeof(uint32_t);
	if (g->states.bytes + bytes > g->states.budget) {
		free(set);
		return false;
	}
	g->states.bytes += bytes;
	state->allowed = set;
	return true;
}

void write_mask(const struct grammar_vocab *v, const struct state *state, uint32_t *words)
{
	const struct token_set *set = state->allowed;

	if (set && set->slice >= 0)
		memcpy(words, v->slices + (size_t)set->slice * v->words, v->words * sizeof(*words));
	else
		memset(words, 0, v->words * sizeof(*words));
	for (uint32_t i = 0; set && i < set->count; i++) {
		if (set->row)
			words[i] |= set->data[i];
		else
			words[set->data[i] / 32] |= 1u << set->data[i] % 32;
	}
	for (size_t i = 0; state->complete && i < v->words; i++)
		words[i] |= v->end[i];
}
