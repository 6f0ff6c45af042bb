/* SPDX-License-Identifier: Apache-2.0 */
/* State of probe peak's CPU engine. It is in a header so that tests can replace the loop by a broken one. */
#ifndef PROBE_PEAK_CPU_STATE_H
#define PROBE_PEAK_CPU_STATE_H
#include "probe/shared/cpu.h"
#include "probe/peak/cpu_loops.h"
#include "probe/peak/cpu_streams.h"

enum { PEAK_END_BYTES = 24 * 64, PEAK_ADD_STEP = 3 };

struct peak_slot { /* one thread's results, on cache lines of their own */
	_Alignas(64) unsigned char end[PEAK_END_BYTES];
	uint64_t sum;		    /* streams: sum of the words that the last iteration read */
	uint64_t x;		    /* add: end of the chain */
	uint64_t adds, adds_cpu_ns; /* add: number of adds in all iterations, and the CPU time they took */
	struct wrong wrong;	    /* streams: wrong words in this thread's share of the written stream */
};

struct peak_cpu {
	struct peak common;
	struct cpu_pool *pool;
	enum peak_isa isa;
	peak_fma_loop *fma;
	unsigned threads;
	bool ran; /* an iteration ran since the last poison */
	struct peak_stream_state {
		peak_stream_loop *loop;
		const char *isa;
		uint64_t *in[2], *out; /* (words) each, or NULL */
		uint64_t words, part;  /* part: words of each stream that one iteration covers */
		/* at: part of the last iteration; done: parts since the last poison */
		unsigned parts, at, done;
	} stream;
	uint64_t seed;
	struct peak_slot *slot; /* (threads) */
};

/* Functions of the units that move streams (cpu_stream_run.c). peak_stream_begin allocates and fills the
 * streams; peak_stream_end frees them, also after a failed begin. */
enum status peak_stream_begin(struct peak_cpu *s, const struct machine *m, const struct target *t,
			      struct error *err);
void peak_stream_end(struct peak_cpu *s);
/* Runs one iteration on all threads. */
void peak_stream_run(struct peak_cpu *s);
/* Overwrites the written stream and the threads' sums. */
void peak_stream_poison(struct peak_cpu *s);
/* Checks the sums and the written words of the iterations since the last poison. */
void peak_stream_check(struct peak_cpu *s, struct wrong *w);
#endif
