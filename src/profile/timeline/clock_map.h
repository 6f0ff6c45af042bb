/* SPDX-License-Identifier: Apache-2.0 */
/* Maps times of CUPTI's clock to CLOCK_MONOTONIC by pairs of readings. docs/explanation/methods/profile.md,
 * "Clocks of a profile". */
#ifndef PROFILE_TIMELINE_CLOCK_MAP_H
#define PROFILE_TIMELINE_CLOCK_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock_pair {
	/* own_ns: middle of the readings before and after; width_ns: their difference */
	uint64_t foreign_ns, own_ns, width_ns;
};
struct clock_map {
	struct clock_pair *pair; /* sorted by foreign_ns after clock_map_fit */
	size_t count, room, last;
	uint64_t error_ns; /* half the width of the tightest pair */
	double drift;	   /* slope of own - foreign, s/s; least squares over the pairs */
};

/* false: out of memory, or after_ns < before_ns */
bool clock_map_add(struct clock_map *m, uint64_t before_ns, uint64_t foreign_ns, uint64_t after_ns);
/* Sorts the pairs and drops those that were interrupted (wider than four times the median). */
void clock_map_fit(struct clock_map *m);
/* Interpolates linearly between two pairs. Outside all pairs, the difference of the nearest pair applies.
 * false: there is no pair, or the result would be before the boot. */
bool clock_map_own(struct clock_map *m, uint64_t foreign_ns, uint64_t *own_ns);
void clock_map_release(struct clock_map *m);
#endif
