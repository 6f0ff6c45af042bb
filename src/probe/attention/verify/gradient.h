/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward pass in double precision, one query row at a time. With P = exp(S - lse), dP = dO V^T and D = dO .
 * O:
 *   dS = scale P (dP - D)   dQ = dS K   dK = dS^T Q   dV = P^T dO
 * over the keys that the mask keeps. Only for dense masks, in which a row's keys are one span.
 */
#ifndef PROBE_ATTENTION_VERIFY_GRADIENT_H
#define PROBE_ATTENTION_VERIFY_GRADIENT_H
#include "probe/attention/attention.h"

/* Source of the rows of Q, K, V and dO: an engine's memory, or the generator. */
struct attention_rows {
	void (*row)(const void *from, enum attention_tensor t, uint32_t b, uint32_t h, uint32_t row,
		    float *out);
	const void *from;
};

/* Gradients of one key head; each thread has its own. */
struct attention_gradient {
	float *k, *v;	   /* (kv_len, head_dim), rounded to the type */
	double *p, *d_s;   /* (kv_len) of the last row */
	double *d_k, *d_v; /* (kv_len, head_dim) */
};
/* Returns false if there is not enough memory. Owner: caller, attention_gradient_free. */
bool attention_gradient_alloc(struct attention_gradient *g, const struct attention_problem *p);
void attention_gradient_free(struct attention_gradient *g);
/* Loads the keys and values of the head and sets dK and dV to 0. */
void attention_gradient_begin(struct attention_gradient *g, const struct attention_problem *p,
			      const struct attention_rows *rows, uint32_t b, uint32_t kv_head);
/* Processes one query row: sets its dQ (head_dim) and adds to dK and dV. Returns the span of the row's keys,
 * for which p and d_s are valid. */
struct attention_keys attention_gradient_row(struct attention_gradient *g, const struct attention_problem *p,
					     const float *q, const float *d_o, uint32_t b, uint32_t row,
					     double *d_q);
#endif
