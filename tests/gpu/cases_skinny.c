/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows against sums in double precision. Each case is one matrix of weights, run with many
 * numbers of rows and with every way to divide the work. Exact cases hold small integers, so that every bit
 * is known.
 */
#include "cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/matmul/skinny.h"
#include "ref_number.h"

enum { MIXED = 1, E4M3 = 2, BIAS = 4, RESIDUAL = 8, IN_PLACE = 16, SWIGLU = 32, EXACT = 64, FEW = 128 };
enum { SMALL_CHOICES = 2 };
enum { ROWS = 256, MIXED_ROWS = 128, PITCH = 8, COLUMNS_MOST = 320, NAN_BITS = 0xffff };

/* threads: flags; p0: outputs; p1: k. */
#define CASE(why, outputs, k, flags)                                                                         \
	{                                                                                                    \
		"skinny", why, (uint64_t)(outputs) * (k), 0, flags, outputs, k                               \
	}
#define KINDS(why, outputs, k, flags)                                                                        \
	CASE(why ", bf16", outputs, k, flags), CASE(why ", bf16 exact", outputs, k, (flags) | EXACT),        \
		CASE(why ", mixed", outputs, k, (flags) | MIXED),                                            \
		CASE(why ", mixed exact", outputs, k, (flags) | MIXED | EXACT),                              \
		CASE(why ", e4m3", outputs, k, (flags) | E4M3),                                              \
		CASE(why ", e4m3 exact", outputs, k, (flags) | E4M3 | EXACT)
static const struct kernel_case cases[] = {
	KINDS("one step", 128, 64, 0),
	KINDS("less than a tile", 8, 16, BIAS | RESIDUAL),
	KINDS("parts of tiles and steps", 200, 336, BIAS | RESIDUAL),
	KINDS("smollm2 qkv", 960, 576, 0),
	KINDS("smollm2 o", 576, 576, RESIDUAL),
	KINDS("smollm2 gate_up", 1536, 576, SWIGLU),
	KINDS("smollm2 down in place", 576, 1536, RESIDUAL | IN_PLACE),
	KINDS("qwen2-0.5b qkv", 1152, 896, BIAS),
	KINDS("qwen2-0.5b gate_up", 4864, 896, SWIGLU | FEW),
	KINDS("a part of a SwiGLU tile", 104, 272, SWIGLU),
	CASE("qwen2-7b qkv, bf16", 4608, 3584, BIAS | FEW | EXACT),
	CASE("qwen2-7b o, bf16", 3584, 3584, RESIDUAL | FEW),
	CASE("qwen2-7b down, bf16 exact", 3584, 18944, RESIDUAL | FEW | EXACT),
	CASE("qwen2-7b down, mixed", 3584, 18944, RESIDUAL | FEW | MIXED),
	CASE("qwen2-7b down, e4m3", 3584, 18944, RESIDUAL | FEW | E4M3),
	CASE("qwen2-7b gate_up, bf16", 18944, 3584, SWIGLU | FEW),
	CASE("qwen2-7b gate_up, e4m3", 18944, 3584, SWIGLU | FEW | E4M3),
	{"skinny_quantize", "rows of many lengths", 256 * 3584, 0, 0, 0, 0},
};

struct bed {
	struct kit *kit;
	const struct kernel_case *c;
	struct skinny *skinny;
	struct guarded w, x, y, bias, residual, w_scale, x_scale;
	uint8_t *w_host, *x_host;
	uint16_t *bias_host, *residual_host, *found, *widest;
	float *w_factor, *x_factor;
	double *x_values, *w_values; /* [ROWS, k]; one row of W */
	uint32_t column[COLUMNS_MOST], columns;
	/* [columns of each half][ROWS]: the sum, and the sum of magnitudes */
	double *sum, *size;
	unsigned rows_most;
};

static bool has(const struct bed *b, unsigned flag)
{
	return b->c->threads & flag;
}

/* With --small, a CPU may run the kernels' references. */
static bool is_small(const struct bed *b)
{
	return b->kit->count_max != UINT64_MAX;
}

static enum attention_type type_of(bool is_short)
{
	return is_short ? ATTENTION_E4M3 : ATTENTION_BF16;
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

/* In [-1, 1), or an integer in [-4, 4]. */
static double number(const struct bed *b, unsigned stream, uint64_t i)
{
	const uint64_t bits = mix(b->kit->seed + i * 0x9e3779b97f4a7c15u + stream);

	return has(b, EXACT) ? (double)(bits % 9) - 4 : (double)(int64_t)bits * 0x1p-63;
}

static uint32_t w_rows(const struct bed *b)
{
	return b->c->p0 * (has(b, SWIGLU) ? 2 : 1);
}

static double factor(const struct bed *b, unsigned stream, uint64_t i)
{
	return has(b, EXACT) ? ldexp(1, (int)(i % 3) - 1) : (1.5 + number(b, stream, i)) / sqrt(b->c->p1);
}

static void fill(struct bed *b)
{
	const uint64_t k = b->c->p1, outputs = b->c->p0;
	const bool short_w = has(b, MIXED | E4M3), short_x = has(b, E4M3);
	/* Without factors, weights are as large as keeps sums near 1. */
	const double w_size = has(b, EXACT) || short_w ? 1 : 1 / sqrt((double)k);

	/* Converting one at a time is slow, so large matrices repeat 2^16 numbers, at places that have no
	 * period. */
	for (uint64_t i = 0; i < 65536; i++)
		ref_number_store(type_of(short_w), b->w_host, i, number(b, 1, i) * w_size);
	for (uint64_t i = 65536; i < (uint64_t)w_rows(b) * k; i++) {
		const uint64_t from = mix(i) % 65536;

		if (short_w)
			b->w_host[i] = b->w_host[from];
		else
			((uint16_t *)b->w_host)[i] = ((uint16_t *)b->w_host)[from];
	}
	for (uint64_t i = 0; i < ROWS * k; i++) {
		ref_number_store(type_of(short_x), b->x_host, i, number(b, 2, i));
		b->x_values[i] = ref_number_load(type_of(short_x), b->x_host, i);
	}
	for (uint64_t i = 0; i < outputs; i++)
		ref_number_store(ATTENTION_BF16, b->bias_host, i, number(b, 3, i));
	for (uint64_t i = 0; i < ROWS * (outputs + PITCH); i++)
		ref_number_store(ATTENTION_BF16, b->residual_host, i, number(b, 4, i));
	for (uint64_t i = 0; i < w_rows(b); i++)
		b->w_factor[i] = (float)(short_w ? factor(b, 5, i) : 1);
	for (uint64_t i = 0; i < ROWS; i++)
		b->x_factor[i] =
			(float)(short_x ? (has(b, EXACT) ? factor(b, 6, i) : 1.5 + number(b, 6, i)) : 1);
}

/* All columns of small matrices; of large ones some, with those at borders of tiles. */
static void choose_columns(struct bed *b)
{
	const uint32_t outputs = b->c->p0;

	for (uint32_t n = 0; n < outputs && b->columns < COLUMNS_MOST; n++)
		if (outputs <= 256 || n < 2 || n + 9 > outputs || mix(n) % outputs < 260 ||
		    (outputs <= 8000 && n % 512 < 2))
			b->column[b->columns++] = n;
}

static void add_up(struct bed *b, uint32_t row, double *sum, double *size)
{
	const uint64_t k = b->c->p1;

	for (uint64_t i = 0; i < k; i++)
		b->w_values[i] = ref_number_load(type_of(has(b, MIXED | E4M3)), b->w_host, row * k + i);
	for (unsigned t = 0; t < b->rows_most; t++) {
		const double *x = b->x_values + t * k, by = (double)b->w_factor[row] * (double)b->x_factor[t];
		double s = 0, m = 0;

		for (uint64_t i = 0; i < k; i++) {
			s += x[i] * b->w_values[i];
			m += fabs(x[i] * b->w_values[i]);
		}
		sum[t] = s * by;
		size[t] = m * by;
	}
}

static void expect(struct bed *b)
{
	for (uint32_t i = 0; i < b->columns; i++)
		add_up(b, b->column[i], b->sum + (uint64_t)i * ROWS, b->size + (uint64_t)i * ROWS);
	for (uint32_t i = 0; i < b->columns && has(b, SWIGLU); i++)
		add_up(b, b->c->p0 + b->column[i], b->sum + (uint64_t)(COLUMNS_MOST + i) * ROWS,
		       b->size + (uint64_t)(COLUMNS_MOST + i) * ROWS);
}

static enum status host_memory(struct bed *b, struct error *err)
{
	const uint64_t k = b->c->p1, outputs = b->c->p0, weights = (uint64_t)w_rows(b) * k;
	const uint64_t results = (uint64_t)ROWS * (outputs + PITCH);

	b->w_host = malloc(2 * (weights > 65536 ? weights : 65536));
	b->x_host = malloc(2 * ROWS * k);
	b->bias_host = malloc(2 * outputs);
	b->residual_host = malloc(2 * results);
	b->found = malloc(2 * results);
	b->widest = malloc(2 * results);
	b->w_factor = malloc(4 * w_rows(b));
	b->x_factor = malloc(4 * ROWS);
	b->x_values = malloc(8 * ROWS * k);
	b->w_values = malloc(8 * k);
	b->sum = calloc(2 * COLUMNS_MOST * ROWS, 8);
	b->size = calloc(2 * COLUMNS_MOST * ROWS, 8);
	if (!b->w_host || !b->x_host || !b->bias_host || !b->residual_host || !b->found || !b->widest ||
	    !b->w_factor || !b->x_factor || !b->x_values || !b->w_values || !b->sum || !b->size)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a GEMM's reference");
	return STATUS_OK;
}

static enum status to_device(struct bed *b, struct error *err)
{
	const uint64_t k = b->c->p1, outputs = b->c->p0;
	const uint64_t w_bytes = has(b, MIXED | E4M3) ? 1 : 2, x_bytes = has(b, E4M3) ? 1 : 2;
	enum status st = kit_put(b->kit, &b->w, b->w_host, w_rows(b) * k * w_bytes, err);

	if (!st)
		st = kit_put(b->kit, &b->x, b->x_host, ROWS * k * x_bytes, err);
	if (!st)
		st = kit_put(b->kit, &b->bias, b->bias_host, 2 * outputs, err);
	if (!st)
		st = kit_put(b->kit, &b->residual, b->residual_host, 2 * ROWS * (outputs + PITCH), err);
	if (!st)
		st = kit_put(b->kit, &b->w_scale, b->w_factor, 4 * w_rows(b), err);
	if (!st)
		st = kit_put(b->kit, &b->x_scale, b->x_factor, 4 * ROWS, err);
	return st ? st : kit_alloc(b->kit, &b->y, 2 * ROWS * (outputs + PITCH), err);
}

static void release(struct bed *b)
{
	struct guarded *all[] = {&b->w, &b->x, &b->y, &b->bias, &b->residual, &b->w_scale, &b->x_scale};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		kit_free(b->kit, all[i]);
	skinny_close(&b->skinny);
	free(b->w_host);
	free(b->x_host);
	free(b->bias_host);
	free(b->residual_host);
	free(b->found);
	free(b->widest);
	free(b->w_factor);
	free(b->x_factor);
	free(b->x_values);
	free(b->w_values);
	free(b->sum);
	free(b->size);
}

static struct skinny_problem problem_of(const struct bed *b, unsigned rows)
{
	return (struct skinny_problem){
		.w = b->w.data,
		.x = b->x.data,
		.y = b->y.data,
		.w_scale = has(b, MIXED | E4M3) ? b->w_scale.data : 0,
		.x_scale = has(b, E4M3) ? b->x_scale.data : 0,
		.bias = has(b, BIAS) ? b->bias.data : 0,
		.residual = has(b, RESIDUAL) ? (has(b, IN_PLACE) ? b->y.data : b->residual.data) : 0,
		.rows = rows,
		.outputs = b->c->p0,
		.k = b->c->p1,
		.swiglu = has(b, SWIGLU),
		.row_w = b->c->p1,
		.row_x = b->c->p1,
		.row_y = b->c->p0 + PITCH,
		.row_residual = b->c->p0 + PITCH,
	};
}

/* The result in double precision, and how far the kernel may be off before its last rounding. */
static double expected(const struct bed *b, uint32_t i, unsigned t, double *off)
{
	const uint64_t at = (uint64_t)i * ROWS + t, up = at + (uint64_t)COLUMNS_MOST * ROWS;
	const uint64_t pitched = t * ((uint64_t)b->c->p0 + PITCH) + b->column[i];
	/* Sums of E4M3 products keep about 13 bits; FP32 sums are truncated. */
	const double part = has(b, EXACT) ? 0 : has(b, E4M3) ? 0x1p-12 : 0x1p-20;
	double v = b->sum[at], silu;

	*off = part * b->size[at];
	if (has(b, SWIGLU)) {
		silu = v / (1 + exp(-v));
		*off = 1.1 * *off * fabs(b->sum[up]) + fabs(silu) * part * b->size[up] +
		       0x1p-18 * fabs(silu * b->sum[up]);
		v = silu * b->sum[up];
	}
	if (has(b, BIAS))
		v += ref_number_load(ATTENTION_BF16, b->bias_host, b->column[i]);
	if (has(b, RESIDUAL))
		v += ref_number_load(ATTENTION_BF16, b->residual_host, pitched);
	return v;
}

/* Whether a result is right. Exact sums are rounded once. */
static bool is_right(const struct bed *b, double found, double e, double off)
{
	uint16_t rounded[1];

	if (!has(b, EXACT) || has(b, SWIGLU))
		return fabs(found - e) <= off + fabs(e) * 0x1.01p-8 + 1e-30;
	ref_number_store(ATTENTION_BF16, rounded, 0, e);
	return found == ref_number_load(ATTENTION_BF16, rounded, 0);
}

static enum status inspect(const struct bed *b, const struct skinny_choice *c, unsigned rows,
			   struct error *err)
{
	const uint64_t pitch = (uint64_t)b->c->p0 + PITCH;
	const uint16_t *gap = has(b, IN_PLACE) ? b->residual_host : NULL;

	for (unsigned t = 0; t < rows; t++) {
		for (uint32_t i = 0; i < b->columns; i++) {
			const double v = ref_number_load(ATTENTION_BF16, b->found, t * pitch + b->column[i]);
			double off, e = expected(b, i, t, &off);

			if (!is_right(b, v, e, off))
				return error_set(
					err, STATUS_MISMATCH,
					"%u rows, cluster %u, together %u, per SM %u%s: row %u column %u is "
					"%.9g, not %.9g",
					rows, c->cluster, c->together, c->per_sm,
					c->invariant ? ", invariant" : "", t, b->column[i], v, e);
		}
		for (uint64_t i = b->c->p0; i < pitch; i++)
			if (b->found[t * pitch + i] != (gap ? gap[t * pitch + i] : NAN_BITS))
				return error_set(err, STATUS_MISMATCH, "%u rows: wrote behind row %u", rows,
						 t);
	}
	for (uint64_t i = rows * pitch; i < ROWS * pitch; i++)
		if (b->found[i] != (gap ? gap[i] : NAN_BITS))
			return error_set(err, STATUS_MISMATCH, "%u rows: wrote to row %u", rows,
					 (unsigned)(i / pitch));
	return STATUS_OK;
}

static enum status run(struct bed *b, const struct skinny_choice *c, unsigned rows, bool overlap,
		       struct error *err)
{
	const struct skinny_problem p = problem_of(b, rows);
	const uint64_t bytes = 2 * ROWS * ((uint64_t)b->c->p0 + PITCH);
	enum status st = has(b, IN_PLACE)
				 ? gpu_stream_copy(b->kit->stream, b->y.data, b->residual.data, bytes, err)
				 : gpu_stream_fill32(b->kit->stream, b->y.data, 0xffffffffu, bytes / 4, err);

	if (!st)
		st = skinny_enqueue(b->skinny, &p, c, overlap, b->kit->stream, err);
	if (!st)
		st = gpu_stream_wait(b->kit->stream, err);
	if (!st)
		st = gpu_copy_from(b->kit->device, b->found, b->y.data, bytes, err);
	if (!st)
		st = kit_guards(b->kit, &b->y, "y", err);
	return st ? st : inspect(b, c, rows, err);
}

/* Every choice, and the one whose rows do not depend on their number: they are compared with those of the
 * most rows. */
static enum status run_rows(struct bed *b, unsigned rows, struct error *err)
{
	const struct skinny_problem p = problem_of(b, rows);
	struct skinny_choice choices[SKINNY_CHOICES_MOST], fixed = skinny_invariant(b->skinny, &p);
	const unsigned all = skinny_choices(b->skinny, &p, choices);
	const unsigned count = is_small(b) && all > SMALL_CHOICES ? SMALL_CHOICES : all;
	const uint64_t pitch = (uint64_t)b->c->p0 + PITCH;
	enum status st = count ? STATUS_OK : error_set(err, STATUS_MISMATCH, "%u rows: no choice", rows);

	for (unsigned i = 0; !st && i < count; i++)
		st = run(b, &choices[i], rows, i % 2, err);
	if (!st)
		st = run(b, &fixed, rows, false, err);
	if (st)
		return st;
	if (rows == b->rows_most)
		memcpy(b->widest, b->found, 2 * rows * pitch);
	for (uint64_t i = 0; i < rows * pitch; i++)
		if (b->found[i] != b->widest[i])
			return error_set(err, STATUS_MISMATCH,
					 "row %u of %u rows has other bits than among %u rows, with the "
					 "invariant choice",
					 (unsigned)(i / pitch), rows, b->rows_most);
	return STATUS_OK;
}

static enum status run_all(struct bed *b, struct error *err)
{
	static const unsigned all[] = {256, 255, 224, 193, 192, 191, 160, 129, 128, 127, 100, 96, 65, 64, 63,
				       48,  33,	 32,  31,  24,	17,  16,  15,  9,   8,	 7,   5,  3,  2,  1},
			      few[] = {256, 193, 129, 128, 64, 33, 8, 1}, small[] = {256, 128, 33, 1};
	const unsigned *list = is_small(b) ? small : has(b, FEW) ? few : all;
	const size_t count = is_small(b)   ? sizeof(small) / sizeof(small[0])
			     : has(b, FEW) ? sizeof(few) / sizeof(few[0])
					   : sizeof(all) / sizeof(all[0]);
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++)
		if (list[i] <= b->rows_most)
			st = run_rows(b, list[i], err);
	return st;
}

static enum status multiply(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct bed b = {.kit = k, .c = c, .rows_most = c->threads & MIXED ? MIXED_ROWS : ROWS};
	enum status st = skinny_open(&b.skinny, k->device, err);

	if (!st && c->p1 % 16 && c->threads & (MIXED | E4M3))
		st = error_set(err, STATUS_UNSUPPORTED, "rows of E4M3 weights are multiples of 16");
	if (!st)
		st = host_memory(&b, err);
	if (!st) {
		fill(&b);
		choose_columns(&b);
		expect(&b);
		st = to_device(&b, err);
	}
	if (!st)
		st = run_all(&b, err);
	release(&b);
	return st;
}

/* Rows of BF16, each of another magnitude, one of zeros. */
static void fill_rows(uint16_t *from, uint64_t rows, uint64_t cols, uint64_t seed)
{
	for (uint64_t r = 0; r < rows; r++)
		for (uint64_t i = 0; i < cols; i++)
			ref_number_store(ATTENTION_BF16, from, r * cols + i,
					 r == 3 ? 0
						: ldexp((double)(int64_t)mix(seed + r * cols + i) * 0x1p-63,
							(int)(r % 40) - 20));
}

static enum status inspect_rows(const uint16_t *from, const uint8_t *to, const float *scale, uint64_t rows,
				uint64_t cols, struct error *err)
{
	for (uint64_t r = 0; r < rows; r++) {
		float most = 0;

		for (uint64_t i = 0; i < cols; i++)
			most = fmaxf(most, fabsf((float)ref_number_load(ATTENTION_BF16, from, r * cols + i)));
		if (scale[r] != (most > 0 ? most / 448 : 1))
			return error_set(err, STATUS_MISMATCH, "row %u has the factor %g", (unsigned)r,
					 (double)scale[r]);
		for (uint64_t i = 0; i < cols; i++) {
			const float v = (float)ref_number_load(ATTENTION_BF16, from, r * cols + i) *
					(most > 0 ? 448 / most : 1);
			uint8_t bits[1];

			ref_number_store(ATTENTION_E4M3, bits, 0, (double)v);
			if (bits[0] != to[r * cols + i])
				return error_set(err, STATUS_MISMATCH, "row %u element %u is %02x, not %02x",
						 (unsigned)r, (unsigned)i, to[r * cols + i], bits[0]);
		}
	}
	return STATUS_OK;
}

static enum status quantize_rows(struct kit *k, struct skinny *s, uint64_t rows, uint64_t cols,
				 struct error *err)
{
	struct guarded from = {0}, to = {0}, scale = {0};
	uint16_t *from_host = malloc(2 * rows * cols);
	uint8_t *to_host = malloc(rows * cols);
	float *scale_host = malloc(4 * rows);
	enum status st = from_host && to_host && scale_host
				 ? STATUS_OK
				 : error_set(err, STATUS_NO_RESOURCE, "no memory for rows");

	if (!st) {
		fill_rows(from_host, rows, cols, k->seed);
		st = kit_put(k, &from, from_host, 2 * rows * cols, err);
	}
	if (!st)
		st = kit_alloc(k, &to, rows * cols, err);
	if (!st)
		st = kit_alloc(k, &scale, 4 * rows, err);
	if (!st)
		st = skinny_quantize(s,
				     &(struct skinny_quantize){.from = from.data,
							       .to = to.data,
							       .scale = scale.data,
							       .rows = rows,
							       .cols = cols,
							       .row_from = cols,
							       .row_to = cols},
				     true, k->stream, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = gpu_copy_from(k->device, to_host, to.data, rows * cols, err);
	if (!st)
		st = gpu_copy_from(k->device, scale_host, scale.data, 4 * rows, err);
	if (!st)
		st = kit_guards(k, &to, "E4M3 rows", err);
	if (!st)
		st = kit_guards(k, &scale, "factors", err);
	if (!st)
		st = inspect_rows(from_host, to_host, scale_host, rows, cols, err);
	kit_free(k, &from);
	kit_free(k, &to);
	kit_free(k, &scale);
	free(from_host);
	free(to_host);
	free(scale_host);
	return st;
}

static enum status quantize(struct kit *k, struct error *err)
{
	static const uint64_t sizes[][2] = {{1, 8}, {5, 576}, {41, 2056}, {256, 3584}, {7, 18944}};
	struct skinny *s;
	enum status st = skinny_open(&s, k->device, err);

	for (size_t i = 0; !st && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		st = quantize_rows(k, s, sizes[i][0], sizes[i][1], err);
	skinny_close(&s);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return c->p0 ? multiply(k, c, err) : quantize(k, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_skinny, one);
}

const struct kernel_group group_skinny = {
	.name = "skinny",
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
	.test = test,
};
