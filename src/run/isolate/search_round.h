/* SPDX-License-Identifier: Apache-2.0 */
/* One round of the search: what follow.c (members) and follow_pairs.c (pairs) share. */
#ifndef RUN_FOLLOW_ROUND_H
#define RUN_FOLLOW_ROUND_H
#include "run/isolate/search.h"

/* False: the bound is reached, and the search is over. */
bool follow_round(struct follow *f, enum follow_state state, enum follow_traffic traffic, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* The same tests once more. */
void follow_repeat(struct follow *f);
void follow_test_begin(struct follow *f);
void follow_test_add(struct follow *f, const uint16_t *m, unsigned count);
void follow_test_pair(struct follow *f, unsigned a, unsigned b);
/* Of the answers. */
bool follow_bad(const struct follow *f, unsigned test);
double follow_figure(const struct follow *f, unsigned test);

void follow_set_add(struct follow_set *s, const uint16_t *m, unsigned count);
/* The first `at` of `from` into `a`, the rest into `b`. */
void follow_split(const struct follow_set *from, unsigned at, struct follow_set *a, struct follow_set *b);

void follow_found(struct follow *f, enum follow_kind kind, int a, int b, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Nobody, or the first of two where that one is named already. */
void follow_give_up(struct follow *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* follow_pairs.c: a pair that lies between `suspect` and `other`; all disjoint pairs; three members. */
void follow_cross(struct follow *f);
void follow_pairs(struct follow *f);
void follow_triangle(struct follow *f, enum follow_traffic traffic, unsigned a, unsigned b);
void follow_look_cross(struct follow *f);
void follow_look_cross_again(struct follow *f);
void follow_look_pairs(struct follow *f);
void follow_look_triangle(struct follow *f);
#endif
