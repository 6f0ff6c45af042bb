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
#include "model/tensor/fp8.h"

enum { FP4 = 1, NESTED = 2, MANY = 4, QKV = 8 };
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
	KINDS("bnb4_to_fp8", "one tile", 16, 16, 0),
	KINDS("bnb4_to_fp8", "blocks across rows", 208, 336, 0),
	KINDS("bnb4_to_fp8", "q k v within a tile", 80, 144, QKV),
	KINDS("bnb4_to_fp8", "smollm2 q k v", 960, 576, QKV),
	CASE("bnb4_to_fp8", "qwen2-7b down, nf4 nested", 3584, 18944, NESTED),
	CASE("bnb4_to_fp8", "qwen2-7b q k v, nf4 nested", 4640, 3584, NESTED | QKV),
};

/* A matrix on the host, and the same on the device. */
struct matrix {
	struct bnb4 host, device;
	void *memory;
	struct guarded parts, from, out, scratch;
	uint16_t *x; /* BF16, with its gaps */
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
	kit_free(k, &m->scratch);
	free(m->memory);
	free(m->x);
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

static uint64_t out_bytes(const struct matrix *m)
{
	return (uint64_t)(m->host.rows * ld_of(m)) * 2;
}

static enum status to_device(struct kit *k, struct matrix *m, uint64_t seed, struct error *err)
{
	enum status st = host_matrix(m, seed, err);

	return st ? st : kit_put(k, &m->parts, m->memory, bytes_of(m), err);
}

/* The result with its gaps, which stay as they were allocated. */
static enum status expect(const struct matrix *m, uint8_t *out)
{
	struct mat to = {
		.data = out, .rows = m->host.rows, .cols = m->host.cols, .ld = ld_of(m), .dtype = DTYPE_BF16};

	memset(out, 0xff, out_bytes(m));
	bnb4_dequantize(&m->host, 0, &to, NULL);
	return STATUS_OK;
}

static enum status inspect(struct kit *k, const struct matrix *m, struct error *err)
{
	uint8_t *found = malloc(out_bytes(m)), *due = malloc(out_bytes(m));
	enum status st = found && due ? expect(m, due)
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
			st = to_device(k, &m[i], k->seed + (uint64_t)m[i].host.rows, err);
		if (!st)
			st = kit_alloc(k, &m[i].out, out_bytes(&m[i]), err);
		out[i] = (struct bnb4_output){
			.from = weight_of(&m[i]), .to = m[i].out.data, .ld = ld_of(&m[i])};
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

/* A linear layer of some matrices, and what it becomes in E4M3: the elements, the transposed elements, and the
 * scales of both. Rows have gaps. */
enum { ELEMENTS, TURNED, SCALES, SCALES_TURNED, RESULTS };
struct fp8_layer {
	struct matrix m[BNB4_PARTS_MOST];
	size_t parts;
	int64_t rows, cols;
	struct guarded out[RESULTS];
	uint8_t *due[RESULTS];
};

static int64_t step_of(int64_t cols)
{
	return (fp8_tiles(cols) + 3) / 4 * 4;
}

static uint64_t result_bytes(const struct fp8_layer *l, int which)
{
	const int64_t bytes[RESULTS] = {
		[ELEMENTS] = l->rows * (l->cols + PITCH),
		[TURNED] = l->cols * (l->rows + PITCH),
		[SCALES] = 4 * fp8_tiles(l->rows) * step_of(l->cols),
		[SCALES_TURNED] = 4 * fp8_tiles(l->cols) * step_of(l->rows),
	};

	return (uint64_t)bytes[which];
}

static void expect_tile(const struct fp8_layer *l, const uint16_t *numbers, int64_t row0, int64_t col0)
{
	const int64_t row1 = l->rows - row0 < FP8_TILE ? l->rows : row0 + FP8_TILE;
	const int64_t col1 = l->cols - col0 < FP8_TILE ? l->cols : col0 + FP8_TILE;
	struct fp8_scale scale;
	float most = 0;

	for (int64_t row = row0; row < row1; row++)
		for (int64_t col = col0; col < col1; col++)
			most = fp8_larger(most, bf16_to_f32(numbers[row * l->cols + col]));
	scale = fp8_scale_of(most);
	((float *)(void *)l->due[SCALES])[row0 / FP8_TILE * step_of(l->cols) + col0 / FP8_TILE] = scale.scale;
	((float *)(void *)l->due[SCALES_TURNED])[col0 / FP8_TILE * step_of(l->rows) + row0 / FP8_TILE] =
		scale.scale;
	for (int64_t row = row0; row < row1; row++)
		for (int64_t col = col0; col < col1; col++) {
			const uint8_t e =
				e4m3_of_f32(bf16_to_f32(numbers[row * l->cols + col]) * scale.inverse);

			l->due[ELEMENTS][row * (l->cols + PITCH) + col] = e;
			l->due[TURNED][col * (l->rows + PITCH) + row] = e;
		}
}

static enum status expect_fp8(struct fp8_layer *l, struct error *err)
{
	uint16_t *numbers = malloc(2 * (size_t)(l->rows * l->cols));
	int64_t row = 0;

	for (int i = 0; i < RESULTS; i++) {
		l->due[i] = malloc(result_bytes(l, i));
		if (!l->due[i] || !numbers) {
			free(numbers);
			return error_set(err, STATUS_NO_RESOURCE, "no memory for a result");
		}
		memset(l->due[i], 0xff, result_bytes(l, i));
	}
	for (size_t i = 0; i < l->parts; row += l->m[i++].host.rows) {
		const struct mat to = {.data = numbers + row * l->cols,
				       .rows = l->m[i].host.rows,
				       .cols = l->cols,
				       .ld = l->cols,
				       .dtype = DTYPE_BF16};

		bnb4_dequantize(&l->m[i].host, 0, &to, NULL);
	}
	for (row = 0; row < l->rows; row += FP8_TILE)
		for (int64_t col = 0; col < l->cols; col += FP8_TILE)
			expect_tile(l, numbers, row, col);
	free(numbers);
	return STATUS_OK;
}

static enum status inspect_fp8(struct kit *k, struct fp8_layer *l, struct error *err)
{
	static const char *const names[RESULTS] = {"E4M3", "transposed", "scales", "scales transposed"};
	enum status st = expect_fp8(l, err);

	for (int i = 0; i < RESULTS && !st; i++) {
		uint8_t *found = malloc(result_bytes(l, i));

		st = found ? gpu_copy_from(k->device, found, l->out[i].data, result_bytes(l, i), err)
			   : error_set(err, STATUS_NO_RESOURCE, "no memory for a result");
		if (!st)
			st = kit_compare(names[i], found, l->due[i], result_bytes(l, i), err);
		if (!st)
			st = kit_guards(k, &l->out[i], names[i], err);
		free(found);
	}
	return st;
}

static enum status to_fp8(struct kit *k, const struct kernel_case *c, struct error *err)
{
	const int64_t kv = c->threads & QKV ? c->p0 / 5 / 16 * 16 : 0;
	struct fp8_layer l = {.parts = kv ? 3 : 1, .rows = c->p0, .cols = c->p1};
	struct bnb4_weight part[BNB4_PARTS_MOST];
	struct bnb4_kernels kernels;
	enum status st = bnb4_kernels_open(&kernels, k->device, err);

	for (size_t i = 0; i < l.parts; i++) {
		begin(&l.m[i], c, i ? kv : c->p0 - 2 * kv);
		if (!st)
			st = to_device(k, &l.m[i], k->seed + i, err);
		part[i] = weight_of(&l.m[i]);
	}
	for (int i = 0; i < RESULTS && !st; i++)
		st = kit_alloc(k, &l.out[i], result_bytes(&l, i), err);
	if (!st) {
		const struct train_fp8_weights to = {.to = l.out[ELEMENTS].data,
						     .transposed = l.out[TURNED].data,
						     .scale = l.out[SCALES].data,
						     .scale_transposed = l.out[SCALES_TURNED].data,
						     .ld_to = l.cols + PITCH,
						     .ld_transposed = l.rows + PITCH,
						     .step = step_of(l.cols),
						     .step_transposed = step_of(l.rows),
						     .rows = (uint32_t)l.rows,
						     .cols = (uint32_t)l.cols};

		st = bnb4_kernels_to_fp8(&kernels, part, l.parts, &to, k->stream, err);
	}
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = inspect_fp8(k, &l, err);
	for (int i = 0; i < RESULTS; i++) {
		kit_free(k, &l.out[i]);
		free(l.due[i]);
	}
	for (size_t i = 0; i < l.parts; i++)
		release(k, &l.m[i]);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return !strcmp(c->entry, "bnb4_quantize") ? quantize(k, c, err)
	       : !strcmp(c->entry, "bnb4_to_fp8") ? to_fp8(k, c, err)
						  : dequantize(k, c, err);
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
