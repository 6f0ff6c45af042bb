/* SPDX-License-Identifier: Apache-2.0 */
/* State while a trace is written. Private to trace.c and counters.c. */
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
	uint16_t process; /* one process, or TRACE_ALL */
	bool alone;	  /* a single process: devices use their own numbers as pid */
	uint64_t base_ns; /* time of ts 0 */
	char **escaped;	  /* by name: escaped JSON strings; NULL: not needed yet */
	struct text out;
	uint64_t events;
	struct gzip_out *gzip;
	int code; /* errno of the failed write */
};

void trace_begin(struct trace *w); /* begins the next object of traceEvents */
void trace_flush(struct trace *w);
void trace_string(struct text *out, const char *s);
double trace_us(const struct trace *w, uint64_t ns);
void trace_name(struct trace *w, const char *what, uint32_t pid, uint32_t tid, const char *key,
		const char *text);
/* Writes telemetry as counter tracks. Each source becomes a process, with numbers from `pid` on. */
void trace_counters(struct trace *w, const struct series *series, size_t count, uint32_t pid);
/* Number of blocks of this kernel that fit on a multiprocessor, limited by threads, registers, shared memory
 * and the device's own limit. docs/explanation/methods/profile.md, "Estimated occupancy". */
double trace_blocks_per_sm(const struct timeline_kernel *k, const struct timeline_device *d);
#endif
