/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams floats through device memory. The operations are read and dot (sums), write, copy, scale, add and
 * triad, and in addition gather and chase. References: tests/gpu/ref_memory.c.
 *
 * NAME is read, write, copy, scale, add, triad or dot. "Tile" means one contiguous tile per block, and "in
 * flight" counts loads per thread:
 *   NAME_v1   4-byte accesses in a grid-stride loop; 128 bytes in flight per warp
 *   NAME_v2   16-byte accesses; four times the bytes in flight for the same number of instructions
 *   NAME_v3   four in flight, one grid apart, with streaming caching; hides the latency
 *   NAME_v4   four in flight in one tile; a block's accesses share DRAM pages
 *   NAME_v5   eight in flight in one tile, default caching
 *   NAME_v6   sixteen in flight in one tile, default caching; intended for one tile per block, in order
 *   NAME_v7   as v4, but bypasses the L1 and is first to be evicted from the L2
 *   NAME_v8   eight in flight, contiguous for each warp (4 KiB per warp)
 *   NAME_v9   two in flight in one tile; small tiles
 *   NAME_v10  one access per thread and no loop (writing operations only); the smallest tiles, the most
 *             blocks and the narrowest active window of the array
 *
 * The bulk copies of stream_bulk.cu continue this list. The fastest version depends on the operation and the
 * device; see docs/explanation/methods/gpu-memory-and-links.md, "Launch shapes". Any grid size is correct,
 * because blocks loop until the array ends. Only v10 needs a grid that covers the array.
 *
 *   gather_v1  one index per thread
 *   gather_v2  four indices by one 16-byte load; four loads in flight
 *   gather_v3  eight loads in flight
 *   chase      one thread; each address comes from the previous load; measures the latency of a load
 */
#include "kernel/memory/stream.h"
#include "kernel/block_sum.cuh"

enum caching { CACHED, STREAMING, ONCE };
enum layout { GRID_APART, TILED, WARPED };

template <caching C> static __device__ float4 load(const float4 *p)
{
	float4 v;

	if (C == STREAMING)
		return __ldcs(p);
	if (C == CACHED)
		return *p;
	asm volatile("{\n\t.reg .b64 policy;\n\t"
		     "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
		     "ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy;\n\t}"
		     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
		     : "l"(p));
	return v;
}

template <caching C> static __device__ void store(float4 *p, float4 v)
{
	if (C == STREAMING)
		__stcs(p, v);
	else if (C == CACHED)
		*p = v;
	else
		asm volatile("{\n\t.reg .b64 policy;\n\t"
			     "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
			     "st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, policy;\n\t}"
			     :
			     : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
			     : "memory");
}

/* The operation on one element. `inputs` is the number of arrays read. If `writes`, the result goes to out,
 * else it is summed. */
struct op_read {
	static constexpr int inputs = 1;
	static constexpr bool writes = false;
	static __device__ float one(float x, float, float) { return x; }
};
struct op_write {
	static constexpr int inputs = 0;
	static constexpr bool writes = true;
	static __device__ float one(float, float, float f) { return f; }
};
struct op_copy {
	static constexpr int inputs = 1;
	static constexpr bool writes = true;
	static __device__ float one(float x, float, float) { return x; }
};
struct op_scale {
	static constexpr int inputs = 1;
	static constexpr bool writes = true;
	static __device__ float one(float x, float, float f) { return f * x; }
};
struct op_add {
	static constexpr int inputs = 2;
	static constexpr bool writes = true;
	static __device__ float one(float x, float y, float) { return x + y; }
};
struct op_triad {
	static constexpr int inputs = 2;
	static constexpr bool writes = true;
	static __device__ float one(float x, float y, float f) { return x + f * y; }
};
struct op_dot {
	static constexpr int inputs = 2;
	static constexpr bool writes = false;
	static __device__ float one(float x, float y, float) { return x * y; }
};

template <class Op> static __device__ float4 four(float4 x, float4 y, float f)
{
	return make_float4(Op::one(x.x, y.x, f), Op::one(x.y, y.y, f), Op::one(x.z, y.z, f), Op::one(x.w, y.w, f));
}

static __device__ void sum_out(const memory_args &a, double sum)
{
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		a.partial[blockIdx.x] = sum;
}

/* Processes the floats from `first` to the end, 4 bytes per access: everything in v1, the last three or fewer
 * floats in the others. */
template <class Op> static __device__ double scalar(const memory_args &a, uint64_t first)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	double sum = 0;

	for (uint64_t i = first + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += step) {
		float v = Op::one(Op::inputs > 0 ? a.in0[i] : 0, Op::inputs > 1 ? a.in1[i] : 0, a.factor);

		if (Op::writes)
			a.out[i] = v;
		else
			sum += v;
	}
	return sum;
}

/* Processes Unroll vectors from `first` on, at distance `apart`. If Guarded, it omits vectors at or past
 * `end`. */
template <class Op, int Unroll, caching C, bool Guarded>
static __device__ void vectors(const memory_args &a, uint64_t first, uint64_t apart, uint64_t end, float4 *sum)
{
	const float4 *in0 = (const float4 *)a.in0, *in1 = (const float4 *)a.in1;
	float4 x[Unroll], y[Unroll];

#pragma unroll
	for (int j = 0; j < Unroll; j++) {
		bool in = !Guarded || first + j * apart < end;

		x[j] = y[j] = make_float4(0, 0, 0, 0);
		if (Op::inputs > 0 && in)
			x[j] = load<C>(in0 + first + j * apart);
		if (Op::inputs > 1 && in)
			y[j] = load<C>(in1 + first + j * apart);
	}
#pragma unroll
	for (int j = 0; j < Unroll; j++) {
		float4 v = four<Op>(x[j], y[j], a.factor);

		if (Op::writes) {
			if (!Guarded || first + j * apart < end)
				store<C>((float4 *)a.out + first + j * apart, v);
		} else {
			sum->x += v.x;
			sum->y += v.y;
			sum->z += v.z;
			sum->w += v.w;
		}
	}
}

template <class Op, int Unroll, layout L, caching C> static __device__ void stream(const memory_args &a)
{
	uint64_t threads = (uint64_t)gridDim.x * blockDim.x, count = a.count / 4;
	uint64_t apart = L == TILED ? blockDim.x : (L == WARPED ? 32 : threads);
	uint64_t first = (uint64_t)blockIdx.x * blockDim.x * (L == GRID_APART ? 1 : Unroll) +
			 (L == WARPED ? threadIdx.x / 32 * 32 * Unroll + threadIdx.x % 32 : threadIdx.x);
	float4 sum = make_float4(0, 0, 0, 0);
	double rest;

	for (; first + (Unroll - 1) * apart < count; first += threads * Unroll)
		vectors<Op, Unroll, C, false>(a, first, apart, count, &sum);
	if (first < count)
		vectors<Op, Unroll, C, true>(a, first, apart, count, &sum);
	rest = scalar<Op>(a, count * 4);
	if (!Op::writes)
		sum_out(a, rest + sum.x + (double)sum.y + sum.z + (double)sum.w);
}

/*
 * One vector per thread and no loop. The grid has at least one thread more than there are vectors; the first
 * such thread processes the rest. A block runs only some dozen instructions, so a loop, 64-bit indices and a
 * tail in every thread would cost more than one percent.
 */
template <class Op, caching C> static __device__ void single(const memory_args &a)
{
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;

	if (__builtin_expect(at < a.vectors, 1)) {
		vectors<Op, 1, C, false>(a, at, 0, 0, nullptr);
		return;
	}
	if (at == a.vectors)
#pragma unroll 1
		for (uint64_t i = (uint64_t)at * 4; i < a.count; i++)
			a.out[i] = Op::one(Op::inputs > 0 ? a.in0[i] : 0, Op::inputs > 1 ? a.in1[i] : 0, a.factor);
}

#define LADDER(name)                                                                                                   \
	extern "C" __global__ void name##_v1(memory_args a)                                                            \
	{                                                                                                              \
		double sum = scalar<op_##name>(a, 0);                                                                  \
		if (!op_##name::writes)                                                                                \
			sum_out(a, sum);                                                                               \
	}                                                                                                              \
	extern "C" __global__ void name##_v2(memory_args a) { stream<op_##name, 1, GRID_APART, CACHED>(a); }           \
	extern "C" __global__ void name##_v3(memory_args a) { stream<op_##name, 4, GRID_APART, STREAMING>(a); }        \
	extern "C" __global__ void name##_v4(memory_args a) { stream<op_##name, 4, TILED, STREAMING>(a); }             \
	extern "C" __global__ void name##_v5(memory_args a) { stream<op_##name, 8, TILED, CACHED>(a); }                \
	extern "C" __global__ void __launch_bounds__(512) name##_v6(memory_args a)                                     \
	{                                                                                                              \
		stream<op_##name, 16, TILED, CACHED>(a);                                                               \
	}                                                                                                              \
	extern "C" __global__ void name##_v7(memory_args a) { stream<op_##name, 4, TILED, ONCE>(a); }                  \
	extern "C" __global__ void name##_v8(memory_args a) { stream<op_##name, 8, WARPED, STREAMING>(a); }            \
	extern "C" __global__ void name##_v9(memory_args a) { stream<op_##name, 2, TILED, STREAMING>(a); }
#define LADDER_WRITES(name)                                                                                            \
	LADDER(name)                                                                                                   \
	extern "C" __global__ void name##_v10(memory_args a) { single<op_##name, STREAMING>(a); }

LADDER(read)
LADDER_WRITES(write)
LADDER_WRITES(copy)
LADDER_WRITES(scale)
LADDER_WRITES(add)
LADDER_WRITES(triad)
LADDER(dot)

template <int Vectors> static __device__ void gather(const gather_args &a)
{
	uint64_t threads = (uint64_t)gridDim.x * blockDim.x, count = a.count / 4;
	uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	const uint4 *index = (const uint4 *)a.index;
	float sum[4 * Vectors] = {};
	double total = 0;

	for (uint64_t at = i; at < count; at += threads * Vectors) {
		uint4 x[Vectors];
#pragma unroll
		for (int j = 0; j < Vectors; j++)
			if (at + j * threads < count)
				x[j] = __ldcs(index + at + j * threads);
#pragma unroll
		for (int j = 0; j < Vectors; j++) {
			if (at + j * threads < count) {
				sum[4 * j] += a.in[x[j].x];
				sum[4 * j + 1] += a.in[x[j].y];
				sum[4 * j + 2] += a.in[x[j].z];
				sum[4 * j + 3] += a.in[x[j].w];
			}
		}
	}
	for (uint64_t at = count * 4 + i; at < a.count; at += threads)
		total += a.in[a.index[at]];
#pragma unroll
	for (int j = 0; j < 4 * Vectors; j++)
		total += sum[j];
	total = block_sum(total);
	if (threadIdx.x == 0)
		a.partial[blockIdx.x] = total;
}

extern "C" __global__ void gather_v1(gather_args a)
{
	uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
	double sum = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += threads)
		sum += a.in[a.index[i]];
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		a.partial[blockIdx.x] = sum;
}

extern "C" __global__ void gather_v2(gather_args a) { gather<1>(a); }
extern "C" __global__ void gather_v3(gather_args a) { gather<2>(a); }

extern "C" __global__ void chase(chase_args a)
{
	memory_node *node = *a.cursor;

	for (uint64_t i = 0; i < a.hops; i++)
		node = node->next;
	*a.cursor = node;
}
