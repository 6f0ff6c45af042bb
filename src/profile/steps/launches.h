/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of a process and the calls in which its host waits, in the order of the calls. */
#ifndef PROFILE_STEPS_LAUNCHES_H
#define PROFILE_STEPS_LAUNCHES_H
#include "profile/timeline/timeline.h"

/* A kernel, copy or set, a whole graph, or a call in which the host waits. */
struct launch {
	uint64_t at_ns;	   /* begin of the call; if calls were not recorded, begin on the device */
	uint64_t start_ns; /* begin on the device; for a wait, that of the next launch */
	/* equal for launches of the same kind, name and copy size (rounded to a power of two) */
	uint64_t key;
	uint64_t ns;	/* run time of its kernels */
	uint32_t event; /* index of the first event on the device, or of the waiting call */
	uint32_t correlation;
	bool kernel;  /* a kernel or a graph */
	bool waits;   /* a call in which the host waits; it launched nothing */
	bool outward; /* the host takes part: a copy from or to it, a wait, or a graph launch */
};

struct launches {
	struct launch *launch; /* the launches of one process, sorted by at_ns */
	size_t count;
};

/* Collects the launches of a process. `waits` comes from host_calls_that_wait. false: out of memory, and
 * `launch` is NULL. The caller frees l->launch. */
bool launches_of(struct launches *l, const struct timeline *t, uint16_t process, const bool *waits);
/* The parts of a key. launch_kind: enum timeline_kind, GRAPH also if the nodes of the graph were recorded.
 * launch_name: index into the names, 0: none. */
uint16_t launch_kind(const struct launch *l);
uint32_t launch_name(const struct launch *l);
#endif
