/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one sequence in a grammar. */
#include "engine/grammar/compiled.h"

#define TOO_LARGE                                                                                              \
	"the grammar is too ambiguous: its states need more than %zu bytes (limit: cache_bytes) or %zu steps " \
	"(limit: mask_steps)"

struct state state_ended = {.complete = true};

static void mark(struct state *state)
{
	if (state != &state_ended)
		state->marked = true;
}

void grammar_sweep(struct grammar *g)
{
	for (struct grammar_state *s = g->sequences; s; s = s->behind)
		for (size_t i = 0; i <= s->kept; i++)
			mark(s->ring[(s->position - i) % RING]);
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
		grammar_sweep(g);
		start = states_start(&g->states);
	}
	if (start) {
		s->grammar = g;
		s->ring[0] = start;
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

static void advance(struct grammar_state *s, struct state *next)
{
	s->position++;
	s->ring[s->position % RING] = next;
	if (s->kept < GRAMMAR_ROLLBACK_MOST)
		s->kept++;
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

	if (present(s) == &state_ended)
		return GRAMMAR_REFUSED;
	pthread_mutex_lock(&g->lock);
	states_begin(&g->states);
	next = read_bytes(g, present(s), bytes, size);
	if (!next) {
		grammar_sweep(g);
		next = read_bytes(g, present(s), bytes, size);
	}
	if (!next)
		done = GRAMMAR_FAILED;
	else if (next == &state_dead)
		done = GRAMMAR_REFUSED;
	else
		advance(s, next);
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
		if (present(s) == &state_ended || !present(s)->complete)
			return GRAMMAR_REFUSED;
		pthread_mutex_lock(&s->grammar->lock); /* a sweep reads the ring */
		advance(s, &state_ended);
		pthread_mutex_unlock(&s->grammar->lock);
		return GRAMMAR_ENDED;
	}
	at = v->text_at[token];
	if (v->text_at[token + 1] == at)
		return GRAMMAR_REFUSED;
	return grammar_accept_bytes(s, v->text + at, v->text_at[token + 1] - at);
}

enum status grammar_rollback(struct grammar_state *s, size_t n, struct error *err)
{
	if (n > s->kept)
		return error_set(err, STATUS_BAD_INPUT,
				 "cannot take back %zu tokens of a grammar's state: it keeps %zu", n,
				 s->kept);
	pthread_mutex_lock(&s->grammar->lock);
	s->position -= n;
	s->kept -= n;
	pthread_mutex_unlock(&s->grammar->lock);
	return STATUS_OK;
}

enum status grammar_mask(struct grammar_state *s, uint32_t *words, struct error *err)
{
	struct grammar *g = s->grammar;
	struct state *state = present(s);
	bool fine = true;

	if (state == &state_ended) {
		write_mask(g->vocab, state, words);
		return STATUS_OK;
	}
	pthread_mutex_lock(&g->lock);
	states_begin(&g->states);
	if (!find_allowed(g, state)) {
		grammar_sweep(g);
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
	return present(s)->complete;
}

/* The only byte that may follow; -1: there are several or none. */
static int only_byte(struct grammar *g, struct state *at, struct state **next)
{
	int found = -1;

	if (at->complete)
		return -1;
	for (unsigned byte = 0; byte < 256; byte++) {
		struct state *to = state_step(&g->states, at, (uint8_t)byte);

		if (!to || (to != &state_dead && found >= 0))
			return -1;
		if (to != &state_dead) {
			found = (int)byte;
			*next = to;
		}
	}
	return found;
}

void grammar_forced(struct grammar_state *s, size_t most, struct text *out)
{
	struct state *at = present(s), *next = NULL;
	int byte;

	if (at == &state_ended)
		return;
	pthread_mutex_lock(&s->grammar->lock);
	states_begin(&s->grammar->states);
	for (; most && (byte = only_byte(s->grammar, at, &next)) >= 0; most--, at = next)
		text_add_bytes(out, &(const char){(char)byte}, 1);
	pthread_mutex_unlock(&s->grammar->lock);
}
