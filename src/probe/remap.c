/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: remapped rows of device memory (Ampere and newer), retired pages (older GPUs). */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(remapped_correctable, "", U64, -1, "rows remapped because of correctable errors")                  \
	X(remapped_uncorrectable, "", U64, -1, "rows remapped because of uncorrectable errors")              \
	X(remap_pending, "", U64, -1, "a remap waits for a reset of the GPU (1)")                            \
	X(remap_failed, "", U64, -1, "a remap failed (1)")                                                   \
	X(remap_banks_none, "", U64, -1, "memory banks without a spare row")                                 \
	X(retired_pages, "", U64, -1, "retired pages (before Ampere)")

static const struct field fields[] = {FACTS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { COUNT = sizeof(facts) / sizeof(facts[0]) };

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	(void)opts;
	return reading_observe_facts(m, t, "remapped rows", fields, facts, COUNT, out, err);
}

const struct probe probe_remap = {
	.name = "remap",
	.summary = "remapped rows and retired pages of device memory",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
