/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on rows: embedding, gathering, SwiGLU, dropout, conversion, sums of columns. */
#include "core/math/random.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/cpu/real.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

struct rows {
	struct mat x, y;
	const int32_t *row;
	const struct dropout *drop;
	int64_t first; /* id of the table's first row */
	bool add;      /* for swiglu_rows_bwd: recompute h */
};

static double bytes_of(const struct mat *m)
{
	return (double)(m->rows * m->cols) * sizeof(real);
}

static void zero_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct mat *x = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		memset((uint8_t *)x->data + dtype_bytes(x->dtype, (uint64_t)(i * x->ld)), 0,
		       dtype_bytes(x->dtype, (uint64_t)x->cols));
}

enum status cpu_zero(struct backend *back, struct mat x, struct error *err)
{
	(void)err;
	cost_touch(back, &x, 1);
	cpu_parts(back, x.rows, 1, bytes_of(&x), zero_rows, &x);
	return STATUS_OK;
}

static void add_row(real *restrict y, const real *restrict x, int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		y[j] += x[j];
}

static void gather(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		memcpy(real_row(r->y, i), real_row(r->x, r->row[i]), (size_t)r->y.cols * sizeof(real));
}

static void scatter(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		add_row(real_row(r->y, r->row[i]), real_row(r->x, i), r->x.cols);
}

/* Dequantizes rows of a table. */
static void gather_blocks(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		cpu_unpack_row(&r->x, r->row[i], (float *)r->y.data + i * r->y.ld);
}

enum status cpu_embed(struct backend *back, const struct batch *b, struct mat table, struct mat x,
		      struct error *err)
{
	struct rows r = {.x = table, .y = x, .row = b->token};

	(void)err;
	cost_touch(back, &x, 2);
	cpu_parts(back, x.rows, 1, bytes_of(&x), cpu_blocks_of(table.dtype) ? gather_blocks : gather, &r);
	return STATUS_OK;
}

static bool has_row(const struct mat *table, int64_t row)
{
	return row >= 0 && row < table->rows;
}

static void gather_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++) {
		const int64_t row = r->row[i] - r->first;
		const size_t bytes = (size_t)r->y.cols * sizeof(real);

		if (has_row(&r->x, row))
			memcpy(real_row(r->y, i), real_row(r->x, row), bytes);
		else
			memset(real_row(r->y, i), 0, bytes);
	}
}

enum status cpu_embed_part(struct backend *back, const struct batch *b, struct mat table, int64_t first,
			   struct mat x, struct error *err)
{
	struct rows r = {.x = table, .y = x, .row = b->token, .first = first};

	(void)err;
	cost_touch(back, &x, 2);
	cpu_parts(back, x.rows, 1, bytes_of(&x), gather_part, &r);
	return STATUS_OK;
}

/* Works by columns, because a token may occur in several rows. */
static void embed_part_columns(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = 0; i < r->x.rows; i++)
		if (has_row(&r->y, r->row[i] - r->first))
			add_row(real_row(r->y, r->row[i] - r->first) + first, real_row(r->x, i) + first,
				last - first);
}

enum status cpu_embed_part_bwd(struct backend *back, const struct batch *b, struct mat dx, int64_t first,
			       struct mat dtable, struct error *err)
{
	struct rows r = {.x = dx, .y = dtable, .row = b->token, .first = first};

	(void)err;
	cost_touch(back, &dx, 3);
	cpu_parts(back, dx.cols, 16, bytes_of(&dx), embed_part_columns, &r);
	return STATUS_OK;
}

enum status cpu_embed_bwd(struct backend *back, const struct batch *b, struct mat dx, struct mat dtable,
			  struct error *err)
{
	return cpu_embed_part_bwd(back, b, dx, 0, dtable, err);
}

enum status cpu_rows_copy(struct backend *back, struct mat from, struct mat to, const int32_t *row,
			  bool scatter_add, struct error *err)
{
	struct rows r = {.x = from, .y = to, .row = row};
	const struct mat *listed = scatter_add ? &from : &to;

	(void)err;
	cost_touch(back, listed, scatter_add ? 3 : 2);
	cpu_parts(back, listed->rows, 1, bytes_of(listed), scatter_add ? scatter : gather, &r);
	return STATUS_OK;
}

VECTOR static void swiglu_row(const real *restrict gate, const real *restrict up, real *restrict h, int64_t n)
{
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		h[j] = gate[j] / (1 + real_exp(-gate[j])) * up[j];
}

/* d silu(g) / dg = s + g s (1 - s) with s = sigmoid(g). */
VECTOR static void swiglu_row_bwd(real *restrict dh, real *restrict gate, real *restrict up, int64_t n)
{
#pragma omp simd
	for (int64_t j = 0; j < n; j++) {
		real g = gate[j], s = 1 / (1 + real_exp(-g));

		gate[j] = dh[j] * up[j] * (s + g * s * (1 - s));
		up[j] = dh[j] * g * s;
	}
}

/* The same, and dh becomes h, bit-identical to swiglu_row. */
VECTOR static void swiglu_row_again(real *restrict dh, real *restrict gate, real *restrict up, int64_t n)
{
#pragma omp simd
	for (int64_t j = 0; j < n; j++) {
		real g = gate[j], s = 1 / (1 + real_exp(-g)), h = g / (1 + real_exp(-g)) * up[j];

		gate[j] = dh[j] * up[j] * (s + g * s * (1 - s));
		up[j] = dh[j] * g * s;
		dh[j] = h;
	}
}

static void swiglu_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		swiglu_row(real_row(r->x, t), real_row(r->x, t) + r->y.cols, real_row(r->y, t), r->y.cols);
}

static void swiglu_rows_bwd(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		(r->add ? swiglu_row_again : swiglu_row_bwd)(real_row(r->y, t), real_row(r->x, t),
							     real_row(r->x, t) + r->y.cols, r->y.cols);
}

enum status cpu_swiglu(struct backend *back, struct mat gate_up, struct mat h, struct error *err)
{
	struct rows r = {.x = gate_up, .y = h};

	(void)err;
	cost_touch(back, &h, 3);
	cpu_parts(back, h.rows, 1, bytes_of(&h), swiglu_rows, &r);
	return STATUS_OK;
}

enum status cpu_swiglu_bwd(struct backend *back, struct mat dh, struct mat gate_up, bool again,
			   struct error *err)
{
	struct rows r = {.x = gate_up, .y = dh, .add = again};

	(void)err;
	cost_touch(back, &dh, again ? 6 : 5);
	cpu_parts(back, dh.rows, 1, bytes_of(&dh), swiglu_rows_bwd, &r);
	return STATUS_OK;
}

/* A row's random numbers are Philox's with key seed and counter (column / 4, row low, row high, site), four
 * per call. */
static void dropout_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;
	const struct dropout *d = r->drop;
	const uint32_t key[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)};
	const uint32_t least = (uint32_t)((double)d->p * 0x1p32);
	const real scale = 1 / (1 - (real)d->p);

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		const uint64_t row = d->row_begin + (uint64_t)t;
		const real *x = real_row(r->x, t);
		real *y = real_row(r->y, t);

		for (int64_t j = 0; j < r->x.cols; j += 4) {
			const uint32_t counter[4] = {(uint32_t)((d->col_begin + j) / 4), (uint32_t)row,
						     (uint32_t)(row >> 32), d->site};
			uint32_t word[4];

			philox4x32(word, counter, key);
			for (int64_t i = 0; i < 4 && j + i < r->x.cols; i++) {
				real kept = word[i] >= least ? x[j + i] * scale : 0;

				y[j + i] = r->add ? y[j + i] + kept : kept;
			}
		}
	}
}

enum status cpu_dropout(struct backend *back, struct mat x, const struct dropout *drop, struct mat y,
			bool add, struct error *err)
{
	struct rows r = {.x = x, .y = y, .drop = drop, .add = add};

	(void)err;
	cost_touch(back, &x, add ? 3 : 2);
	cpu_parts(back, x.rows, 1, 8 * bytes_of(&x), dropout_rows, &r);
	return STATUS_OK;
}

static double number(const struct mat *m, int64_t row, int64_t col)
{
	const size_t at = (size_t)(row * m->ld + col);

	switch (m->dtype) {
	case DTYPE_F64:
		return ((const double *)m->data)[at];
	case DTYPE_BF16:
		return (double)bf16_to_f32(((const uint16_t *)m->data)[at]);
	default:
		return (double)((const float *)m->data)[at];
	}
}

static void convert_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		for (int64_t j = 0; j < r->x.cols; j++) {
			double value = number(&r->x, i, j);
			size_t at = (size_t)(i * r->y.ld + j);

			if (r->y.dtype == DTYPE_F64)
				((double *)r->y.data)[at] = value;
			else if (r->y.dtype == DTYPE_BF16)
				((uint16_t *)r->y.data)[at] = bf16_of_f32((float)value);
			else
				((float *)r->y.data)[at] = (float)value;
		}
}

/* The same type: bytes, so that they may also be anything else than numbers. */
static void copy_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;
	const enum dtype dtype = r->x.dtype;
	const size_t row = dtype_bytes(dtype, (uint64_t)r->x.cols);

	(void)thread;
	for (int64_t i = first; i < last; i++)
		memcpy((uint8_t *)r->y.data + dtype_bytes(dtype, (uint64_t)(i * r->y.ld)),
		       (const uint8_t *)r->x.data + dtype_bytes(dtype, (uint64_t)(i * r->x.ld)), row);
}

/* One row of any length is copied by all threads. */
static void copy_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;
	const size_t begin = dtype_bytes(r->x.dtype, (uint64_t)first);

	(void)thread;
	memcpy((uint8_t *)r->y.data + begin, (const uint8_t *)r->x.data + begin,
	       dtype_bytes(r->x.dtype, (uint64_t)(last - first)));
}

static void copy(struct backend *back, struct rows *r)
{
	const double bytes = (double)dtype_bytes(r->x.dtype, (uint64_t)(r->x.rows * r->x.cols));

	if (r->x.rows == 1)
		cpu_parts(back, r->x.cols, 64, bytes, copy_part, r);
	else
		cpu_parts(back, r->x.rows, 1, bytes, copy_rows, r);
}

enum status cpu_convert(struct backend *back, struct mat from, struct mat to, struct error *err)
{
	struct rows r = {.x = from, .y = to};

	if (from.dtype == to.dtype) {
		cost_touch(back, &from, 1);
		cost_touch(back, &to, 1);
		copy(back, &r);
		return STATUS_OK;
	}
	for (int i = 0; i < 2; i++) {
		enum dtype dtype = i ? to.dtype : from.dtype;

		if (dtype != DTYPE_F32 && dtype != DTYPE_F64 && dtype != DTYPE_BF16)
			return error_set(err, STATUS_UNSUPPORTED, "the CPU converts only F32, F64 and BF16");
	}
	cost_touch(back, &from, 1);
	cost_touch(back, &to, 1);
	cpu_parts(back, from.rows, 1, bytes_of(&from), convert_rows, &r);
	return STATUS_OK;
}

static void sum_columns(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rows *r = arg;

	(void)thread;
	for (int64_t t = 0; t < r->x.rows; t++)
		add_row(real_row(r->y, 0) + first, real_row(r->x, t) + first, last - first);
}

enum status cpu_column_sum(struct backend *back, struct mat x, struct mat sum_add, struct error *err)
{
	struct rows r = {.x = x, .y = sum_add};

	(void)err;
	cost_touch(back, &x, 1);
	cpu_parts(back, x.cols, 16, bytes_of(&x), sum_columns, &r);
	return STATUS_OK;
}
