/* SPDX-License-Identifier: Apache-2.0 */
/* Views of matrices. A NULL pointer (while planning) stays NULL. */
#ifndef MODEL_TENSOR_MATRIX_H
#define MODEL_TENSOR_MATRIX_H
#include "model/tensor/tensor.h"

/* For a type with blocks, row * ld + col and cols must be multiples of the block. */
struct mat mat_view(const struct mat *m, int64_t row, int64_t col, int64_t rows, int64_t cols);
static inline struct mat mat_rows(const struct mat *m, int64_t row, int64_t rows)
{
	return mat_view(m, row, 0, rows, m->cols);
}
static inline struct mat mat_cols(const struct mat *m, int64_t col, int64_t cols)
{
	return mat_view(m, 0, col, m->rows, cols);
}
#endif
