/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's attention of one tile of queries with one chunk of keys, in FP32; one table an instruction set.
 */
#ifndef PROBE_ATTENTION_CPU_LOOPS_H
#define PROBE_ATTENTION_CPU_LOOPS_H
#include "gpu/attention/problem.h"

enum { ATTENTION_ROWS = 64, ATTENTION_KEYS = 64 };
#define ATTENTION_NO_LOGIT (-1e30f) /* largest of a row that has seen no key */
#define ATTENTION_DROPPED (-2e30f)  /* added to the logit of a pair that is not kept */

/* Of one thread, 64-byte aligned. A row has room for ATTENTION_HEAD_DIM_MAX; what is behind head_dim is 0. */
struct attention_tile {
	float q[ATTENTION_ROWS][ATTENTION_HEAD_DIM_MAX]; /* times scale and log2 e */
	float k[ATTENTION_HEAD_DIM_MAX][ATTENTION_KEYS]; /* transposed */
	float v[ATTENTION_KEYS][ATTENTION_HEAD_DIM_MAX];
	float o[ATTENTION_ROWS][ATTENTION_HEAD_DIM_MAX]; /* not yet divided by sum */
	float p[ATTENTION_ROWS][ATTENTION_KEYS];	 /* before: 0 or ATTENTION_DROPPED */
	float most[ATTENTION_ROWS], sum[ATTENTION_ROWS]; /* logit to base 2; of 2^(logit - most) */
};

struct attention_loops {
	const char *isa;
	uint32_t isa_bits;					  /* CPU_ISA_* bits it needs */
	void (*add)(struct attention_tile *t, uint32_t head_dim); /* one chunk of keys */
};
/* The widest that these ISA bits allow. Never NULL. */
const struct attention_loops *attention_loops_for(uint32_t isa_bits);
#endif
