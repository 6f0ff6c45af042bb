/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of chosen kernels: CUPTI's range profiler is started before the launch and stopped behind
 * it; it runs the kernel alone, and again on saved memory where one pass does not do. Other launches wait
 * meanwhile.
 */
#ifndef PROFILE_INJECT_COUNTERS_H
#define PROFILE_INJECT_COUNTERS_H
#include <stdbool.h>
#include "profile/inject/writer.h"

enum { COUNTERS_TEXT = 256 };

/* Of ours, beside the program's. False: none could be started. */
typedef bool counters_thread(void *(*run)(void *), void *arg);

struct counters_wish {
	const char *pattern;   /* extended regular expression, of the name as the linker has it */
	uint64_t skip, count;  /* of the kernels that match, in this process */
	bool flop, l2;	       /* executed tensor FLOP, what crossed L2, too: more passes */
	void (*refused)(void); /* once, where counters end before the wanted ones were taken */
	counters_thread *start_thread;
};

/* `cupti`: the library's handle. False: *why says why there will be none. */
bool counters_begin(void *cupti, struct writer *w, const struct counters_wish *wish, char why[COUNTERS_TEXT]);
/* Before CUDA goes: until no thread of ours is inside CUPTI's counters, at most some seconds. */
void counters_wait(void);
/* In a child of fork, which has no threads of its parent's. */
void counters_forget(void);
#endif
