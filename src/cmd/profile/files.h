/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a profiled run: a function of its rings and its journal, so that they can be written again. */
#ifndef CMD_PROFILE_FILES_H
#define CMD_PROFILE_FILES_H
#include "journal/record/record.h"
#include "machine/machine.h"
#include "profile/page/page.h"

struct profile_files {
	const char *dir;	     /* of the run */
	struct page page;	     /* its `trace`: trace.json.gz too, and one a rank */
	const struct series *series; /* for the traces */
	size_t series_count;
};

/* PROFILE.md, PROFILE.html, summary.csv and .json, nccl.csv, breakdown.csv, copies.csv, counters.csv, traces.
 * One that fails does not keep the others from being written; the first error is told. */
enum status profile_files_write(const struct profile_files *f, struct error *err);
/* The same of a run directory that is read again, where it holds rings: else nothing, and OK. */
enum status profile_files_again(const struct record *r, const struct machine *m, struct error *err);
/* What the machine's GPUs can do at most, by their facts and the expectations that are built in. */
struct findings_bounds profile_files_bounds(const struct machine *m);
#endif
