/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search for members that groups cannot separate: two GPUs or two launched ranks, where every group
 * contains the bad one, and ranks that cannot form groups. Shared by two_gpus.c (GPUs of one node) and
 * two_ranks.c (launched ranks).
 */
#ifndef RUN_ISOLATE_TWO_GPUS_H
#define RUN_ISOLATE_TWO_GPUS_H
#include "run/isolate/search_two.h"
#include "run/isolate/run.h"

/* Work that a GPU does by itself, and copies between two GPUs: one row of isolate_search_two() for each. */
enum { WORK_LINK, WORK_MEMORY, WORK_GEMM, WORK_STORE, WORK_LOAD, WORKS };
extern const char *const works_words[WORKS]; /* keys of the rates that ranks exchange */

/* Runs cases that follow the order's trigger. They measure the work that each of these GPUs does by itself
 * (memory, GEMM), or with `between` the copies between two of them. Each rate goes into the row of its work,
 * at the index of its GPU in `gpu`. *cases is the number of cases. False: the run or the search cannot
 * continue. */
bool works_run(const struct isolate_run_order *o, const uint16_t *gpu, unsigned count, bool between,
	       struct isolate_search_two_row rows[WORKS], unsigned *cases);

/* Result of an all-gather that shows whose part is wrong. Each part comes from one member, and all members
 * check it. */
struct isolate_run_parts {
	bool known; /* the all-gather ran */
	/* MEMBER: the part of `from` is wrong on more than one member. PAIR: it is wrong on `at` only,
	 * another member. */
	enum isolate_search_kind found;
	unsigned from, at; /* indices of members, 0 first */
	unsigned seen;	   /* number of members on which it is wrong */
};
/* Runs the all-gather with all members. h->f has one test with all of them. */
void parts_run(struct isolate_run *h, struct isolate_run_parts *out);
/* Writes the finding if the parts show one; `member` has the number of each member for h->name. */
bool parts_finding(const struct isolate_run *h, const struct isolate_run_parts *parts, const uint16_t *member,
		   unsigned count, struct isolate_run_finding *out);
/* The same for two members, from the rates of their own work. */
bool works_finding(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
		   const uint16_t member[2], struct isolate_run_finding *out);
/* The same from the sum: the member whose share seems to be missing on all members. */
bool suspect_finding(const struct isolate_run *h, const uint16_t *member, unsigned count,
		     struct isolate_run_finding *out);
/* Writes that nothing separates the two members. */
void two_indistinguishable(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
			   const struct isolate_run_parts *parts, const uint16_t member[2],
			   struct isolate_run_finding *out);
#endif
