/* SPDX-License-Identifier: Apache-2.0 */
/* The reason for a gap: why nothing ran on a device, from the work that ended the gap and from the host's
 * calls. docs/explanation/methods/profile.md, "The reason for a gap". */
#ifndef PROFILE_BREAKDOWN_IDLE_REASON_H
#define PROFILE_BREAKDOWN_IDLE_REASON_H
#include "profile/breakdown/breakdown.h"
#include "profile/breakdown/host_calls.h"

/* After this time without a call, the host is considered busy outside CUDA. */
enum { IDLE_REASON_SILENCE_NS = 1000000 };

struct idle_reason {
	const struct timeline *t;
	struct host_calls calls;
};

bool idle_reason_begin(struct idle_reason *i,
		       const struct timeline *t); /* false: out of memory; call idle_reason_end then too */
void idle_reason_end(struct idle_reason *i);
/* Copies from the host below these sizes bring arguments, as servers send them in every step. Larger ones
 * bring data. */
enum { IDLE_REASON_DATA_BYTES = 1 << 20, IDLE_REASON_DATA_PAGEABLE = 64 << 10 };
/* Whether the event is a copy of data from the host. */
bool idle_reason_brings(const struct timeline *t, const struct timeline_event *e);
/* If the launching call had returned this long before the device was free, the launch was queued: the host
 * was early enough. */
enum { IDLE_REASON_QUEUED_NS = 10000 };

/* A time in which nothing ran on a device. The whole gap determines the reason, even if only parts of it lie
 * in windows. */
struct idle_reason_gap {
	uint64_t from_ns, to_ns;	   /* end of all work before; begin of `next` */
	const struct timeline_event *next; /* NULL: no later work */
	bool same_launch;		   /* the same call also launched the work before the gap */
	uint64_t counted_ns;		   /* part that lies in windows */
	uint32_t times;			   /* 1, or the number of windows that the gap fills */
	/* Set by idle_reason_look: the call that launched `next`, and the wait in which the host was at
	 * `from_ns`. */
	const struct timeline_event *call, *wait;
};

/* Finds the gap's calls, and counts the gap. */
void idle_reason_look(struct idle_reason *i, struct breakdown_device *d, struct idle_reason_gap *gap);
/* Adds the time of this part of the gap to *d, by reason. */
void idle_reason_explain(struct idle_reason *i, struct breakdown_device *d, const struct idle_reason_gap *gap,
			 struct windows_span part);
#endif
