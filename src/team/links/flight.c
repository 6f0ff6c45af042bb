/* SPDX-License-Identifier: Apache-2.0 */
#include "team/links/flight.h"
#include <string.h>
#include "core/clock.h"
#include "team/links/wait_board.h"

const char *team_flight_text(enum team_flight_kind kind)
{
#define X(name, text) text,
	static const char *const texts[] = {TEAM_FLIGHTS(X)};
#undef X

	return texts[kind];
}

static struct team_flight *flight_of(const struct team_board *b)
{
	return (struct team_flight *)(uintptr_t)(b + TEAM_BOARD_RANKS);
}

static struct team_flight_count *count_of(const struct team_board *b, enum team_flight_of of)
{
	return b ? &flight_of(b)->of[of] : NULL;
}

static uint64_t now(void)
{
	return clock_now_ns(clock_monotonic());
}

void team_flight_ask(struct team_board *b, enum team_flight_of of, enum team_flight_kind kind, uint64_t bytes,
		     int32_t layer)
{
	struct team_flight_count *f = count_of(b, of);
	struct team_flight_entry *e;
	uint64_t number;

	if (!f)
		return;
	number = atomic_load_explicit(&f->asked, memory_order_relaxed) + 1;
	e = &f->entry[number % TEAM_FLIGHT_ENTRIES];
	atomic_store_explicit(&e->number, number, memory_order_relaxed);
	atomic_store_explicit(&e->kind, (uint32_t)kind, memory_order_relaxed);
	atomic_store_explicit(&e->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&e->layer, layer, memory_order_relaxed);
	atomic_store_explicit(&e->begun_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&e->ended_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&e->asked_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->asked, number, memory_order_release);
}

void team_flight_begin(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);
	uint64_t number;

	if (!f)
		return;
	number = atomic_load_explicit(&f->begun, memory_order_relaxed) + 1;
	atomic_store_explicit(&f->entry[number % TEAM_FLIGHT_ENTRIES].begun_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->begun, number, memory_order_release);
}

void team_flight_end(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);
	uint64_t number;

	if (!f)
		return;
	number = atomic_load_explicit(&f->ended, memory_order_relaxed) + 1;
	atomic_store_explicit(&f->entry[number % TEAM_FLIGHT_ENTRIES].ended_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->ended, number, memory_order_release);
}

void team_flight_give(struct team_board *b)
{
	if (b)
		atomic_store_explicit(&flight_of(b)->given_ns, now(), memory_order_relaxed);
}

void team_flight_worked(struct team_board *b)
{
	if (b)
		atomic_store_explicit(&flight_of(b)->worked_ns, now(), memory_order_relaxed);
}

void team_facts_set(struct team_board *b, const struct team_facts *facts)
{
	if (!b)
		return;
#define X(name)                                                                                              \
	{                                                                                                    \
		uint64_t bits;                                                                               \
                                                                                                             \
		memcpy(&bits, &facts->name, sizeof(bits));                                                   \
		atomic_store_explicit(&flight_of(b)->name, bits, memory_order_relaxed);                      \
	}
	TEAM_FACTS(X)
#undef X
}

struct team_facts team_facts_get(const struct team_board *b)
{
	struct team_facts facts = {0};

	if (!b)
		return facts;
#define X(name)                                                                                              \
	{                                                                                                    \
		const uint64_t bits = atomic_load_explicit(&flight_of(b)->name, memory_order_relaxed);       \
                                                                                                             \
		memcpy(&facts.name, &bits, sizeof(bits));                                                    \
	}
	TEAM_FACTS(X)
#undef X
	return facts;
}

static double since(uint64_t now_ns, uint64_t then_ns)
{
	return !then_ns ? -1 : now_ns > then_ns ? (double)(now_ns - then_ns) * 1e-9 : 0;
}

bool team_flight_read(struct team_flight_state *out, const struct team_board *b, enum team_flight_of of,
		      uint64_t now_ns)
{
	const struct team_flight_count *f = count_of(b, of);
	const struct team_flight_entry *e;
	uint64_t last;
	uint32_t kind;

	*out = (struct team_flight_state){0};
	if (!f)
		return false;
	out->asked = atomic_load(&f->asked);
	out->begun = atomic_load(&f->begun);
	out->ended = atomic_load(&f->ended);
	out->given_s = since(now_ns, atomic_load(&flight_of(b)->given_ns));
	out->worked_s = since(now_ns, atomic_load(&flight_of(b)->worked_ns));
	if (!out->asked)
		return out->begun == 0 && out->ended == 0;
	e = &f->entry[out->asked % TEAM_FLIGHT_ENTRIES];
	kind = atomic_load(&e->kind);
	out->bytes = atomic_load(&e->bytes);
	out->layer = atomic_load(&e->layer);
	if (out->begun > out->asked || out->ended > out->begun || kind >= TEAM_FLIGHT_COUNT ||
	    out->layer < TEAM_FLIGHT_NO_LAYER || atomic_load(&e->number) != out->asked)
		return false;
	out->kind = (enum team_flight_kind)kind;
	last = atomic_load(&e->asked_ns);
	if (atomic_load(&e->begun_ns) > last)
		last = atomic_load(&e->begun_ns);
	if (atomic_load(&e->ended_ns) > last)
		last = atomic_load(&e->ended_ns);
	out->since_s = now_ns > last ? (double)(now_ns - last) * 1e-9 : 0;
	return true;
}

/* The rank with the smallest count, if not all have the same; -1. */
static int smallest(const uint64_t *count, const bool *known, unsigned ranks, size_t stride)
{
	uint64_t least = UINT64_MAX, most = 0;
	int behind = -1;

	for (unsigned r = 0; r < ranks; r++) {
		const uint64_t n =
			*(const uint64_t *)(const void *)((const unsigned char *)count + r * stride);

		if (known[r] && n < least) {
			least = n;
			behind = (int)r;
		}
		if (known[r] && n > most)
			most = n;
	}
	return least < most ? behind : -1;
}

int team_flight_behind(const struct team_flight_state *state, const bool *known, unsigned ranks)
{
	const int behind = smallest(&state->asked, known, ranks, sizeof(*state));

	if (behind < 0)
		return smallest(&state->begun, known, ranks, sizeof(*state));
	/* A rank inside of its last collective waits for one that has left it, or is as far. */
	for (unsigned r = 0; r < ranks; r++)
		if (known[r] && state[r].asked == state[behind].asked && state[r].ended == state[r].asked)
			return (int)r;
	return behind;
}

/* The rank that is behind among those of the copy that begins with rank `first`. */
static int behind_in_copy(const struct team_flight_state *copy, const bool *known, unsigned first,
			  unsigned tensor)
{
	const int behind = team_flight_behind(copy + first, known + first, tensor);

	return behind < 0 ? -1 : behind + (int)first;
}

/* Ranks of the copy that begins with rank `first` that have asked for as many collectives. */
static unsigned as_far(const struct team_flight_state *all, const bool *known, unsigned first,
		       unsigned tensor, uint64_t asked)
{
	unsigned count = 0;

	for (unsigned r = first; r < first + tensor; r++)
		count += known[r] && all[r].asked == asked;
	return count;
}

struct team_flight_found team_flight_behind_copies(const struct team_flight_state *all,
						   const struct team_flight_state *copy, const bool *known,
						   unsigned ranks, unsigned tensor)
{
	struct team_flight_found out = {.rank = team_flight_behind(all, known, ranks)};
	unsigned first = 0, count;
	int within = -1;

	if (tensor < 2 || ranks % tensor)
		return out;
	if (out.rank < 0) {
		for (; within < 0 && first < ranks; first += tensor)
			within = behind_in_copy(copy, known, first, tensor);
		return (struct team_flight_found){.rank = within, .within = within >= 0};
	}
	first = (unsigned)out.rank / tensor * tensor;
	count = as_far(all, known, first, tensor, all[out.rank].asked);
	if (count > 1)
		within = behind_in_copy(copy, known, first, tensor);
	out.within = within >= 0 && all[within].asked == all[out.rank].asked;
	out.shared = !out.within && count == tensor;
	if (out.within)
		out.rank = within;
	return out;
}

bool team_flight_differs(const struct team_flight_state *state, const bool *known, unsigned ranks,
			 unsigned *a, unsigned *b)
{
	for (*a = 0; *a < ranks; ++*a)
		for (*b = *a + 1; *b < ranks; ++*b)
			if (known[*a] && known[*b] && state[*a].asked == state[*b].asked && state[*a].asked &&
			    (state[*a].kind != state[*b].kind || state[*a].bytes != state[*b].bytes))
				return true;
	return false;
}
