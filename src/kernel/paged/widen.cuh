/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in E4M3 become BF16 (kernel/paged/widen.h). The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run
 * it on a CPU. */
#ifndef KERNEL_PAGED_WIDEN_CUH
#define KERNEL_PAGED_WIDEN_CUH
#include "kernel/paged/warp_matrix.cuh"
#include "kernel/paged/widen.h"

/* Four E4M3 numbers times the scale. */
static __device__ __forceinline__ uint2 widen_word(uint32_t word, float scale)
{
	float v[4];

	unpack_f16(widen_e4m3(word), &v[0], &v[1]);
	unpack_f16(widen_e4m3(word >> 16), &v[2], &v[3]);
	return make_uint2(pack_bf16(v[0] * scale, v[1] * scale), pack_bf16(v[2] * scale, v[3] * scale));
}

/* One piece of a position of the copy. */
static __device__ __forceinline__ void widen_piece(const struct paged_widen_args *a, uint32_t position, uint32_t piece)
{
	const struct paged_wide block = a->block[position >> a->block_bits];
	const uint32_t key = position & ((1u << a->block_bits) - 1), column = piece * PAGED_WIDEN_PIECE;
	uint64_t row;
	uint2 v[4];
	uint4 from;
	float scale;

	if (key >= block.keys)
		return;
	row = ((uint64_t)(uint32_t)a->page[block.page + (key >> a->page_bits)] << a->page_bits) + (key & ((1u << a->page_bits) - 1));
	from = *(const uint4 *)(a->kv + row * a->ld_kv + column);
	scale = a->scale[paged_scale_at(row, column >> a->head_bits, a->ld_scale, a->page_bits)];
	v[0] = widen_word(from.x, scale);
	v[1] = widen_word(from.y, scale);
	v[2] = widen_word(from.z, scale);
	v[3] = widen_word(from.w, scale);
	uint4 *to = (uint4 *)(a->wide + position * a->ld_wide + column);
	to[0] = make_uint4(v[0].x, v[0].y, v[1].x, v[1].y);
	to[1] = make_uint4(v[2].x, v[2].y, v[3].x, v[3].y);
}

static __device__ __forceinline__ void widen(const struct paged_widen_args *a)
{
	const uint32_t pieces = a->columns / PAGED_WIDEN_PIECE, count = (a->blocks << a->block_bits) * pieces;

	grid_release();
	grid_wait(); /* the step's own keys are from the grid ahead, and the copy may still be read by it */
	for (uint32_t i = blockIdx.x * PAGED_WIDEN_THREADS + threadIdx.x; i < count; i += gridDim.x * PAGED_WIDEN_THREADS)
		widen_piece(a, i / pieces, i % pieces);
}
#endif
