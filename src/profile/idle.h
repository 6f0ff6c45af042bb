/* SPDX-License-Identifier: Apache-2.0 */
/* Why nothing ran on a device: by what ended the gap, and what the host did in it. docs/METHODS.md, "Where
 * the time of a device went". */
#ifndef PROFILE_IDLE_H
#define PROFILE_IDLE_H
#include "profile/breakdown.h"
#include "profile/host_calls.h"

/* A host that makes no call for so long does not launch. */
enum { IDLE_SILENCE_NS = 1000000 };

struct idle {
	const struct timeline *t;
	struct host_calls calls;
};

bool idle_begin(struct idle *i, const struct timeline *t); /* false: no memory; idle_end then too */
void idle_end(struct idle *i);
/* A copy from the host of fewer bytes brings arguments, as servers send them in every step, and no data. */
enum { IDLE_DATA_BYTES = 1 << 20, IDLE_DATA_PAGEABLE = 64 << 10 };
/* A copy of data from the host. */
bool idle_brings(const struct timeline *t, const struct timeline_event *e);
/* A launch that had returned so long before the device came to it was queued: the host was early enough. */
enum { IDLE_QUEUED_NS = 10000 };

/*
 * Nothing ran in `gap`, and `next` began then or, where a window ends before, later: the time by reason into
 * *d. next: NULL: nothing came any more. same_launch: the launch of `next` put what ran before it on the
 * device too.
 */
void idle_explain(struct idle *i, struct breakdown_device *d, struct windows_span gap,
		  const struct timeline_event *next, bool same_launch);
#endif
