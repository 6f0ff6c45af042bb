/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding of the rows of a step, and their queries, keys and values with a KV cache in pages. */
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/cpu/real.h"

struct embedding {
	const struct paged_rows *rows;
	struct mat table, last, x;
};

static void embed_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct embedding *e = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		const int32_t token = e->rows->token[t];
		const int32_t id = token < 0 ? ((const int32_t *)e->last.data)[-1 - token] : token;

		if (e->table.dtype == REAL_DTYPE)
			memcpy(real_row(e->x, t), real_row(e->table, id), (size_t)e->x.cols * sizeof(real));
		else
			cpu_unpack_row(&e->table, id, (float *)e->x.data + t * e->x.ld);
	}
}

enum status cpu_paged_embed(struct backend *back, const struct paged_rows *rows, struct mat table,
			    struct mat last, struct mat x, struct error *err)
{
	struct embedding e = {.rows = rows, .table = table, .last = last, .x = x};

	if (x.dtype != REAL_DTYPE || (table.dtype != REAL_DTYPE && x.dtype != DTYPE_F32))
		return error_set(err, STATUS_BUG, "an embedding of types that the CPU does not support");
	cost_touch(back, &x, 2);
	cpu_parts(back, x.rows, 1, (double)(x.rows * x.cols) * sizeof(real), embed_rows, &e);
	return STATUS_OK;
}

struct rope {
	const struct paged_rows *rows;
	const struct attention *at;
	const struct paged_layer *cache;
	struct mat qkv, q_norm, k_norm, cos_sin;
	real eps;
};

/* One scale for the head, such that its largest magnitude becomes E4M3's largest number. */
static float to_e4m3(const real *x, uint8_t *out, int64_t dim)
{
	float most = 0, inverse;

	for (int64_t i = 0; i < dim; i++) {
		const float size = fabsf((float)x[i]);

		most = size <= most ? most : size; /* NaN comes through */
	}
	inverse = most > 0 ? E4M3_MOST / most : 0;
	for (int64_t i = 0; i < dim; i++)
		out[i] = e4m3_of_f32((float)x[i] * inverse);
	return most / E4M3_MOST;
}

/* Keys and values [2 kv_heads, dim] of one row. */
static void store(const struct rope *r, const real *kv, int64_t slot)
{
	const int64_t heads = 2 * r->at->kv_heads, dim = r->at->head_dim;
	const struct mat *to = &r->cache->kv;

	if (!r->cache->scale.rows) {
		memcpy(real_row(*to, slot), kv, (size_t)(heads * dim) * sizeof(real));
		return;
	}
	for (int64_t h = 0; h < heads; h++)
		((float *)r->cache->scale.data)[slot * r->cache->scale.ld + h] =
			to_e4m3(kv + h * dim, (uint8_t *)to->data + slot * to->ld + h * dim, dim);
}

static void rope_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rope *r = arg;
	const int64_t heads = r->at->heads, both = heads + r->at->kv_heads, dim = r->at->head_dim;

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		const real *angles = real_row(r->cos_sin, r->rows->position[t]);

		for (int64_t h = 0; h < both; h++) {
			const struct mat *w = h < heads ? &r->q_norm : &r->k_norm;
			real *x = real_row(r->qkv, t) + h * dim;

			if (w->rows)
				cpu_norm_row(x, w->data, x, dim, r->eps);
			cpu_rotate(x, angles, dim / 2, 1);
		}
		store(r, real_row(r->qkv, t) + heads * dim, r->rows->slot[t]);
	}
}

enum status cpu_paged_rope(struct backend *back, const struct paged_rows *rows, const struct attention *at,
			   struct mat qkv, struct mat q_norm, struct mat k_norm, float eps,
			   struct mat cos_sin, const struct paged_layer *cache, struct error *err)
{
	struct rope r = {
		.rows = rows,
		.at = at,
		.cache = cache,
		.qkv = qkv,
		.q_norm = q_norm,
		.k_norm = k_norm,
		.cos_sin = cos_sin,
		.eps = (real)eps,
	};

	if (cache->kv.dtype != (cache->scale.rows ? DTYPE_E4M3 : REAL_DTYPE))
		return error_set(err, STATUS_BUG, "a KV cache of a type that the CPU does not support");
	cost_touch(back, &qkv, 2);
	/* Padding rows are left out: all of them would write to the same row of the cache. */
	cpu_parts(back, rows->begin[rows->sequences], 1, (double)(qkv.rows * qkv.cols) * sizeof(real),
		  rope_rows, &r);
	return STATUS_OK;
}
