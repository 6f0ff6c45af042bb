/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that verification needs from engine `cublaslt`: kernels of this program fill the operands and sum
 * the results on the device (kernel/test_data/gemm.cu, kernel/test_data/numbers.cu). */
#include "gpu/device/gpu.h"
#include "kernel/test_data/numbers.h"
#include "kernel/test_data/gemm.h"
#include "probe/gemm/cublaslt.h"

enum {
	THREADS = 256,
	COMPARE_BLOCKS = 1024,
};
#define POISON_FLOAT 0x7fffffffu /* NaN in FP64, FP32, FP16 and BF16 */
#define POISON_INT 0x80000000u	 /* INT32_MIN */

enum status gemm_cublaslt_kernels(struct gemm_cublaslt *s, struct error *err)
{
	enum status st = gpu_kernel(s->device, &s->fill, "operand", "operand_fill", err);

	if (!st)
		st = gpu_kernel(s->device, &s->products, "operand", "operand_sums", err);
	if (!st)
		st = gpu_kernel(s->device, &s->compare, "operand", "operand_compare", err);
	if (!st)
		st = gpu_kernel(s->device, &s->hash, "data", "hash", err);
	return st;
}

static enum status fill_one(struct gemm_cublaslt *s, gpu_ptr out, enum matmul_type type, uint64_t count,
			    enum gemm_stream stream, enum gemm_data data, struct error *err)
{
	static const uint32_t kernels_data[] = {[GEMM_DATA_RANDOM] = OPERAND_RANDOM,
						[GEMM_DATA_ZEROS] = OPERAND_ZEROS,
						[GEMM_DATA_INTEGER] = OPERAND_SPARSE};
	struct operand_fill_args args = {.out = out,
					 .count = count,
					 .seed = s->common.seed,
					 .stream = stream,
					 .type = type,
					 .data = kernels_data[data]};
	uint64_t threads = (count + 3) / 4; /* each thread fills at least four elements */

	return gpu_launch_1d(s->fill, s->stream, (unsigned)((threads + THREADS - 1) / THREADS), THREADS, 0,
			     &args, err);
}

static enum status fill(void *state, enum gemm_data data, struct error *err)
{
	struct gemm_cublaslt *s = state;
	const struct matmul_shape *h = &s->shape;
	enum status st = STATUS_OK;

	for (unsigned i = 0; !st && i < s->common.sets; i++) {
		st = fill_one(s, s->set[i].a, h->a, matmul_a_count(h), GEMM_STREAM_A, data, err);
		if (!st)
			st = fill_one(s, s->set[i].b, h->b, matmul_b_count(h), GEMM_STREAM_B, data, err);
	}
	if (!st && s->bias)
		st = fill_one(s, s->bias, h->bias, h->n, GEMM_STREAM_BIAS, data, err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status poison(void *state, struct error *err)
{
	struct gemm_cublaslt *s = state;
	uint32_t word = s->shape.d == MATMUL_S32 ? POISON_INT : POISON_FLOAT;
	enum status st = STATUS_OK;

	for (unsigned i = 0; !st && i < s->common.sets; i++)
		st = gpu_stream_fill32(s->stream, s->set[i].c, word, s->c_words, err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status run(void *state, unsigned set, struct error *err)
{
	struct gemm_cublaslt *s = state;
	enum status st = gemm_cublaslt_multiply(s, set, err);

	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status read_products(struct gemm_cublaslt *s, struct gemm_products *out, struct error *err)
{
	uint64_t m = s->shape.m, n = s->shape.n;
	struct {
		void *to;
		gpu_ptr from;
		uint64_t bytes;
	} part[] = {
		{out->cw[0], s->sums, m * 8},
		{out->cw[1], s->sums + m * 8, m * 8},
		{out->wc[0], s->sums + 2 * m * 8, n * 8},
		{out->wc[1], s->sums + (2 * m + n) * 8, n * 8},
		{out->odd_row, s->odd, m * 4},
		{out->odd_column, s->odd + m * 4, n * 4},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < sizeof(part) / sizeof(part[0]); i++)
		st = gpu_copy_from(s->device, part[i].to, part[i].from, part[i].bytes, err);
	return st;
}

static enum status products(void *state, unsigned set, uint32_t b, struct gemm_products *out,
			    struct error *err)
{
	struct gemm_cublaslt *s = state;
	uint64_t m = s->shape.m, n = s->shape.n;
	struct operand_sums_args args = {
		.c = s->set[set].c + (uint64_t)b * m * n * gemm_out_bytes(s->common.opts.type),
		.cw = s->sums,
		.wc = s->sums + 2 * m * 8,
		.odd_row = s->odd,
		.odd_column = s->odd + m * 4,
		.rows = m,
		.columns = n,
		.row_step = n,
		.type = s->shape.d,
		.limit = s->common.opts.k + 1,
	};
	const unsigned grid[3] = {(unsigned)((n + OPERAND_SUMS_COLUMNS - 1) / OPERAND_SUMS_COLUMNS),
				  (unsigned)((m + OPERAND_SUMS_ROWS - 1) / OPERAND_SUMS_ROWS), 1};
	const unsigned block[3] = {OPERAND_SUMS_THREADS, 1, 1};
	enum status st;

	st = gpu_stream_fill32(s->stream, s->sums, 0, 4 * (m + n), err);
	if (!st)
		st = gpu_stream_fill32(s->stream, s->odd, 0, m + n, err);
	if (!st)
		st = gpu_launch(s->products, s->stream, grid, block, 0, &args, err);
	if (!st)
		st = gpu_stream_wait(s->stream, err);
	return st ? st : read_products(s, out, err);
}

static enum status elements(void *state, unsigned set, const uint64_t *index, size_t count, double *out,
			    struct error *err)
{
	struct gemm_cublaslt *s = state;
	enum gemm_type type = s->common.opts.type;
	unsigned bytes = gemm_out_bytes(type);
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++) {
		double value = 0;

		st = gpu_copy_from(s->device, &value, s->set[set].c + index[i] * bytes, bytes, err);
		out[i] = gemm_value_out(type, &value, 0);
	}
	return st;
}

static enum status record_clear(struct gemm_cublaslt *s, struct error *err)
{
	const struct compare_record clear = {.first = UINT64_MAX};

	return gpu_copy_to(s->device, s->record, &clear, sizeof(clear), err);
}

static enum status record_read(struct gemm_cublaslt *s, struct compare_record *out, struct error *err)
{
	enum status st = gpu_stream_wait(s->stream, err);

	return st ? st : gpu_copy_from(s->device, out, s->record, sizeof(*out), err);
}

static enum status hash(void *state, unsigned set, uint64_t *out, struct error *err)
{
	struct gemm_cublaslt *s = state;
	struct hash_args args = {.words = s->set[set].c, .record = s->record, .count = s->c_words};
	struct compare_record found = {0};
	enum status st = record_clear(s, err);

	if (!st)
		st = gpu_launch_1d(s->hash, s->stream, COMPARE_BLOCKS, THREADS, 0, &args, err);
	if (!st)
		st = record_read(s, &found, err);
	*out = (uint64_t)found.sum;
	return st;
}

static enum status differences(void *state, unsigned set, double tolerance, uint64_t *count,
			       uint64_t *first_index, struct error *err)
{
	struct gemm_cublaslt *s = state;
	struct operand_found found = {.first = UINT64_MAX};
	struct operand_compare_args args = {.a = s->set[set].c,
					    .b = s->set[0].c,
					    .found = s->record,
					    .count = matmul_d_count(&s->shape),
					    .tolerance = tolerance,
					    .type = s->shape.d};
	enum status st = gpu_copy_to(s->device, s->record, &found, sizeof(found), err);

	if (!st)
		st = gpu_launch_1d(s->compare, s->stream, COMPARE_BLOCKS, THREADS, 0, &args, err);
	if (!st)
		st = gpu_stream_wait(s->stream, err);
	if (!st)
		st = gpu_copy_from(s->device, &found, s->record, sizeof(found), err);
	*count = found.wrong;
	*first_index = found.first;
	return st;
}

const struct gemm_access gemm_cublaslt_access = {
	.fill = fill,
	.poison = poison,
	.run = run,
	.products = products,
	.elements = elements,
	.hash = hash,
	.differences = differences,
};
