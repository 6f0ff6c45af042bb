/* SPDX-License-Identifier: Apache-2.0 */
/* State of peak's CPU engine; a header so that tests can put a broken loop in. */
#ifndef PROBE_PEAK_CPU_STATE_H
#define PROBE_PEAK_CPU_STATE_H
#include "probe/cpu_pool.h"
#include "probe/memory/cpu_loops.h"
#include "probe/peak/cpu_loops.h"

enum { PEAK_END_BYTES = 24 * 64, PEAK_ADD_STEP = 3 };

struct peak_slot { /* a thread's own, on lines of its own */
	unsigned char end[PEAK_END_BYTES];
	double sum;
	uint64_t x;		    /* add: end of the chain */
	uint64_t adds, adds_cpu_ns; /* add: all rounds, and the CPU time inside them */
	double right;		    /* read: what its sum must be */
	char rest[24];
};

struct peak_cpu {
	struct peak common;
	struct cpu_pool *pool;
	enum peak_isa isa;
	peak_fma_loop *fma;
	const struct memory_loops *loops;
	unsigned threads;
	bool ran;	/* an iteration since the last poison */
	double *stream; /* read: (count) */
	uint64_t count, seed;
	struct peak_slot *slot; /* (threads) */
};
#endif
