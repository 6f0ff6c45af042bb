/* SPDX-License-Identifier: Apache-2.0 */
/* Totals and percentiles of a timeline: one row per kernel, kind of copy, call and range.
 * docs/explanation/methods/profile.md, "Durations". */
#ifndef PROFILE_FINDINGS_SUMMARY_H
#define PROFILE_FINDINGS_SUMMARY_H
#include <jansson.h>
#include "core/text/text.h"
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct summary_row {
	enum timeline_kind kind;
	uint32_t name;	       /* index into the timeline's names */
	uint64_t count, bytes; /* bytes: for copies and sets only */
	/* Durations in ns. Percentiles are over all durations, by linear interpolation. */
	double total, mean, min, p50, p90, p99, max;
	double share; /* for work on devices: part of all time on devices; otherwise: part of the total of its
			 kind */
};

/* Busy time of a device: the time in which at least one kernel, copy or set ran. */
struct summary_device {
	uint16_t process;
	uint32_t device;
	uint64_t busy_ns, kernel_ns, first_ns, last_ns; /* kernel_ns: at least one kernel ran */
};

struct summary {
	struct summary_row *row; /* by kind, then by total time, longest first */
	size_t rows;
	struct summary_device *device;
	size_t devices;
	uint64_t count[TIMELINE_KIND_COUNT];
	uint64_t in_graphs; /* number of kernels that CUDA graphs launched */
	double total_ns[TIMELINE_KIND_COUNT];
};

/* Counts the events that begin in `windows`; NULL: all events. CUPTI attributes some synchronization records
 * to streams; their durations are waiting time of the host. Release with summary_release. NO_RESOURCE: out of
 * memory. */
enum status summary_of(struct summary *s, const struct timeline *t, const struct windows *windows,
		       struct error *err);
void summary_release(struct summary *s);
/* Writes summary.csv with the columns
 * kind,name,count,total_ns,mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns,share,bytes. */
void summary_csv(struct text *out, const struct summary *s, const struct timeline *t);
/* Appends a quoted CSV field: quotes are doubled, control characters become blanks, so that a row stays one
 * line. */
void summary_csv_text(struct text *out, const char *s);
/* {"rows":[{..}],"devices":[{..}],"processes":[{..}]}. The caller decrefs it. NULL: out of memory. */
json_t *summary_json(const struct summary *s, const struct timeline *t);
#endif
