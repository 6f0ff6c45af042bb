/* SPDX-License-Identifier: Apache-2.0 */
/* The fake cuBLASLt's products: operands as numbers in double, their sums, and what is written. */
#include "cublaslt_fake.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "product.h"
#include "ref.h"

bool fake_is_blocks(uint32_t mode)
{
	return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ||
	       mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

int fake_operand_type(cudaDataType type)
{
	/* kernel/test_data/gemm.h's order */
	static const cudaDataType order[] = {CUDA_R_64F,     CUDA_R_32F,     CUDA_R_16F, CUDA_R_16BF,
					     CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_8I,	 CUDA_R_32I};

	for (int i = 0; i < 8; i++)
		if (order[i] == type)
			return i;
	return -1;
}

static double finish(const struct description *d, const struct layout *ld, double v, int64_t row)
{
	if (d->epilogue & CUBLASLT_EPILOGUE_BIAS)
		v += ref_operand_get((uint32_t)fake_operand_type(ld->type), d->bias, (uint64_t)row);
	if (d->epilogue & CUBLASLT_EPILOGUE_RELU && v < 0)
		v = 0;
	if (d->epilogue & CUBLASLT_EPILOGUE_GELU)
		v = v / 2 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
	return v;
}

/* `lines` numbers for each of `depth` k. The caller frees them. */
static double *room_of(int64_t lines, int64_t depth)
{
	double *out = malloc(((size_t)(lines * depth) + 1) * sizeof(*out));

	if (!out)
		abort();
	return out;
}

static int64_t panels_of(int64_t rows)
{
	return (rows + PANEL - 1) / PANEL;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Part of a panel, the `count` k from `first` on. So few that their numbers stay in the first cache. */
static void unpack_panel(double *panel, uint32_t type, const void *data, int64_t begin, const struct layout *l,
			 bool rows_are_columns, int64_t rows, int64_t first, int64_t count)
{
	for (int64_t i = 0; rows_are_columns && i < rows; i++)
		ref_operand_get_line(type, data, (uint64_t)(begin + i * l->step + first), 1, (uint64_t)count,
				     panel + first * PANEL + i, PANEL);
	for (int64_t k = first; !rows_are_columns && k < first + count; k++)
		ref_operand_get_line(type, data, (uint64_t)(begin + k * l->step), 1, (uint64_t)rows, panel + k * PANEL, 1);
}

/* One batch of op(A) as numbers, in panels, the last of which has zeros behind the last row. */
static double *unpack_rows(const struct layout *l, const void *data, int batch, bool rows_are_columns, int64_t rows,
			   int64_t depth)
{
	enum { AT_ONCE = 64 };
	const int64_t begin = batch * l->batch_step, panels = panels_of(rows);
	double *out = room_of(panels * PANEL, depth);

	if (rows % PANEL)
		memset(out + (panels - 1) * PANEL * depth, 0, (size_t)(PANEL * depth) * sizeof(*out));
	for (int64_t i = 0; i < rows; i += PANEL)
		for (int64_t k = 0; k < depth; k += AT_ONCE)
			unpack_panel(out + i * depth, (uint32_t)fake_operand_type(l->type), data,
				     begin + (rows_are_columns ? i * l->step : i), l, rows_are_columns, least(rows - i, PANEL), k,
				     least(depth - k, AT_ONCE));
	return out;
}

/* One batch of op(B) as numbers: element (k, j) at j * depth + k. */
static double *unpack_columns(const struct layout *l, const void *data, int batch, bool transposed, int64_t columns,
			      int64_t depth)
{
	const uint32_t type = (uint32_t)fake_operand_type(l->type);
	const int64_t begin = batch * l->batch_step;
	double *out = room_of(columns, depth);

	for (int64_t j = 0; !transposed && j < columns; j++)
		ref_operand_get_line(type, data, (uint64_t)(begin + j * l->step), 1, (uint64_t)depth, out + j * depth, 1);
	for (int64_t k = 0; transposed && k < depth; k++)
		ref_operand_get_line(type, data, (uint64_t)(begin + k * l->step), 1, (uint64_t)columns, out + k,
				     (uint64_t)depth);
	return out;
}

static double scale_at(const float *scale, uint32_t mode, int64_t i)
{
	return scale && !fake_is_blocks(mode) ? (double)scale[mode ? i : 0] : 1;
}

/* A line of an operand times its scales in blocks. The scales of all lines for the same 128 elements are adjacent.
 * Where blocks are 128 x 128, the scales of a line of blocks are adjacent, a multiple of four. */
static void scale_line(double *numbers, const float *scale, uint32_t mode, int64_t i, int64_t lines, int64_t depth,
		       int64_t k_step)
{
	const int64_t pitch = ((depth + 127) / 128 + 3) / 4 * 4;

	for (int64_t k = 0; fake_is_blocks(mode) && k < depth; k++)
		numbers[k * k_step] *= (double)(mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
							? scale[k / 128 * lines + i]
							: scale[i / 128 * pitch + k / 128]);
}

static double rounded(cudaDataType to, double v)
{
	const uint32_t type = (uint32_t)fake_operand_type(to);
	double room = 0;

	ref_operand_put(type, &room, 0, v);
	return ref_operand_get(type, &room, 0);
}

/* One batch of a product, its operands as numbers. */
struct batch {
	const struct product *p;
	int number;
	int64_t rows, depth;
	const double *x, *y;
};

/* Up to COLUMNS columns of one panel, for k from first to last. */
static void part_of_panel(double *sum, const struct batch *b, int64_t row, int64_t column, int64_t columns,
			  int64_t first, int64_t last)
{
	const double *x = b->x + row * b->depth + first * PANEL, *y = b->y + column * b->depth + first;

	if (columns == COLUMNS) {
		panel_of_columns(sum, x, y, b->depth, last - first);
		return;
	}
	for (int64_t j = 0; j < columns; j++)
		panel_of_column(sum + j * PANEL, x, y + j * b->depth, last - first);
}

/* The partial sums of a split k are rounded, if that is how they are added up. */
static void sums_of_panel(double *sum, const struct batch *b, int64_t row, int64_t column, int64_t columns)
{
	const int64_t parts = b->p->parts, depth = b->depth;
	double part[COLUMNS * PANEL];

	if (parts < 2) {
		part_of_panel(sum, b, row, column, columns, 0, depth);
		return;
	}
	memset(sum, 0, COLUMNS * PANEL * sizeof(*sum));
	for (int64_t p = 0; p < parts; p++) {
		part_of_panel(part, b, row, column, columns, p * depth / parts, (p + 1) * depth / parts);
		for (int64_t i = 0; i < columns * PANEL; i++)
			sum[i] += rounded(b->p->ld.type, part[i]);
	}
}

/* A panel's part of one column of D, of its sums. */
static void write_panel(double *sum, const struct batch *b, int64_t row, int64_t column)
{
	const struct product *p = b->p;
	const struct description *d = &p->e;
	const int64_t rows = least(b->rows - row, PANEL);
	const double scale_b = scale_at(d->scale_b, d->mode_b, column);
	double c[PANEL];

	if (p->beta != 0)
		ref_operand_get_line((uint32_t)fake_operand_type(p->lc.type), p->c,
				     (uint64_t)(b->number * p->lc.batch_step + column * p->lc.step + row), 1, (uint64_t)rows, c, 1);
	for (int64_t i = 0; i < rows; i++) {
		double v = sum[i] * (p->alpha * scale_at(d->scale_a, d->mode_a, row + i) * scale_b);

		if (p->rounds_product)
			v = rounded(p->ld.type, v);
		if (p->beta != 0)
			v += p->beta * c[i];
		sum[i] = finish(d, &p->ld, v, row + i);
	}
	ref_operand_put_line((uint32_t)fake_operand_type(p->ld.type), p->d,
			     (uint64_t)(b->number * p->ld.batch_step + column * p->ld.step + row), (uint64_t)rows, sum);
}

static void multiply_batch(const struct batch *b)
{
	const int64_t columns = (int64_t)b->p->ld.columns;
	double sum[COLUMNS * PANEL];

	for (int64_t row = 0; row < b->rows; row += PANEL)
		for (int64_t j = 0; j < columns; j += COLUMNS) {
			const int64_t count = least(columns - j, COLUMNS);

			sums_of_panel(sum, b, row, j, count);
			for (int64_t n = 0; n < count; n++)
				write_panel(sum + n * PANEL, b, row, j + n);
		}
}

void fake_multiply(const struct product *p)
{
	const struct description *d = &p->e;
	const int64_t depth = (int64_t)(d->transpose_a ? p->la.rows : p->la.columns);
	const int64_t rows = (int64_t)p->ld.rows, columns = (int64_t)p->ld.columns;

	for (int batch = 0; batch < p->ld.batch; batch++) {
		double *x = unpack_rows(&p->la, p->a, batch, d->transpose_a, rows, depth);
		double *y = unpack_columns(&p->lb, p->b, batch, d->transpose_b, columns, depth);

		for (int64_t i = 0; i < rows; i++)
			scale_line(x + i / PANEL * PANEL * depth + i % PANEL, d->scale_a, d->mode_a, i, rows, depth, PANEL);
		for (int64_t j = 0; j < columns; j++)
			scale_line(y + j * depth, d->scale_b, d->mode_b, j, columns, depth, 1);
		multiply_batch(&(struct batch){p, batch, rows, depth, x, y});
		free(x);
		free(y);
	}
}
