/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/matmul/skinny.h on the host, in double precision. How work is divided does not matter to it. */
#include "kernel/matmul/skinny.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/matmul/skinny_adapters.h"
#include "ref.h"
#include "ref_number.h"

#define AT(type, address) ((type *)(uintptr_t)(address))

/* The fake driver's map: address, four sizes, three strides in bytes. */
struct matrix {
	const void *data;
	uint64_t columns, rows, row; /* row: elements from one row to the next */
	enum attention_type type;
};

static struct matrix matrix_of(const struct tensor_map *m, bool is_e4m3)
{
	return (struct matrix){(const void *)(uintptr_t)m->opaque[0], m->opaque[1], m->opaque[2],
			       m->opaque[5] / (is_e4m3 ? 1 : 2), is_e4m3 ? ATTENTION_E4M3 : ATTENTION_BF16};
}

/* Row `n` as numbers, once for all products that it is in. */
static void unpack(double *to, const struct matrix *m, uint64_t n, uint64_t columns)
{
	for (uint64_t i = 0; i < columns; i++)
		to[i] = ref_number_load(m->type, m->data, n * m->row + i);
}

static double scaled(const struct skinny_args *a, double sum, uint64_t n, uint64_t t)
{
	if (a->w_scale)
		sum *= (double)AT(const float, a->w_scale)[n];
	return a->x_scale ? sum * (double)AT(const float, a->x_scale)[t] : sum;
}

static double dot(const struct skinny_args *a, const double *w, const double *x, uint64_t columns, uint64_t n,
		  uint64_t t)
{
	double sum = 0;

	for (uint64_t i = 0; i < columns; i++)
		sum += w[i] * x[i];
	return scaled(a, sum, n, t);
}

static void run(const char *entry, struct ref_grid grid, const void *args)
{
	const struct skinny_args *a = args;
	const bool mixed = strstr(entry, "mixed"), e4m3 = strstr(entry, "e4m3");
	const struct matrix w = matrix_of(&a->w_map, mixed || e4m3), x = matrix_of(&a->x_map, e4m3);
	const uint64_t columns = w.columns;
	double *xs = malloc((a->rows + 2) * columns * sizeof(*xs));
	double *first = xs + a->rows * columns, *second = first + columns;

	(void)grid;
	if (!xs)
		abort();
	for (uint64_t t = 0; t < a->rows; t++)
		unpack(xs + t * columns, &x, t, columns);
	for (uint64_t n = 0; n < a->outputs; n++) {
		unpack(first, &w, n, columns);
		if (a->swiglu)
			unpack(second, &w, a->second + n, columns);
		for (uint64_t t = 0; t < a->rows; t++) {
			double v = dot(a, first, xs + t * columns, columns, n, t);

			if (a->swiglu)
				v = v / (1 + exp(-v)) *
				    dot(a, second, xs + t * columns, columns, a->second + n, t);
			if (a->bias)
				v += ref_number_load(ATTENTION_BF16, AT(const void, a->bias), n);
			if (a->residual)
				v += ref_number_load(ATTENTION_BF16, AT(const void, a->residual),
						     t * (uint64_t)a->row_residual + n);
			ref_number_store(ATTENTION_BF16, AT(void, a->y), t * (uint64_t)a->row_y + n, v);
		}
	}
	free(xs);
}

/* A row of u = x A', rounded, without the columns of other adapters. */
static void shrink(const struct skinny_adapters_args *a, uint64_t t)
{
	const struct matrix down = matrix_of(&a->a_map, false), x = matrix_of(&a->x_map, false);

	for (uint64_t c = 0; c < a->a_rows; c++) {
		const bool own = (int32_t)(c % a->width / a->rank) == AT(const int32_t, a->adapter)[t];
		double sum = 0;

		for (uint64_t i = 0; own && i < down.columns; i++)
			sum += ref_number_load(down.type, down.data, c * down.row + i) *
			       ref_number_load(x.type, x.data, t * x.row + i);
		ref_number_store(ATTENTION_BF16, AT(void, a->u), t * (uint64_t)a->row_u + c, sum);
	}
}

/* u B' of row n of W. */
static double expand(const struct skinny_adapters_args *a, uint64_t n, uint64_t t)
{
	const struct matrix up = matrix_of(&a->b_map, false);
	uint64_t before = 0;
	double sum = 0;

	for (uint32_t i = 0; i < a->parts; before += a->count[i++]) {
		if (n < a->begin[i] || n - a->begin[i] >= a->count[i])
			continue;
		for (uint64_t c = 0; c < a->width; c++)
			sum += ref_number_load(ATTENTION_BF16, AT(const void, a->u),
					       t * (uint64_t)a->row_u + i * a->width + c) *
			       ref_number_load(up.type, up.data, (before + n - a->begin[i]) * up.row + c);
	}
	return sum;
}

static double both(const struct skinny_adapters_args *a, const struct matrix *w, const struct matrix *x,
		   uint64_t n, uint64_t t)
{
	double sum = 0, v;

	for (uint64_t i = 0; i < w->columns; i++)
		sum += ref_number_load(w->type, w->data, n * w->row + i) *
		       ref_number_load(x->type, x->data, t * x->row + i);
	v = scaled(&a->base, sum, n, t);
	if (a->w_scale)
		v *= (double)AT(const float, a->w_scale)[n] * (double)AT(const float, a->x_scale)[t];
	return v + expand(a, n, t);
}

static void run_adapters(const char *entry, struct ref_grid grid, const void *args)
{
	const struct skinny_adapters_args *a = args;
	const bool e4m3 = strstr(entry, "e4m3");
	const struct matrix w = matrix_of(&a->base.w_map, e4m3), x = matrix_of(&a->base.x_map, e4m3);

	(void)grid;
	for (uint64_t t = 0; t < a->base.rows; t++) {
		shrink(a, t);
		for (uint64_t n = 0; n < a->base.outputs; n++) {
			double v = both(a, &w, &x, n, t);

			if (a->base.swiglu)
				v = v / (1 + exp(-v)) * both(a, &w, &x, a->base.second + n, t);
			if (a->base.bias)
				v += ref_number_load(ATTENTION_BF16, AT(const void, a->base.bias), n);
			if (a->base.residual)
				v += ref_number_load(ATTENTION_BF16, AT(const void, a->base.residual),
						     t * (uint64_t)a->base.row_residual + n);
			ref_number_store(ATTENTION_BF16, AT(void, a->base.y), t * (uint64_t)a->base.row_y + n,
					 v);
		}
	}
}

static void quantize(const char *entry, struct ref_grid grid, const void *args)
{
	const struct skinny_quantize_args *a = args;

	(void)entry;
	(void)grid;
	for (uint64_t r = 0; r < a->rows; r++) {
		float most = 0, by;

		for (uint64_t i = 0; i < a->cols; i++)
			most = fmaxf(most,
				     fabsf((float)ref_number_load(ATTENTION_BF16, AT(const void, a->from),
								  r * (uint64_t)a->row_from + i)));
		by = most > 0 ? 448 / most : 1;
		AT(float, a->scale)[r] = most > 0 ? most / 448 : 1;
		for (uint64_t i = 0; i < a->cols; i++) {
			const float v = by * (float)ref_number_load(ATTENTION_BF16, AT(const void, a->from),
								    r * (uint64_t)a->row_from + i);

			ref_number_store(ATTENTION_E4M3, AT(void, a->to), r * (uint64_t)a->row_to + i,
					 (double)v);
		}
	}
}

const struct ref_row ref_skinny[] = {
	{"skinny_quantize", quantize, sizeof(struct skinny_quantize_args),
	 offsetof(struct skinny_quantize_args, to)},
	{"skinny_adapters_", run_adapters, sizeof(struct skinny_adapters_args),
	 offsetof(struct skinny_adapters_args, base.y)},
	{"skinny_", run, sizeof(struct skinny_args), offsetof(struct skinny_args, y)},
	{NULL, NULL, 0, 0},
};
