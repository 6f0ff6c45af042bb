/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of kernels, by name. docs/explanation/methods, "Counters of a program's kernels". */
#ifndef PROFILE_COUNTED_H
#define PROFILE_COUNTED_H
#include "counter/metrics.h"
#include "profile/timeline/timeline.h"

#define X(name, ...) COUNTED_##name,
enum counted_metric { COUNTER_METRICS(X) COUNTED_METRICS };
#undef X
_Static_assert((int)COUNTED_METRICS <= (int)TIMELINE_COUNTERS, "a record holds them all");

struct counted_row {
	uint32_t name;
	uint64_t count;
	uint32_t has;
	/* Sums where the metric is a sum; else the mean, weighted by the kernels' times. */
	double value[COUNTED_METRICS];
};

struct counted {
	struct counted_row *row; /* by total time, longest first */
	size_t rows;
};

/* NO_RESOURCE: memory. */
enum status counted_of(struct counted *c, const struct timeline *t, struct error *err);
void counted_release(struct counted *c);
bool counted_has(const struct counted_row *r, enum counted_metric m);
const char *counted_metric_name(enum counted_metric m);
/* From and to DRAM, bytes; 0: not counted. */
double counted_dram_bytes(const struct counted_row *r);
#endif
