/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a timeline as Chrome trace JSON with Kineto's keys, compressed with gzip. Perfetto, chrome://tracing
 * and Holistic Trace Analysis open it. A trace of one process uses Kineto's numbering: the pid of work on a
 * device is the device's number. In a trace of several processes, the pid of a device is 10,000,000 + 1000
 * x the index of the process + the device's number. */
#ifndef PROFILE_TRACE_TRACE_H
#define PROFILE_TRACE_TRACE_H
#include "journal/telemetry/series.h"
#include "profile/timeline/timeline.h"

enum { TRACE_ALL = UINT16_MAX };

/* Name in the run directory. The trace of one rank is ranks/rank-R-pid-P.json.gz. */
#define TRACE_FILE "trace.json.gz"

/* Writes to a temporary file and renames it, so a full disk leaves no partial file. process: index of a
 * process of the timeline, or TRACE_ALL. Telemetry becomes counter tracks; values outside the time of the
 * timeline are left out. */
enum status trace_write(const char *path, const struct timeline *t, uint16_t process,
			const struct series *series, size_t series_count, struct error *err);
#endif
