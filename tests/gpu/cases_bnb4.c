/* SPDX-License-Identifier: Apache-2.0 */
/* NF4 and FP4: what the kernels quantize and dequantize, bit by bit beside the host (model/bnb4). */
#include "cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/bnb4/bnb4_kernels.h"
#include "kernel/bnb4/bnb4.h"
#include "model/bnb4/bnb4.h"
#include "model/tensor/dtype.h"

enum { FP4 = 1, NESTED = 2, MANY = 4, E4M3_ROWS = 8, E4M3_TILES = 16 };
enum { PITCH = 8, MATRICES_MOST = 35 };

/* threads: flags; p0: rows; p1: columns. */
#define CASE(entry, why, rows, cols, flags)                                                                  \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (cols), 0, flags, rows, cols                                  \
	}
#define KINDS(entry, why, rows, cols, flags)                                                                 \
	CASE(entry, why ", nf4", rows, cols, flags), CASE(entry, why ", fp4", rows, cols, (flags) | FP4),    \
		CASE(entry, why ", nf4 nested", rows, cols, (flags) | NESTED),                               \
		CASE(entry, why ", fp4 nested", rows, cols, (flags) | FP4 | NESTED)
#define SIZES(entry, flags)                                                                                  \
	KINDS(entry, "less than a block", 1, 8, flags), KINDS(entry, "blocks across rows", 33, 200, flags),  \
		KINDS(entry, "one group of blocks", 16, 1024, flags),                                        \
		KINDS(entry, "smollm2 k", 192, 576, flags)
static const struct kernel_case cases[] = {
	SIZES("bnb4_quantize", 0),
	CASE("bnb4_quantize", "qwen2-7b o, nf4 nested", 3584, 3584, NESTED),
	CASE("bnb4_quantize", "qwen2-7b down, nf4 nested", 3584, 18944, NESTED),
	SIZES("bnb4_dequantize", 0),
	KINDS("bnb4_dequantize", "35 matrices", 40, 384, MANY),
	CASE("bnb4_dequantize", "qwen2-7b down, nf4 nested", 3584, 18944, NESTED),
	CASE("bnb4_dequantize", "qwen2-7b gate, fp4", 18944, 3584, FP4),
	SIZES("bnb4_dequantize_e4m3", E4M3_ROWS),
	SIZES("bnb4_dequantize_e4m3", E4M3_TILES),
	KINDS("bnb4_dequantize_e4m3", "35 matrices", 40, 384, MANY | E4M3_TILES),
	CASE("bnb4_dequantize_e4m3", "qwen2-7b down, nf4 nested", 3584, 18944, NESTED | E4M3_TILES),
};

/* A matrix on the host, and the same on the device. */
struct matrix {
	struct bnb4 host, device;
	void *memory;
	struct guarded parts, from, out, scale, scratch;
	uint16_t *x; /* BF16, with its gaps */
	float *scales;
	uint32_t row_shift, col_shift, scale_ld;
};

static int64_t ld_of(const struct matrix *m)
{
	return m->host.cols + PITCH;
}

static uint64_t bytes_of(const struct matrix *m)
{
	return bnb4_bytes(m->host.rows, m->host.cols, m->host.nested);
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

/* Blocks of many widths. Some are zero, subnormal, or have one number that is not zero. */
static float number(uint64_t seed, uint64_t i)
{
	const uint64_t block = i / BNB4_BLOCK, kind = mix(seed + block) % 16, bits = mix(seed ^ i * 77);
	const float x = (float)(int64_t)bits * 0x1p-63f;

	if (kind == 0 || (kind == 1 && i % BNB4_BLOCK != 5))
		return 0;
	if (kind == 2)
		return x * 0x1p-130f;
	return ldexpf(x * x * x, (int)(mix(seed + block + 1) % 24) - 12);
}

static enum status host_matrix(struct matrix *m, uint64_t seed, struct error *err)
{
	const uint64_t all = (uint64_t)(m->host.rows * m->host.cols);
	struct mat from = {.rows = m->host.rows, .cols = m->host.cols, .ld = ld_of(m), .dtype = DTYPE_BF16};

	m->memory = calloc(1, bytes_of(m));
	m->x = calloc((size_t)(m->host.rows * ld_of(m)), sizeof(*m->x));
	if (!m->memory || !m->x)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a matrix");
	for (uint64_t i = 0; i < all; i++)
		m->x[i / (uint64_t)m->host.cols * (uint64_t)ld_of(m) + i % (uint64_t)m->host.cols] =
			bf16_of_f32(number(seed, i));
	bnb4_place(&m->host, m->memory);
	from.data = m->x;
	return bnb4_quantize(&m->host, &from, NULL, err);
}

static void begin(struct matrix *m, const struct kernel_case *c, int64_t rows)
{
	*m = (struct matrix){.host = {.rows = rows,
				      .cols = c->p1,
				      .type = c->threads & FP4 ? BNB4_FP4 : BNB4_NF4,
				      .nested = c->threads & NESTED}};
}

static void release(struct kit *k, struct matrix *m)
{
	kit_free(k, &m->parts);
	kit_free(k, &m->from);
	kit_free(k, &m->out);
	kit_free(k, &m->scale);
	kit_free(k, &m->scratch);
	free(m->memory);
	free(m->x);
	free(m->scales);
}

static struct bnb4_weight weight_of(struct matrix *m)
{
	m->device = m->host;
	bnb4_place(&m->device, (void *)(uintptr_t)m->parts.data);
	return (struct bnb4_weight){.codes = (uintptr_t)m->device.codes,
				    .absmax_codes = (uintptr_t)m->device.absmax_codes,
				    .offset = (uintptr_t)m->device.offset,
				    .map = (uintptr_t)m->device.map,
				    .absmax = (uintptr_t)m->device.absmax,
				    .rows = m->host.rows,
				    .cols = m->host.cols,
				    .type = m->host.type};
}

static enum status compare(const struct matrix *m, const uint8_t *found, struct error *err)
{
	const int64_t rows = m->host.rows, cols = m->host.cols;
	const uint8_t *host = m->memory;
	const struct {
		const char *what;
		const void *at;
		uint64_t bytes;
	} parts[] = {
		{"codes", m->host.codes, bnb4_code_bytes(rows, cols)},
		{"codes of absmax", m->host.absmax_codes, bnb4_blocks(rows, cols)},
		{"absmax", m->host.absmax,
		 4 * (m->host.nested ? bnb4_groups(rows, cols) : bnb4_blocks(rows, cols))},
		{"offset", m->host.offset, 4},
		{"map", m->host.map, 4 * BNB4_MAP},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !st; i++)
		if (parts[i].at)
			st = kit_compare(parts[i].what, found + ((const uint8_t *)parts[i].at - host),
					 parts[i].at, parts[i].bytes / 4 * 4, err);
	return st;
}

static enum status quantize(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint8_t *found = NULL;
	struct bnb4_kernels kernels;
	struct bnb4_weight to;
	struct matrix m;
	enum status st = bnb4_kernels_open(&kernels, k->device, err);
	uint64_t scratch;

	begin(&m, c, c->p0);
	scratch = bnb4_kernels_scratch(m.host.rows, m.host.cols, m.host.nested);
	if (!st)
		st = host_matrix(&m, k->seed, err);
	if (!st)
		st = kit_put(k, &m.from, m.x, (uint64_t)(m.host.rows * ld_of(&m)) * 2, err);
	if (!st)
		st = kit_alloc(k, &m.parts, bytes_of(&m), err);
	if (!st && scratch)
		st = kit_alloc(k, &m.scratch, scratch, err);
	to = weight_of(&m);
	if (!st)
		st = bnb4_kernels_quantize(&kernels, &to, m.from.data, ld_of(&m), m.scratch.data, k->stream,
					   err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	found = malloc(bytes_of(&m));
	if (!st && !found)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for a result");
	if (!st)
		st = gpu_copy_from(k->device, found, m.parts.data, bytes_of(&m), err);
	if (!st)
		st = kit_guards(k, &m.parts, "the matrix", err);
	if (!st && scratch)
		st = kit_guards(k, &m.scratch, "the scratch memory", err);
	if (!st)
		st = compare(&m, found, err);
	free(found);
	release(k, &m);
	return st;
}

/* Scales of rows or of 128 x 128 elements: of the largest absmax in them. */
static enum status make_scales(struct matrix *m, unsigned flags, struct error *err)
{
	const uint32_t rows = (uint32_t)m->host.rows, cols = (uint32_t)m->host.cols;
	uint32_t count;

	m->row_shift = flags & E4M3_TILES ? 7 : 0;
	m->col_shift = flags & E4M3_TILES ? 7 : 31;
	m->scale_ld = ((cols - 1) >> m->col_shift) + 1;
	count = (((rows - 1) >> m->row_shift) + 1) * m->scale_ld;
	m->scales = calloc(count, sizeof(*m->scales));
	if (!m->scales)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for scales");
	for (uint32_t row = 0; row < rows; row++)
		for (uint32_t col = 0; col < cols; col++) {
			const uint64_t i = (uint64_t)row * cols + col;
			float *s = &m->scales[(row >> m->row_shift) * m->scale_ld + (col >> m->col_shift)];

			*s = fmaxf(*s, fabsf(bnb4_absmax(&m->host, i / BNB4_BLOCK)) / 448);
		}
	for (uint32_t i = 0; i < count; i++)
		m->scales[i] = m->scales[i] > 0 ? m->scales[i] : 1;
	return STATUS_OK;
}

static uint64_t out_bytes(const struct matrix *m)
{
	return (uint64_t)(m->host.rows * ld_of(m)) * (m->scales ? 1 : 2);
}

static enum status to_device(struct kit *k, struct matrix *m, const struct kernel_case *c, struct error *err)
{
	enum status st = host_matrix(m, k->seed + (uint64_t)m->host.rows, err);

	if (!st && c->threads & (E4M3_ROWS | E4M3_TILES))
		st = make_scales(m, c->threads, err);
	if (!st)
		st = kit_put(k, &m->parts, m->memory, bytes_of(m), err);
	if (!st && m->scales)
		st = kit_put(k, &m->scale, m->scales,
			     4ull * m->scale_ld * ((((uint32_t)m->host.rows - 1) >> m->row_shift) + 1), err);
	return st ? st : kit_alloc(k, &m->out, out_bytes(m), err);
}

static void expect_e4m3(const struct matrix *m, const float *row_numbers, uint32_t row, uint8_t *out)
{
	for (uint32_t col = 0; col < m->host.cols; col++)
		out[col] = e4m3_of_f32(
			row_numbers[col] *
			(1 / m->scales[(row >> m->row_shift) * m->scale_ld + (col >> m->col_shift)]));
}

/* The result with its gaps, which stay as they were allocated. */
static enum status expect(const struct matrix *m, uint8_t *out, struct error *err)
{
	struct mat to = {
		.data = out, .rows = m->host.rows, .cols = m->host.cols, .ld = ld_of(m), .dtype = DTYPE_BF16};
	float *numbers;

	memset(out, 0xff, out_bytes(m));
	if (!m->scales) {
		bnb4_dequantize(&m->host, 0, &to, NULL);
		return STATUS_OK;
	}
	numbers = malloc((size_t)m->host.cols * sizeof(*numbers));
	if (!numbers)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a row");
	to = (struct mat){.data = numbers, .rows = 1, .cols = m->host.cols, .ld = m->host.cols};
	for (uint32_t row = 0; row < m->host.rows; row++) {
		bnb4_dequantize(&m->host, row, &to, NULL);
		expect_e4m3(m, numbers, row, out + row * (uint64_t)ld_of(m));
	}
	free(numbers);
	return STATUS_OK;
}

static enum status inspect(struct kit *k, const struct matrix *m, struct error *err)
{
	uint8_t *found = malloc(out_bytes(m)), *due = malloc(out_bytes(m));
	enum status st = found && due ? expect(m, due, err)
				      : error_set(err, STATUS_NO_RESOURCE, "no memory for a result");

	if (!st)
		st = gpu_copy_from(k->device, found, m->out.data, out_bytes(m), err);
	if (!st)
		st = kit_compare("the result", found, due, out_bytes(m), err);
	if (!st)
		st = kit_guards(k, &m->out, "the result", err);
	free(found);
	free(due);
	return st;
}

static enum status dequantize(struct kit *k, const struct kernel_case *c, struct error *err)
{
	const size_t count = c->threads & MANY ? MATRICES_MOST : 1;
	struct bnb4_output out[MATRICES_MOST];
	struct matrix m[MATRICES_MOST];
	struct bnb4_kernels kernels;
	enum status st = bnb4_kernels_open(&kernels, k->device, err);

	for (size_t i = 0; i < count; i++) {
		begin(&m[i], c, c->p0 - (int64_t)i);
		if (!st)
			st = to_device(k, &m[i], c, err);
		out[i] = (struct bnb4_output){.from = weight_of(&m[i]),
					      .to = m[i].out.data,
					      .ld = ld_of(&m[i]),
					      .scale = m[i].scale.data,
					      .row_shift = m[i].row_shift,
					      .col_shift = m[i].col_shift,
					      .scale_ld = m[i].scale_ld};
	}
	if (!st)
		st = bnb4_kernels_dequantize(&kernels, out, count, k->stream, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	for (size_t i = 0; i < count && !st; i++)
		st = inspect(k, &m[i], err);
	for (size_t i = 0; i < count; i++)
		release(k, &m[i]);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return !strcmp(c->entry, "bnb4_quantize") ? quantize(k, c, err) : dequantize(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_bnb4, one);
}

enum status time_bnb4(struct kit *k, struct error *err);
const struct kernel_group group_bnb4 = {
	.name = "bnb4",
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
	.test = test,
	.time = time_bnb4,
};
