/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: the modes that an administrator set, and the recovery action that the driver requests. */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(recovery_action, "", U64, -1, "0 none, 1 reset, 2 reboot, 3 drain p2p, 4 drain and reset")         \
	X(mig_mode, "", U64, 0, "MIG on (1)")                                                                \
	X(persistence, "", U64, 1, "persistence mode on (1)")                                                \
	X(compute_mode, "", U64, 0, "0 default, 2 prohibited, 3 exclusive process")                          \
	X(virtualization, "", U64, 0, "0 none, 1 pass-through, 2 vGPU, 3 host vGPU, 4 host vSGA")            \
	X(cuda_profiling_restricted, "", U64, -1, "counters need administrator rights (1)")

static const struct field fields[] = {FACTS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { COUNT = sizeof(facts) / sizeof(facts[0]) };

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	(void)opts;
	return reading_observe_facts(m, t, "modes", fields, facts, COUNT, out, err);
}

const struct probe probe_gpu_mode = {
	.name = "gpu_mode",
	.summary = "recovery action, MIG, persistence, compute mode, counter permission",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
