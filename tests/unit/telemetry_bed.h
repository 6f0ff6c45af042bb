/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that goes on by what a look at it costs, for tests of the sampler. */
#ifndef TESTS_TELEMETRY_BED_H
#define TESTS_TELEMETRY_BED_H
#include "core/clock.h"

struct fake_clock {
	uint64_t now_ns, step_ns; /* step: what a look at the clock costs */
};

static inline uint64_t fake_now(void *arg)
{
	struct fake_clock *f = arg;

	f->now_ns += f->step_ns;
	return f->now_ns;
}
#endif
