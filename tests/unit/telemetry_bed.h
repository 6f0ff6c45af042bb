/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of telemetry: a clock that goes on by what a look at it costs, and signals by name. */
#ifndef TESTS_TELEMETRY_BED_H
#define TESTS_TELEMETRY_BED_H
#include <string.h>
#include "core/clock.h"
#include "telemetry/sample.h"

struct fake_clock {
	uint64_t now_ns, step_ns; /* step: what a look at the clock costs */
};

static inline uint64_t fake_now(void *arg)
{
	struct fake_clock *f = arg;

	f->now_ns += f->step_ns;
	return f->now_ns;
}

/* NULL: unknown. */
static inline const struct telemetry_signal *signal_by_name(const char *name)
{
	for (int i = 0; i < TELEMETRY_SIGNAL_COUNT; i++)
		if (!strcmp(telemetry_signal_at((enum telemetry_signal_id)i)->name, name))
			return telemetry_signal_at((enum telemetry_signal_id)i);
	return NULL;
}
#endif
