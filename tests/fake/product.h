/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loops of the fake cuBLASLt's products. */
#ifndef TESTS_FAKE_PRODUCT_H
#define TESTS_FAKE_PRODUCT_H
#include "vector.h"
#include <stdint.h>
#include <string.h>

/* One column of the product: all its rows' sums at once, so that the compiler makes vectors, each added up by
 * ascending k. x: row i at k * rows + i. */
VECTOR static void column_of(double *restrict sum, const double *restrict x, const double *restrict y,
			     int64_t rows, int64_t depth)
{
	int64_t k = 0;

	memset(sum, 0, (size_t)rows * sizeof(*sum));
	for (; k + 4 <= depth; k += 4) {
		const double *a = x + k * rows, *b = a + rows, *c = b + rows, *d = c + rows;

		for (int64_t i = 0; i < rows; i++)
			sum[i] = sum[i] + a[i] * y[k] + b[i] * y[k + 1] + c[i] * y[k + 2] + d[i] * y[k + 3];
	}
	for (; k < depth; k++)
		for (int64_t i = 0; i < rows; i++)
			sum[i] += x[k * rows + i] * y[k];
}
#endif
