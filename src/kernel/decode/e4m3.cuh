/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector of a linear layer whose weights are E4M3, and products with it. The vector is FP16 in shared memory.
 * Each 64 elements are multiplied by a power of two that gives the largest of them an exponent of 14. Weights
 * become FP16, which has all of E4M3. A product of a warp's matrix unit multiplies four weights of each lane with
 * four elements of the vector: a lane's weights are a part of row lane / 4 of A and its elements the same part of
 * column lane / 4 of B. Of the result, only the diagonal is used.
 */
#ifndef KERNEL_DECODE_E4M3_CUH
#define KERNEL_DECODE_E4M3_CUH
#include "kernel/decode/vector.cuh"
#include "kernel/f16_matrix.cuh"

#define E4M3_EXPONENT 141 /* of 2^14, as a float has it */

/* Place of four neighbours of the vector, in units of four. A lane's 16 elements of a chunk are in two halves of it, so a
 * warp reads 16 bytes per lane without bank conflicts. */
static __device__ __forceinline__ uint32_t e4m3_place(uint32_t four)
{
	const uint32_t chunk = four / 128, lane = four % 128 / 4, part = four % 4;

	return chunk * 128 + part / 2 * 64 + lane * 2 + part % 2;
}

/* The reciprocals of the powers of two, after the vector. */
static __device__ __forceinline__ float *e4m3_scales(const struct room *s, uint32_t chunks)
{
	return s->x + chunks * DECODE_CHUNK;
}

/* Stores four elements. The 16 lanes with the same 64 elements call it together. */
static __device__ __forceinline__ void e4m3_store(const struct room *s, float *scales, uint32_t four, float4 v)
{
	float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))), scale;
	uint32_t exponent;

#pragma unroll
	for (int offset = 8; offset; offset /= 2)
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
	exponent = __float_as_uint(most) >> 23;
	exponent = exponent < 32 ? 32 : exponent;
	scale = __uint_as_float((E4M3_EXPONENT + 127 - exponent) << 23);
	((uint2 *)s->x)[e4m3_place(four)] = make_uint2(pack_f16(v.x * scale, v.y * scale), pack_f16(v.z * scale, v.w * scale));
	if (four % 16 == 0)
		scales[four / 16] = __uint_as_float((exponent + 127 - E4M3_EXPONENT) << 23);
}

/* As stage. */
static __device__ __forceinline__ void stage_e4m3(const struct room *s, const float *x, const uint16_t *row, const uint16_t *norm,
						  uint32_t in)
{
	const uint32_t chunks = decode_padded(in / 2) / DECODE_CHUNK, fours = chunks * DECODE_CHUNK / 2;
	float *scales = e4m3_scales(s, chunks), squares = 0;

	__syncthreads();
	for (uint32_t first = threadIdx.x; first < fours; first += STAGE_BATCH * DECODE_THREADS) {
		float4 v[STAGE_BATCH];
		uint2 w[STAGE_BATCH];

		stage_load(v, w, x, row, norm, in, first);
#pragma unroll
		for (uint32_t j = 0; j < STAGE_BATCH; j++) {
			squares += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
			if (first + j * DECODE_THREADS < fours) /* the same for all lanes of a warp */
				e4m3_store(s, scales, first + j * DECODE_THREADS, times_norm(v[j], w[j]));
		}
	}
	stage_end(s, norm, squares);
}

/* The sum of products of a chunk's weights, 16 of each lane. It is spread over the lanes that have the diagonal;
 * what other lanes return means nothing. */
static __device__ __forceinline__ float e4m3_chunk(uint4 w, uint4 low, uint4 high, float scale)
{
	const uint32_t words[4] = {w.x, w.y, w.z, w.w}, x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
	float c[4] = {0, 0, 0, 0};

#pragma unroll
	for (int i = 0; i < 4; i++) {
		const uint32_t a[4] = {widen_e4m3(words[i]), 0, widen_e4m3(words[i] >> 16), 0};

		matrix_step_f16(c, a, x[2 * i], x[2 * i + 1]);
	}
	return (threadIdx.x / 4 % 2 ? c[1] : c[0]) * scale;
}

/* Stores a unit's partial sum of a row. */
static __device__ __forceinline__ void e4m3_put(float *sums, uint32_t unit, uint32_t row, float sum)
{
	const uint32_t lane = threadIdx.x % 32;

	put(sums, unit, row, lane % 4 == lane / 8 ? sum : 0);
}

/* As dots. */
static __device__ __forceinline__ void dots_e4m3(struct feed *f, const struct rows *r, const struct room *s)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint4 *x = (const uint4 *)s->x + lane;
	const float *scale = e4m3_scales(s, r->chunks) + lane / 4;
	float *sums = sums_of(s, r);
	struct part p;

	part_open(&p, r, threadIdx.x / 32);
	feed_fill(f); /* see dots */
	while (p.n) {
		const uint32_t slot = f->slots + f->got * DECODE_SLOT_BYTES + lane * 16;
		uint32_t row = p.at / r->chunks, chunk = p.at - row * r->chunks;
		float sum = 0;

		feed_wait(f);
		if (p.n == DECODE_UNIT && p.limit == 0xffffffffu && r->chunks >= DECODE_UNIT) {
			const uint32_t left = r->chunks - chunk; /* chunks of this row */
			uint4 w[DECODE_UNIT];
			float next = 0; /* of the next row */

#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++)
				w[j] = load_shared(slot + j * 2 * DECODE_CHUNK);
#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++) {
				const uint32_t at = chunk + j - (j < left ? 0 : r->chunks);
				const float v = e4m3_chunk(w[j], x[at * 64], x[at * 64 + 32], scale[at * 8]);

				sum += j < left ? v : 0;
				next += j < left ? 0 : v;
			}
			if (left < DECODE_UNIT) {
				e4m3_put(sums, p.unit, row++, sum);
				sum = next;
			}
		} else {
#pragma unroll 1
			for (uint32_t j = 0; j < p.n; j++) {
				uint4 w = make_uint4(0, 0, 0, 0);

				if (chunk == r->chunks) {
					e4m3_put(sums, p.unit, row, sum);
					sum = 0;
					chunk = 0;
					row++;
				}
				if (chunk * DECODE_CHUNK + lane * 8 < r->in)
					w = load_shared(slot + j * 2 * DECODE_CHUNK);
				sum += e4m3_chunk(w, x[chunk * 64], x[chunk * 64 + 32], scale[chunk * 8]);
				chunk++;
			}
		}
		feed_took(f);
		feed_fill(f);
		e4m3_put(sums, p.unit, row, sum);
		part_on(&p);
	}
	__syncthreads();
}
#endif
