/* SPDX-License-Identifier: Apache-2.0 */
/* The journals that the other ranks of a job keep below nodes/. Each rank records its own GPU. So a figure of
 * the whole job is the sum over these journals and that of rank 0. */
#ifndef JOURNAL_RECORD_JOB_RANKS_H
#define JOURNAL_RECORD_JOB_RANKS_H
#include "journal/record/record.h"

struct job_rank {
	char name[96];		     /* "rank 1", "rank 1 on host-a" */
	const struct record_case *c; /* its case; NULL: the journal cannot be used, for the reason in why */
	char why[160];		     /* one clause; "": c is known */
	struct record record;
};

struct job_ranks {
	struct job_rank *rank; /* ranks 1 to count */
	unsigned count;	       /* 0: a job of one rank */
};

/* Reads the journals of all ranks but 0 of the record's job `c`. A journal that is missing, damaged or of
 * another run is no error: its rank has no case. NO_RESOURCE: no memory. Owner: caller, job_ranks_release,
 * also after an error. */
enum status job_ranks_read(struct job_ranks *out, const struct record *r, const struct record_case *c,
			   struct error *err);
void job_ranks_release(struct job_ranks *j);
#endif
