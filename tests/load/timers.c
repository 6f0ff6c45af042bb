/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "load/buf.h"
#include "load/timers.h"

static void put(struct timers *t, size_t place, struct timer *timer)
{
	t->heap[place] = timer;
	timer->place = place;
}

static void rise(struct timers *t, size_t place, struct timer *timer)
{
	for (; place > 1 && t->heap[place / 2]->due_ns > timer->due_ns; place /= 2)
		put(t, place, t->heap[place / 2]);
	put(t, place, timer);
}

static void sink(struct timers *t, size_t place, struct timer *timer)
{
	size_t child;

	for (; (child = 2 * place) <= t->count; place = child) {
		if (child < t->count && t->heap[child + 1]->due_ns < t->heap[child]->due_ns)
			child++;
		if (t->heap[child]->due_ns >= timer->due_ns)
			break;
		put(t, place, t->heap[child]);
	}
	put(t, place, timer);
}

struct timer *timers_first(const struct timers *t)
{
	return t->count ? t->heap[1] : NULL;
}

void timers_set(struct timers *t, struct timer *timer, uint64_t due_ns)
{
	uint64_t before = timer->due_ns;

	timer->due_ns = due_ns;
	if (timer->place) {
		if (due_ns < before)
			rise(t, timer->place, timer);
		else
			sink(t, timer->place, timer);
		return;
	}
	if (t->count + 1 >= t->room) {
		size_t room = t->room ? 2 * t->room : 1024;
		struct timer **heap = must_alloc(room * sizeof(struct timer *));

		if (t->count)
			memcpy(heap, t->heap, (t->count + 1) * sizeof(struct timer *));
		free(t->heap);
		t->heap = heap;
		t->room = room;
	}
	rise(t, ++t->count, timer);
}

void timers_clear(struct timers *t, struct timer *timer)
{
	struct timer *last;
	size_t place = timer->place;

	if (!place)
		return;
	timer->place = 0;
	last = t->heap[t->count--];
	if (last == timer)
		return;
	if (place > 1 && t->heap[place / 2]->due_ns > last->due_ns)
		rise(t, place, last);
	else
		sink(t, place, last);
}

void timers_release(struct timers *t)
{
	free(t->heap);
	*t = (struct timers){0};
}
