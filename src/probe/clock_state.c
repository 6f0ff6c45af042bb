/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: clocks, power limits and temperatures before any work, and the reasons that limit the
 * clock. */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(clock_reasons, "", BITS, 0, "clock event reasons now, bits")                                       \
	X(sm_clock_mhz, "MHz", F64, 0, "SM clock now")                                                       \
	X(sm_clock_max_mhz, "MHz", F64, 0, "SM clock, maximum")                                              \
	X(memory_clock_mhz, "MHz", F64, 0, "memory clock now")                                               \
	X(memory_clock_max_mhz, "MHz", F64, 0, "memory clock, maximum")                                      \
	X(power_limit_w, "W", F64, 1, "power limit, enforced")                                               \
	X(power_limit_default_w, "W", F64, 0, "power limit, default")                                        \
	X(power_limit_max_w, "W", F64, 0, "power limit, highest allowed")                                    \
	X(temperature_c, "C", F64, -1, "GPU temperature now")                                                \
	X(temperature_slowdown_c, "C", F64, 0, "temperature at which the hardware slows down")               \
	X(temperature_memory_c, "C", F64, -1, "memory temperature now")

static const struct field fields[] = {FACTS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { COUNT = sizeof(facts) / sizeof(facts[0]) };

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	(void)opts;
	return reading_observe_facts(m, t, "clocks and limits", fields, facts, COUNT, out, err);
}

const struct probe probe_clock_state = {
	.name = "clock_state",
	.summary = "clock event reasons, power limit and temperature at rest",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
