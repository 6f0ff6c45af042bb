/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows with several adapters against sums in double precision: with many numbers of rows, and
 * with every way to divide the work. Rows use different adapters, and some use none. Exact cases hold small
 * integers, so that every bit of u and y is known.
 */
#include "cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/matmul/skinny_adapters.h"
#include "ref_number.h"

enum { E4M3 = 1, RESIDUAL = 2, BIAS = 4, SWIGLU = 8, EXACT = 16, FEW = 32, QKV = 64, ONLY_V = 128 };
enum { ROWS = 256, COLUMNS_MOST = 160, SMALL_CHOICES = 1, PARTS = 3 };

/* threads: flags; blocks: adapters * 256 + the rank of each; p0: outputs; p1: k. With QKV, two thirds of the
 * outputs belong to the first of three parts. */
#define CASE(why, outputs, k, adapters, rank, flags)                                                         \
	{                                                                                                    \
		"skinny_adapters", why, (uint64_t)(outputs) * (k), (adapters)*256 + (rank), flags, outputs,  \
			k                                                                                    \
	}
#define KINDS(why, outputs, k, adapters, rank, flags)                                                        \
	CASE(why ", bf16", outputs, k, adapters, rank, flags),                                               \
		CASE(why ", bf16 exact", outputs, k, adapters, rank, (flags) | EXACT),                       \
		CASE(why ", e4m3", outputs, k, adapters, rank, (flags) | E4M3),                              \
		CASE(why ", e4m3 exact", outputs, k, adapters, rank, (flags) | E4M3 | EXACT)
static const struct kernel_case cases[] = {
	KINDS("one tile, one step", 128, 64, 2, 8, 0),
	KINDS("less than a tile, odd k", 72, 208, 3, 16, BIAS | RESIDUAL),
	KINDS("parts that begin within tiles", 576, 336, 4, 16, QKV | BIAS),
	KINDS("two parts of three", 576, 336, 2, 24, QKV | ONLY_V),
	KINDS("parts of whole tiles", 1536, 192, 4, 16, QKV),
	KINDS("smollm2 o", 576, 576, 4, 16, RESIDUAL),
	KINDS("gate and up", 1536, 576, 4, 16, SWIGLU),
	KINDS("a part of a SwiGLU tile, rank 64", 104, 272, 4, 64, SWIGLU),
	KINDS("up only, sixteen adapters", 200, 128, 16, 8, SWIGLU | ONLY_V),
	KINDS("qwen2-7b qkv", 4608, 3584, 4, 16, QKV | BIAS | FEW),
	KINDS("qwen2-7b o, rank 64", 3584, 3584, 4, 64, RESIDUAL | FEW),
	KINDS("qwen2-7b gate_up", 18944, 3584, 4, 16, SWIGLU | FEW),
	CASE("qwen2-7b down, bf16", 3584, 18944, 4, 16, RESIDUAL | FEW),
	CASE("qwen2-7b down, bf16 exact", 3584, 18944, 4, 16, RESIDUAL | FEW | EXACT),
	CASE("qwen2-7b down, e4m3", 3584, 18944, 4, 16, RESIDUAL | FEW | E4M3),
	CASE("qwen2-7b gate_up, rank 64, bf16 exact", 18944, 3584, 4, 64, SWIGLU | FEW | EXACT),
};

struct bed {
	struct kit *kit;
	const struct kernel_case *c;
	struct skinny *skinny;
	uint32_t outputs, k, w_rows, owners, rank, width, parts, a_rows, b_rows;
	uint32_t begin[PARTS], count[PARTS];
	struct guarded w, x, x16, y, bias, residual, w_scale, x_scale, a, b, u, adapter;
	uint8_t *w_host, *x_host;
	uint16_t *x16_host, *a_host, *b_host, *bias_host, *residual_host, *found, *found_u;
	float *w_factor, *x_factor;
	int32_t *adapter_host;
	double *x_values, *x16_values; /* [ROWS, k]: what W and A are multiplied with */
	double *u_values;	       /* [ROWS, a_rows] */
	uint32_t column[COLUMNS_MOST], columns;
	/* [columns of each half][ROWS]: the sum, and how far the kernel's may be off */
	double *sum, *off;
};

static bool has(const struct bed *b, unsigned flag)
{
	return b->c->threads & flag;
}

static bool is_small(const struct bed *b)
{
	return b->kit->count_max != UINT64_MAX;
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

/* In [-1, 1), or an integer in [-2, 2]. */
static double number(const struct bed *b, unsigned stream, uint64_t i)
{
	const uint64_t bits = mix(b->kit->seed + i * 0x9e3779b97f4a7c15u + stream);

	return has(b, EXACT) ? (double)(bits % 5) - 2 : (double)(int64_t)bits * 0x1p-63;
}

static void lay_out(struct bed *b)
{
	const struct kernel_case *c = b->c;
	const uint32_t third = c->p0 / 6;

	b->outputs = c->p0;
	b->k = c->p1;
	b->w_rows = has(b, SWIGLU) ? 2 * c->p0 : c->p0;
	b->owners = c->blocks / 256;
	b->rank = c->blocks % 256;
	b->width = b->owners * b->rank;
	if (has(b, SWIGLU)) {
		b->parts = has(b, ONLY_V) ? 1 : 2;
		b->begin[0] = has(b, ONLY_V) ? b->outputs : 0;
		b->begin[1] = b->outputs;
		b->count[0] = b->count[1] = b->outputs;
	} else if (has(b, QKV)) {
		const uint32_t first = b->outputs - 2 * (third / 64 * 64);

		b->parts = has(b, ONLY_V) ? 2 : 3;
		b->begin[1] = first;
		b->begin[b->parts - 1] = first + third / 64 * 64;
		b->count[0] = first;
		b->count[1] = b->count[2] = third / 64 * 64;
	} else {
		b->parts = 1;
		b->count[0] = b->outputs;
	}
	b->a_rows = b->parts * b->width;
	for (uint32_t i = 0; i < b->parts; i++)
		b->b_rows += b->count[i];
}

static void fill_bf16(const struct bed *b, uint16_t *to, unsigned stream, uint64_t count, double size)
{
	for (uint64_t i = 0; i < count; i++)
		if (i < 65536)
			ref_number_store(ATTENTION_BF16, to, i, number(b, stream, i) * size);
		else
			to[i] = to[mix(i + stream) % 65536];
}

static void fill(struct bed *b)
{
	const bool is_e4m3 = has(b, E4M3), exact = has(b, EXACT);
	const uint64_t weights = (uint64_t)b->w_rows * b->k;
	const double w_size = exact || is_e4m3 ? 1 : 1 / sqrt((double)b->k);

	for (uint64_t i = 0; i < weights && is_e4m3; i++)
		if (i < 65536)
			ref_number_store(ATTENTION_E4M3, b->w_host, i, number(b, 1, i));
		else
			b->w_host[i] = b->w_host[mix(i) % 65536];
	if (!is_e4m3)
		fill_bf16(b, (uint16_t *)b->w_host, 1, weights, w_size);
	for (uint64_t i = 0; i < (uint64_t)ROWS * b->k; i++) {
		ref_number_store(ATTENTION_BF16, b->x16_host, i, number(b, 2, i));
		if (is_e4m3) /* other numbers than in BF16, so that it shows which are read */
			ref_number_store(ATTENTION_E4M3, b->x_host, i, number(b, 3, i));
		b->x16_values[i] = ref_number_load(ATTENTION_BF16, b->x16_host, i);
		b->x_values[i] = is_e4m3 ? ref_number_load(ATTENTION_E4M3, b->x_host, i) : b->x16_values[i];
	}
	fill_bf16(b, b->a_host, 4, (uint64_t)b->a_rows * b->k, exact ? 1 : 1 / sqrt((double)b->k));
	fill_bf16(b, b->b_host, 5, (uint64_t)b->b_rows * b->width, exact ? 1 : 1 / sqrt((double)b->rank));
	fill_bf16(b, b->bias_host, 6, b->outputs, 1);
	fill_bf16(b, b->residual_host, 7, (uint64_t)ROWS * b->outputs, 1);
	for (uint32_t i = 0; i < b->w_rows; i++)
		b->w_factor[i] = (float)(exact ? ldexp(1, (int)(i % 3) - 1)
					       : (1.5 + number(b, 8, i)) / sqrt((double)b->k));
	for (uint32_t i = 0; i < ROWS; i++) {
		b->x_factor[i] = (float)(exact ? ldexp(1, (int)(i % 3) - 1) : 1.5 + number(b, 9, i));
		b->adapter_host[i] = (int32_t)(mix(i) % (b->owners + 1)) - 1;
	}
}

static void choose_columns(struct bed *b)
{
	for (uint32_t n = 0; n < b->outputs && b->columns < COLUMNS_MOST; n++)
		if (b->outputs <= 128 || n < 2 || n + 5 > b->outputs || mix(n) % b->outputs < 48 ||
		    (b->outputs <= 8000 && n % 192 < 1))
			b->column[b->columns++] = n;
}

/* u in BF16, from exact sums. */
static void expect_u(struct bed *b)
{
	uint16_t rounded[1];

	for (uint32_t c = 0; c < b->a_rows; c++)
		for (uint32_t t = 0; t < ROWS; t++) {
			const double *x = b->x16_values + (uint64_t)t * b->k;
			double sum = 0;

			for (uint64_t i = 0;
			     i < b->k && (int32_t)(c % b->width / b->rank) == b->adapter_host[t]; i++)
				sum += ref_number_load(ATTENTION_BF16, b->a_host, (uint64_t)c * b->k + i) *
				       x[i];
			ref_number_store(ATTENTION_BF16, rounded, 0, sum);
			b->u_values[(uint64_t)t * b->a_rows + c] =
				ref_number_load(ATTENTION_BF16, rounded, 0);
		}
}

/* Row n of W with its factors, and of B. */
static void add_up(struct bed *b, uint32_t n, uint64_t at)
{
	const enum attention_type type = has(b, E4M3) ? ATTENTION_E4M3 : ATTENTION_BF16;
	const double part = has(b, EXACT) ? 0 : has(b, E4M3) ? 0x1p-12 : 0x1p-20;
	double *w = malloc(sizeof(*w) * b->k);
	uint32_t before = 0, p = 0;

	for (uint64_t i = 0; w && i < b->k; i++)
		w[i] = ref_number_load(type, b->w_host, (uint64_t)n * b->k + i);
	while (p < b->parts && (n < b->begin[p] || n - b->begin[p] >= b->count[p]))
		before += b->count[p++];
	for (uint32_t t = 0; w && t < ROWS; t++) {
		const double *x = b->x_values + (uint64_t)t * b->k;
		double sum = 0, size = 0, more = 0, up = 0;

		for (uint64_t i = 0; i < b->k; i++) {
			const double v = w[i] * x[i];

			sum += v;
			size += fabs(v);
		}
		for (uint32_t c = 0; p < b->parts && c < b->width; c++) {
			const double v = b->u_values[(uint64_t)t * b->a_rows + p * b->width + c] *
					 ref_number_load(ATTENTION_BF16, b->b_host,
							 (uint64_t)(before + n - b->begin[p]) * b->width + c);

			more += v;
			up += fabs(v);
		}
		if (has(b, E4M3)) {
			sum *= (double)b->w_factor[n] * (double)b->x_factor[t];
			size *= (double)b->w_factor[n] * (double)b->x_factor[t];
		}
		b->sum[at + t] = sum + more;
		/* u may be rounded the other way */
		b->off[at + t] = part * (size + up) + (has(b, EXACT) ? 0 : 0x1.01p-7 * up);
	}
	free(w);
}

static void expect(struct bed *b)
{
	expect_u(b);
	for (uint32_t i = 0; i < b->columns; i++) {
		add_up(b, b->column[i], (uint64_t)i * ROWS);
		if (has(b, SWIGLU))
			add_up(b, b->outputs + b->column[i], (uint64_t)(COLUMNS_MOST + i) * ROWS);
	}
}

static enum status host_memory(struct bed *b, struct error *err)
{
	const uint64_t k = b->k, weights = (uint64_t)b->w_rows * k, results = (uint64_t)ROWS * b->outputs;

	b->w_host = malloc(2 * weights);
	b->x_host = malloc(ROWS * k);
	b->x16_host = malloc(2 * ROWS * k);
	b->a_host = malloc(2 * b->a_rows * k);
	b->b_host = malloc(2 * (uint64_t)b->b_rows * b->width);
	b->bias_host = malloc(2 * (uint64_t)b->outputs);
	b->residual_host = malloc(2 * results);
	b->found = malloc(2 * results);
	b->found_u = malloc(2 * (uint64_t)ROWS * b->a_rows);
	b->w_factor = malloc(4 * (uint64_t)b->w_rows);
	b->x_factor = malloc(4 * ROWS);
	b->adapter_host = malloc(4 * ROWS);
	b->x_values = malloc(8 * ROWS * k);
	b->x16_values = malloc(8 * ROWS * k);
	b->u_values = malloc(8 * (uint64_t)ROWS * b->a_rows);
	b->sum = calloc(2 * COLUMNS_MOST * ROWS, 8);
	b->off = calloc(2 * COLUMNS_MOST * ROWS, 8);
	return b->w_host && b->x_host && b->x16_host && b->a_host && b->b_host && b->bias_host &&
			       b->residual_host && b->found && b->found_u && b->w_factor && b->x_factor &&
			       b->adapter_host && b->x_values && b->x16_values && b->u_values && b->sum &&
			       b->off
		       ? STATUS_OK
		       : error_set(err, STATUS_NO_RESOURCE, "no memory for a GEMM's reference");
}

static enum status to_device(struct bed *b, struct error *err)
{
	const bool is_e4m3 = has(b, E4M3);
	const uint64_t k = b->k, x_bytes = ROWS * k;
	const struct {
		struct guarded *to;
		const void *from;
		uint64_t bytes;
	} all[] = {
		{&b->w, b->w_host, b->w_rows * k * (is_e4m3 ? 1 : 2)},
		{&b->x, is_e4m3 ? (void *)b->x_host : (void *)b->x16_host, is_e4m3 ? x_bytes : 2 * x_bytes},
		{&b->x16, b->x16_host, 2 * x_bytes},
		{&b->a, b->a_host, 2 * b->a_rows * k},
		{&b->b, b->b_host, 2 * (uint64_t)b->b_rows * b->width},
		{&b->bias, b->bias_host, 2 * (uint64_t)b->outputs},
		{&b->residual, b->residual_host, 2 * (uint64_t)ROWS * b->outputs},
		{&b->w_scale, b->w_factor, 4 * (uint64_t)b->w_rows},
		{&b->x_scale, b->x_factor, 4 * ROWS},
		{&b->adapter, b->adapter_host, 4 * ROWS},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < sizeof(all) / sizeof(all[0]); i++)
		st = kit_put(b->kit, all[i].to, all[i].from, all[i].bytes, err);
	if (!st)
		st = kit_alloc(b->kit, &b->u, 2 * (uint64_t)ROWS * b->a_rows, err);
	return st ? st : kit_alloc(b->kit, &b->y, 2 * (uint64_t)ROWS * b->outputs, err);
}

static void release(struct bed *b)
{
	struct guarded *all[] = {&b->w,	      &b->x,	   &b->x16, &b->y, &b->bias, &b->residual,
				 &b->w_scale, &b->x_scale, &b->a,   &b->b, &b->u,    &b->adapter};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		kit_free(b->kit, all[i]);
	skinny_close(&b->skinny);
	free(b->w_host);
	free(b->x_host);
	free(b->x16_host);
	free(b->a_host);
	free(b->b_host);
	free(b->bias_host);
	free(b->residual_host);
	free(b->found);
	free(b->found_u);
	free(b->w_factor);
	free(b->x_factor);
	free(b->adapter_host);
	free(b->x_values);
	free(b->x16_values);
	free(b->u_values);
	free(b->sum);
	free(b->off);
}

static struct skinny_problem problem_of(const struct bed *b, unsigned rows)
{
	return (struct skinny_problem){
		.w = b->w.data,
		.x = b->x.data,
		.y = b->y.data,
		.w_scale = has(b, E4M3) ? b->w_scale.data : 0,
		.x_scale = has(b, E4M3) ? b->x_scale.data : 0,
		.bias = has(b, BIAS) ? b->bias.data : 0,
		.residual = has(b, RESIDUAL) ? b->residual.data : 0,
		.rows = rows,
		.outputs = b->outputs,
		.k = b->k,
		.swiglu = has(b, SWIGLU),
		.row_w = b->k,
		.row_x = b->k,
		.row_y = b->outputs,
		.row_residual = b->outputs,
	};
}

static struct skinny_adapters adapters_of(const struct bed *b)
{
	struct skinny_adapters ad = {
		.a = b->a.data,
		.b = b->b.data,
		.x = b->x16.data,
		.u = b->u.data,
		.adapter = b->adapter.data,
		.width = b->width,
		.rank = b->rank,
		.parts = b->parts,
		.row_a = b->k,
		.row_b = b->width,
		.row_x = b->k,
		.row_u = b->a_rows,
	};

	memcpy(ad.begin, b->begin, sizeof(ad.begin));
	memcpy(ad.count, b->count, sizeof(ad.count));
	return ad;
}

static double expected(const struct bed *b, uint32_t i, unsigned t, double *off)
{
	const uint64_t at = (uint64_t)i * ROWS + t, up = at + (uint64_t)COLUMNS_MOST * ROWS;
	double v = b->sum[at], silu;

	*off = b->off[at];
	if (has(b, SWIGLU)) {
		silu = v / (1 + exp(-v));
		*off = 1.1 * *off * (fabs(b->sum[up]) + b->off[up]) + fabs(silu) * b->off[up] +
		       0x1p-18 * fabs(silu * b->sum[up]);
		v = silu * b->sum[up];
	}
	if (has(b, BIAS))
		v += ref_number_load(ATTENTION_BF16, b->bias_host, b->column[i]);
	if (has(b, RESIDUAL))
		v += ref_number_load(ATTENTION_BF16, b->residual_host,
				     (uint64_t)t * b->outputs + b->column[i]);
	return v;
}

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
	for (unsigned t = 0; t < rows; t++) {
		for (uint32_t i = 0; i < b->a_rows && has(b, EXACT); i++) {
			const double v =
				ref_number_load(ATTENTION_BF16, b->found_u, (uint64_t)t * b->a_rows + i);

			if (v != b->u_values[(uint64_t)t * b->a_rows + i])
				return error_set(
					err, STATUS_MISMATCH,
					"%u rows, cluster %u, together %u, per SM %u: row %u column %u of "
					"x A' is %.9g, not %.9g",
					rows, c->cluster, c->together, c->per_sm, t, i, v,
					b->u_values[(uint64_t)t * b->a_rows + i]);
		}
		for (uint32_t i = 0; i < b->columns; i++) {
			const double v = ref_number_load(ATTENTION_BF16, b->found,
							 (uint64_t)t * b->outputs + b->column[i]);
			double off, e = expected(b, i, t, &off);

			if (!is_right(b, v, e, off))
				return error_set(
					err, STATUS_MISMATCH,
					"%u rows, cluster %u, together %u, per SM %u: row %u column %u "
					"is %.9g, not %.9g",
					rows, c->cluster, c->together, c->per_sm, t, b->column[i], v, e);
		}
	}
	for (uint64_t i = (uint64_t)rows * b->outputs; i < (uint64_t)ROWS * b->outputs; i++)
		if (b->found[i] != 0xffff)
			return error_set(err, STATUS_MISMATCH, "%u rows: wrote to row %u", rows,
					 (unsigned)(i / b->outputs));
	return STATUS_OK;
}

/* Twice in a row: the second kernel needs the counts that the first one leaves. */
static enum status run(struct bed *b, const struct skinny_choice *c, unsigned rows, bool overlap,
		       struct error *err)
{
	const struct skinny_problem p = problem_of(b, rows);
	const struct skinny_adapters ad = adapters_of(b);
	const uint64_t y_bytes = 2 * (uint64_t)ROWS * b->outputs, u_bytes = 2 * (uint64_t)ROWS * b->a_rows;
	enum status st = gpu_stream_fill32(b->kit->stream, b->y.data, 0xffffffffu, y_bytes / 4, err);

	if (!st)
		st = gpu_stream_fill32(b->kit->stream, b->u.data, 0xffffffffu, u_bytes / 4, err);
	for (int i = 0; !st && i < 2; i++)
		st = skinny_adapters_enqueue(b->skinny, &p, &ad, c, overlap, b->kit->stream, err);
	if (!st)
		st = gpu_stream_wait(b->kit->stream, err);
	if (!st)
		st = gpu_copy_from(b->kit->device, b->found, b->y.data, y_bytes, err);
	if (!st)
		st = gpu_copy_from(b->kit->device, b->found_u, b->u.data, u_bytes, err);
	if (!st)
		st = kit_guards(b->kit, &b->y, "y", err);
	if (!st)
		st = kit_guards(b->kit, &b->u, "x A'", err);
	return st ? st : inspect(b, c, rows, err);
}

static enum status run_rows(struct bed *b, unsigned rows, struct error *err)
{
	const struct skinny_problem p = problem_of(b, rows);
	struct skinny_choice choices[SKINNY_CHOICES_MOST];
	const unsigned all = skinny_choices(b->skinny, &p, choices);
	const unsigned count = is_small(b) && all > SMALL_CHOICES ? SMALL_CHOICES : all;
	enum status st = count ? STATUS_OK : error_set(err, STATUS_MISMATCH, "%u rows: no choice", rows);

	for (unsigned i = 0; !st && i < count; i++)
		st = run(b, &choices[i], rows, i % 2, err);
	return st;
}

static enum status run_all(struct bed *b, struct error *err)
{
	static const unsigned all[] = {256, 255, 193, 192, 129, 128, 127, 96, 65, 64,
				       63,  33,	 32,  17,  16,	9,   8,	  7,  2,  1},
			      few[] = {256, 129, 64, 33, 8, 1}, small[] = {130, 64, 9, 1};
	const unsigned *list = is_small(b) ? small : has(b, FEW) ? few : all;
	const size_t count = is_small(b)   ? sizeof(small) / sizeof(small[0])
			     : has(b, FEW) ? sizeof(few) / sizeof(few[0])
					   : sizeof(all) / sizeof(all[0]);
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++)
		st = run_rows(b, list[i], err);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct bed b = {.kit = k, .c = c};
	enum status st = skinny_open(&b.skinny, k->device, err);

	if (!st)
		st = skinny_adapters_open(b.skinny, k->stream, err);
	lay_out(&b);
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

static void test(struct kit *k)
{
	kit_cases(k, &group_skinny_adapters, one);
}


const struct kernel_group group_skinny_adapters = {
	.name = "skinny_adapters",
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
	.test = test,
	.time = skinny_adapters_time,
};
