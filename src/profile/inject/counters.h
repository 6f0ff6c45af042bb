/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of selected kernels. CUPTI's range profiler starts before the launch of a kernel and
 * stops after it. It runs the kernel alone, and runs it again on saved memory if the metrics need more than
 * one pass. Other launches wait meanwhile. */
#ifndef PROFILE_INJECT_COUNTERS_H
#define PROFILE_INJECT_COUNTERS_H
#include <stdbool.h>
#include "profile/inject/writer.h"

enum { COUNTERS_TEXT = 256 };

/* Starts a thread of the library in the profiled process. false: no thread could be started. */
typedef bool counters_thread(void *(*run)(void *), void *arg);

struct counters_wish {
	const char *pattern;  /* extended regular expression for the kernel's symbol name */
	uint64_t skip, count; /* numbers of matching kernels in this process to skip, and then to count */
	bool flop, l2; /* also count executed tensor FLOP (flop) or traffic through L2 (l2), in additional
			  passes */
	void (*refused)(void); /* called once if counting ends before all wanted kernels were counted */
	counters_thread *start_thread;
};

/* Starts counting. `cupti`: handle of the library. Returns false if counting is not possible, with the reason
 * in `why`. */
bool counters_begin(void *cupti, struct writer *w, const struct counters_wish *wish, char why[COUNTERS_TEXT]);
/* Call before CUDA shuts down. Waits until no thread of the library is inside CUPTI's counters, for at most
 * some seconds. */
void counters_wait(void);
/* Call in a child of fork, which has no threads of its parent. */
void counters_forget(void);
#endif
