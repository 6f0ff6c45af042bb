/* SPDX-License-Identifier: Apache-2.0 */
/* The helper process `assay __tracks`, which samples hardware counters over time while a program is
 * profiled. */
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

/* Starts the helper for all accessible GPUs. The helper logs what it cannot do; the profile continues
 * without it. */
void profile_tracks_start(struct profile_tracks *t, const struct machine *m, uint64_t every_ns,
			  const struct log *log);
/* Adds the lines received so far to the job's telemetry. */
void profile_tracks_receive(struct profile_tracks *t, struct job *j);
void profile_tracks_stop(struct profile_tracks *t, struct job *j);
#endif
