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

const char *team_flight_stream_text(enum team_flight_stream stream)
{
#define X(name, text) text,
	static const char *const texts[] = {TEAM_FLIGHT_STREAMS(X)};
#undef X

	return texts[stream];
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

uint64_t team_flight_ask(struct team_board *b, enum team_flight_of of, const struct team_flight_named *c)
{
	struct team_flight_count *f = count_of(b, of);
	struct team_flight_entry *e;
	uint64_t number;

	if (!f)
		return 0;
	number = atomic_load_explicit(&f->asked, memory_order_relaxed) + 1;
	e = &f->entry[number % TEAM_FLIGHT_ENTRIES];
	atomic_store_explicit(&e->number, number, memory_order_relaxed);
	atomic_store_explicit(&e->kind, (uint32_t)c->kind, memory_order_relaxed);
	atomic_store_explicit(&e->stream, (uint32_t)c->stream, memory_order_relaxed);
	atomic_store_explicit(&e->bytes, c->bytes, memory_order_relaxed);
	atomic_store_explicit(&e->layer, c->layer, memory_order_relaxed);
	atomic_store_explicit(&e->begun_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&e->ended_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&e->asked_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->asked, number, memory_order_release);
	return number;
}

static void begin(struct team_flight_count *f, uint64_t number)
{
	atomic_store_explicit(&f->entry[number % TEAM_FLIGHT_ENTRIES].begun_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->begun, number, memory_order_release);
}

static void end(struct team_flight_count *f, uint64_t number)
{
	atomic_store_explicit(&f->entry[number % TEAM_FLIGHT_ENTRIES].ended_ns, now(), memory_order_relaxed);
	atomic_store_explicit(&f->ended, number, memory_order_release);
}

void team_flight_begin(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);

	if (f)
		begin(f, atomic_load_explicit(&f->begun, memory_order_relaxed) + 1);
}

void team_flight_end(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);

	if (f)
		end(f, atomic_load_explicit(&f->ended, memory_order_relaxed) + 1);
}

void team_flight_begin_all(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);

	if (f)
		begin(f, atomic_load_explicit(&f->asked, memory_order_relaxed));
}

void team_flight_end_all(struct team_board *b, enum team_flight_of of)
{
	struct team_flight_count *f = count_of(b, of);
	const uint64_t asked = f ? atomic_load_explicit(&f->asked, memory_order_relaxed) : 0;

	if (f && atomic_load_explicit(&f->ended, memory_order_relaxed) < asked)
		end(f, asked);
}

struct team_flight_words *team_flight_words(struct team_board *b)
{
	return b ? flight_of(b)->words : NULL;
}

void team_flight_by_device(struct team_board *b, bool writes)
{
	if (b)
		atomic_store_explicit(&flight_of(b)->by_device, writes, memory_order_release);
}

/* The number that is at most `asked` and has these low bits. */
static uint64_t whole(uint64_t asked, uint32_t low)
{
	return asked - (uint32_t)((uint32_t)asked - low);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The numbers of the last collectives: asked for, and begun and ended on the host or on the device. They are
 * read in the order that keeps ended <= begun <= asked while the worker goes on. */
struct progress {
	uint64_t asked, begun, ended;
};
static struct progress progress_of(const struct team_board *b, enum team_flight_of of)
{
	const struct team_flight_count *f = count_of(b, of);
	const struct team_flight_words *w = &flight_of(b)->words[of];
	const bool by_device = atomic_load(&flight_of(b)->by_device);
	struct progress p = {.ended = atomic_load(&f->ended)};
	const uint32_t left = atomic_load(&w->left);
	uint32_t reached;

	p.begun = atomic_load(&f->begun);
	reached = atomic_load(&w->reached);
	p.asked = atomic_load(&f->asked);
	if (by_device && left)
		p.ended = later(p.ended, whole(p.asked, left));
	if (by_device && reached)
		p.begun = later(p.begun, whole(p.asked, reached));
	return p;
}

static struct team_flight_entry *entry_of(struct team_flight_count *f, uint64_t number)
{
	struct team_flight_entry *e = &f->entry[number % TEAM_FLIGHT_ENTRIES];

	return atomic_load(&e->number) == number ? e : NULL;
}

/* A collective of the host has its own times. */
static void note_time(_Atomic uint64_t *at, uint64_t now_ns)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(at, &none, now_ns);
}

static void note_count(struct team_board *b, enum team_flight_of of, uint64_t now_ns)
{
	struct team_flight_count *f = count_of(b, of);
	const struct progress p = progress_of(b, of);
	uint64_t begun = atomic_load(&f->begun_noted), ended = atomic_load(&f->ended_noted);
	struct team_flight_entry *e;

	if (p.begun > p.asked || p.ended > p.begun) /* not possible, so not believed */
		return;
	if (p.begun > begun + TEAM_FLIGHT_ENTRIES)
		begun = p.begun - TEAM_FLIGHT_ENTRIES;
	if (p.ended > ended + TEAM_FLIGHT_ENTRIES)
		ended = p.ended - TEAM_FLIGHT_ENTRIES;
	if (begun < p.begun)
		atomic_store(&f->begun_noted_ns, now_ns);
	if (ended < p.ended)
		atomic_store(&f->ended_noted_ns, now_ns);
	while (begun < p.begun)
		if ((e = entry_of(f, ++begun)))
			note_time(&e->begun_ns, now_ns);
	while (ended < p.ended)
		if ((e = entry_of(f, ++ended)))
			note_time(&e->ended_ns, now_ns);
	atomic_store(&f->begun_noted, begun);
	atomic_store(&f->ended_noted, ended);
}

void team_flight_note(struct team_board *b, uint64_t now_ns)
{
	if (!b || !atomic_load(&flight_of(b)->by_device))
		return;
	for (int of = 0; of < TEAM_FLIGHT_OFS; of++)
		note_count(b, (enum team_flight_of)of, now_ns);
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

/* kind NONE: the record has another collective in its place. False: an impossible value. */
static bool name(struct team_flight_named *out, const struct team_flight_count *f, uint64_t number)
{
	const struct team_flight_entry *e = &f->entry[number % TEAM_FLIGHT_ENTRIES];
	const uint32_t kind = atomic_load(&e->kind), stream = atomic_load(&e->stream);
	const int32_t layer = atomic_load(&e->layer);

	*out = (struct team_flight_named){0};
	if (!number || atomic_load(&e->number) != number)
		return true;
	if (kind >= TEAM_FLIGHT_COUNT || stream >= TEAM_FLIGHT_STREAM_COUNT || layer < TEAM_FLIGHT_NO_LAYER)
		return false;
	*out = (struct team_flight_named){(enum team_flight_kind)kind, (enum team_flight_stream)stream,
					  atomic_load(&e->bytes), layer};
	return true;
}

/* The last change of a count. */
static uint64_t changed_ns(struct team_flight_count *f, const struct progress *p)
{
	const struct team_flight_entry *asked = entry_of(f, p->asked), *begun = entry_of(f, p->begun),
				       *ended = entry_of(f, p->ended);
	const uint64_t begun_ns = atomic_load(begun ? &begun->begun_ns : &f->begun_noted_ns),
		       ended_ns = atomic_load(ended ? &ended->ended_ns : &f->ended_noted_ns);

	return later(asked ? atomic_load(&asked->asked_ns) : 0, later(begun_ns, ended_ns));
}

bool team_flight_read(struct team_flight_state *out, const struct team_board *b, enum team_flight_of of,
		      uint64_t now_ns)
{
	struct team_flight_count *f = count_of(b, of);
	struct progress p;
	uint64_t last;

	*out = (struct team_flight_state){0};
	if (!f)
		return false;
	p = progress_of(b, of);
	out->asked = p.asked;
	out->begun = p.begun;
	out->ended = p.ended;
	out->by_device = atomic_load(&flight_of(b)->by_device);
	out->given_s = since(now_ns, atomic_load(&flight_of(b)->given_ns));
	out->worked_s = since(now_ns, atomic_load(&flight_of(b)->worked_ns));
	if (!p.asked)
		return p.begun == 0 && p.ended == 0;
	if (p.begun > p.asked || p.ended > p.begun || !name(&out->last, f, p.asked) ||
	    !name(&out->at, f, p.begun) || out->last.kind == TEAM_FLIGHT_NONE)
		return false;
	last = changed_ns(f, &p);
	out->since_s = now_ns > last ? (double)(now_ns - last) * 1e-9 : 0;
	return true;
}

bool team_flight_inside(const struct team_flight_state *f)
{
	return f->ended < f->begun;
}

bool team_flight_before(const struct team_flight_state *f)
{
	return f->ended == f->begun && f->asked > f->begun;
}

/* The order of ranks that began equally many collectives: 0 has not asked for the next one, 1 is inside the
 * last one, 2 has asked for the next one. */
static unsigned stage_of(const struct team_flight_state *f)
{
	return team_flight_inside(f) ? 1 : f->asked > f->begun ? 2 : 0;
}

static bool is_further(const struct team_flight_state *a, const struct team_flight_state *b)
{
	return a->begun != b->begun ? a->begun > b->begun : stage_of(a) > stage_of(b);
}

int team_flight_behind(const struct team_flight_state *state, const bool *known, unsigned ranks)
{
	const struct team_flight_state *last = NULL;
	unsigned alike = 0;
	bool further = false;

	for (unsigned r = 0; r < ranks; r++)
		if (known[r] && (!last || is_further(last, &state[r])))
			last = &state[r];
	for (unsigned r = 0; r < ranks; r++) {
		const bool beyond = known[r] && is_further(&state[r], last);

		further |= beyond;
		alike += known[r] && !beyond;
	}
	/* Several that are inside of one collective wait for each other. */
	return !further || (team_flight_inside(last) && alike > 1) ? -1 : (int)(last - state);
}

/* The rank that is behind among those of the copy that begins with rank `first`. */
static int behind_in_copy(const struct team_flight_state *copy, const bool *known, unsigned first,
			  unsigned tensor)
{
	const int behind = team_flight_behind(copy + first, known + first, tensor);

	return behind < 0 ? -1 : behind + (int)first;
}

/* Ranks of the copy that begins with rank `first` that are as far as rank `behind`. A host that is ahead of
 * its device says nothing about the device. */
static unsigned as_far(const struct team_flight_state *all, const bool *known, unsigned first,
		       unsigned tensor, unsigned behind)
{
	unsigned count = 0;

	for (unsigned r = first; r < first + tensor; r++)
		count += known[r] && all[r].begun == all[behind].begun &&
			 (all[r].by_device || !is_further(&all[r], &all[behind]));
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
	count = as_far(all, known, first, tensor, (unsigned)out.rank);
	if (count > 1)
		within = behind_in_copy(copy, known, first, tensor);
	out.within = within >= 0 && all[within].begun == all[out.rank].begun;
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
			    (state[*a].last.kind != state[*b].last.kind ||
			     state[*a].last.bytes != state[*b].last.bytes))
				return true;
	return false;
}
