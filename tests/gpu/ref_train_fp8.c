/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/fp8.cu on the host: norms and SwiGLU in double, then the rule of a scale to the bit. */
#include "kernel/train/fp8.h"
#include "model/tensor/fp8.h"
#include "ref_train.h"

/* Element (row, col) of what is quantized; of a BF16 matrix exact. */
struct source {
	uint64_t data;
	int64_t ld;
	bool columns; /* the matrix is read by its columns */
};

static float number_of(const struct source *s, int64_t row, int64_t col)
{
	return (float)ref_bf16(s->data, s->columns ? col * s->ld + row : row * s->ld + col);
}

static uint8_t element_of(float number, float inverse)
{
	const float scaled = number * inverse;

	return scaled != scaled ? 0x7f : e4m3_of_f32(scaled);
}

static void count(uint64_t overflows, const struct fp8_scale *f)
{
	if (f->scale != f->scale && overflows)
		++*AT(uint32_t, overflows);
}

static void quantize(const struct source *s, const struct train_fp8_rows *q, int64_t rows, int64_t cols)
{
	for (int64_t row = 0; row < rows; row++)
		for (int64_t tile = 0; tile * TRAIN_FP8_TILE < cols; tile++) {
			const int64_t begin = tile * TRAIN_FP8_TILE;
			const int64_t end = cols - begin < TRAIN_FP8_TILE ? cols : begin + TRAIN_FP8_TILE;
			struct fp8_scale f;
			float most = 0;

			for (int64_t col = begin; col < end; col++)
				most = fp8_larger(most, number_of(s, row, col));
			f = fp8_scale_of(most);
			AT(float, q->scale)[tile * q->step + row] = f.scale;
			count((uint64_t)q->overflows, &f);
			for (int64_t col = begin; col < end; col++)
				AT(uint8_t, q->to)
			[row * q->ld + col] = element_of(number_of(s, row, col), f.inverse);
		}
}

static void quantize_rows(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_quantize_args *a = args;

	(void)entry, (void)grid;
	quantize(&(struct source){a->x, a->ld_x, false}, &a->y, a->rows, a->cols);
}

static void quantize_columns(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_columns_args *a = args;

	(void)entry, (void)grid;
	quantize(&(struct source){a->x, a->ld_x, true}, &a->y, a->cols, a->rows);
	if (a->q.to)
		quantize(&(struct source){a->x, a->ld_x, false}, &a->q, a->rows, a->cols);
}

static void rmsnorm(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_norm_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		double sum = 0, rstd;

		for (int64_t j = 0; j < a->cols; j++)
			sum += ref_bf16(a->x, t * a->ld_x + j) * ref_bf16(a->x, t * a->ld_x + j);
		rstd = 1 / sqrt(sum / a->cols + (double)a->eps);
		AT(float, a->rstd)[t * a->ld_rstd] = (float)rstd;
		for (int64_t j = 0; j < a->cols; j++)
			ref_put_bf16(a->y, t * a->ld_y + j,
				     ref_bf16(a->w, j) * ref_round(ref_bf16(a->x, t * a->ld_x + j) * rstd));
	}
	quantize(&(struct source){a->y, a->ld_y, false}, &a->q, a->rows, a->cols);
}

static void swiglu(const char *entry, struct ref_grid grid, const void *args)
{
	struct train_fp8_swiglu_args all = *(const struct train_fp8_swiglu_args *)args, *const a = &all;
	const bool backward = !strcmp(entry, "train_fp8_swiglu_bwd");
	uint16_t *const h_alone = malloc((size_t)a->rows * a->ffn * sizeof(*h_alone));

	(void)grid;
	if (!h_alone)
		abort();
	if (!a->h) {
		a->h = (uint64_t)h_alone;
		a->ld_h = a->ffn;
	}
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t j = 0; j < a->ffn; j++) {
			const int64_t gate = t * a->ld_gate_up + j, up = gate + a->ffn, h = t * a->ld_h + j;
			const double g = ref_bf16(a->gate_up, gate), u = ref_bf16(a->gate_up, up);
			const double s = 1 / (1 + exp(-g)), dh = ref_bf16(a->h, h);

			if (!backward) {
				ref_put_bf16(a->h, h, g * s * u);
				continue;
			}
			ref_put_bf16(a->gate_up, gate, dh * u * (s + g * s * (1 - s)));
			ref_put_bf16(a->gate_up, up, dh * g * s);
			if (a->h_again)
				ref_put_bf16(a->h_again, t * a->ld_h_again + j, g * s * u);
		}
	if (backward)
		quantize(&(struct source){a->gate_up, a->ld_gate_up, false}, &a->q, a->rows,
			 2 * (int64_t)a->ffn);
	else
		quantize(&(struct source){a->h, a->ld_h, false}, &a->q, a->rows, a->ffn);
	free(h_alone);
}

/* The gradient and h in BF16, then their copies. */
static void swiglu_columns(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_swiglu_columns_args *a = args;
	const int64_t rows = a->rows, ffn = a->ffn;
	uint16_t *const d = malloc((size_t)(rows * 3 * ffn) * sizeof(*d)), *const again = d + rows * 2 * ffn;

	(void)entry, (void)grid;
	if (!d)
		abort();
	for (int64_t t = 0; t < rows; t++)
		for (int64_t j = 0; j < ffn; j++) {
			const double g = ref_bf16(a->gate_up, t * a->ld_gate_up + j);
			const double u = ref_bf16(a->gate_up, t * a->ld_gate_up + ffn + j);
			const double s = 1 / (1 + exp(-g)), dh = ref_bf16(a->dh, t * a->ld_dh + j);

			ref_put_bf16((uint64_t)d, t * 2 * ffn + j, dh * u * (s + g * s * (1 - s)));
			ref_put_bf16((uint64_t)d, t * 2 * ffn + ffn + j, dh * g * s);
			ref_put_bf16((uint64_t)again, t * ffn + j, g * s * u);
		}
	quantize(&(struct source){(uint64_t)d, 2 * ffn, false}, &a->q, rows, 2 * ffn);
	quantize(&(struct source){(uint64_t)d, 2 * ffn, true}, &a->y, 2 * ffn, rows);
	quantize(&(struct source){(uint64_t)again, ffn, true}, &a->again, ffn, rows);
	free(d);
}

static int64_t end_of(int64_t tile, int64_t size)
{
	return (tile + 1) * TRAIN_FP8_TILE < size ? (tile + 1) * TRAIN_FP8_TILE : size;
}

static void quantize_weights(const struct source *s, const struct train_fp8_weights *q)
{
	for (int64_t i = 0; i * TRAIN_FP8_TILE < q->rows; i++)
		for (int64_t j = 0; j * TRAIN_FP8_TILE < q->cols; j++) {
			struct fp8_scale f;
			float most = 0;

			for (int64_t row = i * TRAIN_FP8_TILE; row < end_of(i, q->rows); row++)
				for (int64_t col = j * TRAIN_FP8_TILE; col < end_of(j, q->cols); col++)
					most = fp8_larger(most, number_of(s, row, col));
			f = fp8_scale_of(most);
			count(q->overflows, &f);
			AT(float, q->scale)[i * q->step + j] = f.scale;
			if (q->transposed)
				AT(float, q->scale_transposed)[j * q->step_transposed + i] = f.scale;
			for (int64_t row = i * TRAIN_FP8_TILE; row < end_of(i, q->rows); row++)
				for (int64_t col = j * TRAIN_FP8_TILE; col < end_of(j, q->cols); col++) {
					const uint8_t e = element_of(number_of(s, row, col), f.inverse);

					AT(uint8_t, q->to)[row * q->ld_to + col] = e;
					if (q->transposed)
						AT(uint8_t, q->transposed)[col * q->ld_transposed + row] = e;
				}
		}
}

static void weights(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_weights_args *a = args;

	(void)entry, (void)grid;
	quantize_weights(&(struct source){a->w, a->ld_w, false}, &a->q);
}

static void transpose(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_transpose_args *a = args;

	(void)entry, (void)grid;
	for (int64_t row = 0; row < a->rows; row++)
		for (int64_t col = 0; col < a->cols; col++) {
			AT(uint8_t, a->to)
			[col * a->ld_to + row] = AT(const uint8_t, a->from)[row * a->ld_from + col];
			AT(float, a->scale_to)
			[col / TRAIN_FP8_TILE * a->step_to + row / TRAIN_FP8_TILE] = AT(
				const float, a->scale)[row / TRAIN_FP8_TILE * a->step + col / TRAIN_FP8_TILE];
		}
}

static void add_bias(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_fp8_bias_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t j = 0; j < a->cols; j++)
			ref_put_bf16(a->y, t * a->ld_y + j,
				     ref_bf16(a->y, t * a->ld_y + j) + ref_bf16(a->bias, j));
}

#define ROW(name, run, type, member)                                                                         \
	{                                                                                                    \
		name, run, sizeof(struct type), offsetof(struct type, member)                                \
	}
const struct ref_row ref_train_fp8[] = {
	ROW("train_fp8_quantize", quantize_rows, train_fp8_quantize_args, y.to),
	ROW("train_fp8_rmsnorm", rmsnorm, train_fp8_norm_args, y),
	ROW("train_fp8_swiglu", swiglu, train_fp8_swiglu_args, q.to),
	ROW("train_fp8_swiglu_bwd", swiglu, train_fp8_swiglu_args, gate_up),
	ROW("train_fp8_swiglu_bwd_columns", swiglu_columns, train_fp8_swiglu_columns_args, y.to),
	ROW("train_fp8_weights", weights, train_fp8_weights_args, q.to),
	ROW("train_fp8_transpose", transpose, train_fp8_transpose_args, to),
	ROW("train_fp8_columns", quantize_columns, train_fp8_columns_args, y.to),
	ROW("train_fp8_add_bias", add_bias, train_fp8_bias_args, y),
	{NULL, NULL, 0, 0},
};
