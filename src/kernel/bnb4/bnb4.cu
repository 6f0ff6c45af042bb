/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NF4 and FP4: quantizing when a model is loaded, dequantizing a layer's matrices before each use.
 *
 * bnb4_dequantize is bound by memory: 2.516 bytes per element with double quantization, so the 6.5 G elements
 * of a 7B model take 3.8 ms at 4.3 TB/s. A warp reads 128 bytes of codes and writes 512 bytes of BF16 at a
 * time. The table of 16 numbers is in shared memory: its entries are in different banks, so lanes never wait
 * for each other. All loads precede the first store. The code is C except for nvcc's keywords, so
 * tests/gpu/emulate.h can run it on a CPU. Reference: model/bnb4.
 */
#include "kernel/bnb4/bnb4.h"
#include "kernel/train/fp8.cuh"

static __device__ const float nf4_table[BNB4_CODES] = {BNB4_NF4_TABLE};
static __device__ const float fp4_table[BNB4_CODES] = {BNB4_FP4_TABLE};
static __device__ const float absmax_map[BNB4_MAP] = {BNB4_ABSMAX_MAP};

static __device__ __forceinline__ float absmax_of(const struct bnb4_codes *m, uint32_t block, float offset)
{
	if (!m->absmax_codes)
		return m->absmax[block];
	return __fadd_rn(
		__fmul_rn(__ldg(m->map + m->absmax_codes[block]), __ldg(m->absmax + block / BNB4_GROUP)),
		offset);
}

static __device__ __forceinline__ uint32_t two_bf16(float low, float high)
{
#if defined(__CUDA_ARCH__)
	uint32_t both;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
	return both;
#else
	return bf16_pair(low, high);
#endif
}

/* Eight elements: byte i of the word holds codes 2 i (high half) and 2 i + 1. */
static __device__ __forceinline__ void numbers_of(float x[BNB4_VECTOR], uint32_t word, float absmax,
						  const float *table)
{
#pragma unroll
	for (int i = 0; i < BNB4_VECTOR / 2; i++) {
		x[2 * i] = __fmul_rn(table[word >> (8 * i + 4) & 15], absmax);
		x[2 * i + 1] = __fmul_rn(table[word >> 8 * i & 15], absmax);
	}
}

static __device__ __forceinline__ uint4 numbers_bf16(uint32_t word, float absmax, const float *table)
{
	float x[BNB4_VECTOR];

	numbers_of(x, word, absmax, table);
	return make_uint4(two_bf16(x[0], x[1]), two_bf16(x[2], x[3]), two_bf16(x[4], x[5]), two_bf16(x[6], x[7]));
}

ENTRY void __launch_bounds__(BNB4_THREADS)
	bnb4_dequantize(const __grid_constant__ struct bnb4_dequantize_args a)
{
	float *table = (float *)shared, absmax[BNB4_TURNS], offset;
	const struct bnb4_matrix_args *m = a.matrix;
	uint32_t first, all, word[BNB4_TURNS];

	while (m + 1 < a.matrix + a.count && blockIdx.x >= m[1].first)
		m++;
	first = (blockIdx.x - m->first) * BNB4_TILE + threadIdx.x * BNB4_VECTOR;
	all = m->rows * m->cols;
	offset = m->from.absmax_codes ? *m->from.offset : 0;
	if (threadIdx.x < BNB4_CODES)
		table[threadIdx.x] = m->type == BNB4_NF4 ? nf4_table[threadIdx.x] : fp4_table[threadIdx.x];
#pragma unroll
	for (int i = 0; i < BNB4_TURNS; i++) {
		const uint32_t element = first + i * (BNB4_THREADS * BNB4_VECTOR);

		if (element >= all)
			continue;
		word[i] = *(const uint32_t *)(m->from.codes + element / 2);
		absmax[i] = absmax_of(&m->from, element / BNB4_BLOCK, offset);
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < BNB4_TURNS; i++) {
		const uint32_t element = first + i * (BNB4_THREADS * BNB4_VECTOR);
		int64_t at = element;

		if (element >= all)
			continue;
		if (m->ld != m->cols)
			at = element / m->cols * m->ld + element % m->cols;
		*(uint4 *)(m->to + at) = numbers_bf16(word[i], absmax[i], table);
	}
}

static __device__ __forceinline__ const struct bnb4_fp8_part *part_of(const struct bnb4_fp8_args *a, uint32_t row)
{
	const struct bnb4_fp8_part *p = a->part;

#pragma unroll
	for (uint32_t i = 1; i < BNB4_PARTS_MOST; i++)
		if (i < a->parts && row >= a->part[i].begin)
			p = a->part + i;
	return p;
}

ENTRY void __launch_bounds__(TRAIN_THREADS) bnb4_to_fp8(const __grid_constant__ struct bnb4_fp8_args a)
{
	const struct weights_tile t = weights_tile_of(&a.q);
	float *table = (float *)((uint8_t *)shared + BNB4_FP8_TABLE_AT), absmax[TURNS_OF(LANES)];
	uint32_t word[TURNS_OF(LANES)], type[TURNS_OF(LANES)];
	uint4 kept[TURNS_OF(LANES)];

	if (threadIdx.x < 2 * BNB4_CODES)
		table[threadIdx.x] = threadIdx.x < BNB4_CODES ? nf4_table[threadIdx.x]
							      : fp4_table[threadIdx.x - BNB4_CODES];
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		const int64_t row = weights_row(&t, i);
		const struct bnb4_fp8_part *p;
		uint32_t element;

		word[i] = type[i] = 0;
		absmax[i] = 0; /* so the numbers that do not exist are 0 */
		if (row >= a.q.rows || t.left <= 0)
			continue;
		p = part_of(&a, (uint32_t)row);
		element = ((uint32_t)row - p->begin) * a.q.cols + (uint32_t)t.col;
		word[i] = *(const uint32_t *)(p->from.codes + element / 2);
		absmax[i] = absmax_of(&p->from, element / BNB4_BLOCK, p->from.absmax_codes ? *p->from.offset : 0);
		type[i] = p->type;
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++)
		kept[i] = numbers_bf16(word[i], absmax[i], table + type[i] * BNB4_CODES);
	put_weights(&a.q, &t, kept);
}

static __device__ __forceinline__ uint32_t code_nf4(float x)
{
	const float limit[] = {BNB4_NF4_LIMITS};
	uint32_t code = 0;

#pragma unroll
	for (int i = 0; i < 15; i++)
		code += x > limit[i];
	return code;
}

static __device__ __forceinline__ uint32_t code_fp4(float x)
{
	const float limit[] = {BNB4_FP4_LIMITS};
	const uint32_t order[] = {BNB4_FP4_ORDER};
	uint32_t above = 0, packed = 0;

#pragma unroll
	for (int i = 0; i < 7; i++)
		above += fabsf(x) > limit[i];
#pragma unroll
	for (int i = 0; i < 8; i++)
		packed |= order[i] << 4 * i;
	return (packed >> 4 * above & 7) | (uint32_t)(x < 0) << 3;
}

/* Eight lanes have one block of 64. */
ENTRY void __launch_bounds__(BNB4_THREADS) bnb4_quantize(const __grid_constant__ struct bnb4_quantize_args a)
{
	const uint32_t all = a.rows * a.cols;
	const uint32_t first = blockIdx.x * BNB4_TILE + threadIdx.x * BNB4_VECTOR;

	for (int i = 0; i < BNB4_TURNS; i++) {
		const uint32_t element = first + i * (BNB4_THREADS * BNB4_VECTOR);
		uint4 q = make_uint4(0, 0, 0, 0);
		float x[BNB4_VECTOR], absmax = 0, inverse;
		uint32_t word = 0;

		if (element < all)
			q = *(const uint4 *)(a.from + element / a.cols * a.ld + element % a.cols);
		unpack8(x, q);
#pragma unroll
		for (int k = 0; k < BNB4_VECTOR; k++)
			absmax = fmaxf(absmax, fabsf(x[k]));
		for (int lane = 1; lane < BNB4_BLOCK / BNB4_VECTOR; lane *= 2)
			absmax = fmaxf(absmax, __shfl_xor_sync(0xffffffffu, absmax, lane));
		inverse = __frcp_rn(absmax);
#pragma unroll
		for (int k = 0; k < BNB4_VECTOR; k++) {
			const float scaled = __fmul_rn(x[k], inverse);

			word |= (a.type == BNB4_NF4 ? code_nf4(scaled) : code_fp4(scaled))
				<< (k / 2 * 8 + (k % 2 ? 0 : 4));
		}
		if (element >= all)
			continue;
		*(uint32_t *)(a.codes + element / 2) = word;
		if (element % BNB4_BLOCK == 0)
			a.absmax[element / BNB4_BLOCK] = absmax;
	}
}

ENTRY void __launch_bounds__(BNB4_THREADS) bnb4_group_sums(const __grid_constant__ struct bnb4_nest_args a)
{
	const uint32_t group = blockIdx.x * BNB4_THREADS + threadIdx.x;
	double sum = 0;

	if (group >= a.groups)
		return;
	for (uint32_t i = group * BNB4_GROUP; i < a.blocks && i < (group + 1) * BNB4_GROUP; i++)
		sum += a.block_absmax[i];
	a.sums[group] = sum;
}

ENTRY void bnb4_mean(const __grid_constant__ struct bnb4_nest_args a)
{
	double sum = 0;

	for (uint32_t i = 0; i < a.groups; i++)
		sum += a.sums[i];
	*a.offset = (float)(sum / a.blocks);
}

ENTRY void __launch_bounds__(BNB4_GROUP) bnb4_nest(const __grid_constant__ struct bnb4_nest_args a)
{
	float *map = (float *)shared, *most_of_warp = map + BNB4_MAP;
	const uint32_t block = blockIdx.x * BNB4_GROUP + threadIdx.x;
	float x = 0, most;

	if (block < a.blocks)
		x = __fsub_rn(a.block_absmax[block], *a.offset);
	most = fabsf(x);
	map[threadIdx.x] = absmax_map[threadIdx.x];
	if (blockIdx.x == 0)
		a.map[threadIdx.x] = absmax_map[threadIdx.x];
	for (int lane = 1; lane < 32; lane *= 2)
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
	if (threadIdx.x % 32 == 0)
		most_of_warp[threadIdx.x / 32] = most;
	__syncthreads();
	for (int i = 0; i < BNB4_GROUP / 32; i++)
		most = fmaxf(most, most_of_warp[i]);
	if (block < a.blocks)
		a.absmax_codes[block] = (uint8_t)bnb4_absmax_code(map, __fmul_rn(x, __frcp_rn(most)));
	if (threadIdx.x == 0)
		a.absmax[blockIdx.x] = most;
}
