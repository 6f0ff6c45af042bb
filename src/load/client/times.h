/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of times in buckets that are 5 % wide, from 1 us to 19 h: what is known while a load test runs.
 * Zeroed is empty. */
#ifndef LOAD_CLIENT_TIMES_H
#define LOAD_CLIENT_TIMES_H
#include <stdint.h>

enum { LOAD_TIMES_BUCKETS = 512 };
struct load_times {
	uint64_t bucket[LOAD_TIMES_BUCKETS], count;
};
void load_times_add(struct load_times *t, uint64_t ns);
void load_times_merge(struct load_times *to, const struct load_times *from);
/* The quantile in seconds, as the middle of its bucket; NaN: there are no times. */
double load_times_quantile(const struct load_times *t, double share);
#endif
