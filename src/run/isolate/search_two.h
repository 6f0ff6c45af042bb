/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two members: no group is without the bad one. So what each does by itself is compared, and the two
 * directions between them. Pure.
 */
#ifndef RUN_ISOLATE_SEARCH_TWO_H
#define RUN_ISOLATE_SEARCH_TWO_H
#include <stdbool.h>
#include <stddef.h>
#include "run/isolate/search.h"

/* Two alike differ by as much: clocks under a power cap. */
#define ISOLATE_SEARCH_TWO_LEAST 0.05

/* One work, done by each of the two; for a link: `of[0]` is what goes from the first to the second. */
struct isolate_search_two_row {
	const char *what; /* "reads its memory": in a sentence */
	bool link;
	bool alone;   /* nothing of it goes between the two */
	double of[2]; /* rates; 0: not measured */
	bool wrong[2];
	bool late[2]; /* not done within its limit */
};

struct isolate_search_two {
	enum isolate_search_kind found; /* MEMBER: a; PAIR: the link from a to b; NOBODY */
	int a, b;
	const struct isolate_search_two_row *shows; /* the row that shows it; NULL: none */
	double loss;				    /* share that the one is below the other */
};

/*
 * Wrong data first; then what one alone did not end within its limit and the other did; then what one does
 * alone more than 5 % more slowly than the other, where nothing else that they do alone shows the reverse: it
 * slows copies as well; then the directions of the link, as the copy engines see them; then copies by the
 * kernels of one.
 */
void isolate_search_two(struct isolate_search_two *out, const struct isolate_search_two_row *rows,
			size_t count);
#endif
