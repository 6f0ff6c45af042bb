/* SPDX-License-Identifier: Apache-2.0 */
/* Pages become a contiguous copy in BF16 (kernel/paged/copy.h). The code is C except for nvcc's keywords, so tests/gpu/emulate.h can
 * run it on a CPU. Functions take E4M3 as a constant and are inlined. */
#ifndef KERNEL_PAGED_COPY_CUH
#define KERNEL_PAGED_COPY_CUH
#include "kernel/paged/copy.h"
#include "kernel/paged/warp_matrix.cuh"

/* A piece of a position of the copy. */
struct piece {
	uint64_t row; /* of the cache */
	uint32_t position, column;
	bool there; /* it is a piece of the copy, */
	bool held;  /* and the sequence has the position */
};

static __device__ __forceinline__ uint32_t piece_elements(const bool E4M3)
{
	return PAGED_COPY_BYTES / (E4M3 ? 1 : 2);
}

static __device__ __forceinline__ struct piece piece_find(const struct paged_copy_args *a, uint32_t i, uint32_t pieces, const bool E4M3)
{
	const uint32_t position = i / pieces, key = position & ((1u << a->block_bits) - 1);
	struct piece p = {0, position, (i - position * pieces) * piece_elements(E4M3), position >> a->block_bits < a->blocks, false};

	if (p.there) {
		const struct paged_block block = a->block[position >> a->block_bits];

		p.held = key < block.keys;
		if (p.held)
			p.row = ((uint64_t)(uint32_t)a->page[block.page + (key >> a->page_bits)] << a->page_bits) +
				(key & ((1u << a->page_bits) - 1));
	}
	return p;
}

/* Four E4M3 numbers times the scale. */
static __device__ __forceinline__ uint2 widen_word(uint32_t word, float scale)
{
	float v[4];

	unpack_f16(widen_e4m3(word), &v[0], &v[1]);
	unpack_f16(widen_e4m3(word >> 16), &v[2], &v[3]);
	return make_uint2(pack_bf16(v[0] * scale, v[1] * scale), pack_bf16(v[2] * scale, v[3] * scale));
}

static __device__ __forceinline__ void piece_store(const struct paged_copy_args *a, const struct piece *p, uint4 from, float scale,
						   const bool E4M3)
{
	uint4 *to = (uint4 *)(a->copy + p->position * a->ld_copy + p->column);

	if (E4M3) {
		const uint2 x = widen_word(from.x, scale), y = widen_word(from.y, scale);
		const uint2 z = widen_word(from.z, scale), w = widen_word(from.w, scale);

		to[0] = make_uint4(x.x, x.y, y.x, y.y);
		to[1] = make_uint4(z.x, z.y, w.x, w.y);
	} else {
		to[0] = from;
	}
}

#define PIECES_MOST (PAGED_COPY_ELEMENTS * 2 / PAGED_COPY_BYTES) /* pieces that a thread has in flight */

/* The thread's pieces of a round, which begins with piece number `first`. */
static __device__ __forceinline__ void pieces_find(const struct paged_copy_args *a, uint32_t first, struct piece *p, const bool E4M3)
{
	const uint32_t pieces = a->columns / piece_elements(E4M3);

#pragma unroll
	for (uint32_t i = 0; i < PAGED_COPY_ELEMENTS / piece_elements(E4M3); i++)
		p[i] = piece_find(a, first + i * PAGED_COPY_THREADS, pieces, E4M3);
}

/* Requests all pieces before it stores one. */
static __device__ __forceinline__ void pieces_copy(const struct paged_copy_args *a, const struct piece *p, const bool E4M3)
{
	const uint32_t count = PAGED_COPY_ELEMENTS / piece_elements(E4M3);
	uint4 v[PIECES_MOST];
	float scale[PIECES_MOST];

#pragma unroll
	for (uint32_t i = 0; i < count; i++) {
		v[i] = make_uint4(0, 0, 0, 0);
		scale[i] = 0;
		if (p[i].held) {
			v[i] = *(const uint4 *)(a->kv + (p[i].row * a->ld_kv + p[i].column) * (E4M3 ? 1 : 2));
			if (E4M3)
				scale[i] = a->scale[paged_scale_at(p[i].row, p[i].column >> a->head_bits, a->ld_scale, a->page_bits)];
		}
	}
#pragma unroll
	for (uint32_t i = 0; i < count; i++)
		if (p[i].there)
			piece_store(a, &p[i], v[i], scale[i], E4M3);
}

/* A copy of lists on the stream separates steps. So the lists are older than the grid ahead. The step's own keys are not, and the
 * grid ahead may still read the copy. */
static __device__ __forceinline__ void copy_pages(const struct paged_copy_args *a, const bool E4M3)
{
	const uint32_t each = PAGED_COPY_THREADS * (PAGED_COPY_ELEMENTS / piece_elements(E4M3));
	const uint32_t count = (a->blocks << a->block_bits) * (a->columns / piece_elements(E4M3));
	struct piece p[PIECES_MOST];
	uint32_t first = blockIdx.x * each + threadIdx.x;

	grid_release();
	pieces_find(a, first, p, E4M3);
	grid_wait();
	while (first < count) {
		pieces_copy(a, p, E4M3);
		first += gridDim.x * each;
		pieces_find(a, first, p, E4M3);
	}
}
#endif
