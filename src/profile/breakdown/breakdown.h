/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the time of each device into states, from its first event to its last, or within windows of that
 * time. Each moment has one state, so the states add up to the whole. docs/explanation/methods/profile.md,
 * "Where the time of a device went". */
#ifndef PROFILE_BREAKDOWN_BREAKDOWN_H
#define PROFILE_BREAKDOWN_BREAKDOWN_H
#include "profile/nccl/nccl.h"
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

/* id, JSON key, name, whether the state is idle time (the device does nothing for the program). If several
 * states fit a moment, the first one counts. */
/* clang-format off */
#define BREAKDOWN_STATES(X)                                   \
	X(COMPUTE, "compute", "compute", false)               \
	X(COMMUNICATION, "communication", "exposed communication", false) \
	X(COPY, "copy", "copies and sets", false)             \
	X(PEER, "peer", "waiting for a peer", true)           \
	X(DATA, "data", "data loading", true)                 \
	X(ALLOCATION, "allocation", "memory allocation", true) \
	X(SYNC, "synchronisation", "synchronization", true)   \
	X(LAUNCH, "launch", "launch-bound", true)             \
	X(BETWEEN, "between_launches", "between launches", true) \
	X(REST, "rest", "other idle time", true)
/* clang-format on */
#define X(id, ...) BREAKDOWN_##id,
enum breakdown_state { BREAKDOWN_STATES(X) BREAKDOWN_STATE_COUNT };
#undef X
const char *breakdown_key(enum breakdown_state state);
const char *breakdown_name(enum breakdown_state state);

/* Gaps grouped by length. Each bracket is four times as long as the one before. If a device has fewer than
 * BREAKDOWN_AGAIN gaps in a bracket, they are single: they occur once, as in start-up, and cannot be saved in
 * every step. A gap that fills several windows counts once in each. */
enum { BREAKDOWN_BRACKETS = 32, BREAKDOWN_AGAIN = 4 };
struct breakdown_bracket {
	uint32_t gaps;
	uint64_t state_ns[BREAKDOWN_STATE_COUNT]; /* time of these gaps by reason */
};

struct breakdown_device {
	uint16_t process;
	uint32_t device;  /* as CUDA in that process counts */
	uint64_t span_ns; /* time from its first event to its last, or total length of the windows */
	uint64_t state_ns[BREAKDOWN_STATE_COUNT]; /* add up to span_ns */
	/* Time in which at least one such event ran: an NCCL kernel, any other kernel, both, or anything. */
	uint64_t communication_ns, compute_ns, hidden_ns, busy_ns;
	uint64_t data_copy_ns; /* part of DATA: copies to the device that nothing hides; the rest of DATA are
				  gaps */
	uint64_t pageable_ns;  /* part of DATA: copies from pageable memory, and gaps from the call of such a
				  copy to its begin */
	uint64_t gaps, longest_gap_ns; /* gaps: number of times in which nothing ran */
	uint64_t waits;		       /* gaps that began while the host waited for the device */
	/* Index of the name of the call in which the host waited longer than in all other calls together, and
	 * the difference. 0: there is no such call. */
	uint32_t waited_in;
	uint64_t waited_in_ns;
	struct breakdown_bracket bracket[BREAKDOWN_BRACKETS];
	/* By window of the process, in their order. They add up to state_ns. NULL if the windows are not
	 * analyzed separately. */
	uint64_t (*window_ns)[BREAKDOWN_STATE_COUNT];
	size_t windows;
};

struct breakdown {
	struct breakdown_device *device;
	size_t devices;
};

/* `n` belongs to the same timeline. `windows`: the time that counts. A process without windows has no devices
 * in the result; a device without events in its windows is idle in all of them. NULL: each device from its
 * first event to its last. Release with breakdown_release. NO_RESOURCE: out of memory. */
enum status breakdown_of(struct breakdown *b, const struct timeline *t, const struct nccl *n,
			 const struct windows *windows, struct error *err);
void breakdown_release(struct breakdown *b);
/* Sum of all idle states. */
uint64_t breakdown_idle_ns(const struct breakdown_device *d);
/* Time of the single gaps with this reason. */
uint64_t breakdown_single_ns(const struct breakdown_device *d, enum breakdown_state state);
#endif
