/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's clock told as CLOCK_MONOTONIC, by pairs of readings. docs/explanation/methods, "Clocks of a
 * profile". */
#ifndef PROFILE_TIMELINE_CLOCK_MAP_H
#define PROFILE_TIMELINE_CLOCK_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock_pair {
	uint64_t foreign_ns, own_ns, width_ns; /* own: the middle of what was read before and after */
};
struct clock_map {
	struct clock_pair *pair; /* sorted by foreign_ns once fitted */
	size_t count, room, last;
	uint64_t error_ns; /* half the width of the tightest pair */
	double drift;	   /* own less foreign, s/s: least squares over the pairs */
};

/* False: no memory, or after < before. */
bool clock_map_add(struct clock_map *m, uint64_t before_ns, uint64_t foreign_ns, uint64_t after_ns);
/* Sorts, drops pairs that were interrupted (wider than four times the median one). */
void clock_map_fit(struct clock_map *m);
/* Between two pairs linearly, outside at the nearest one's distance. False: there is no pair, or the time is
 * before the boot. */
bool clock_map_own(struct clock_map *m, uint64_t foreign_ns, uint64_t *own_ns);
void clock_map_release(struct clock_map *m);
#endif
