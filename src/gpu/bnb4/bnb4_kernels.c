/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/bnb4/bnb4_kernels.h"

enum status bnb4_kernels_open(struct bnb4_kernels *k, struct gpu_device *d, struct error *err)
{
	const struct {
		struct gpu_kernel **kernel;
		const char *entry;
	} all[] = {
		{&k->dequantize, "bnb4_dequantize"},
		{&k->to_fp8, "bnb4_to_fp8"},
		{&k->quantize, "bnb4_quantize"},
		{&k->group_sums, "bnb4_group_sums"},
		{&k->mean, "bnb4_mean"},
		{&k->nest, "bnb4_nest"},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !st; i++)
		st = gpu_kernel(d, all[i].kernel, "bnb4", all[i].entry, err);
	return st;
}

enum status bnb4_kernels_check(int64_t rows, int64_t cols, struct error *err)
{
	if (cols % BNB4_VECTOR)
		return error_set(err, STATUS_UNSUPPORTED,
				 "rows of %lld weights in 4 bits; the kernels support multiples of %d",
				 (long long)cols, BNB4_VECTOR);
	if (rows > (int64_t)BNB4_ELEMENTS_MOST / cols)
		return error_set(err, STATUS_UNSUPPORTED,
				 "%lld x %lld weights in 4 bits; the kernels support up to %lld elements",
				 (long long)rows, (long long)cols, (long long)BNB4_ELEMENTS_MOST);
	return STATUS_OK;
}

static uint32_t divide_up(uint64_t count, uint64_t by)
{
	return (uint32_t)((count + by - 1) / by);
}

static uint32_t blocks_of(int64_t rows, int64_t cols)
{
	return divide_up((uint64_t)(rows * cols), BNB4_BLOCK);
}

/* The sums of groups come first, then the absmax of blocks. */
static uint64_t sums_bytes(int64_t rows, int64_t cols)
{
	return divide_up(blocks_of(rows, cols), BNB4_GROUP) * sizeof(double);
}

uint64_t bnb4_kernels_scratch(int64_t rows, int64_t cols, bool nested)
{
	return nested ? sums_bytes(rows, cols) + blocks_of(rows, cols) * sizeof(float) : 0;
}

static enum status nest(const struct bnb4_kernels *k, const struct bnb4_weight *to, gpu_ptr scratch,
			struct gpu_stream *s, struct error *err)
{
	const struct bnb4_nest_args args = {
		.block_absmax = scratch + sums_bytes(to->rows, to->cols),
		.sums = scratch,
		.offset = to->offset,
		.absmax_codes = to->absmax_codes,
		.absmax = to->absmax,
		.map = to->map,
		.blocks = blocks_of(to->rows, to->cols),
		.groups = divide_up(blocks_of(to->rows, to->cols), BNB4_GROUP),
	};
	enum status st =
		gpu_launch_1d(k->group_sums, s, bnb4_sum_blocks(args.groups), BNB4_THREADS, 0, &args, err);

	if (!st)
		st = gpu_launch_1d(k->mean, s, 1, 1, 0, &args, err);
	return st ? st : gpu_launch_1d(k->nest, s, args.groups, BNB4_GROUP, BNB4_NEST_BYTES, &args, err);
}

enum status bnb4_kernels_quantize(const struct bnb4_kernels *k, const struct bnb4_weight *to, gpu_ptr from,
				  int64_t ld, gpu_ptr scratch, struct gpu_stream *s, struct error *err)
{
	const struct bnb4_quantize_args args = {
		.from = from,
		.codes = to->codes,
		.absmax = to->absmax_codes ? scratch + sums_bytes(to->rows, to->cols) : to->absmax,
		.ld = ld,
		.rows = (uint32_t)to->rows,
		.cols = (uint32_t)to->cols,
		.type = to->type,
	};
	enum status st = bnb4_kernels_check(to->rows, to->cols, err);

	if (!st)
		st = gpu_launch_1d(k->quantize, s, bnb4_tiles(args.rows, args.cols), BNB4_THREADS, 0, &args,
				   err);
	return st || !to->absmax_codes ? st : nest(k, to, scratch, s, err);
}

static struct bnb4_codes codes_of(const struct bnb4_weight *w)
{
	return (struct bnb4_codes){.codes = w->codes,
				   .absmax_codes = w->absmax_codes,
				   .absmax = w->absmax,
				   .offset = w->offset,
				   .map = w->map};
}

static enum status launch(const struct bnb4_kernels *k, const struct bnb4_output *out, size_t count,
			  struct gpu_stream *s, struct error *err)
{
	struct bnb4_dequantize_args args = {.count = (uint32_t)count};
	uint32_t tiles = 0;
	enum status st = STATUS_OK;

	for (size_t i = 0; i < count && !st; i++) {
		const struct bnb4_weight *w = &out[i].from;

		st = bnb4_kernels_check(w->rows, w->cols, err);
		args.matrix[i] = (struct bnb4_matrix_args){
			.from = codes_of(w),
			.to = out[i].to,
			.ld = out[i].ld,
			.rows = (uint32_t)w->rows,
			.cols = (uint32_t)w->cols,
			.first = tiles,
			.type = w->type,
		};
		tiles += bnb4_tiles((uint64_t)w->rows, (uint64_t)w->cols);
	}
	return st ? st : gpu_launch_1d(k->dequantize, s, tiles, BNB4_THREADS, BNB4_TABLE_BYTES, &args, err);
}

enum status bnb4_kernels_dequantize(const struct bnb4_kernels *k, const struct bnb4_output *out, size_t count,
				    struct gpu_stream *s, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < count && !st; i += BNB4_MATRICES_MOST)
		st = launch(k, out + i, count - i < BNB4_MATRICES_MOST ? count - i : BNB4_MATRICES_MOST, s,
			    err);
	return st;
}

static unsigned fp8_tiles_of(uint32_t elements)
{
	return (elements + TRAIN_FP8_TILE - 1) / TRAIN_FP8_TILE;
}

enum status bnb4_kernels_to_fp8(const struct bnb4_kernels *k, const struct bnb4_weight *part, size_t count,
				const struct train_fp8_weights *to, struct gpu_stream *s, struct error *err)
{
	struct bnb4_fp8_args args = {.q = *to, .parts = (uint32_t)count};
	uint32_t rows = 0;
	enum status st = STATUS_OK;

	if (count > BNB4_PARTS_MOST)
		return error_set(err, STATUS_BUG, "a linear layer of %zu matrices in 4 bits", count);
	for (size_t i = 0; i < count && !st; i++) {
		st = bnb4_kernels_check(part[i].rows, part[i].cols, err);
		args.part[i] = (struct bnb4_fp8_part){
			.from = codes_of(&part[i]), .begin = rows, .type = part[i].type};
		rows += (uint32_t)part[i].rows;
	}
	return st ? st
		  : gpu_launch_1d(k->to_fp8, s, fp8_tiles_of(to->rows) * fp8_tiles_of(to->cols),
				  TRAIN_THREADS, BNB4_FP8_SHARED, &args, err);
}
