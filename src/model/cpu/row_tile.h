/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of a product of rows, included by row_gemm.c for each width: INLINE_ISA and TARGET_ISA, NAME(part),
 * LANES floats in a vector, TILE_X rows of x at once. NAME(vec) is a vector; NAME(zero), NAME(load) of a
 * weight's type, NAME(add) of a product, and NAME(total) of the lanes are its operations. Every element has a
 * sum per lane, which are added in a fixed order, then the elements of k beyond the last whole vector.
 */

/* `columns` and `rows` are constants, so the sums stay in registers. */
INLINE_ISA void NAME(tile)(enum dtype dtype, const struct row_product *p, int64_t column, int64_t row,
			   const int columns, const int rows)
{
	const int size = dtype == DTYPE_F32 ? 4 : 2;
	const uint8_t *w = (const uint8_t *)p->w + column * p->ldw * size;
	const float *x = p->x + row * p->ldx;
	NAME(vec) sums[4][TILE_X];
	int64_t k = 0;

#pragma GCC unroll 4
	for (int i = 0; i < columns; i++)
#pragma GCC unroll 4
		for (int j = 0; j < rows; j++)
			sums[i][j] = NAME(zero)();
	for (; k + LANES <= p->k; k += LANES) {
		NAME(vec) wide[4];

#pragma GCC unroll 4
		for (int i = 0; i < columns; i++)
			wide[i] = NAME(load)(dtype, w + (i * p->ldw + k) * size);
		if (row == 0) /* the next columns */
#pragma GCC unroll 4
			for (int i = 0; i < columns; i++)
				__builtin_prefetch(w + ((i + columns) * p->ldw + k) * size);
#pragma GCC unroll 4
		for (int j = 0; j < rows; j++) {
			const NAME(vec) of_x = NAME(load)(DTYPE_F32, x + j * p->ldx + k);

#pragma GCC unroll 4
			for (int i = 0; i < columns; i++)
				sums[i][j] = NAME(add)(sums[i][j], wide[i], of_x);
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < columns; i++)
#pragma GCC unroll 4
		for (int j = 0; j < rows; j++) {
			float sum = NAME(total)(sums[i][j]);

			for (int64_t rest = k; rest < p->k; rest++)
				sum += element(dtype, w + (i * p->ldw + rest) * size) * x[j * p->ldx + rest];
			p->out[(row + j) * p->ldo + column + i] = sum;
		}
}

INLINE_ISA void NAME(all)(enum dtype dtype, const struct row_product *p)
{
	int64_t column = 0;

	/* One row reads the weights in their order, as memory is fastest. */
	for (; p->rows > 1 && column + 4 <= p->columns; column += 4) {
		int64_t row = 0;

		for (; row + TILE_X <= p->rows; row += TILE_X)
			NAME(tile)(dtype, p, column, row, 4, TILE_X);
		for (; row < p->rows; row++)
			NAME(tile)(dtype, p, column, row, 4, 1);
	}
	for (; column < p->columns; column++)
		for (int64_t row = 0; row < p->rows; row++)
			NAME(tile)(dtype, p, column, row, 1, 1);
}

TARGET_ISA static void NAME(f32)(const struct row_product *p)
{
	NAME(all)(DTYPE_F32, p);
}

TARGET_ISA static void NAME(bf16)(const struct row_product *p)
{
	NAME(all)(DTYPE_BF16, p);
}

TARGET_ISA static void NAME(f16)(const struct row_product *p)
{
	NAME(all)(DTYPE_F16, p);
}
#undef INLINE_ISA
#undef TARGET_ISA
#undef NAME
#undef LANES
#undef TILE_X
