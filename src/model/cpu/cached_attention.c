/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a few new rows to a KV cache, for generation. */
#include "model/cpu/real.h"

enum { BLOCK_ROWS = 16 }; /* rows of one head that a thread processes at once */

struct work {
	const struct attention *at;
	struct mat q, kv, o, scores;
	int64_t begin, blocks;
};

VECTOR static void scores_of(real *restrict s, const real *restrict q, const real *restrict k, int64_t ld,
			     int64_t keys, int64_t dim, real scale)
{
	for (int64_t j = 0; j < keys; j++) {
		real sum = 0;

#pragma omp simd reduction(+ : sum)
		for (int64_t i = 0; i < dim; i++)
			sum += q[i] * k[j * ld + i];
		s[j] = sum * scale;
	}
}

VECTOR static real exponentials(real *restrict s, int64_t keys)
{
	real most = s[0], sum = 0;

#pragma omp simd reduction(max : most)
	for (int64_t j = 0; j < keys; j++)
		most = s[j] > most ? s[j] : most;
#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < keys; j++) {
		s[j] = real_exp(s[j] - most);
		sum += s[j];
	}
	return sum;
}

VECTOR static void weighted(real *restrict o, const real *restrict s, const real *restrict v, int64_t ld,
			    int64_t keys, int64_t dim, real scale)
{
	for (int64_t i = 0; i < dim; i++)
		o[i] = 0;
	for (int64_t j = 0; j < keys; j++) {
		real weight = s[j] * scale;

		for (int64_t i = 0; i < dim; i++)
			o[i] += weight * v[j * ld + i];
	}
}

static void cached_item(void *arg, int64_t item, unsigned thread)
{
	const struct work *w = arg;
	const int64_t dim = w->at->head_dim, head = item / w->blocks, first = item % w->blocks * BLOCK_ROWS;
	const int64_t last = first + BLOCK_ROWS < w->q.rows ? first + BLOCK_ROWS : w->q.rows;
	const real *k = (const real *)w->kv.data + head / (w->at->heads / w->at->kv_heads) * dim;
	const real *v = k + w->at->kv_heads * dim;
	real *s = real_row(w->scores, thread);

	for (int64_t i = first; i < last; i++) {
		int64_t keys = w->begin + i + 1;

		scores_of(s, real_row(w->q, i) + head * dim, k, w->kv.ld, keys, dim, (real)w->at->scale);
		weighted(real_row(w->o, i) + head * dim, s, v, w->kv.ld, keys, dim,
			 1 / exponentials(s, keys));
	}
}

enum status cpu_attention_cached(struct backend *back, const struct attention *at, struct mat q,
				 struct mat kv, int64_t begin, struct mat o, struct error *err)
{
	struct work w = {.at = at, .q = q, .kv = kv, .o = o, .begin = begin};
	const struct arena_mark mark = arena_mark(back->arena);
	enum status st = workspace_cached(back, begin + q.rows, &w.scores, err);

	if (st)
		return st;
	cost_cached(back, at, begin, q.rows);
	w.blocks = (q.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
	cpu_items(back, at->heads * w.blocks, (double)((begin + q.rows) * kv.cols) * sizeof(real),
		  cached_item, &w);
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}
