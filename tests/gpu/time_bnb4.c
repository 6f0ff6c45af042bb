/* SPDX-License-Identifier: Apache-2.0 */
/* Times NF4 with the matrices of a layer of Qwen2-7B: 233 M elements, far beyond any L2 cache. */
#include "cases.h"
#include "gpu/bnb4/bnb4_kernels.h"
#include "kernel/bnb4/bnb4.h"
#include "model/bnb4/bnb4.h"

enum { MATRICES = 7, CALLS = 20, SCALE_BYTES = 37888 / 128 * (3584 / 128) * 4 };
static const int64_t shapes[MATRICES][2] = {{3584, 3584},  {512, 3584},	  {512, 3584},	{3584, 3584},
					    {18944, 3584}, {18944, 3584}, {3584, 18944}};

struct layer {
	struct kit *kit;
	struct bnb4_kernels kernels;
	struct bnb4_output out[MATRICES];
	gpu_ptr packed, numbers, scales, scratch;
	size_t count; /* matrices that a call takes; 0: quantize the first */
	bool fp8;
};

/* Linear layers: the first matrix and the number of matrices. */
static const int linears[][2] = {{0, 3}, {3, 1}, {4, 2}, {6, 1}};

/* Scales are not of interest: one place serves all. */
static enum status to_fp8(const struct layer *l, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(linears) / sizeof(linears[0]) && !st; i++) {
		const struct bnb4_output *first = &l->out[linears[i][0]];
		struct bnb4_weight part[BNB4_PARTS_MOST];
		struct train_fp8_weights to = {.to = first->to,
					       .scale = l->scales,
					       .scale_transposed = l->scales,
					       .ld_to = first->from.cols,
					       .step = first->from.cols / 128,
					       .cols = (uint32_t)first->from.cols};

		for (int j = 0; j < linears[i][1]; j++) {
			part[j] = first[j].from;
			to.rows += (uint32_t)first[j].from.rows;
		}
		to.transposed = first->to + (uint64_t)to.rows * to.cols;
		to.ld_transposed = to.rows;
		to.step_transposed = (to.rows + 127) / 128;
		st = bnb4_kernels_to_fp8(&l->kernels, part, (size_t)linears[i][1], &to, l->kit->stream, err);
	}
	return st;
}

static enum status call(void *arg, struct error *err)
{
	const struct layer *l = arg;

	if (l->fp8)
		return to_fp8(l, err);
	if (l->count)
		return bnb4_kernels_dequantize(&l->kernels, l->out, l->count, l->kit->stream, err);
	return bnb4_kernels_quantize(&l->kernels, &l->out[4].from, l->numbers, l->out[4].from.cols,
				     l->scratch, l->kit->stream, err);
}

static void place(struct layer *l, bool nested)
{
	uint64_t packed = l->packed, numbers = l->numbers;

	for (int i = 0; i < MATRICES; i++) {
		struct bnb4 m = {.rows = shapes[i][0], .cols = shapes[i][1], .nested = nested};

		bnb4_place(&m, (void *)(uintptr_t)packed);
		l->out[i] = (struct bnb4_output){.from = {.codes = (uintptr_t)m.codes,
							  .absmax_codes = (uintptr_t)m.absmax_codes,
							  .offset = (uintptr_t)m.offset,
							  .map = (uintptr_t)m.map,
							  .absmax = (uintptr_t)m.absmax,
							  .rows = m.rows,
							  .cols = m.cols},
						 .to = numbers,
						 .ld = m.cols};
		packed += bnb4_bytes(m.rows, m.cols, nested);
		numbers += (uint64_t)(m.rows * m.cols) * 2;
	}
}

static enum status show(struct layer *l, const char *what, uint64_t elements, double bytes_each,
			struct error *err)
{
	const double peak = gpu_dram_rate(l->kit->device), bytes = (double)elements * bytes_each;
	double ns = 0;
	enum status st = kit_time(l->kit, call, l, CALLS, &ns, err);

	if (!st)
		printf("time bnb4 %-34s %8.1f us  %6.0f GB/s  %3.0f %% of DRAM's rate\n", what, ns / 1e3,
		       bytes / ns, peak > 0 ? 100 * bytes / ns * 1e9 / peak : 0);
	return st;
}

static enum status allocate(struct layer *l, uint64_t *elements, struct error *err)
{
	uint64_t packed = 0;
	enum status st = bnb4_kernels_open(&l->kernels, l->kit->device, err);

	for (int i = 0; i < MATRICES; i++) {
		packed += bnb4_bytes(shapes[i][0], shapes[i][1], false);
		*elements += (uint64_t)(shapes[i][0] * shapes[i][1]);
	}
	if (!st)
		st = gpu_alloc(l->kit->device, &l->packed, packed, err);
	if (!st)
		st = gpu_alloc(l->kit->device, &l->numbers, *elements * 2, err);
	if (!st)
		st = gpu_alloc(l->kit->device, &l->scales, SCALE_BYTES, err);
	if (!st)
		st = gpu_alloc(l->kit->device, &l->scratch,
			       bnb4_kernels_scratch(shapes[4][0], shapes[4][1], true), err);
	/* Any codes will do; as F32, the words are small numbers. */
	if (!st)
		st = gpu_stream_fill32(l->kit->stream, l->packed, 0x3a5b1c7du, packed / 4, err);
	return st ? st : gpu_stream_fill32(l->kit->stream, l->numbers, 0x3f813e7fu, *elements / 2, err);
}

enum status time_bnb4(struct kit *k, struct error *err);
enum status time_bnb4(struct kit *k, struct error *err)
{
	struct layer l = {.kit = k, .count = MATRICES};
	uint64_t elements = 0;
	enum status st = allocate(&l, &elements, err);

	for (int nested = 1; nested >= 0 && !st; nested--) {
		const double read = nested ? 0.5 + 1 / 64.0 + 4 / 16384.0 : 0.5 + 4 / 64.0;

		place(&l, nested);
		st = show(&l, nested ? "layer to BF16, nested" : "layer to BF16", elements, read + 2, err);
		l.fp8 = true;
		if (!st)
			st = show(&l, nested ? "layer to E4M3 twice, nested" : "layer to E4M3 twice", elements,
				  read + 2, err);
		l.fp8 = false;
	}
	place(&l, true);
	l.count = 0;
	if (!st)
		st = show(&l, "gate quantized, nested", (uint64_t)(shapes[4][0] * shapes[4][1]),
			  2.5 + 2 / 16.0, err);
	gpu_free(k->device, &l.packed);
	gpu_free(k->device, &l.numbers);
	gpu_free(k->device, &l.scales);
	gpu_free(k->device, &l.scratch);
	return st;
}
