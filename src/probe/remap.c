/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of device memory that were remapped (Ampere and newer), pages that were retired (before). */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(remapped_correctable, "", U64, -1, "rows remapped for correctable errors")                         \
	X(remapped_uncorrectable, "", U64, -1, "rows remapped for uncorrectable errors")                     \
	X(remap_pending, "", U64, -1, "a remap waits for a reset (1)")                                       \
	X(remap_failed, "", U64, -1, "a remap failed (1)")                                                   \
	X(remap_banks_none, "", U64, -1, "banks with no spare row left")                                     \
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
