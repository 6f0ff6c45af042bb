/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward attention as a graph for cuDNN. With P = exp(S - lse), the softmax of the forward pass,
 *
 *   D  = row sums of dO * O              dV = P^T dO
 *   dS = scale P (dO V^T - D)            dK = dS^T Q         dQ = dS K
 *
 * dK and dV are summed over the query heads of a key and value head. The library requires D and a
 * single-precision dQ in memory.
 */
#include "gpu/sdpa/internal.h"

/* Draws D, a tensor in the workspace. */
static const struct sdpa_tensor *draw_row_sums(struct sdpa_graph *g, const struct sdpa_drawing *d,
					       const struct sdpa_tensor *d_o)
{
	const struct attention_problem *p = d->p;
	const struct sdpa_tensor *o = sdpa_draw_o(g, d, SDPA_O), *product, *sum, *kept;
	int64_t whole[4], row[4];

	sdpa_dims(whole, p->batch, p->heads, p->q_len, p->head_dim);
	sdpa_dims(row, p->batch, p->heads, p->q_len, 1);
	product = sdpa_virtual(g, CUDNN_DATA_FLOAT, whole, NULL);
	sdpa_pointwise(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, d_o, o, NULL, product);
	sum = sdpa_virtual(g, CUDNN_DATA_FLOAT, row, NULL);
	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_ADD, product, sum);
	/* The pattern that the library matches has a factor for dropout. It is 1, because there is no
	 * dropout. */
	kept = sdpa_work(g, CUDNN_DATA_FLOAT, row);
	sdpa_pointwise(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, sum, sdpa_f32(g, 1.0F), NULL, kept);
	return kept;
}

/* out = x^T y, where x is [queries][keys], summed over the query heads of each key and value head. */
static void draw_transposed_product(struct sdpa_graph *g, const struct sdpa_drawing *d,
				    const struct sdpa_tensor *x, const struct sdpa_tensor *y,
				    const struct sdpa_tensor *out, struct sdpa_lengths lengths)
{
	const struct attention_problem *p = d->p;
	struct sdpa_override over = {.m = lengths.kv, .k = lengths.q};
	const struct sdpa_tensor *transposed, *each;
	int64_t dim[4], stride[4], rows = p->q_len, columns = p->kv_len;

	sdpa_dims(dim, p->batch, p->heads, columns, rows);
	sdpa_dims(stride, p->heads * rows * columns, rows * columns, 1, columns);
	transposed = sdpa_virtual(g, g->io, dim, stride);
	sdpa_reshape(g, x, transposed);
	if (p->heads == p->kv_heads) {
		sdpa_matmul(g, transposed, y, out, over);
		return;
	}
	sdpa_dims(dim, p->batch, p->heads, columns, p->head_dim);
	each = sdpa_virtual(g, g->io, dim, NULL);
	sdpa_matmul(g, transposed, y, each, over);
	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_ADD, each, out);
}

/* dQ = dS K, accumulated in single precision: blocks of keys add to it in any order. */
static void draw_d_q(struct sdpa_graph *g, const struct sdpa_drawing *d, const struct sdpa_tensor *d_s,
		     const struct sdpa_tensor *k_transposed, struct sdpa_lengths lengths)
{
	const struct sdpa_tensor *k, *sum, *d_q = sdpa_draw_q(g, d, SDPA_D_Q);
	const int64_t *dim = k_transposed->dim, *stride = k_transposed->stride;
	int64_t back[4], back_stride[4];

	sdpa_dims(back, dim[0], dim[1], dim[3], dim[2]);
	sdpa_dims(back_stride, stride[0], stride[1], stride[3], stride[2]);
	k = sdpa_virtual_ragged(g, g->io, back, back_stride, k_transposed->ragged);
	sdpa_reshape(g, k_transposed, k);
	sum = sdpa_work(g, CUDNN_DATA_FLOAT, d_q->dim);
	sdpa_matmul(g, d_s, k, sum, (struct sdpa_override){.m = lengths.q, .k = lengths.kv});
	sdpa_pointwise(g, CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, sum, NULL, NULL, d_q);
}

/* Draws P from forward's lse. The mask comes after the subtraction of lse. */
static const struct sdpa_tensor *draw_share(struct sdpa_graph *g, const struct sdpa_drawing *d,
					    const struct sdpa_tensor *score, const struct sdpa_tensor *scale,
					    struct sdpa_lengths lengths)
{
	score = sdpa_apply(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, score, scale);
	score = sdpa_mask_padding(g, d, score, lengths);
	score = sdpa_apply(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, score, sdpa_draw_lse(g, d));
	score = sdpa_mask_band(g, d, score, lengths);
	return sdpa_apply(g, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, score, NULL);
}

void sdpa_draw_backward(struct sdpa_graph *g, const struct sdpa_drawing *d)
{
	const struct attention_problem *p = d->p;
	const struct sdpa_tensor *q = sdpa_draw_q(g, d, SDPA_Q), *k = sdpa_draw_kv(g, d, SDPA_K, true);
	const struct sdpa_tensor *v = sdpa_draw_kv(g, d, SDPA_V, true), *d_o = sdpa_draw_o(g, d, SDPA_D_O);
	const struct sdpa_tensor *scale = sdpa_f32(g, (float)attention_scale(p));
	struct sdpa_lengths lengths = sdpa_draw_lengths(g, d);
	struct sdpa_override over = {.m = lengths.q, .n = lengths.kv};
	const struct sdpa_tensor *sums = draw_row_sums(g, d, d_o), *score, *share, *d_s;
	int64_t dim[4];

	sdpa_dims(dim, p->batch, p->heads, p->q_len, p->kv_len);
	score = sdpa_virtual(g, CUDNN_DATA_FLOAT, dim, NULL);
	sdpa_matmul(g, q, k, score, over);
	share = draw_share(g, d, score, scale, lengths);
	draw_transposed_product(g, d, share, d_o, sdpa_draw_kv(g, d, SDPA_D_V, false), lengths);
	d_s = sdpa_virtual(g, CUDNN_DATA_FLOAT, dim, NULL);
	sdpa_matmul(g, d_o, v, d_s, over);
	d_s = sdpa_apply(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, d_s, sums);
	d_s = sdpa_apply(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, d_s, share);
	d_s = sdpa_apply(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, d_s, scale);
	draw_transposed_product(g, d, d_s, q, sdpa_draw_kv(g, d, SDPA_D_K, false), lengths);
	draw_d_q(g, d, d_s, k, lengths);
}
