/* SPDX-License-Identifier: Apache-2.0 */
/* CPU code for attention between one tile of queries and one chunk of keys, in FP32; one table per
 * instruction set. */
#ifndef PROBE_ATTENTION_CPU_LOOPS_H
#define PROBE_ATTENTION_CPU_LOOPS_H
#include "gpu/attention/problem.h"

enum { ATTENTION_ROWS = 64, ATTENTION_KEYS = 64 };
#define ATTENTION_NO_LOGIT (-1e30f) /* largest logit of a row before its first key */
#define ATTENTION_DROPPED (-2e30f)  /* added to the logit of a pair that is not kept */

/* One thread's tile, on a 64-byte boundary. Rows have space for ATTENTION_HEAD_DIM_MAX elements; those from
 * head_dim on are 0. */
struct attention_tile {
	float q[ATTENTION_ROWS][ATTENTION_HEAD_DIM_MAX]; /* multiplied by scale and log2 e */
	float k[ATTENTION_HEAD_DIM_MAX][ATTENTION_KEYS]; /* transposed */
	float v[ATTENTION_KEYS][ATTENTION_HEAD_DIM_MAX];
	float o[ATTENTION_ROWS][ATTENTION_HEAD_DIM_MAX]; /* not yet divided by sum */
	float p[ATTENTION_ROWS][ATTENTION_KEYS];	 /* before add: 0 or ATTENTION_DROPPED */
	/* most: largest logit, to base 2; sum: of 2^(logit - most) */
	float most[ATTENTION_ROWS], sum[ATTENTION_ROWS];
};

struct attention_loops {
	const char *isa;
	uint32_t isa_bits;					  /* CPU_ISA_* bits it needs */
	void (*add)(struct attention_tile *t, uint32_t head_dim); /* adds one chunk of keys */
};
/* The widest loops for these ISA bits. Never NULL. */
const struct attention_loops *attention_loops_for(uint32_t isa_bits);
#endif
