/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal attention within sequences, in tiles of ATTENTION_ROWS queries against all earlier keys. Threads
 * divide the work by (sequence, head) in forward and by (sequence, key head) in backward, so that no two
 * threads write to the same place.
 */
#include "model/cpu/real.h"

struct work {
	const struct backend *back;
	const struct attention *at;
	const struct batch *batch;
	struct mat qkv, o, lse, d_o, dqkv, tile;
	double products_s; /* of thread 0, which is the calling thread */
};

/* Reading the clock takes a thousandth of the time of a tile's GEMM. */
static double products_begin(unsigned thread)
{
	return thread ? 0 : clock_now_s();
}

static void products_end(struct work *w, unsigned thread, double began)
{
	if (!thread)
		w->products_s += clock_now_s() - began;
}

/* One head of one sequence: pointers to its first row. */
struct head {
	real *q, *k, *v, *o, *lse;
	real *d_o, *dq, *dk, *dv;
	int64_t rows;
};

static struct head head_of(const struct work *w, int64_t doc, int q_head)
{
	const int64_t dim = w->at->head_dim, row = w->batch->doc_start[doc];
	const int64_t kv = q_head / (w->at->heads / w->at->kv_heads);
	const int64_t k_col = (w->at->heads + kv) * dim, v_col = (w->at->heads + w->at->kv_heads + kv) * dim;
	struct head h = {
		.q = real_row(w->qkv, row) + q_head * dim,
		.k = real_row(w->qkv, row) + k_col,
		.v = real_row(w->qkv, row) + v_col,
		.o = real_row(w->o, row) + q_head * dim,
		.lse = real_row(w->lse, row) + q_head,
		.rows = w->batch->doc_start[doc + 1] - row,
	};

	if (w->dqkv.rows) {
		h.d_o = real_row(w->d_o, row) + q_head * dim;
		h.dq = real_row(w->dqkv, row) + q_head * dim;
		h.dk = real_row(w->dqkv, row) + k_col;
		h.dv = real_row(w->dqkv, row) + v_col;
	}
	return h;
}

/* Softmax of the first `kept` elements; sets the rest up to `all` to 0. Returns log(sum(exp(s))). */
VECTOR static real softmax_row(real *restrict s, int64_t kept, int64_t all)
{
	real most = s[0], sum = 0, inverse;

#pragma omp simd reduction(max : most)
	for (int64_t j = 0; j < kept; j++)
		most = s[j] > most ? s[j] : most;
#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < kept; j++) {
		s[j] = real_exp(s[j] - most);
		sum += s[j];
	}
	inverse = 1 / sum;
	for (int64_t j = 0; j < kept; j++)
		s[j] *= inverse;
	for (int64_t j = kept; j < all; j++)
		s[j] = 0;
	return most + (real)log((double)sum);
}

/* p = exp(s - lse) for kept elements, else 0; dp = p (dp - delta) scale. */
VECTOR static void score_row_bwd(real *restrict p, real *restrict dp, int64_t kept, int64_t all, real lse,
				 real delta, real scale)
{
#pragma omp simd
	for (int64_t j = 0; j < kept; j++) {
		p[j] = real_exp(p[j] - lse);
		dp[j] = p[j] * (dp[j] - delta) * scale;
	}
	for (int64_t j = kept; j < all; j++)
		p[j] = dp[j] = 0;
}

VECTOR static real dot(const real *restrict x, const real *restrict y, int64_t n)
{
	real sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < n; j++)
		sum += x[j] * y[j];
	return sum;
}

/* z = x [m, k] y' [n, k], with row strides. */
static void times_transposed(const struct work *w, const real *x, int64_t ldx, const real *y, int64_t ldy,
			     real *z, int64_t m, int64_t n, real alpha)
{
	cpu_product(cpu_of(w->back), &(struct product){.x = x,
						       .y = y,
						       .z = z,
						       .m = m,
						       .n = n,
						       .k = w->at->head_dim,
						       .ldx = ldx,
						       .ldy = ldy,
						       .ldz = w->tile.ld,
						       .ty = true,
						       .alpha = alpha});
}

/* z [m, head_dim] = x [m, n] y [n, head_dim]; x is a tile. */
static void tile_times(const struct work *w, const real *x, const real *y, int64_t ldy, real *z, int64_t ldz,
		       int64_t m, int64_t n)
{
	cpu_product(cpu_of(w->back), &(struct product){.x = x,
						       .y = y,
						       .z = z,
						       .m = m,
						       .n = w->at->head_dim,
						       .k = n,
						       .ldx = w->tile.ld,
						       .ldy = ldy,
						       .ldz = ldz,
						       .alpha = 1});
}

/* z [n, head_dim] += x' y for a tile x [m, n] and y [m, head_dim]. */
static void add_tile_transposed(const struct work *w, const real *x, const real *y, int64_t ldy, real *z,
				int64_t ldz, int64_t m, int64_t n)
{
	cpu_product(cpu_of(w->back), &(struct product){.x = x,
						       .y = y,
						       .z = z,
						       .m = n,
						       .n = w->at->head_dim,
						       .k = m,
						       .ldx = w->tile.ld,
						       .ldy = ldy,
						       .ldz = ldz,
						       .tx = true,
						       .alpha = 1,
						       .beta = 1});
}

static void forward_item(void *arg, int64_t item, unsigned thread)
{
	struct work *w = arg;
	const struct head h = head_of(w, item / w->at->heads, (int)(item % w->at->heads));
	real *s = real_row(w->tile, (int64_t)thread * ATTENTION_ROWS);

	for (int64_t begin = 0; begin < h.rows; begin += ATTENTION_ROWS) {
		int64_t n = h.rows - begin < ATTENTION_ROWS ? h.rows - begin : ATTENTION_ROWS;
		int64_t keys = begin + n;
		double began = products_begin(thread);

		times_transposed(w, h.q + begin * w->qkv.ld, w->qkv.ld, h.k, w->qkv.ld, s, n, keys,
				 (real)w->at->scale);
		products_end(w, thread, began);
		for (int64_t i = 0; i < n; i++)
			h.lse[(begin + i) * w->lse.ld] = softmax_row(s + i * w->tile.ld, begin + i + 1, keys);
		began = products_begin(thread);
		tile_times(w, s, h.v, w->qkv.ld, h.o + begin * w->o.ld, w->o.ld, n, keys);
		products_end(w, thread, began);
	}
}

enum status cpu_attention(struct backend *back, const struct attention *at, const struct batch *batch,
			  struct mat qkv, struct mat o, struct mat lse, struct error *err)
{
	struct work w = {.back = back, .at = at, .batch = batch, .qkv = qkv, .o = o, .lse = lse};
	const struct arena_mark mark = arena_mark(back->arena);
	const double bytes = (double)(qkv.rows * qkv.cols) * sizeof(real);
	enum status st = workspace_attention(back, batch, false, &w.tile, err);

	if (st)
		return st;
	cost_attention(back, at, batch, false);
	cpu_items(back, batch->docs * at->heads, bytes, forward_item, &w);
	back->cost.gemm_s += w.products_s;
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}

/* One query head's part of a sequence's gradients. */
static void head_bwd(struct work *w, const struct head *h, real *p, real *dp, unsigned thread)
{
	const int64_t ld = w->qkv.ld, ldd = w->dqkv.ld, dim = w->at->head_dim;

	for (int64_t begin = 0; begin < h->rows; begin += ATTENTION_ROWS) {
		int64_t n = h->rows - begin < ATTENTION_ROWS ? h->rows - begin : ATTENTION_ROWS;
		int64_t keys = begin + n;
		const real *q = h->q + begin * ld, *d_o = h->d_o + begin * w->d_o.ld;
		double began = products_begin(thread);

		times_transposed(w, q, ld, h->k, ld, p, n, keys, (real)w->at->scale);
		times_transposed(w, d_o, w->d_o.ld, h->v, ld, dp, n, keys, 1);
		products_end(w, thread, began);
		for (int64_t i = 0; i < n; i++)
			score_row_bwd(p + i * w->tile.ld, dp + i * w->tile.ld, begin + i + 1, keys,
				      h->lse[(begin + i) * w->lse.ld],
				      dot(d_o + i * w->d_o.ld, h->o + (begin + i) * w->o.ld, dim),
				      (real)w->at->scale);
		began = products_begin(thread);
		add_tile_transposed(w, p, d_o, w->d_o.ld, h->dv, ldd, n, keys);
		add_tile_transposed(w, dp, q, ld, h->dk, ldd, n, keys);
		tile_times(w, dp, h->k, ld, h->dq + begin * ldd, ldd, n, keys);
		products_end(w, thread, began);
	}
}

static void backward_item(void *arg, int64_t item, unsigned thread)
{
	struct work *w = arg;
	const int group = w->at->heads / w->at->kv_heads, kv = (int)(item % w->at->kv_heads);
	real *p = real_row(w->tile, (int64_t)thread * 2 * ATTENTION_ROWS);
	real *dp = p + ATTENTION_ROWS * w->tile.ld;

	for (int g = 0; g < group; g++) {
		const struct head h = head_of(w, item / w->at->kv_heads, kv * group + g);

		for (int64_t i = 0; !g && i < h.rows; i++) {
			memset(h.dk + i * w->dqkv.ld, 0, (size_t)w->at->head_dim * sizeof(real));
			memset(h.dv + i * w->dqkv.ld, 0, (size_t)w->at->head_dim * sizeof(real));
		}
		head_bwd(w, &h, p, dp, thread);
	}
}

enum status cpu_attention_bwd(struct backend *back, const struct attention *at, const struct batch *batch,
			      struct mat qkv, struct mat o, struct mat lse, struct mat d_o, struct mat dqkv,
			      struct error *err)
{
	struct work w = {
		.back = back,
		.at = at,
		.batch = batch,
		.qkv = qkv,
		.o = o,
		.lse = lse,
		.d_o = d_o,
		.dqkv = dqkv,
	};
	const struct arena_mark mark = arena_mark(back->arena);
	const double bytes = (double)(qkv.rows * qkv.cols) * sizeof(real);
	enum status st = workspace_attention(back, batch, true, &w.tile, err);

	if (st)
		return st;
	cost_attention(back, at, batch, true);
	cpu_items(back, batch->docs * at->kv_heads, bytes, backward_item, &w);
	back->cost.gemm_s += w.products_s;
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}
