/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timeline as Chrome trace JSON with Kineto's keys, packed by gzip: Perfetto, chrome://tracing and Holistic
 * Trace Analysis open it. One process is told as Kineto tells it (pid of what lies on a device: the device's
 * number); of several, devices' are 1000 x the process's place + the device's number.
 */
#ifndef PROFILE_TRACE_TRACE_H
#define PROFILE_TRACE_TRACE_H
#include "journal/telemetry/series.h"
#include "profile/timeline/timeline.h"

enum { TRACE_ALL = UINT16_MAX };

#define TRACE_FILE "trace.json.gz" /* in a run directory; one of a rank is ranks/rank-R-pid-P.json.gz */

/* Writes beside and renames: a full disk leaves no half file. process: one of the timeline's, or TRACE_ALL.
 * Telemetry becomes counter tracks; series of other times than the timeline's are left out. */
enum status trace_write(const char *path, const struct timeline *t, uint16_t process,
			const struct series *series, size_t series_count, struct error *err);
#endif
