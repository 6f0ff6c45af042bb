/* SPDX-License-Identifier: Apache-2.0 */
/* Times NF4 with the matrices of a layer of Qwen2-7B: 233 M elements, far beyond any L2 cache. */
#include "cases.h"
#include "gpu/bnb4/bnb4_kernels.h"
#include "kernel/bnb4/bnb4.h"
#include "model/bnb4/bnb4.h"

enum { MATRICES = 7, CALLS = 20 };
static const int64_t shapes[MATRICES][2] = {{3584, 3584},  {512, 3584},	  {512, 3584},	{3584, 3584},
					    {18944, 3584}, {18944, 3584}, {3584, 18944}};

struct layer {
	struct kit *kit;
	struct bnb4_kernels kernels;
	struct bnb4_output out[MATRICES];
	gpu_ptr packed, numbers, scales, scratch;
	size_t count; /* matrices that a call takes; 0: quantize the first */
};

static enum status call(void *arg, struct error *err)
{
	const struct layer *l = arg;

	if (l->count)
		return bnb4_kernels_dequantize(&l->kernels, l->out, l->count, l->kit->stream, err);
	return bnb4_kernels_quantize(&l->kernels, &l->out[4].from, l->numbers, l->out[4].from.cols,
				     l->scratch, l->kit->stream, err);
}

static void place(struct layer *l, bool nested, gpu_ptr scale)
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
						 .ld = m.cols,
						 .scale = scale,
						 .row_shift = 7,
						 .col_shift = 7,
						 .scale_ld = (uint32_t)m.cols / 128};
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
		st = gpu_alloc(l->kit->device, &l->scales, 18944ull / 128 * (18944 / 128) * 4, err);
	if (!st)
		st = gpu_alloc(l->kit->device, &l->scratch,
			       bnb4_kernels_scratch(shapes[4][0], shapes[4][1], true), err);
	/* Any codes will do; as F32, the words are small numbers. */
	if (!st)
		st = gpu_stream_fill32(l->kit->stream, l->packed, 0x3a5b1c7du, packed / 4, err);
	if (!st)
		st = gpu_stream_fill32(l->kit->stream, l->scales, 0x3f800000u, 18944ull / 128 * (18944 / 128),
				       err);
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

		place(&l, nested, 0);
		st = show(&l, nested ? "layer to BF16, nested" : "layer to BF16", elements, read + 2, err);
		place(&l, nested, l.scales);
		if (!st)
			st = show(&l, nested ? "layer to E4M3, nested" : "layer to E4M3", elements, read + 1,
				  err);
	}
	place(&l, true, 0);
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
