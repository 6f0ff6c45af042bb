/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of kernels, one row per kernel name. docs/explanation/methods/profile.md, "Counters of a
 * program's kernels". */
#ifndef PROFILE_FINDINGS_KERNEL_COUNTERS_H
#define PROFILE_FINDINGS_KERNEL_COUNTERS_H
#include "counter/metrics.h"
#include "profile/timeline/timeline.h"

#define X(name, ...) KERNEL_COUNTER_##name,
enum kernel_counters_metric { COUNTER_METRICS(X) KERNEL_COUNTER_METRICS };
#undef X
_Static_assert((int)KERNEL_COUNTER_METRICS <= (int)TIMELINE_COUNTERS, "a record has room for every metric");

struct kernel_counters_row {
	uint32_t name;
	uint64_t count;
	uint32_t has;
	/* Sum over the runs if the metric is a sum. Otherwise the mean, weighted by the times of the runs. */
	double value[KERNEL_COUNTER_METRICS];
};

struct kernel_counters {
	struct kernel_counters_row *row; /* by total time, longest first */
	size_t rows;
};

/* NO_RESOURCE: out of memory. */
enum status kernel_counters_of(struct kernel_counters *c, const struct timeline *t, struct error *err);
void kernel_counters_release(struct kernel_counters *c);
bool kernel_counters_has(const struct kernel_counters_row *r, enum kernel_counters_metric m);
const char *kernel_counters_metric_name(enum kernel_counters_metric m);
/* Bytes read from and written to DRAM; 0: not counted. */
double kernel_counters_dram_bytes(const struct kernel_counters_row *r);
#endif
