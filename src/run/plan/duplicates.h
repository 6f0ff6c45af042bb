/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a plan by key, phases and round, so that the question "is this one planned already" does not
 * look at all of them. Left out: cases that are skipped, those of
 * a step that is not in order, and those without a GPU, of which no two are held to be the same. */
#ifndef RUN_PLAN_DUPLICATES_H
#define RUN_PLAN_DUPLICATES_H
#include "run/plan/case.h"

struct plan_duplicates {
	struct plan_duplicates_row {
		uint64_t hash;
		size_t step, place; /* in the plan */
		size_t next;	    /* row of the same bucket, one more than its index; 0: none */
	} * row;
	size_t *bucket; /* the first row of each, one more than its index; 0: none */
	size_t count, room;
};

/* False: no memory. */
bool plan_duplicates_add(struct plan_duplicates *seen, const struct bench_case *c, size_t step, size_t place);
/* The cases that may be the same: calls `same` with each of this key, phases and round. The one with the
 * lowest id for which it says yes, or NULL. */
const struct bench_case *plan_duplicates_find(const struct plan_duplicates *seen, const struct plan *p,
					      const struct bench_case *c,
					      bool (*same)(void *arg, const struct bench_case *have),
					      void *arg);
void plan_duplicates_release(struct plan_duplicates *seen);
#endif
