/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where groups cannot tell who it is: two GPUs or two launched ranks, of which no group is without the bad
 * one, and ranks of which no groups can be made. What two_gpus.c (a node's GPUs) and two_ranks.c (launched
 * ranks) share.
 */
#ifndef RUN_ISOLATE_TWO_GPUS_H
#define RUN_ISOLATE_TWO_GPUS_H
#include "run/isolate/search_two.h"
#include "run/isolate/run.h"

/* What GPUs do by themselves, and copies between two: a row each, for isolate_search_two(). */
enum { WORK_LINK, WORK_MEMORY, WORK_PRODUCT, WORK_STORE, WORK_LOAD, WORKS };
extern const char *const works_words[WORKS]; /* in figures that travel */

/* Runs what these GPUs do by themselves (of each: memory, a product), or `between` two of them, as cases that
 * follow the order's; a figure goes to the row of its work, at its GPU's place in `gpu`. How many cases that
 * were, into *cases. False: nothing runs any more. */
bool works_run(const struct isolate_run_order *o, const uint16_t *gpu, unsigned count, bool between,
	       struct isolate_search_two_row rows[WORKS], unsigned *cases);

/* Whose part of an all-gather is wrong: each comes from one member, and all see it. */
struct isolate_run_parts {
	bool known; /* it was run */
	/* MEMBER: what `from` puts in is wrong on more than one; PAIR: it is on `at` alone, another. */
	enum isolate_search_kind found;
	unsigned from, at; /* the how many-th members, 0 first */
	unsigned seen;	   /* on so many it is wrong */
};
/* Of all members, which h->f holds as one test. */
void parts_run(struct isolate_run *h, struct isolate_run_parts *out);
/* The finding where it shows one; `member`: of each, its number for h->name. */
bool parts_tell(const struct isolate_run *h, const struct isolate_run_parts *parts, const uint16_t *member,
		unsigned count, struct isolate_run_finding *out);
/* The same of two by their works. */
bool works_tell(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
		const uint16_t member[2], struct isolate_run_finding *out);
/* Whose share seems to be missing in a sum, which all saw. */
bool suspect_tell(const struct isolate_run *h, const uint16_t *member, unsigned count,
		  struct isolate_run_finding *out);
/* Nothing shows which of the two it is. */
void two_untold(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
		const struct isolate_run_parts *parts, const uint16_t member[2],
		struct isolate_run_finding *out);
#endif
