/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning choices: returns those made, and takes those of an earlier run. */
#include <inttypes.h>
#include <stdlib.h>
#include "model/gpu/attention_internal.h"
#include "model/gpu/gemm/gemm.h"

void gemm_plans_key(char out[160], const struct matmul_shape *s)
{
	snprintf(out, 160,
		 "%s%s %" PRIu64 "x%" PRIu64 "x%" PRIu64 " %s %s to %s, rows %" PRIu64 " %" PRIu64 " %" PRIu64
		 ", by %u%s%s%s%s%s",
		 s->transpose_a ? "T" : "N", s->transpose_b ? "T" : "N", s->m, s->n, s->k,
		 matmul_type_name(s->a), matmul_type_name(s->b), matmul_type_name(s->d), s->row_a, s->row_b,
		 s->row_d, s->align_bytes, s->accumulate ? ", added" : "",
		 s->whole_sums ? ", whole sums" : "", s->epilogue ? ", bias" : "",
		 s->compute == MATMUL_COMPUTE_TF32 ? ", tf32" : "",
		 s->scale_b == MATMUL_SCALE_BLOCK128 ? ", scales of blocks"
		 : s->scale_b == MATMUL_SCALE_VEC128 ? ", scales of 128"
						     : "");
}

bool gpu_backend_choice(const struct backend *back, size_t i, struct gpu_choice *out)
{
	const struct gemm_plans *p = gpu_of(back)->products;
	struct matmul_description d;
	const struct gemm_plan *one;

	if (i >= p->count)
		return false;
	one = &p->planned[i];
	matmul_plan_describe(one->plan, one->chosen, &d);
	*out = (struct gpu_choice){.seconds = one->seconds,
				   .first_seconds = one->first_seconds,
				   .recalled = one->recalled && !one->alike,
				   .alike = one->alike,
				   .cached = one->recalled && one->cached};
	gemm_plans_key(out->product, &one->shape);
	matmul_plan_algorithm(one->plan, one->chosen, out->words);
	snprintf(out->algorithm, sizeof(out->algorithm), "%s", d.name);
	return true;
}

bool gpu_backend_attention_choice(const struct backend *back, size_t i, struct gpu_attention_choice *out)
{
	const struct attention_state *a = gpu_of(back)->attends;
	size_t told = 0;

	*out = (struct gpu_attention_choice){0};
	if (a->chosen) {
		memcpy(out->candidate, a->candidate, sizeof(out->candidate));
		out->recalled = a->recalled;
		out->cached = a->cached;
		if (told++ == i)
			return true;
	}
	for (size_t k = 0; k < a->count; k++) {
		const struct pair *p = &a->pair[k];

		if (!p->timed || told++ != i)
			continue;
		*out = (struct gpu_attention_choice){.docs = p->docs,
						     .length = p->length,
						     .by_own = p->by_own,
						     .recalled = p->recalled,
						     .cached = p->cached};
		return true;
	}
	return false;
}

/* Copies a list and replaces the one before. An empty list becomes NULL. */
static enum status take(void **to, const void *from, size_t count, size_t size, struct error *err)
{
	void *copy = count ? malloc(count * size) : NULL;

	if (count && !copy)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for earlier tuning choices");
	if (count)
		memcpy(copy, from, count * size);
	free(*to);
	*to = copy;
	return STATUS_OK;
}

enum status gpu_backend_recall(struct backend *back, const struct gpu_choice *products, size_t count,
			       const struct gpu_attention_choice *attention, size_t attentions,
			       struct error *err)
{
	struct gemm_plans *p = gpu_of(back)->products;
	struct attention_state *a = gpu_of(back)->attends;
	void *known = p->known, *attends = a->known;
	enum status st = take(&known, products, count, sizeof(*products), err);

	p->known = known;
	p->known_count = st ? 0 : count;
	if (!st)
		st = take(&attends, attention, attentions, sizeof(*attention), err);
	a->known = attends;
	a->known_count = st ? 0 : attentions;
	return st;
}
