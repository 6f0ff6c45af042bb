/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: the time spans that an analysis counts, by process. Examples are the steady state, the start-up,
 * or some of the steps. */
#ifndef PROFILE_TIMELINE_WINDOWS_H
#define PROFILE_TIMELINE_WINDOWS_H
#include <stdbool.h>
#include "profile/timeline/timeline.h"

struct windows_span {
	uint64_t from_ns, to_ns; /* from_ns <= t < to_ns; CLOCK_MONOTONIC */
};

struct windows {
	bool apart;		   /* results are also stored per span */
	struct windows_span *span; /* grouped by process, in order, without overlap */
	size_t *first;		   /* by process, plus one entry for the end of the last */
};

/* Allocates room for `spans` spans in total; none are added yet. Spans must be added in the order of the
 * processes. false: out of memory. */
bool windows_make(struct windows *w, const struct timeline *t, size_t spans);
void windows_release(struct windows *w); /* leaves *w empty */
/* Adds the next span of this process, which must not come before the process of the last added span. Empty
 * spans are ignored. */
void windows_add(struct windows *w, const struct timeline *t, uint16_t process, uint64_t from_ns,
		 uint64_t to_ns);
/* Whether the time lies in one of the spans, which are in order and do not overlap. */
bool windows_in(const struct windows_span *span, size_t spans, uint64_t at_ns);
/* Whether this time of the process counts. w NULL: all times count. */
bool windows_contain(const struct windows *w, uint16_t process, uint64_t at_ns);
#endif
