/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

struct mat mat_view(const struct mat *m, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	struct mat view = *m;

	view.rows = rows;
	view.cols = cols;
	if (m->data)
		view.data = (uint8_t *)m->data + dtype_bytes(m->dtype, (uint64_t)(row * m->ld + col));
	if (m->row_scale)
		view.row_scale = m->row_scale + row;
	return view;
}
