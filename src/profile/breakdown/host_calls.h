/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA calls of the host's threads: the outermost calls of each thread, one after another. */
#ifndef PROFILE_BREAKDOWN_HOST_CALLS_H
#define PROFILE_BREAKDOWN_HOST_CALLS_H
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct host_span {
	uint64_t start_ns, end_ns;
};

struct host_calls {
	const struct timeline *t;
	uint32_t *call;		/* indices of events, grouped by thread, sorted by start */
	uint32_t *first;	/* by track; the next entry is the end */
	struct host_span *span; /* times in which any thread of a process was in a call, grouped by process */
	size_t *span_first, *span_count; /* by process */
	uint32_t *wait;			 /* waiting calls, grouped by process, sorted by start */
	uint32_t *last_wait; /* by position in `wait`: latest end of the process's waiting calls so far */
	size_t *wait_first;  /* by process; the next entry is the end */
	bool *waits;	     /* by name: the call returns after the device has reached some point */
	bool *allocates;     /* by name: the call allocates or frees memory */
};

/* By name: whether such a call waits until the device has reached some point. Calls that free memory wait
 * too. The caller frees the table. NULL: out of memory. */
bool *host_calls_that_wait(const struct timeline *t);
bool host_calls_of(struct host_calls *h, const struct timeline *t); /* false: out of memory */
void host_calls_release(struct host_calls *h);
/* The waiting call in which the thread was at `at_ns`. If the thread made no call from then to `until_ns`,
 * any thread of its process counts, and the wait that ends last is returned. NULL: none. */
const struct timeline_event *host_calls_waiting(const struct host_calls *h, uint32_t track, uint64_t at_ns,
						uint64_t until_ns);
/* The part of `part` that lies in silent stretches of `whole`. A stretch is silent if no thread of the
 * process made a call for at least `least_ns`. */
uint64_t host_calls_silence(const struct host_calls *h, uint16_t process, struct windows_span whole,
			    struct windows_span part, uint64_t least_ns);
/* The time within `part` that the thread spent in calls that allocate or free memory. */
uint64_t host_calls_allocating(const struct host_calls *h, uint32_t track, struct windows_span part);
#endif
