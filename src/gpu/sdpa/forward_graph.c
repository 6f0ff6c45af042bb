/* SPDX-License-Identifier: Apache-2.0 */
/* Forward attention as a graph for cuDNN: tensors that all graphs share, masks, and the composite graph. */
#include "gpu/sdpa/internal.h"
#include <float.h>
#include <math.h>

/* From this version on the library takes -infinity for masked scores. Older versions take the lowest finite
 * number. */
enum { INFINITY_FROM = 91000 };

/* Packed sequences have no batch stride. The value must only be at least the length of the longest
 * sequence. */
static void strides(int64_t stride[4], struct attention_strides s, uint64_t rows, bool packed)
{
	sdpa_dims(stride, (int64_t)(packed ? rows * s.row : s.batch), (int64_t)s.head, (int64_t)s.row, 1);
}

static const struct sdpa_tensor *starts(struct sdpa_graph *g, const struct sdpa_drawing *d, uint64_t offset)
{
	return d->p->q_starts ? sdpa_own(g, offset, CUDNN_DATA_INT32, (int64_t)d->p->batch + 1) : NULL;
}

const struct sdpa_tensor *sdpa_draw_q(struct sdpa_graph *g, const struct sdpa_drawing *d, enum sdpa_role role)
{
	const struct attention_problem *p = d->p;
	int64_t dim[4], stride[4];

	sdpa_dims(dim, p->batch, p->heads, p->q_len, p->head_dim);
	strides(stride, attention_q_strides(p), p->q_len, p->q_starts);
	return sdpa_real(g, role, g->io, dim, stride, starts(g, d, d->numbers->q_starts));
}

cudnnDataType_t sdpa_type_code(enum attention_type type)
{
	switch (type) {
	case ATTENTION_F16:
		return CUDNN_DATA_HALF;
	case ATTENTION_BF16:
		return CUDNN_DATA_BFLOAT16;
	case ATTENTION_E4M3:
		return CUDNN_DATA_FP8_E4M3;
	case ATTENTION_TYPE_COUNT:
		break;
	}
	return CUDNN_DATA_FLOAT;
}

const struct sdpa_tensor *sdpa_draw_o(struct sdpa_graph *g, const struct sdpa_drawing *d, enum sdpa_role role)
{
	const struct attention_problem *p = d->p;
	int64_t dim[4], stride[4];

	sdpa_dims(dim, p->batch, p->heads, p->q_len, p->head_dim);
	strides(stride, attention_o_strides(p), p->q_len, p->q_starts);
	return sdpa_real(g, role, sdpa_type_code(p->out_type), dim, stride,
			 starts(g, d, d->numbers->o_starts));
}

static void swap(int64_t *a, int64_t *b)
{
	int64_t was = *a;

	*a = *b;
	*b = was;
}

const struct sdpa_tensor *sdpa_draw_kv(struct sdpa_graph *g, const struct sdpa_drawing *d,
				       enum sdpa_role role, bool transposed)
{
	const struct attention_problem *p = d->p;
	bool is_k = role == SDPA_K || role == SDPA_D_K;
	int64_t dim[4], stride[4];

	sdpa_dims(dim, p->batch, p->kv_heads, p->kv_len, p->head_dim);
	strides(stride, is_k ? attention_k_strides(p) : attention_v_strides(p), p->kv_len, p->kv_starts);
	if (transposed) {
		swap(&dim[2], &dim[3]);
		swap(&stride[2], &stride[3]);
	}
	return sdpa_real(g, role, g->io, dim, stride,
			 starts(g, d, is_k ? d->numbers->k_starts : d->numbers->v_starts));
}

/* Dimensions of a tensor with one number per row of Q. */
static void row_dims(const struct sdpa_drawing *d, int64_t dim[4])
{
	sdpa_dims(dim, d->p->batch, d->p->heads, d->p->q_len, 1);
}

const struct sdpa_tensor *sdpa_draw_lse(struct sdpa_graph *g, const struct sdpa_drawing *d)
{
	int64_t dim[4], stride[4], rows = d->p->q_len;

	row_dims(d, dim);
	sdpa_dims(stride, (int64_t)d->p->heads * rows, rows, 1, 1);
	return sdpa_real(g, SDPA_LSE, CUDNN_DATA_FLOAT, dim, stride, NULL);
}

struct sdpa_lengths sdpa_draw_lengths(struct sdpa_graph *g, const struct sdpa_drawing *d)
{
	struct sdpa_lengths lengths = {NULL, NULL};

	if (d->padded) {
		lengths.q = sdpa_own(g, d->numbers->q_lens, CUDNN_DATA_INT32, d->p->batch);
		lengths.kv = sdpa_own(g, d->numbers->kv_lens, CUDNN_DATA_INT32, d->p->batch);
	}
	return lengths;
}

static const struct sdpa_tensor *select_or_drop(struct sdpa_graph *g, const struct sdpa_drawing *d,
						const struct sdpa_tensor *score,
						const struct sdpa_tensor *keep)
{
	const struct sdpa_tensor *drop = sdpa_f32(g, d->version >= INFINITY_FROM ? -INFINITY : -FLT_MAX);
	const struct sdpa_tensor *out = sdpa_virtual(g, CUDNN_DATA_FLOAT, score->dim, score->stride);

	sdpa_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, score, drop, keep, out);
	return out;
}

const struct sdpa_tensor *sdpa_mask_padding(struct sdpa_graph *g, const struct sdpa_drawing *d,
					    const struct sdpa_tensor *score, struct sdpa_lengths lengths)
{
	const struct sdpa_tensor *row, *column, *row_in, *column_in;

	if (!lengths.q)
		return score;
	row = sdpa_index(g, score, 2, CUDNN_DATA_INT32);
	column = sdpa_index(g, score, 3, CUDNN_DATA_INT32);
	row_in = sdpa_apply(g, CUDNN_POINTWISE_CMP_LT, CUDNN_DATA_BOOLEAN, row, lengths.q);
	column_in = sdpa_apply(g, CUDNN_POINTWISE_CMP_LT, CUDNN_DATA_BOOLEAN, column, lengths.kv);
	return select_or_drop(
		g, d, score,
		sdpa_apply(g, CUDNN_POINTWISE_LOGICAL_AND, CUDNN_DATA_BOOLEAN, row_in, column_in));
}

/* Keeps column <= row + (keys - queries) + right. The library matches its kernels by the order of these
 * additions. */
static const struct sdpa_tensor *bound_right(struct sdpa_graph *g, const struct sdpa_drawing *d,
					     const struct sdpa_tensor *score, struct sdpa_lengths lengths,
					     uint32_t right)
{
	const struct attention_problem *p = d->p;
	const struct sdpa_tensor *row = sdpa_index(g, score, 2, CUDNN_DATA_FLOAT);
	const struct sdpa_tensor *column = sdpa_index(g, score, 3, CUDNN_DATA_FLOAT);

	if (lengths.q || p->q_len != p->kv_len) {
		row = sdpa_apply(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, row,
				 lengths.kv ? lengths.kv : sdpa_i32(g, (int32_t)p->kv_len));
		row = sdpa_apply(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, row,
				 lengths.q ? lengths.q : sdpa_i32(g, (int32_t)p->q_len));
	}
	if (right)
		row = sdpa_apply(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, row, sdpa_i32(g, (int32_t)right));
	return select_or_drop(g, d, score,
			      sdpa_apply(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column));
}

/* Keeps column + (left + 1) - (keys - queries) > row. */
static const struct sdpa_tensor *bound_left(struct sdpa_graph *g, const struct sdpa_drawing *d,
					    const struct sdpa_tensor *score, struct sdpa_lengths lengths,
					    uint32_t left)
{
	const struct attention_problem *p = d->p;
	const struct sdpa_tensor *row = sdpa_index(g, score, 2, CUDNN_DATA_FLOAT);
	const struct sdpa_tensor *column = sdpa_index(g, score, 3, CUDNN_DATA_FLOAT);
	double window = (double)left + 1.0;

	if (lengths.q) {
		column = sdpa_apply(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, column,
				    sdpa_i32(g, (int32_t)window));
		column = sdpa_apply(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, column, lengths.kv);
		column = sdpa_apply(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, column, lengths.q);
	} else {
		column = sdpa_apply(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, column,
				    sdpa_f32(g, (float)(window - p->kv_len + p->q_len)));
	}
	return select_or_drop(g, d, score,
			      sdpa_apply(g, CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, column, row));
}

const struct sdpa_tensor *sdpa_mask_band(struct sdpa_graph *g, const struct sdpa_drawing *d,
					 const struct sdpa_tensor *score, struct sdpa_lengths lengths)
{
	const struct attention_problem *p = d->p;

	if (p->mask == ATTENTION_CAUSAL)
		return bound_right(g, d, score, lengths, 0);
	if (p->mask == ATTENTION_WINDOW && p->window_right != ATTENTION_UNBOUNDED)
		score = bound_right(g, d, score, lengths, p->window_right);
	if (p->mask == ATTENTION_WINDOW && p->window_left != ATTENTION_UNBOUNDED)
		score = bound_left(g, d, score, lengths, p->window_left);
	return score;
}

static const struct sdpa_tensor *scale_by(struct sdpa_graph *g, const struct sdpa_tensor *x,
					  const struct sdpa_tensor *factor)
{
	return sdpa_apply(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, x, factor);
}

static const struct sdpa_tensor *factor(struct sdpa_graph *g, enum sdpa_role role)
{
	static const int64_t one[4] = {1, 1, 1, 1};

	return sdpa_real(g, role, CUDNN_DATA_FLOAT, one, one, NULL);
}

static const struct sdpa_tensor *own_factor(struct sdpa_graph *g, uint64_t offset)
{
	return sdpa_own(g, offset, CUDNN_DATA_FLOAT, 1);
}

/* exp(x - max x) / sum of exp(x - max x), and max + ln(sum) if lse is wanted. */
static const struct sdpa_tensor *draw_softmax(struct sdpa_graph *g, const struct sdpa_drawing *d,
					      const struct sdpa_tensor *score, cudnnDataType_t type)
{
	const struct sdpa_tensor *most, *power, *sum;
	int64_t dim[4];

	row_dims(d, dim);
	most = sdpa_virtual(g, CUDNN_DATA_FLOAT, dim, NULL);
	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_MAX, score, most);
	power = sdpa_apply(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, score, most);
	power = sdpa_apply(g, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, power, NULL);
	sum = sdpa_virtual(g, CUDNN_DATA_FLOAT, dim, NULL);
	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_ADD, power, sum);
	if (d->p->want_lse)
		sdpa_pointwise(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, most,
			       sdpa_apply(g, CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT, sum, NULL), NULL,
			       sdpa_draw_lse(g, d));
	return sdpa_apply(g, CUDNN_POINTWISE_DIV, type, power, sum);
}

/* FP8: scales P into the range of its type, scales the GEMM back, and scales O as the caller requests. The
 * library requires the largest magnitudes of both as outputs, for trainers that track them. Nothing reads
 * them here. */
static void draw_fp8_product(struct sdpa_graph *g, const struct sdpa_drawing *d,
			     const struct sdpa_tensor *share, const struct sdpa_tensor *v,
			     const struct sdpa_tensor *o, struct sdpa_override over)
{
	const struct sdpa_tensor *product = sdpa_virtual(g, CUDNN_DATA_FLOAT, o->dim, NULL);

	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_AMAX, share, own_factor(g, d->numbers->amax_s));
	share = sdpa_apply(g, CUDNN_POINTWISE_MUL, g->io, share, own_factor(g, d->numbers->scale_s));
	sdpa_matmul(g, share, v, product, over);
	product = scale_by(g, product, own_factor(g, d->numbers->descale_s));
	product = scale_by(g, product, factor(g, SDPA_DESCALE_V));
	sdpa_pointwise(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, product, factor(g, SDPA_SCALE_O), NULL, o);
	sdpa_reduce(g, CUDNN_REDUCE_TENSOR_AMAX, product, own_factor(g, d->numbers->amax_o));
}

/* Draws the fused graph: one operation that contains the softmax and both GEMMs. */
void sdpa_draw_fused(struct sdpa_graph *g, const struct sdpa_drawing *d)
{
	const struct sdpa_tensor *q = sdpa_draw_q(g, d, SDPA_Q), *k = sdpa_draw_kv(g, d, SDPA_K, false);
	const struct sdpa_tensor *v = sdpa_draw_kv(g, d, SDPA_V, false), *o = sdpa_draw_o(g, d, SDPA_O);
	const struct sdpa_tensor *lse = d->p->want_lse ? sdpa_draw_lse(g, d) : NULL;

	sdpa_fused(g, q, k, v, o, lse, sdpa_f32(g, (float)attention_scale(d->p)));
}

void sdpa_draw_forward(struct sdpa_graph *g, const struct sdpa_drawing *d)
{
	const struct attention_problem *p = d->p;
	const struct sdpa_tensor *q = sdpa_draw_q(g, d, SDPA_Q), *k = sdpa_draw_kv(g, d, SDPA_K, true);
	const struct sdpa_tensor *v = sdpa_draw_kv(g, d, SDPA_V, false), *o = sdpa_draw_o(g, d, SDPA_O);
	struct sdpa_lengths lengths = sdpa_draw_lengths(g, d);
	struct sdpa_override over = {.m = lengths.q, .k = lengths.kv};
	const struct sdpa_tensor *score, *share;
	bool fp8 = p->type == ATTENTION_E4M3;
	int64_t dim[4];

	sdpa_dims(dim, p->batch, p->heads, p->q_len, p->kv_len);
	score = sdpa_virtual(g, CUDNN_DATA_FLOAT, dim, NULL);
	sdpa_matmul(g, q, k, score, (struct sdpa_override){.m = lengths.q, .n = lengths.kv});
	score = scale_by(g, score, sdpa_f32(g, (float)attention_scale(p)));
	if (fp8) {
		score = scale_by(g, score, factor(g, SDPA_DESCALE_Q));
		score = scale_by(g, score, factor(g, SDPA_DESCALE_K));
	}
	score = sdpa_mask_padding(g, d, score, lengths);
	score = sdpa_mask_band(g, d, score, lengths);
	share = draw_softmax(g, d, score, fp8 ? CUDNN_DATA_FLOAT : g->io);
	if (fp8)
		draw_fp8_product(g, d, share, v, o, over);
	else
		sdpa_matmul(g, share, v, o, over);
}
