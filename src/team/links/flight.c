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

static uint64_t now(void)
{
	return clock_now_ns(clock_monotonic());
}

void team_flight_ask(struct team_board *b, enum team_flight_kind kind, uint64_t bytes, int32_t layer)
{
	struct team_flight *f = b ? flight_of(b) : NULL;
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

void team_flight_begin(struct team_board *b)
{
	struct team_flight *f = b ? flight_of(b) : NULL;
	uint64_t number;

	if (!f)
		return;
	number = atomic_load_explicit(&f->begun, memory_order_relaxed) + 1;
	atomic_store_explicit(&f->entry[number % TEAM_FLIGHT_ENTRIES].begun_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->begun, number, memory_order_release);
}

void team_flight_end(struct team_board *b)
{
	struct team_flight *f = b ? flight_of(b) : NULL;
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

bool team_flight_read(struct team_flight_state *out, const struct team_board *b, uint64_t now_ns)
{
	const struct team_flight *f = b ? flight_of(b) : NULL;
	const struct team_flight_entry *e;
	uint64_t last;
	uint32_t kind;

	*out = (struct team_flight_state){0};
	if (!f)
		return false;
	out->asked = atomic_load(&f->asked);
	out->begun = atomic_load(&f->begun);
	out->ended = atomic_load(&f->ended);
	out->given_s = since(now_ns, atomic_load(&f->given_ns));
	out->worked_s = since(now_ns, atomic_load(&f->worked_ns));
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
