/* SPDX-License-Identifier: Apache-2.0 */
/* One round of the search: what search.c (members) and search_pairs.c (pairs) share. */
#ifndef RUN_ISOLATE_SEARCH_ROUND_H
#define RUN_ISOLATE_SEARCH_ROUND_H
#include "run/isolate/search.h"

/* False: the bound is reached, and the search is over. */
bool isolate_search_round(struct isolate_search *f, enum isolate_search_state state,
			  enum isolate_search_traffic traffic, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same tests once more. */
void isolate_search_repeat(struct isolate_search *f);
void isolate_search_test_begin(struct isolate_search *f);
void isolate_search_test_add(struct isolate_search *f, const uint16_t *m, unsigned count);
void isolate_search_test_pair(struct isolate_search *f, unsigned a, unsigned b);
/* Of the answers. */
bool isolate_search_bad(const struct isolate_search *f, unsigned test);
double isolate_search_figure(const struct isolate_search *f, unsigned test);

void isolate_search_set_add(struct isolate_search_set *s, const uint16_t *m, unsigned count);
/* The first `at` of `from` into `a`, the rest into `b`. */
void isolate_search_split(const struct isolate_search_set *from, unsigned at, struct isolate_search_set *a,
			  struct isolate_search_set *b);

void isolate_search_found(struct isolate_search *f, enum isolate_search_kind kind, int a, int b,
			  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Nobody, or the first of two where that one is named already. */
void isolate_search_give_up(struct isolate_search *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* search_pairs.c: a pair that lies between `suspect` and `other`; all disjoint pairs; three members. */
void isolate_search_cross(struct isolate_search *f);
void isolate_search_pairs(struct isolate_search *f);
void isolate_search_triangle(struct isolate_search *f, enum isolate_search_traffic traffic, unsigned a,
			     unsigned b);
void isolate_search_look_cross(struct isolate_search *f);
void isolate_search_look_cross_again(struct isolate_search *f);
void isolate_search_look_pairs(struct isolate_search *f);
void isolate_search_look_triangle(struct isolate_search *f);
#endif
