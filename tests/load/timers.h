/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of timers; the earliest is on top. A timer lies within the struct that it wakes. */
#ifndef TESTS_LOAD_TIMERS_H
#define TESTS_LOAD_TIMERS_H
#include <stddef.h>
#include <stdint.h>

struct timer {
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	size_t place;	 /* in the heap, from 1; 0: not set */
};
struct timers {
	struct timer **heap; /* [1 .. count] */
	size_t count, room;
};

struct timer *timers_first(const struct timers *t); /* NULL: none is set */
void timers_set(struct timers *t, struct timer *timer, uint64_t due_ns);
void timers_clear(struct timers *t, struct timer *timer);
void timers_release(struct timers *t);
#endif
