/* SPDX-License-Identifier: Apache-2.0 */
/* Index of a plan's cases by key, phases and round, to find duplicates without a search through the plan. It
 * leaves out skipped cases, cases of steps that are not in order, and cases without a GPU. */
#ifndef RUN_PLAN_DUPLICATES_H
#define RUN_PLAN_DUPLICATES_H
#include "run/plan/case.h"

struct plan_duplicates {
	struct plan_duplicates_row {
		uint64_t hash;
		size_t step, place; /* position in the plan */
		size_t next;	    /* index of the next row in the bucket, plus one; 0: none */
	} * row;
	size_t *bucket; /* index of each bucket's first row, plus one; 0: none */
	size_t count, room;
};

/* Adds a case. False: out of memory. */
bool plan_duplicates_add(struct plan_duplicates *seen, const struct bench_case *c, size_t step, size_t place);
/* Calls `same` for each case with this key, phases and round. Returns the one with the lowest id for which
 * `same` is true; NULL: none. */
const struct bench_case *plan_duplicates_find(const struct plan_duplicates *seen, const struct plan *p,
					      const struct bench_case *c,
					      bool (*same)(void *arg, const struct bench_case *have),
					      void *arg);
void plan_duplicates_release(struct plan_duplicates *seen);
#endif
