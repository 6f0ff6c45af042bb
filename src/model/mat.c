/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mat.h"

size_t mat_bytes(enum dtype dtype)
{
	static const size_t bytes[DTYPE_COUNT] = {
#define X(name, word, id, elements, size) [DTYPE_##name] = (elements) == 1 ? (size) : 0,
		DTYPE_LIST(X)
#undef X
	};

	return bytes[dtype];
}

struct mat mat_view(const struct mat *m, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	struct mat view = *m;

	view.rows = rows;
	view.cols = cols;
	if (m->data)
		view.data = (uint8_t *)m->data + (size_t)(row * m->ld + col) * mat_bytes(m->dtype);
	if (m->row_scale)
		view.row_scale = m->row_scale + row;
	return view;
}
