/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: whether ECC is on, and its counts of corrected and uncorrected errors. */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(ecc_enabled, "", U64, 1, "ECC on (1) or off (0)")                                                  \
	X(ecc_volatile_uncorrected, "", U64, -1, "uncorrected errors since the driver loaded")               \
	X(ecc_aggregate_uncorrected, "", U64, -1, "uncorrected errors, lifetime")                            \
	X(ecc_volatile_corrected, "", U64, -1, "corrected errors since the driver loaded")                   \
	X(ecc_aggregate_corrected, "", U64, -1, "corrected errors, lifetime")                                \
	X(ecc_sram_threshold, "", U64, -1, "SRAM error threshold exceeded (1)")

static const struct field fields[] = {FACTS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { COUNT = sizeof(facts) / sizeof(facts[0]) };

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	(void)opts;
	return reading_observe_facts(m, t, "ECC", fields, facts, COUNT, out, err);
}

const struct probe probe_ecc = {
	.name = "ecc",
	.summary = "memory errors counted by ECC",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
