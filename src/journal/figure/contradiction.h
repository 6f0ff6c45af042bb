/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two figures of one CPU that cannot both be right: more threads that do less, a larger size that is faster.
 * A run asks it to measure again, the judge to trust neither.
 */
#ifndef JOURNAL_FIGURE_CONTRADICTION_H
#define JOURNAL_FIGURE_CONTRADICTION_H
#include <stdbool.h>
#include <stdint.h>

/* Beyond these two rounds of one quiet machine do not differ. */
#define CONTRADICTION_CEILING 0.05 /* of loops in registers */
#define CONTRADICTION_MEMORY 0.25  /* of points of a curve, whose windows are short */

enum contradiction { CONTRADICTION_NONE, CONTRADICTION_THREADS, CONTRADICTION_SIZE };

/* Probe and engine that are held against each other at all. */
bool contradiction_asks(const char *key);
/* A hash of the key, and one of what it says without threads and size: keys of different hashes are never
 * held against each other. */
uint64_t contradiction_hash(const char *key);
uint64_t contradiction_quantity(const char *key);
/* The size that the key asks for; infinity: none, which is past every cache. */
double contradiction_size(const char *key);
/* Does the rate `more` of key `less_work` contradict the rate `less` of key `more_work`: the same but for as
 * many threads or fewer and a size as large or larger, and yet faster beyond the tolerance? Rates: of a time
 * its inverse. */
enum contradiction contradiction_of(const char *less_work, double more, const char *more_work, double less);
#endif
