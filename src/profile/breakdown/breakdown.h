/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a device's time went, from its first event to its last or in windows of that: each moment is of one
 * state, so the states add up to the whole. docs/explanation/methods, "Where the time of a device went".
 */
#ifndef PROFILE_BREAKDOWN_BREAKDOWN_H
#define PROFILE_BREAKDOWN_BREAKDOWN_H
#include "profile/nccl/nccl.h"
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

/* id, JSON's key, name, whether the device does nothing for the program in it. A moment with several belongs
 * to the first. */
/* clang-format off */
#define BREAKDOWN_STATES(X)                                   \
	X(COMPUTE, "compute", "compute", false)               \
	X(COMMUNICATION, "communication", "communication", false) \
	X(COPY, "copy", "copies and sets", false)             \
	X(PEER, "peer", "waiting for a peer", true)           \
	X(DATA, "data", "data", true)                         \
	X(ALLOCATION, "allocation", "memory allocation", true) \
	X(SYNC, "synchronisation", "synchronisation", true)   \
	X(LAUNCH, "launch", "launch-bound", true)             \
	X(BETWEEN, "between_launches", "between launches", true) \
	X(REST, "rest", "rest", true)
/* clang-format on */
#define X(id, ...) BREAKDOWN_##id,
enum breakdown_state { BREAKDOWN_STATES(X) BREAKDOWN_STATE_COUNT };
#undef X
const char *breakdown_key(enum breakdown_state state);
const char *breakdown_name(enum breakdown_state state);

/*
 * Gaps by length, each bracket four times as long as the one before. Where fewer than BREAKDOWN_AGAIN of a
 * bracket are, they are single: what comes once, as start-up does, and is not to be saved in every step. A
 * gap that fills several windows counts in each.
 */
enum { BREAKDOWN_BRACKETS = 32, BREAKDOWN_AGAIN = 4 };
struct breakdown_bracket {
	uint32_t gaps;
	uint64_t state_ns[BREAKDOWN_STATE_COUNT]; /* of them, by reason */
};

struct breakdown_device {
	uint16_t process;
	uint32_t device;  /* as CUDA of that process counts */
	uint64_t span_ns; /* from its first event to its last, or the windows' length */
	uint64_t state_ns[BREAKDOWN_STATE_COUNT]; /* add up to span_ns */
	/* However much lies over it: kernels of NCCL's, others, both at once, anything at all. */
	uint64_t communication_ns, compute_ns, hidden_ns, busy_ns;
	uint64_t data_copy_ns; /* of DATA: copies to the device that nothing hides; the rest are gaps */
	uint64_t pageable_ns;  /* of DATA: copies from pageable memory, and gaps from the call of one to its
				  begin */
	uint64_t gaps, longest_gap_ns; /* times when nothing ran */
	uint64_t waits;		       /* of them, begun while the host waited for the device */
	/* Name of the call that it waited in for longer than in all others together, where there is one; and
	 * by how much. 0: none. */
	uint32_t waited_in;
	uint64_t waited_in_ns;
	struct breakdown_bracket bracket[BREAKDOWN_BRACKETS];
	/* By window of its process, in their order; they add up to state_ns. NULL without windows that are
	 * kept apart. */
	uint64_t (*window_ns)[BREAKDOWN_STATE_COUNT];
	size_t windows;
};

struct breakdown {
	struct breakdown_device *device;
	size_t devices;
};

/*
 * `n`: of the same timeline. `windows`: what counts; a process without any has no devices then, and a device
 * that does nothing in them is idle for all of them. NULL: each device from its first event to its last.
 * NO_RESOURCE: memory.
 */
enum status breakdown_of(struct breakdown *b, const struct timeline *t, const struct nccl *n,
			 const struct windows *windows, struct error *err);
void breakdown_release(struct breakdown *b);
/* Idle time of all reasons. */
uint64_t breakdown_idle_ns(const struct breakdown_device *d);
/* Of a reason's gaps those that are single. */
uint64_t breakdown_single_ns(const struct breakdown_device *d, enum breakdown_state state);
#endif
