/* SPDX-License-Identifier: Apache-2.0 */
/* The stretches of time that an analysis counts, by process: its steady state, its start-up, some of its
 * steps. */
#ifndef PROFILE_TIMELINE_WINDOWS_H
#define PROFILE_TIMELINE_WINDOWS_H
#include <stdbool.h>
#include "profile/timeline/timeline.h"

struct windows_span {
	uint64_t from_ns, to_ns; /* from <= t < to; CLOCK_MONOTONIC */
};

struct windows {
	bool apart;		   /* what is found is kept by span too */
	struct windows_span *span; /* a process's together, in order, none over another */
	size_t *first; /* by process, one more than there are processes: the next one's is the end */
};

/* Room for `spans` in all, none yet: they are added in the order of the processes. false: no memory. */
bool windows_make(struct windows *w, const struct timeline *t, size_t spans);
void windows_release(struct windows *w); /* empty again */
/* The next span of this process, which is not before the last one that was added to. Empty spans are left
 * out. */
void windows_add(struct windows *w, const struct timeline *t, uint16_t process, uint64_t from_ns,
		 uint64_t to_ns);
/* Whether that time lies in one of the spans, which are in order, none over another. */
bool windows_in(const struct windows_span *span, size_t spans, uint64_t at_ns);
/* Whether that time of the process counts; w: NULL: all do. */
bool windows_hold(const struct windows *w, uint16_t process, uint64_t at_ns);
#endif
