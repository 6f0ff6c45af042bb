/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loops of the fake cuBLASLt's products. */
#ifndef TESTS_FAKE_PRODUCT_H
#define TESTS_FAKE_PRODUCT_H
#include "vector.h"
#include <stdint.h>

/* Rows lie in panels of so many. Within a panel those of the same k are adjacent. */
enum { PANEL = 32, EIGHTS = PANEL / 8, COLUMNS = 4 };

typedef double eight __attribute__((vector_size(64), aligned(8)));

/* A panel's part of `columns` columns of the product, from the `first`-th eight rows to `last`. Each sum is added up by
 * ascending k. Column j lies at j * y_step of y and at j * PANEL of sum. */
__attribute__((always_inline)) static inline void eights_of(double *restrict sum, const double *restrict x,
							    const double *restrict y, int64_t y_step, int64_t depth,
							    int columns, int first, int last)
{
	eight s[COLUMNS][EIGHTS] = {0};

	for (int64_t k = 0; k < depth; k++)
		for (int i = first; i < last; i++) {
			const eight rows = *(const eight *)(x + k * PANEL + 8 * i);

			for (int j = 0; j < columns; j++)
				s[j][i] += rows * y[j * y_step + k];
		}
	for (int j = 0; j < columns; j++)
		for (int i = first; i < last; i++)
			*(eight *)(sum + j * PANEL + 8 * i) = s[j][i];
}

/* Several columns at once read the panel once. */
VECTOR static void panel_of_columns(double *restrict sum, const double *restrict x, const double *restrict y,
				    int64_t y_step, int64_t depth)
{
	eights_of(sum, x, y, y_step, depth, COLUMNS, 0, EIGHTS / 2);
	eights_of(sum, x, y, y_step, depth, COLUMNS, EIGHTS / 2, EIGHTS);
}

VECTOR static void panel_of_column(double *restrict sum, const double *restrict x, const double *restrict y,
				   int64_t depth)
{
	eights_of(sum, x, y, 0, depth, 1, 0, EIGHTS);
}
#endif
