/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of one round of the isolation search. search.c (one member) and search_pairs.c (pairs)
 * share them. */
#ifndef RUN_ISOLATE_SEARCH_ROUND_H
#define RUN_ISOLATE_SEARCH_ROUND_H
#include "run/isolate/search.h"

/* Begins a round; `format` describes it. False: the limit of rounds is reached, and the search is over. */
bool isolate_search_round(struct isolate_search *f, enum isolate_search_state state,
			  enum isolate_search_traffic traffic, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Begins a round that repeats the same tests. */
void isolate_search_repeat(struct isolate_search *f);
void isolate_search_test_begin(struct isolate_search *f);
void isolate_search_test_add(struct isolate_search *f, const uint16_t *m, unsigned count);
void isolate_search_test_pair(struct isolate_search *f, unsigned a, unsigned b);
/* Result of a test: whether its group is bad, and its rate. */
bool isolate_search_bad(const struct isolate_search *f, unsigned test);
double isolate_search_figure(const struct isolate_search *f, unsigned test);

void isolate_search_set_add(struct isolate_search_set *s, const uint16_t *m, unsigned count);
/* Puts the first `at` members of `from` into `a`, the rest into `b`. */
void isolate_search_split(const struct isolate_search_set *from, unsigned at, struct isolate_search_set *a,
			  struct isolate_search_set *b);

void isolate_search_found(struct isolate_search *f, enum isolate_search_kind kind, int a, int b,
			  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Ends the search. It names nobody, or the first of two bad members if that one is already confirmed. */
void isolate_search_give_up(struct isolate_search *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* search_pairs.c: the bad pair between `suspect` and `other`; all disjoint pairs; all pairs of three members.
 * The look functions evaluate such a round. */
void isolate_search_cross(struct isolate_search *f);
void isolate_search_pairs(struct isolate_search *f);
void isolate_search_triangle(struct isolate_search *f, enum isolate_search_traffic traffic, unsigned a,
			     unsigned b);
void isolate_search_check_cross(struct isolate_search *f);
void isolate_search_recheck_cross(struct isolate_search *f);
void isolate_search_look_pairs(struct isolate_search *f);
void isolate_search_look_triangle(struct isolate_search *f);
#endif
