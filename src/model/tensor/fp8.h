/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of quantizing to E4M3, the same on every device. A scale comes from the numbers that it
 * belongs to: their largest magnitude becomes 448. So a finite number never saturates. If a number is not
 * finite, its scale and all elements of that scale become NaN, and the scale is counted
 * (docs/explanation/design/fp8.md). Layouts of scales are those that cuBLASLt reads.
 */
#ifndef MODEL_TENSOR_FP8_H
#define MODEL_TENSOR_FP8_H
#include <math.h>
#include "model/tensor/tensor.h"

enum {
	FP8_TILE = 128,	   /* elements of a scale along k; weights: 128 x 128 */
	FP8_MULTIPLE = 16, /* of the sizes of a GEMM in FP8, whose rows begin at multiples of 16 bytes */
};
#define FP8_LEAST                                                                                            \
	0x1p-100f /* smaller largest magnitudes count as this one, so that the inverse is finite             \
		   */
#define FP8_FINITE_MOST 3.402823466e38f

struct fp8_scale {
	float scale, inverse; /* inverse: what numbers are multiplied with */
};

/* most: the largest magnitude; NaN if a number is NaN. */
static inline struct fp8_scale fp8_scale_of(float most)
{
	const float m = most < FP8_LEAST ? FP8_LEAST : most;

	if (!(most <= FP8_FINITE_MOST))
		return (struct fp8_scale){(float)NAN, (float)NAN};
	return most == 0 ? (struct fp8_scale){1, 1} : (struct fp8_scale){m / E4M3_MOST, E4M3_MOST / m};
}

/* The larger one of `most` and the magnitude of x; NaN if either is. */
static inline float fp8_larger(float most, float x)
{
	const float magnitude = fabsf(x);

	return magnitude <= most || most != most ? most : magnitude;
}

static inline int64_t fp8_tiles(int64_t elements)
{
	return (elements + FP8_TILE - 1) / FP8_TILE;
}

/* One scale per 128 elements of a row; the scales of a column of tiles are adjacent. fp8_tiles(cols) * rows
 * floats. */
static inline struct scales fp8_scales_of_rows(float *data, int64_t rows)
{
	return (struct scales){.data = data, .rows = 1, .cols = FP8_TILE, .step_row = 1, .step_col = rows};
}

/* One scale per 128 x 128 elements; the scales of a row of tiles are adjacent, and each row has a multiple of
 * four. */
static inline int64_t fp8_weight_scales(int64_t rows, int64_t cols)
{
	return fp8_tiles(rows) * ((fp8_tiles(cols) + 3) / 4 * 4);
}
static inline struct scales fp8_scales_of_weights(float *data, int64_t cols)
{
	return (struct scales){.data = data,
			       .rows = FP8_TILE,
			       .cols = FP8_TILE,
			       .step_row = (fp8_tiles(cols) + 3) / 4 * 4,
			       .step_col = 1};
}
static inline bool fp8_is_weight(const struct mat *m)
{
	return m->dtype == DTYPE_E4M3 && m->scales.rows == FP8_TILE;
}
static inline bool fp8_is_rows(const struct mat *m)
{
	return m->dtype == DTYPE_E4M3 && m->scales.rows == 1 && m->scales.cols == FP8_TILE;
}
static inline float *fp8_scale_at(const struct mat *m, int64_t row, int64_t col)
{
	return m->scales.data + row / m->scales.rows * m->scales.step_row +
	       col / m->scales.cols * m->scales.step_col;
}
#endif
