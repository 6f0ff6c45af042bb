/* SPDX-License-Identifier: Apache-2.0 */
/* What of a timeline fits a table: a row a kernel, kind of copy, call and range. docs/explanation/methods,
 * "Profile".
 */
#ifndef PROFILE_FINDINGS_SUMMARY_H
#define PROFILE_FINDINGS_SUMMARY_H
#include <jansson.h>
#include "core/text/text.h"
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct summary_row {
	enum timeline_kind kind;
	uint32_t name;	       /* index to the timeline's names */
	uint64_t count, bytes; /* bytes: of copies and sets */
	/* Durations, ns; percentiles of all, by linear interpolation. */
	double total, mean, min, p50, p90, p99, max;
	double share; /* of all that lies on devices, for what does; of its kind's total else */
};

/* Time in which at least one kernel, copy or set ran on it. */
struct summary_device {
	uint16_t process;
	uint32_t device;
	uint64_t busy_ns, kernel_ns, first_ns, last_ns; /* kernel_ns: some kernel ran */
};

struct summary {
	struct summary_row *row; /* by kind, then by total, largest first */
	size_t rows;
	struct summary_device *device;
	size_t devices;
	uint64_t count[TIMELINE_KIND_COUNT];
	uint64_t in_graphs; /* kernels that graphs launched */
	double total_ns[TIMELINE_KIND_COUNT];
};

/* Of what begins in `windows`; NULL: of everything. Durations of SYNC's records that CUPTI puts on streams
 * are the host's waiting. NO_RESOURCE: memory. */
enum status summary_of(struct summary *s, const struct timeline *t, const struct windows *windows,
		       struct error *err);
void summary_release(struct summary *s);
/* kind,name,count,total_ns,mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns,share,bytes */
void summary_csv(struct text *out, const struct summary *s, const struct timeline *t);
/* Quoted, with its quotes doubled; control characters are blanks, as a table's lines are lines. */
void summary_csv_text(struct text *out, const char *s);
/* {"rows":[{..}],"devices":[{..}],"processes":[{..}]}; caller decrefs. NULL: memory. */
json_t *summary_json(const struct summary *s, const struct timeline *t);
#endif
