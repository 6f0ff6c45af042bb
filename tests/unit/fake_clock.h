/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that the test owns: it moves when somebody sleeps, and by `tick_ns` at each look. */
#ifndef TESTS_FAKE_CLOCK_H
#define TESTS_FAKE_CLOCK_H
#include "core/clock.h"

struct fake_clock {
	struct clock clock;
	uint64_t now_ns, tick_ns;
};

static inline uint64_t fake_clock_now(void *arg)
{
	struct fake_clock *f = arg;

	f->now_ns += f->tick_ns;
	return f->now_ns;
}

static inline void fake_clock_sleep(void *arg, uint64_t ns)
{
	struct fake_clock *f = arg;

	f->now_ns += ns;
}

static inline void fake_clock_init(struct fake_clock *f, uint64_t now_ns)
{
	*f = (struct fake_clock){ .clock = { fake_clock_now, fake_clock_sleep, f }, .now_ns = now_ns };
}
#endif
