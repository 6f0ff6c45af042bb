/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of the host did in CUDA: the outermost calls of each, one after another. */
#ifndef PROFILE_BREAKDOWN_HOST_CALLS_H
#define PROFILE_BREAKDOWN_HOST_CALLS_H
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct host_span {
	uint64_t start_ns, end_ns;
};

struct host_calls {
	const struct timeline *t;
	uint32_t *call;		/* indices to events, a thread's together, by start */
	uint32_t *first;	/* by track; the next one's is its end */
	struct host_span *span; /* when some thread of a process was in a call, a process's together */
	size_t *span_first, *span_count; /* by process */
	uint32_t *wait;			 /* calls that wait: a process's together, by start */
	uint32_t *last_wait;		 /* by place in `wait`: the latest end of its process so far */
	size_t *wait_first;		 /* by process; the next one's is its end */
	bool *waits;			 /* by name: such a call returns once the device has done something */
	bool *allocates;		 /* by name: such a call takes or gives back memory */
};

/* By name: whether such a call returns when the device has come so far; freeing memory waits for it too.
 * Caller frees; NULL: no memory. */
bool *host_calls_that_wait(const struct timeline *t);
bool host_calls_of(struct host_calls *h, const struct timeline *t); /* false: no memory */
void host_calls_release(struct host_calls *h);
/* The waiting call in which the thread was at `at_ns`. If it made no call from then to `until_ns`, any thread
 * of its process counts, and the wait that ends last. NULL: none. */
const struct timeline_event *host_calls_waiting(const struct host_calls *h, uint32_t track, uint64_t at_ns,
						uint64_t until_ns);
/* `whole` may have stretches of at least that length in which no thread of the process made a call. How much
 * of `part` lies in them. */
uint64_t host_calls_silence(const struct host_calls *h, uint16_t process, struct windows_span whole,
			    struct windows_span part, uint64_t least_ns);
/* How much of `part` the thread spent in calls that take or give back memory. */
uint64_t host_calls_allocating(const struct host_calls *h, uint32_t track, struct windows_span part);
#endif
