/* SPDX-License-Identifier: Apache-2.0 */
/* A trace while it is written; trace_write's own. */
#ifndef PROFILE_TRACE_INTERNAL_H
#define PROFILE_TRACE_INTERNAL_H
#include <jansson.h>
#include "core/text/text.h"
#include "journal/field.h"
#include "journal/telemetry/series.h"
#include "profile/trace/gzip_out.h"
#include "profile/timeline/timeline.h"

struct trace {
	const struct timeline *t;
	uint16_t process; /* TRACE_ALL or one */
	bool alone;	  /* devices have their own numbers as pid */
	uint64_t base_ns; /* ts 0 */
	char **escaped;	  /* by name, JSON strings; NULL: not needed yet */
	struct text out;
	uint64_t events;
	struct gzip_out *gzip;
	int code; /* errno of the write that failed */
};

void trace_begin(struct trace *w); /* of the next object of traceEvents */
void trace_flush(struct trace *w);
void trace_string(struct text *out, const char *s);
double trace_us(const struct trace *w, uint64_t ns);
void trace_name(struct trace *w, const char *what, uint32_t pid, uint32_t tid, const char *key,
		const char *text);
/* Telemetry as counter tracks of processes from `pid` on, one a source. */
void trace_counters(struct trace *w, const struct series *series, size_t count, uint32_t pid);
/* Blocks of this kernel that fit on a multiprocessor: threads, registers, shared memory, the device's own
 * limit. docs/explanation/methods, "Profile". */
double trace_blocks_per_sm(const struct timeline_kernel *k, const struct timeline_device *d);
#endif
