/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs of few rows for Hopper (skinny.h), made of skinny_device.cuh. */
#include "kernel/matmul/skinny_device.cuh"

template <int SIZE, typename KIND>
static __device__ __forceinline__ void compute(const skinny_args &a, const struct memory &m, const struct cluster &k)
{
	struct place at = {0, 0};
	bool waited = false;

	for (uint32_t unit = k.number; unit < a.units; unit += k.count) {
		const struct part p = part_of(a, k, unit);
		float c[SIZE / 2];

#pragma unroll
		for (int i = 0; i < SIZE / 2; i++)
			c[i] = 0;
		if constexpr (KIND::CONVERT)
			multiply_converted<SIZE>(a, m, p, k.size, at, c);
		else
			multiply_all<SIZE, KIND>(a, m, p, k.size, at, c);
		if (!waited)
			grid_wait(); /* the residual and y belong to earlier kernels until they end */
		waited = true;
		if (p.splits == 1)
			finish_whole<SIZE>(a, m, p, k.rank, c);
		else
			finish_parts<SIZE>(a, m, p, k.rank, c);
	}
}

template <int SIZE, typename KIND>
static __device__ __forceinline__ void provide(const skinny_args &a, const struct memory &m, const struct cluster &k)
{
	struct place at = {0, 0};

	for (uint32_t unit = k.number; unit < a.units; unit += k.count) {
		const struct part p = part_of(a, k, unit);

		if (threadIdx.x % 32 == 0)
			load<SIZE, KIND>(a, m, p, k.rank, at, unit == k.number);
		__syncwarp();
		if (p.splits > 1) { /* see finish_parts */
			cluster_sync();
			cluster_meet();
		}
	}
	/* Other blocks may still arrive at this one's barriers, so it stays until they have. */
	for (uint32_t i = 0; i < a.stages && threadIdx.x % 32 == 0; i++) {
		barrier_wait(m.empty + 8 * at.slot, at.parity ^ 1);
		advance(at, a.stages);
	}
}

template <int SIZE, typename KIND> static __device__ __forceinline__ void run(const skinny_args &a)
{
	extern __shared__ unsigned char shared[];
	const struct cluster k = cluster_of_block();
	struct memory m;

	m.ring = (shared_at(shared) + 1023) / 1024 * 1024;
	m.full = m.ring + a.stages * SKINNY_STAGE(SIZE, KIND::BOXES);
	m.empty = m.full + 8 * SKINNY_STAGES_MOST;
	m.turn = m.empty + 8 * SKINNY_STAGES_MOST;
	if (threadIdx.x == 32 * LOADER) {
		for (uint32_t i = 0; i < a.stages; i++) {
			barrier_init(m.full + 8 * i, 1);
			barrier_init(m.empty + 8 * i, WARPS * k.size);
		}
		barrier_init_fence();
		tensor_prefetch_map(&a.w_map);
		tensor_prefetch_map(&a.x_map);
	}
	cluster_meet();
	grid_release();
	if (threadIdx.x / 32 == LOADER)
		provide<SIZE, KIND>(a, m, k);
	else
		compute<SIZE, KIND>(a, m, k);
}

#define ENTRY(SIZE, KIND)                                                                                      \
	extern "C" __global__ void __launch_bounds__(SKINNY_THREADS, SIZE <= 64 ? 2 : 1)                       \
		skinny_##KIND##_n##SIZE(const __grid_constant__ skinny_args a)                                 \
	{                                                                                                      \
		run<SIZE, kind_##KIND>(a);                                                                     \
	}
SKINNY_SIZES(ENTRY, bf16)
SKINNY_MIXED_SIZES(ENTRY, mixed)
SKINNY_SIZES(ENTRY, e4m3)

static __device__ __forceinline__ float largest_of(float v)
{
#pragma unroll
	for (int i = 16; i; i /= 2)
		v = fmaxf(v, __shfl_xor_sync(~0u, v, i));
	return v;
}

static __device__ __forceinline__ void load8(float (&v)[8], const __nv_bfloat16 *from)
{
	const uint4 bits = *(const uint4 *)from;
	const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};

#pragma unroll
	for (int i = 0; i < 4; i++) {
		const float2 two = __bfloat1622float2(*(const __nv_bfloat162 *)&words[i]);

		v[2 * i] = two.x;
		v[2 * i + 1] = two.y;
	}
}

extern "C" __global__ void __launch_bounds__(SKINNY_QUANTIZE_THREADS) skinny_quantize(skinny_quantize_args a)
{
	__shared__ float part[SKINNY_QUANTIZE_THREADS / 32];
	const __nv_bfloat16 *from = (const __nv_bfloat16 *)a.from + blockIdx.x * a.row_from;
	unsigned char *to = (unsigned char *)a.to + blockIdx.x * a.row_to;
	float most = 0, v[8];

	grid_release();
	grid_wait();
	for (uint32_t i = 8 * threadIdx.x; i < a.cols; i += 8 * SKINNY_QUANTIZE_THREADS) {
		load8(v, from + i);
#pragma unroll
		for (int e = 0; e < 8; e++)
			most = fmaxf(most, fabsf(v[e]));
	}
	most = largest_of(most);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = most;
	__syncthreads();
	most = largest_of(part[threadIdx.x % (SKINNY_QUANTIZE_THREADS / 32)]);
	const float scale = most > 0 ? most / 448 : 1, by = most > 0 ? 448 / most : 1;

	if (threadIdx.x == 0)
		a.scale[blockIdx.x] = scale;
	for (uint32_t i = 8 * threadIdx.x; i < a.cols; i += 8 * SKINNY_QUANTIZE_THREADS) {
		load8(v, from + i);
#pragma unroll
		for (int e = 0; e < 8; e++)
			v[e] *= by;
		*(uint2 *)(to + i) = make_uint2(pack4_e4m3(v[0], v[1], v[2], v[3]), pack4_e4m3(v[4], v[5], v[6], v[7]));
	}
}
