/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one sequence in a grammar. */
#include "engine/grammar/compiled.h"

#define TOO_LARGE                                                                                              \
	"the grammar is too ambiguous: its states need more than %zu bytes (limit: cache_bytes) or %zu steps " \
	"(limit: mask_steps)"

/* The state behind an END token. */
static struct state state_ended = {.complete = true};

static void mark(struct state *state)
{
	if (state != &state_ended)
		state->marked = true;
}

/* Frees the states that no sequence uses. The caller holds the lock. */
static void sweep(struct grammar *g)
{
	for (struct grammar_state *s = g->sequences; s; s = s->behind)
		mark(s->at);
	states_sweep(&g->states);
}

static void link_sequence(struct grammar_state *s)
{
	struct grammar *g = s->grammar;

	s->before = NULL;
	s->behind = g->sequences;
	if (g->sequences)
		g->sequences->before = s;
	g->sequences = s;
	g->references++;
}

enum status grammar_state_create(struct grammar_state **out, struct grammar *g, struct error *err)
{
	struct grammar_state *s = calloc(1, sizeof(*s));
	struct state *start = NULL;

	*out = NULL;
	pthread_mutex_lock(&g->lock);
	states_begin(&g->states);
	if (s && !(start = states_start(&g->states))) {
		sweep(g);
		start = states_start(&g->states);
	}
	if (start) {
		s->grammar = g;
		s->at = start;
		link_sequence(s);
	}
	pthread_mutex_unlock(&g->lock);
	if (!start) {
		free(s);
		return error_set(err, STATUS_NO_RESOURCE, TOO_LARGE, g->states.budget, g->states.steps);
	}
	*out = s;
	return STATUS_OK;
}

enum status grammar_state_copy(struct grammar_state **out, const struct grammar_state *from,
			       struct error *err)
{
	struct grammar_state *s = malloc(sizeof(*s));

	*out = s;
	if (!s)
		return error_set(err, STATUS_NO_RESOURCE, "out of memory for a grammar's state");
	*s = *from;
	pthread_mutex_lock(&s->grammar->lock);
	link_sequence(s);
	pthread_mutex_unlock(&s->grammar->lock);
	return STATUS_OK;
}

void grammar_state_destroy(struct grammar_state **s)
{
	struct grammar_state *gone = *s;
	struct grammar *g;

	if (!gone)
		return;
	g = gone->grammar;
	pthread_mutex_lock(&g->lock);
	if (gone->before)
		gone->before->behind = gone->behind;
	else
		g->sequences = gone->behind;
	if (gone->behind)
		gone->behind->before = gone->before;
	pthread_mutex_unlock(&g->lock);
	free(gone);
	grammar_release(&g);
	*s = NULL;
}

/* The state after some bytes; &state_dead: refused; NULL: the limit or memory is exceeded. */
static struct state *read_bytes(struct grammar *g, struct state *at, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size && at && at != &state_dead; i++)
		at = state_step(&g->states, at, (uint8_t)bytes[i]);
	return at;
}

enum grammar_accepted grammar_accept_bytes(struct grammar_state *s, const char *bytes, size_t size)
{
	struct grammar *g = s->grammar;
	enum grammar_accepted done = GRAMMAR_ACCEPTED;
	struct state *next;

	if (s->at == &state_ended)
		return GRAMMAR_REFUSED;
	pthread_mutex_lock(&g->lock);
	states_begin(&g->states);
	next = read_bytes(g, s->at, bytes, size);
	if (!next) {
		sweep(g);
		next = read_bytes(g, s->at, bytes, size);
	}
	if (!next)
		done = GRAMMAR_FAILED;
	else if (next == &state_dead)
		done = GRAMMAR_REFUSED;
	else
		s->at = next;
	pthread_mutex_unlock(&g->lock);
	return done;
}

enum grammar_accepted grammar_accept(struct grammar_state *s, int32_t token)
{
	const struct grammar_vocab *v = s->grammar->vocab;
	uint32_t at;

	if (token < 0 || (size_t)token >= v->count)
		return GRAMMAR_REFUSED;
	if (vocab_is_end(v, token)) {
		if (s->at == &state_ended || !s->at->complete)
			return GRAMMAR_REFUSED;
		pthread_mutex_lock(&s->grammar->lock); /* a sweep reads it */
		s->at = &state_ended;
		pthread_mutex_unlock(&s->grammar->lock);
		return GRAMMAR_ENDED;
	}
	at = v->text_at[token];
	if (v->text_at[token + 1] == at)
		return GRAMMAR_REFUSED;
	return grammar_accept_bytes(s, v->text + at, v->text_at[token + 1] - at);
}

enum status grammar_mask(struct grammar_state *s, uint32_t *words, struct error *err)
{
	struct grammar *g = s->grammar;
	struct state *state = s->at;
	bool fine = true;

	if (state == &state_ended) {
		write_mask(g->vocab, state, words);
		return STATUS_OK;
	}
	pthread_mutex_lock(&g->lock);
	states_begin(&g->states);
	if (!find_allowed(g, state)) {
		sweep(g);
		fine = find_allowed(g, state);
	}
	if (fine)
		write_mask(g->vocab, state, words);
	pthread_mutex_unlock(&g->lock);
	if (!fine)
		return error_set(err, STATUS_NO_RESOURCE, TOO_LARGE, g->states.budget, g->states.steps);
	return STATUS_OK;
}

bool grammar_is_complete(const struct grammar_state *s)
{
	return s->at->complete;
}
