/* SPDX-License-Identifier: Apache-2.0 */
/* Why nothing ran on a device: by what ended the gap, and what the host did in it. docs/explanation/methods,
 * "Where the time of a device went". */
#ifndef PROFILE_BREAKDOWN_IDLE_REASON_H
#define PROFILE_BREAKDOWN_IDLE_REASON_H
#include "profile/breakdown/breakdown.h"
#include "profile/breakdown/host_calls.h"

/* A host that makes no call for so long does not launch. */
enum { IDLE_REASON_SILENCE_NS = 1000000 };

struct idle_reason {
	const struct timeline *t;
	struct host_calls calls;
};

bool idle_reason_begin(struct idle_reason *i,
		       const struct timeline *t); /* false: no memory; idle_reason_end then too */
void idle_reason_end(struct idle_reason *i);
/* A copy from the host of fewer bytes brings arguments, as servers send them in every step, and no data. */
enum { IDLE_REASON_DATA_BYTES = 1 << 20, IDLE_REASON_DATA_PAGEABLE = 64 << 10 };
/* A copy of data from the host. */
bool idle_reason_brings(const struct timeline *t, const struct timeline_event *e);
/* A launch that had returned so long before the device came to it was queued: the host was early enough. */
enum { IDLE_REASON_QUEUED_NS = 10000 };

/* A time in which nothing ran. The whole gap gives the reason, also where windows hold only parts. */
struct idle_reason_gap {
	uint64_t from_ns, to_ns;	   /* all had ended; `next` begins */
	const struct timeline_event *next; /* NULL: nothing came any more */
	bool same_launch;		   /* its launch put what ran before it on the device too */
	uint64_t counted_ns;		   /* how much lies in windows */
	uint32_t times;			   /* one, or how many windows it fills */
	/* Found by idle_reason_look: the call that launched `next`; the wait in which the host was at
	 * `from_ns`.
	 */
	const struct timeline_event *call, *wait;
};

/* Finds its calls, and counts it. */
void idle_reason_look(struct idle_reason *i, struct breakdown_device *d, struct idle_reason_gap *gap);
/* Adds the part's time, by reason, to *d. */
void idle_reason_explain(struct idle_reason *i, struct breakdown_device *d, const struct idle_reason_gap *gap,
			 struct windows_span part);
#endif
