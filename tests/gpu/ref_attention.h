/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by its definition, in double precision, forward and backward, on the numbers as they are stored.
 */
#ifndef TESTS_GPU_REF_ATTENTION_H
#define TESTS_GPU_REF_ATTENTION_H
#include <stdint.h>
#include "gpu/attention/problem.h"

/* On the host, as the problem lays them out; gradients NULL: forward alone. FP8 is taken as it stands: scales
 * of 1. lse: [batch][heads][q_len]; rows beyond a sequence's length are left alone. */
struct ref_attention {
	const void *q, *k, *v, *d_o;
	double *o, *lse;	 /* o: attention_o_count of them */
	double *d_q, *d_k, *d_v; /* attention_q_count ..; rows are cleared here */
};
void ref_attention_run(const struct attention_problem *p, const struct ref_attention *r);
#endif
