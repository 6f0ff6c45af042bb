/* SPDX-License-Identifier: Apache-2.0 */
/* State of peak's CPU engine; a header so that tests can put a broken loop in. */
#ifndef PROBE_PEAK_CPU_STATE_H
#define PROBE_PEAK_CPU_STATE_H
#include "probe/shared/cpu.h"
#include "probe/peak/cpu_loops.h"
#include "probe/peak/cpu_streams.h"

enum { PEAK_END_BYTES = 24 * 64, PEAK_ADD_STEP = 3 };

struct peak_slot { /* a thread's own, on lines of its own */
	_Alignas(64) unsigned char end[PEAK_END_BYTES];
	uint64_t sum;		    /* streams: of what the last iteration read */
	uint64_t x;		    /* add: end of the chain */
	uint64_t adds, adds_cpu_ns; /* add: all rounds, and the CPU time inside them */
	struct wrong wrong;	    /* streams: of what it found in its share of what was written */
};

struct peak_cpu {
	struct peak common;
	struct cpu_pool *pool;
	enum peak_isa isa;
	peak_fma_loop *fma;
	unsigned threads;
	bool ran; /* an iteration since the last poison */
	struct peak_stream_state {
		peak_stream_loop *loop;
		const char *isa;
		uint64_t *in[2], *out;	  /* (words) each, or NULL */
		uint64_t words, part;	  /* part: words of each stream that an iteration goes over */
		unsigned parts, at, done; /* at: the last iteration's; done: since the last poison */
	} stream;
	uint64_t seed;
	struct peak_slot *slot; /* (threads) */
};

/* Units of streams, cpu_stream_run.c. Arrays and contents; what was made is the state's, peak_stream_end. */
enum status peak_stream_begin(struct peak_cpu *s, const struct machine *m, const struct target *t,
			      struct error *err);
void peak_stream_end(struct peak_cpu *s);
/* One iteration, on all threads. */
void peak_stream_run(struct peak_cpu *s);
/* Overwrites what the loops write and where they leave their sums. */
void peak_stream_poison(struct peak_cpu *s);
/* Sums and written words that iterations since the last poison left. */
void peak_stream_check(struct peak_cpu *s, struct wrong *w);
#endif
