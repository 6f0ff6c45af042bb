/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/cpu_backward.h"
#include <stdatomic.h>
#include <stdlib.h>
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

struct attention_cpu_backward {
	const struct attention *a;
	void *const *tensor;
	struct attention_gradient *gradient; /* (threads) */
	atomic_uint_fast64_t next;	     /* next key head to work on */
};

static char *place(const struct attention_cpu_backward *w, enum attention_tensor t, uint32_t b, uint32_t h,
		   uint32_t row)
{
	const struct attention_problem *p = &w->a->c.problem;

	return (char *)w->tensor[t] +
	       attention_tensor_at(p, t, b, h, row) * attention_type_bytes(attention_tensor_type(p, t));
}

static void load(const void *from, enum attention_tensor t, uint32_t b, uint32_t h, uint32_t row, float *out)
{
	const struct attention_cpu_backward *w = from;
	const struct attention_problem *p = &w->a->c.problem;

	attention_load(attention_tensor_type(p, t), out, place(w, t, b, h, row), p->head_dim);
}

static void store(const struct attention_cpu_backward *w, enum attention_tensor t, uint32_t b, uint32_t h,
		  uint32_t row, const double *values)
{
	const struct attention_problem *p = &w->a->c.problem;
	float rounded[ATTENTION_HEAD_DIM_MAX];

	for (uint32_t d = 0; d < p->head_dim; d++)
		rounded[d] = (float)values[d];
	attention_store(p->type, place(w, t, b, h, row), rounded, p->head_dim);
}

static void differentiate(struct attention_cpu_backward *w, struct attention_gradient *g, uint32_t b,
			  uint32_t kv_head)
{
	const struct attention_problem *p = &w->a->c.problem;
	const struct attention_rows rows = {load, w};
	float q[ATTENTION_HEAD_DIM_MAX], d_o[ATTENTION_HEAD_DIM_MAX];
	double d_q[ATTENTION_HEAD_DIM_MAX];
	uint32_t group = p->heads / p->kv_heads;

	attention_gradient_begin(g, p, &rows, b, kv_head);
	for (uint32_t h = kv_head * group; h < (kv_head + 1) * group; h++)
		for (uint32_t row = 0; row < attention_q_len(p, b); row++) {
			load(w, ATTENTION_Q, b, h, row, q);
			load(w, ATTENTION_D_O, b, h, row, d_o);
			attention_gradient_row(g, p, q, d_o, b, row, d_q);
			store(w, ATTENTION_D_Q, b, h, row, d_q);
		}
	for (uint32_t j = 0; j < attention_kv_len(p, b); j++) {
		store(w, ATTENTION_D_K, b, kv_head, j, g->d_k + (size_t)j * p->head_dim);
		store(w, ATTENTION_D_V, b, kv_head, j, g->d_v + (size_t)j * p->head_dim);
	}
}

static void work(void *arg, unsigned thread)
{
	struct attention_cpu_backward *w = arg;
	const struct attention_problem *p = &w->a->c.problem;
	uint64_t heads = (uint64_t)p->batch * p->kv_heads, i;

	while ((i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < heads)
		differentiate(w, &w->gradient[thread], (uint32_t)(i / p->kv_heads),
			      (uint32_t)(i % p->kv_heads));
}

enum status attention_cpu_backward_create(struct attention_cpu_backward **w, const struct attention *a,
					  struct error *err)
{
	unsigned threads = cpu_pool_count(a->pool);
	bool room = true;

	*w = calloc(1, sizeof(**w));
	if (*w) {
		(*w)->a = a;
		(*w)->gradient = calloc(threads, sizeof(*(*w)->gradient));
	}
	room = *w && (*w)->gradient;
	for (unsigned i = 0; room && i < threads; i++)
		room = attention_gradient_alloc(&(*w)->gradient[i], &a->c.problem);
	return room ? STATUS_OK
		    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				      "attention: not enough memory for the threads");
}

void attention_cpu_backward_free(struct attention_cpu_backward **w)
{
	if (!*w)
		return;
	for (unsigned i = 0; (*w)->gradient && i < cpu_pool_count((*w)->a->pool); i++)
		attention_gradient_free(&(*w)->gradient[i]);
	free((*w)->gradient);
	free(*w);
	*w = NULL;
}

void attention_cpu_backward_run(struct attention_cpu_backward *w, void *const tensor[ATTENTION_TENSORS])
{
	w->tensor = tensor;
	atomic_store(&w->next, 0);
	cpu_pool_run(w->a->pool, work, w);
}
