/* SPDX-License-Identifier: Apache-2.0 */
/* The timers of the stub server against a search through all of them, with random settings. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include "load/timers.h"

enum { TIMERS = 3000, STEPS = 60000 }; /* more than the heap's first room */

static uint64_t earliest(const struct timer *all)
{
	uint64_t first = UINT64_MAX;

	for (int i = 0; i < TIMERS; i++)
		if (all[i].place && all[i].due_ns < first)
			first = all[i].due_ns;
	return first;
}

static int agrees(const struct timers *t, const struct timer *all)
{
	const struct timer *first = timers_first(t);

	return (first ? first->due_ns : UINT64_MAX) == earliest(all);
}

/* Few different times, so that equal ones occur. */
static int random_settings(struct timers *t, struct timer *all)
{
	for (int i = 0; i < STEPS; i++) {
		struct timer *one = &all[random() % TIMERS];

		if (random() % 3)
			timers_set(t, one, (uint64_t)random() % 500);
		else
			timers_clear(t, one);
		if (i % 16 == 0 && !agrees(t, all))
			return 0;
	}
	return 1;
}

static int in_order(struct timers *t)
{
	uint64_t before = 0;

	while (t->count) {
		struct timer *first = timers_first(t);

		if (first->due_ns < before)
			return 0;
		before = first->due_ns;
		timers_clear(t, first);
		if (first->place)
			return 0;
	}
	return !timers_first(t);
}

int main(void)
{
	static struct timer all[TIMERS];
	struct timers t = {0};
	int settings, order;

	srandom(1);
	settings = random_settings(&t, all);
	for (int i = 0; i < TIMERS; i++)
		timers_set(&t, &all[i], (uint64_t)random());
	order = in_order(&t);
	timers_release(&t);
	printf("1..2\n%sok 1 - the first timer is the earliest\n%sok 2 - timers come in order\n",
	       settings ? "" : "not ", order ? "" : "not ");
	return !(settings && order);
}
