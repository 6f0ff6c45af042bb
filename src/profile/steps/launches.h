/* SPDX-License-Identifier: Apache-2.0 */
/* What a process asked of its devices, in the order in which it asked: launches, and waits for them. */
#ifndef PROFILE_STEPS_LAUNCHES_H
#define PROFILE_STEPS_LAUNCHES_H
#include "profile/timeline/timeline.h"

/* A kernel, copy or set; a whole graph; or a call in which the host waits. */
struct launch {
	uint64_t at_ns;	   /* when the call began; where calls were not recorded, when the device did */
	uint64_t start_ns; /* on the device. Of a wait: that of the launch behind it */
	uint64_t key;	   /* the same for what is alike: kind, size of a copy to a power of two, name */
	uint64_t ns;	   /* of kernels: how long they ran */
	uint32_t event;	   /* the first that it put on the device, or the call that waits */
	uint32_t correlation;
	bool kernel;  /* one, or a graph */
	bool waits;   /* a call in which the host waits; it launched nothing */
	bool outward; /* the host takes part: a copy from or to it, a wait, a graph's launch */
};

struct launches {
	struct launch *launch; /* a process's, by at_ns */
	size_t count;
};

/* Those of a process. `waits` comes from host_calls_that_wait. false: no memory, and `launch` is NULL.
 * Released with free(). */
bool launches_of(struct launches *l, const struct timeline *t, uint16_t process, const bool *waits);
/* What its key stands for: enum timeline_kind, GRAPH also where nodes were recorded; index to the names, 0:
 * none. */
uint16_t launch_kind(const struct launch *l);
uint32_t launch_name(const struct launch *l);
#endif
