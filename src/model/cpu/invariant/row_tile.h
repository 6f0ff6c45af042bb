/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of rows and weighted sums of rows, included by row_gemm.c for each width: INLINE_ISA and
 * TARGET_ISA, NAME(part), LANES floats in a vector, TILE_X rows of x and TILE_V vectors of a sum at once.
 * NAME(vec) is a vector; NAME(zero), NAME(set), NAME(load) of a weight's type, NAME(store), NAME(add) of a
 * product, and NAME(totals) of the lanes of four vectors are its operations.
 */

/* Every element has a sum per lane, which are added in a fixed order, then the elements of k beyond the last
 * whole vector. */
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
	for (int j = 0; j < rows; j++) {
		float total[4];

		NAME(totals)
		(sums[0][j], sums[columns > 1 ? 1 : 0][j], sums[columns > 2 ? 2 : 0][j],
		 sums[columns > 3 ? 3 : 0][j], total);
		for (int i = 0; i < columns; i++) {
			for (int64_t rest = k; rest < p->k; rest++)
				total[i] +=
					element(dtype, w + (i * p->ldw + rest) * size) * x[j * p->ldx + rest];
			p->out[(row + j) * p->ldo + column + i] = total[i];
		}
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
		if (TILE_X > 3 && row + 3 == p->rows)
			NAME(tile)(dtype, p, column, row, 4, 3 < TILE_X ? 3 : 1);
		else if (row + 2 == p->rows)
			NAME(tile)(dtype, p, column, row, 4, 2);
		else if (row < p->rows)
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

/* `vectors` and `rows` are constants. */
INLINE_ISA void NAME(values)(const struct row_sum *s, int64_t col, int64_t row, const int vectors,
			     const int rows)
{
	NAME(vec) sums[2][TILE_V];

#pragma GCC unroll 2
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			sums[i][j] = NAME(load)(DTYPE_F32, s->out + (row + i) * s->ldo + col + j * LANES);
	for (int64_t k = 0; k < s->count; k++) {
		NAME(vec) v[TILE_V];

#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			v[j] = NAME(load)(DTYPE_F32, s->v + k * s->ldv + col + j * LANES);
#pragma GCC unroll 2
		for (int i = 0; i < rows; i++) {
			const NAME(vec) factor = NAME(set)(s->p[(row + i) * s->ldp + k]);

#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				sums[i][j] = NAME(add)(sums[i][j], factor, v[j]);
		}
	}
#pragma GCC unroll 2
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			NAME(store)(s->out + (row + i) * s->ldo + col + j * LANES, sums[i][j]);
}

INLINE_ISA void NAME(columns)(const struct row_sum *s, int64_t row, const int rows)
{
	int64_t col = 0;

	for (; col + TILE_V * LANES <= s->columns; col += TILE_V * LANES)
		NAME(values)(s, col, row, TILE_V, rows);
	for (; col + LANES <= s->columns; col += LANES)
		NAME(values)(s, col, row, 1, rows);
	for (; col < s->columns; col++)
		for (int i = 0; i < rows; i++) {
			float *out = s->out + (row + i) * s->ldo + col;

			for (int64_t k = 0; k < s->count; k++)
				*out += s->p[(row + i) * s->ldp + k] * s->v[k * s->ldv + col];
		}
}

TARGET_ISA static void NAME(sum)(const struct row_sum *s)
{
	int64_t row = 0;

	for (; row + 2 <= s->rows; row += 2)
		NAME(columns)(s, row, 2);
	if (row < s->rows)
		NAME(columns)(s, row, 1);
}
#undef INLINE_ISA
#undef TARGET_ISA
#undef NAME
#undef LANES
#undef TILE_X
#undef TILE_V
