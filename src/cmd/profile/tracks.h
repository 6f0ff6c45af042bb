/* SPDX-License-Identifier: Apache-2.0 */
/* The helper that samples counters by time beside a profiled program, `assay __tracks`. */
#ifndef CMD_PROFILE_TRACKS_H
#define CMD_PROFILE_TRACKS_H
#include "core/log.h"
#include "core/process/process.h"
#include "machine/machine.h"
#include "run/supervisor/job.h"
#include "run/supervisor/lines.h"

struct profile_tracks { /* valid when zeroed */
	struct process process;
	struct lines in;
	bool on;
};

/* Of all GPUs granted to us. What it cannot do it says itself; the profile goes on. */
void profile_tracks_start(struct profile_tracks *t, const struct machine *m, uint64_t every_ns,
			  const struct log *log);
/* What it has sent becomes the job's telemetry. */
void profile_tracks_hear(struct profile_tracks *t, struct job *j);
void profile_tracks_stop(struct profile_tracks *t, struct job *j);
#endif
