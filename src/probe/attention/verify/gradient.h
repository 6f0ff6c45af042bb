/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward in double precision, a query row at a time: with P = exp(S - lse), dP = dO V^T and D = dO . O,
 *   dS = scale P (dP - D)   dQ = dS K   dK = dS^T Q   dV = P^T dO
 * over the keys that the mask keeps. Dense masks alone: a row's keys are one span.
 */
#ifndef PROBE_ATTENTION_VERIFY_GRADIENT_H
#define PROBE_ATTENTION_VERIFY_GRADIENT_H
#include "probe/attention/attention.h"

/* Where rows of Q, K, V and dO come from: an engine's memory, or the generator. */
struct attention_rows {
	void (*row)(const void *from, enum attention_tensor t, uint32_t b, uint32_t h, uint32_t row,
		    float *out);
	const void *from;
};

/* One key head's, of one thread. */
struct attention_gradient {
	float *k, *v;	   /* (kv_len, head_dim), as the type holds them */
	double *p, *d_s;   /* (kv_len) of the last row */
	double *d_k, *d_v; /* (kv_len, head_dim) */
};
/* Owner: caller, attention_gradient_free. False: no memory. */
bool attention_gradient_alloc(struct attention_gradient *g, const struct attention_problem *p);
void attention_gradient_free(struct attention_gradient *g);
/* Loads the head's keys and values; dK and dV become 0. */
void attention_gradient_begin(struct attention_gradient *g, const struct attention_problem *p,
			      const struct attention_rows *rows, uint32_t b, uint32_t kv_head);
/* One query row: its dQ (head_dim) is set, dK and dV are added to. The keys it keeps; p and d_s are theirs.
 */
struct attention_keys attention_gradient_row(struct attention_gradient *g, const struct attention_problem *p,
					     const float *q, const float *d_o, uint32_t b, uint32_t row,
					     double *d_q);
#endif
