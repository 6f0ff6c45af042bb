/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search between two members. Every group contains the bad one, so the search compares the work
 * that each member does by itself, and the two directions between them. It is a pure function.
 */
#ifndef RUN_ISOLATE_SEARCH_TWO_H
#define RUN_ISOLATE_SEARCH_TWO_H
#include <stdbool.h>
#include <stddef.h>
#include "run/isolate/search.h"

/* Two healthy GPUs may differ by this share, because power limits lower their clocks differently. */
#define ISOLATE_SEARCH_TWO_LEAST 0.05

/* One kind of work, measured on each of the two members. For a link, of[0] is the direction from the first to
 * the second. */
struct isolate_search_two_row {
	const char *what; /* a verb phrase for messages: "reads its memory" */
	bool link;
	bool alone;   /* the work needs no traffic between the two */
	double of[2]; /* rates; 0: not measured */
	bool wrong[2];
	bool late[2]; /* it did not end within its limit */
};

struct isolate_search_two {
	enum isolate_search_kind found; /* MEMBER: a is bad; PAIR: the link from a to b is bad; NOBODY */
	int a, b;
	const struct isolate_search_two_row *shows; /* the row that shows the fault; NULL: none */
	/* share by which the slower rate is below the faster one */
	double loss;
};

/*
 * Checks the rows in this order and stops at the first fault:
 * 1. wrong data;
 * 2. work that one member alone did not end within its limit, and the other did;
 * 3. work that one member alone does more than 5 % more slowly than the other, unless another row shows the
 *    reverse. It comes before the link because a slow member slows copies too;
 * 4. the two directions of the link, measured with the copy engines;
 * 5. copies by the kernels of one member.
 */
void isolate_search_two(struct isolate_search_two *out, const struct isolate_search_two_row *rows,
			size_t count);
#endif
