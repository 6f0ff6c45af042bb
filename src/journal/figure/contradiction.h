/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds two results of one CPU that cannot both be right: more threads reach a lower rate, or a larger size
 * is faster. A run then repeats the measurements, and the judge trusts neither.
 */
#ifndef JOURNAL_FIGURE_CONTRADICTION_H
#define JOURNAL_FIGURE_CONTRADICTION_H
#include <stdbool.h>
#include <stdint.h>

/* Two rounds on one quiet machine do not differ by more than these shares. */
#define CONTRADICTION_CEILING 0.05 /* loops in registers */
#define CONTRADICTION_MEMORY 0.25  /* points of a memory curve, whose windows are short */

enum contradiction { CONTRADICTION_NONE, CONTRADICTION_THREADS, CONTRADICTION_SIZE };

/* Whether cases of this key's probe and engine are compared. */
bool contradiction_asks(const char *key);
/* Hashes of the whole key, and of the key without threads and size. Keys with different quantities are never
 * compared. */
uint64_t contradiction_hash(const char *key);
uint64_t contradiction_quantity(const char *key);
/* The size option of the key in bytes; infinity: no size, which is larger than every cache. */
double contradiction_size(const char *key);
/* Does the rate `more` of key `less_work` contradict the rate `less` of key `more_work`? It does if the keys
 * differ only in threads and size, `less_work` has no more threads and no smaller size, and yet it is faster
 * by more than the tolerance. The rate of a time is its inverse. */
enum contradiction contradiction_of(const char *less_work, double more, const char *more_work, double less);
#endif
