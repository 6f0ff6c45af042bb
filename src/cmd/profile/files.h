/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a profiled run. They depend only on its rings and its journal, so they can be written
 * again. */
#ifndef CMD_PROFILE_FILES_H
#define CMD_PROFILE_FILES_H
#include "journal/record/record.h"
#include "machine/machine.h"
#include "profile/page/page.h"

struct profile_files {
	const char *dir;	     /* the run directory */
	struct page page;	     /* its `trace`: write trace.json.gz too, and one per rank */
	const struct series *series; /* telemetry for the traces */
	size_t series_count;
};

/* Writes PROFILE.md, PROFILE.html, summary.csv and .json, nccl.csv, breakdown.csv, copies.csv,
 * counters.csv and the traces. If one file fails, the others are still written, and the first error is
 * returned. */
enum status profile_files_write(const struct profile_files *f, struct error *err);
/* Writes the same files again for a run directory that was read. Does nothing and returns OK if it has no
 * rings. */
enum status profile_files_rewrite(const struct record *r, const struct machine *m, struct error *err);
/* The peak rates of the machine's GPUs, from their facts and the built-in expectations. */
struct findings_bounds profile_files_bounds(const struct machine *m);
#endif
