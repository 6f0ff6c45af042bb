/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/paged/attention.h"
#include "model/gpu/internal.h"
#include "model/gpu/paged/lists.h"
#include "model/gpu/paged/work.h"
#include "model/tensor/dtype.h"

/* *kernel and *e4m3 from the head size and the cache's type. */
static enum status choose(const struct attention *at, const struct paged_layer *cache,
			  enum gpu_kernel_id *kernel, bool *e4m3, struct error *err)
{
	*e4m3 = cache->scale.rows > 0;
	if (cache->kv.dtype != (*e4m3 ? DTYPE_E4M3 : DTYPE_BF16))
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU's KV cache is BF16, or E4M3 with scales, but this one is %s",
				 dtype_name(cache->kv.dtype));
	if (at->head_dim == 64)
		*kernel = *e4m3 ? GPU_KERNEL_PAGED_E4M3_64 : GPU_KERNEL_PAGED_BF16_64;
	else if (at->head_dim == 128)
		*kernel = *e4m3 ? GPU_KERNEL_PAGED_E4M3_128 : GPU_KERNEL_PAGED_BF16_128;
	else
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU has a paged KV cache for heads of 64 or 128 elements, but this model "
				 "has %d; use --device cpu, which supports any",
				 at->head_dim);
	return STATUS_OK;
}

static uint32_t bits_of(int32_t page_tokens)
{
	uint32_t bits = 0;

	while (1 << bits < page_tokens)
		bits++;
	return bits;
}

enum status gpu_paged_attention(struct backend *back, const struct paged_rows *r, const struct attention *at,
				struct mat qkv, const struct paged_layer *cache, struct mat o,
				struct error *err)
{
	const struct paged_placed *placed = r->lists;
	const uint32_t blocks = paged_lists_blocks(back), dim = (uint32_t)at->head_dim;
	const bool invariant = gpu_of(back)->options.deterministic;
	struct paged_attention_args args = {
		.q = gpu_address(qkv.data),
		.o = gpu_address(o.data),
		.kv = gpu_address(cache->kv.data),
		.scale = gpu_address(cache->scale.data),
		.page = placed->page,
		.unit = placed->unit,
		.block = placed->block,
		.partial = gpu_address(r->room->partial.data),
		.arrived = placed->arrived,
		.ld_q = (uint64_t)qkv.ld,
		.ld_o = (uint64_t)o.ld,
		.ld_kv = (uint64_t)cache->kv.ld,
		.ld_scale = (uint64_t)cache->scale.ld,
		.group = (uint32_t)(at->heads / at->kv_heads),
		.kv_heads = (uint32_t)at->kv_heads,
		.page_bits = bits_of(r->page_tokens),
		.places = paged_work_places(blocks),
		.split = invariant ? PAGED_SPLIT : PAGED_WHOLE,
		.scale_log2 = at->scale * 1.44269504f,
	};
	const double before = back->cost.flop;
	enum gpu_kernel_id kernel;
	bool e4m3;
	enum status st = choose(at, cache, &kernel, &e4m3, err);

	if (st)
		return st;
	args.depth = paged_depth(dim, e4m3 ? 1 : 2, gpu_of(back)->shared_most);
	if (!args.depth)
		return error_set(err, STATUS_UNSUPPORTED,
				 "attention over a paged KV cache needs %u bytes of shared memory per block, "
				 "but the GPU has %u",
				 paged_shared(dim, e4m3 ? 1 : 2, 1), gpu_of(back)->shared_most);
	cost_paged(back, at, &placed->host);
	st = gpu_part_flop(back, GPU_PART_ATTENTION, before, err);
	return st ? st
		  : gpu_run(back, kernel, blocks, PAGED_THREADS, paged_shared(dim, e4m3 ? 1 : 2, args.depth),
			    &args, err);
}
