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
/* A copy from the host. */
bool idle_brings(const struct timeline *t, const struct timeline_event *e);
/* Nothing ran from from_ns until `next` began: the time by reason into *d. */
void idle_explain(struct idle *i, struct breakdown_device *d, uint64_t from_ns,
		  const struct timeline_event *next);
#endif
