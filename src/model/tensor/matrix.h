/* SPDX-License-Identifier: Apache-2.0 */
/* Views of matrices. A NULL pointer (while planning) stays NULL. */
#ifndef MODEL_TENSOR_MATRIX_H
#define MODEL_TENSOR_MATRIX_H
#include "model/tensor/dtype.h"

/* One scale per row, for a matrix with `cols` columns. */
static inline struct scales scales_of_rows(float *data, int64_t cols)
{
	return (struct scales){.data = data, .rows = 1, .cols = cols, .step_row = 1};
}
static inline bool mat_has_row_scales(const struct mat *m)
{
	return m->scales.rows == 1 && m->scales.step_row == 1 && m->scales.cols >= m->cols;
}
/* For a type with blocks, row * ld + col and cols must be multiples of the block. A view of a matrix with
 * scales begins at the edge of a tile or lies within one. */
static inline struct mat mat_view(const struct mat *m, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	struct mat view = *m;

	view.e4m3 = view.e4m3_columns = NULL;
	view.rows = rows;
	view.cols = cols;
	if (m->data)
		view.data = (uint8_t *)m->data + dtype_bytes(m->dtype, (uint64_t)(row * m->ld + col));
	if (m->scales.data)
		view.scales.data +=
			row / m->scales.rows * m->scales.step_row + col / m->scales.cols * m->scales.step_col;
	return view;
}
static inline struct mat mat_rows(const struct mat *m, int64_t row, int64_t rows)
{
	return mat_view(m, row, 0, rows, m->cols);
}
static inline struct mat mat_cols(const struct mat *m, int64_t col, int64_t cols)
{
	return mat_view(m, 0, col, m->rows, cols);
}
#endif
