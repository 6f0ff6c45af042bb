/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 on a CPU: the arithmetic of a GPU, without its speed. Operands are quantized to E4M3 with the same
 * scales, as numbers in F32, and multiplied in F32.
 */
#include "model/cpu/fp8.h"
#include "model/backend/cost.h"
#include "model/cpu/real.h"
#include "model/tensor/fp8.h"

/* Quantizes `count` numbers, `step` apart, in place of a scale, and gives them back as numbers. */
static int32_t round_trip(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t count)
{
	float most = 0;
	struct fp8_scale s;

	for (int64_t i = 0; i < count; i++)
		most = fp8_larger(most, from[i * from_step]);
	s = fp8_scale_of(most);
	for (int64_t i = 0; i < count; i++)
		to[i * to_step] = e4m3_to_f32(e4m3_of_f32(from[i * from_step] * s.inverse)) * s.scale;
	return s.scale != s.scale;
}

struct rounding {
	struct mat from, to;
	bool along_rows; /* a scale per 128 elements of a column */
	int32_t *counts; /* per thread */
};

static void round_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rounding *r = arg;
	const int64_t ends = r->along_rows ? r->from.rows : r->from.cols;

	for (int64_t i = first; i < last; i++)
		for (int64_t at = 0; at < ends; at += FP8_TILE) {
			const int64_t row = r->along_rows ? at : i, col = r->along_rows ? i : at;
			const int64_t n = ends - at < FP8_TILE ? ends - at : FP8_TILE;

			r->counts[thread] += round_trip((const float *)r->from.data + row * r->from.ld + col,
							r->along_rows ? r->from.ld : 1,
							(float *)r->to.data + row * r->to.ld + col,
							r->along_rows ? r->to.ld : 1, n);
		}
}

enum { THREADS_MOST = 256 };

static void add_counts(int32_t *overflows, const int32_t *counts)
{
	for (unsigned i = 0; overflows && i < THREADS_MOST; i++)
		*overflows += counts[i];
}

static void round_rows(struct backend *back, const struct rounding *what, int32_t *overflows)
{
	int32_t counts[THREADS_MOST] = {0};
	struct rounding r = *what;
	const double bytes = 8.0 * (double)(r.from.rows * r.from.cols);

	r.counts = counts;
	cpu_parts(back, r.along_rows ? r.from.cols : r.from.rows, 1, bytes, round_part, &r);
	add_counts(overflows, counts);
}

/* -- weights -- */

struct quantizing {
	struct mat from, to, transposed;
	int32_t *counts;
};

static void quantize_tile(const struct quantizing *q, int64_t row, int64_t col, int32_t *count)
{
	const int64_t rows = q->from.rows - row < FP8_TILE ? q->from.rows : row + FP8_TILE;
	const int64_t cols = q->from.cols - col < FP8_TILE ? q->from.cols : col + FP8_TILE;
	float most = 0;
	struct fp8_scale s;

	for (int64_t i = row; i < rows; i++)
		for (int64_t j = col; j < cols; j++)
			most = fp8_larger(most, ((const float *)q->from.data)[i * q->from.ld + j]);
	s = fp8_scale_of(most);
	*count += s.scale != s.scale;
	*fp8_scale_at(&q->to, row, col) = s.scale;
	if (q->transposed.rows)
		*fp8_scale_at(&q->transposed, col, row) = s.scale;
	for (int64_t i = row; i < rows; i++)
		for (int64_t j = col; j < cols; j++) {
			const uint8_t e =
				e4m3_of_f32(((const float *)q->from.data)[i * q->from.ld + j] * s.inverse);

			((uint8_t *)q->to.data)[i * q->to.ld + j] = e;
			if (q->transposed.rows)
				((uint8_t *)q->transposed.data)[j * q->transposed.ld + i] = e;
		}
}

static void quantize_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct quantizing *q = arg;

	for (int64_t tile = first; tile < last; tile++)
		for (int64_t col = 0; col < q->from.cols; col += FP8_TILE)
			quantize_tile(q, tile * FP8_TILE, col, &q->counts[thread]);
}

enum status cpu_fp8_weights(struct backend *back, const struct mat *from, const struct mat *to,
			    const struct mat *transposed, int32_t *overflows, struct error *err)
{
	int32_t counts[THREADS_MOST] = {0};
	struct quantizing q = {.from = *from, .to = *to, .transposed = *transposed, .counts = counts};

	if (from->dtype != DTYPE_F32 || !fp8_is_weight(to) ||
	    (transposed->rows && !fp8_is_weight(transposed)))
		return error_set(err, STATUS_BUG, "weights of types that the CPU does not quantize");
	cpu_parts(back, fp8_tiles(from->rows), 1, 6.0 * (double)(from->rows * from->cols), quantize_part, &q);
	add_counts(overflows, counts);
	return STATUS_OK;
}

enum status cpu_quantize_e4m3(struct backend *back, struct mat from, struct mat to, struct mat transposed,
			      int32_t *overflows, struct error *err)
{
	cost_quantize(back, &from, &transposed);
	return cpu_fp8_weights(back, &from, &to, &transposed, overflows, err);
}

struct transposing {
	struct mat from, to;
};

static void transpose_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct transposing *t = arg;

	(void)thread;
	for (int64_t tile = first; tile < last; tile++) {
		const int64_t row = tile * FP8_TILE;
		const int64_t end = t->from.rows - row < FP8_TILE ? t->from.rows : row + FP8_TILE;

		for (int64_t col = 0; col < t->from.cols; col += FP8_TILE)
			*fp8_scale_at(&t->to, col, row) = *fp8_scale_at(&t->from, row, col);
		for (int64_t j = 0; j < t->from.cols; j++)
			for (int64_t i = row; i < end; i++)
				((uint8_t *)t->to.data)[j * t->to.ld + i] =
					((const uint8_t *)t->from.data)[i * t->from.ld + j];
	}
}

void cpu_fp8_transpose(struct backend *back, const struct mat *from, const struct mat *to)
{
	struct transposing t = {.from = *from, .to = *to};

	cpu_parts(back, fp8_tiles(from->rows), 1, 2.0 * (double)(from->rows * from->cols), transpose_part,
		  &t);
}

struct unpacking {
	struct mat from, to;
};

static void unpack_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct unpacking *u = arg;
	float number[256];

	(void)thread;
	for (int i = 0; i < 256; i++)
		number[i] = e4m3_to_f32((uint8_t)i);
	for (int64_t i = first; i < last; i++) {
		const uint8_t *from = (const uint8_t *)u->from.data + i * u->from.ld;
		float *to = (float *)u->to.data + i * u->to.ld;

		for (int64_t col = 0; col < u->to.cols; col += FP8_TILE) {
			const int64_t end = u->to.cols - col < FP8_TILE ? u->to.cols : col + FP8_TILE;
			const float scale = *fp8_scale_at(&u->from, i, col);

			for (int64_t j = col; j < end; j++)
				to[j] = number[from[j]] * scale;
		}
	}
}

enum status cpu_gemm_fp8(struct backend *back, const struct gemm *g, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	const struct rounding a = {.from = g->a, .along_rows = g->trans_a},
			      b = {.from = g->b, .along_rows = !g->trans_b};
	struct gemm numbers = *g;
	struct rounding r;
	enum status st = workspace_fp8_numbers(back, g, &numbers.a, &numbers.b, err);

	cost_gemm(back, g);
	if (!st) {
		r = a;
		r.to = numbers.a;
		round_rows(back, &r, g->overflows);
	}
	if (!st && fp8_is_weight(&g->b)) {
		struct unpacking u = {.from = g->b, .to = numbers.b};

		cpu_parts(back, g->b.rows, 1, 5.0 * (double)(g->b.rows * g->b.cols), unpack_part, &u);
	} else if (!st) {
		r = b;
		r.to = numbers.b;
		round_rows(back, &r, g->overflows);
	}
	numbers.fp8 = false;
	if (!st)
		st = cpu_gemm_numbers(back, &numbers, err);
	arena_reset(back->arena, &mark);
	return st;
}
