/* SPDX-License-Identifier: Apache-2.0 */
/* Views of matrices. A NULL pointer (while planning) stays NULL. */
#ifndef MODEL_TENSOR_MATRIX_H
#define MODEL_TENSOR_MATRIX_H
#include "model/tensor/dtype.h"

/* For a type with blocks, row * ld + col and cols must be multiples of the block. */
static inline struct mat mat_view(const struct mat *m, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	struct mat view = *m;

	view.e4m3 = NULL;
	view.rows = rows;
	view.cols = cols;
	if (m->data)
		view.data = (uint8_t *)m->data + dtype_bytes(m->dtype, (uint64_t)(row * m->ld + col));
	if (m->row_scale)
		view.row_scale = m->row_scale + row;
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
