/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiply-add loops by wgmma, for Hopper only (sm_90a). Each of two warpgroups computes 64 x 256, with A and
 * B in shared memory. While one waits for its group of steps, the other's steps are in the pipe. Shared
 * memory holds B twice, once with each sign.
 * Host reference: mma_expect() in src/probe/shared/mma.c.
 */
#include "kernel/mma/sm_record.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

/* The 128 accumulators of a thread, named in one place. */
#define C8(x, o) x(c[o]), x(c[o + 1]), x(c[o + 2]), x(c[o + 3]), x(c[o + 4]), x(c[o + 5]), x(c[o + 6]), x(c[o + 7])
#define C64(x, o) \
	C8(x, o), C8(x, o + 8), C8(x, o + 16), C8(x, o + 24), C8(x, o + 32), C8(x, o + 40), C8(x, o + 48), C8(x, o + 56)
#define C128(x) C64(x, 0), C64(x, 64)
#define ACCUMULATORS \
	"{" \
	"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
	"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
	"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
	"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
	"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
	"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
	"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
	"}"

#define FLOAT(v) "+f"(v)
#define INTEGER(v) "+r"(v)

/* TAIL: the scale and transpose arguments that the type's instruction takes. */
#define STEP(SHAPE, CONSTRAINT, TAIL)                                                              \
	asm volatile("wgmma.mma_async.sync.aligned." SHAPE " " ACCUMULATORS ", %128, %129, " TAIL ";" \
		     : C128(CONSTRAINT)                                                            \
		     : "l"(a), "l"(b))

/* A macro cannot build the operand lists of both a float array and an int array, so each type has its own
 * step. */
struct type_bf16 {
	typedef float acc;
	typedef __nv_bfloat16 element;
	static __device__ element of(int v)
	{
		return __float2bfloat16_rn((float)v);
	}
	static __device__ __forceinline__ void step(float (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k16.f32.bf16.bf16", FLOAT, "1, 1, 1, 0, 0");
	}
};

struct type_fp16 {
	typedef float acc;
	typedef __half element;
	static __device__ element of(int v)
	{
		return __float2half_rn((float)v);
	}
	static __device__ __forceinline__ void step(float (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k16.f32.f16.f16", FLOAT, "1, 1, 1, 0, 0");
	}
};

struct type_tf32 {
	typedef float acc;
	typedef float element;
	static __device__ element of(int v)
	{
		return (float)v;
	}
	static __device__ __forceinline__ void step(float (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k8.f32.tf32.tf32", FLOAT, "1, 1, 1");
	}
};

struct type_e4m3 {
	typedef float acc;
	typedef uint8_t element;
	static __device__ element of(int v)
	{
		return __nv_cvt_float_to_fp8((float)v, __NV_SATFINITE, __NV_E4M3);
	}
	static __device__ __forceinline__ void step(float (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k32.f32.e4m3.e4m3", FLOAT, "1, 1, 1");
	}
};

struct type_e5m2 {
	typedef float acc;
	typedef uint8_t element;
	static __device__ element of(int v)
	{
		return __nv_cvt_float_to_fp8((float)v, __NV_SATFINITE, __NV_E5M2);
	}
	static __device__ __forceinline__ void step(float (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k32.f32.e5m2.e5m2", FLOAT, "1, 1, 1");
	}
};

struct type_int8 {
	typedef int acc;
	typedef int8_t element;
	static __device__ element of(int v)
	{
		return (int8_t)v;
	}
	static __device__ __forceinline__ void step(int (&c)[128], uint64_t a, uint64_t b)
	{
		STEP("m64n256k32.s32.s8.s8", INTEGER, "1");
	}
};

/*
 * K-major layout without swizzle. A core matrix has 8 rows x 16 bytes. The two core matrices along k are 128
 * bytes apart (leading offset), and groups of 8 rows are 256 bytes apart (stride offset). The descriptor
 * holds address and offsets in units of 16 bytes.
 */
static __device__ __forceinline__ unsigned place(unsigned row, unsigned k_byte)
{
	return row / 8 * 256 + k_byte / 16 * 128 + row % 8 * 16 + k_byte % 16;
}

static __device__ __forceinline__ uint64_t descriptor(const void *tile)
{
	uint64_t address = (uint64_t)__cvta_generic_to_shared(tile);

	return (address & 0x3ffff) >> 4 | 128ull / 16 << 16 | 256ull / 16 << 32;
}

static __device__ __forceinline__ void group_begin()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void group_end()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> static __device__ __forceinline__ void group_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

template <typename T> static __device__ void run(const mma_args &args)
{
	enum { BYTES = sizeof(typename T::element), K = MMA_SM90_K_BYTES / BYTES };
	__shared__ __align__(1024) unsigned char ta[128 * MMA_SM90_K_BYTES];
	__shared__ __align__(1024) unsigned char plus[MMA_SM90_COLUMNS * MMA_SM90_K_BYTES];
	__shared__ __align__(1024) unsigned char minus[MMA_SM90_COLUMNS * MMA_SM90_K_BYTES];
	typename T::acc c[128];
	mma_clock from, to;
	long long sum = 0;

	if (args.only_sm >= 0 && sm_number() != (unsigned)args.only_sm)
		return;
	for (unsigned i = threadIdx.x; i < 128 * K; i += MMA_SM90_THREADS)
		*(typename T::element *)(ta + place(i / K, i % K * BYTES)) = T::of(MMA_A(i / K, i % K));
	for (unsigned i = threadIdx.x; i < MMA_SM90_COLUMNS * K; i += MMA_SM90_THREADS) {
		*(typename T::element *)(plus + place(i / K, i % K * BYTES)) = T::of(MMA_B(i % K, i / K));
		*(typename T::element *)(minus + place(i / K, i % K * BYTES)) = T::of(-MMA_B(i % K, i / K));
	}
#pragma unroll
	for (int r = 0; r < 128; r++)
		c[r] = 0;
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	const uint64_t a = descriptor(ta + threadIdx.x / 128 * 64 * MMA_SM90_K_BYTES);
	const uint64_t b = descriptor(plus), n = descriptor(minus);
	const uint32_t groups = args.steps / MMA_STEPS_GROUP;

	from = clock_now();
	for (uint32_t g = 0; g < groups; g++) {
		group_begin();
#pragma unroll
		for (int s = 0; s < MMA_STEPS_GROUP; s += 2) {
			T::step(c, a, b);
			T::step(c, a, s + 2 == MMA_STEPS_GROUP && g + 1 == groups ? b : n);
		}
		group_end();
		group_wait<0>();
	}
	to = clock_now();
#pragma unroll
	for (int r = 0; r < 128; r++)
		sum += (2 * r + 1) * (long long)c[r];
	record(args, from, to, sum);
}

#define ENTRY(TYPE)                                                                           \
	extern "C" __global__ void __launch_bounds__(MMA_SM90_THREADS, 1) mma_##TYPE(mma_args a) \
	{                                                                                     \
		run<type_##TYPE>(a);                                                          \
	}
ENTRY(bf16)
ENTRY(fp16)
ENTRY(tf32)
ENTRY(e4m3)
ENTRY(e5m2)
ENTRY(int8)

/* Tiles are 16 x 8 x 8. Fragments are as in mma_sync.cu, with units of one double. */
static __device__ __forceinline__ void step_fp64(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
		     "{%0,%1,%2,%3};"
		     : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
		     : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_fp64(mma_args args)
{
	enum { TILES = MMA_SM90_FP64_TILES };
	const unsigned lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16 + lane / 4;
	double c[TILES][4] = {}, a[4], plus[TILES][2], minus[TILES][2];
	mma_clock from, to;
	long long sum = 0;

	if (args.only_sm >= 0 && sm_number() != (unsigned)args.only_sm)
		return;
#pragma unroll
	for (unsigned r = 0; r < 4; r++)
		a[r] = MMA_A(row0 + 8 * (r % 2), r / 2 * 4 + lane % 4);
#pragma unroll
	for (unsigned t = 0; t < TILES; t++)
#pragma unroll
		for (unsigned r = 0; r < 2; r++) {
			plus[t][r] = MMA_B(r * 4 + lane % 4, t * 8 + lane / 4);
			minus[t][r] = -plus[t][r];
		}
	from = clock_now();
	for (uint32_t s = 0; s + 2 < args.steps; s += 2) {
#pragma unroll
		for (unsigned t = 0; t < TILES; t++)
			step_fp64(c[t], a, plus[t]);
#pragma unroll
		for (unsigned t = 0; t < TILES; t++)
			step_fp64(c[t], a, minus[t]);
	}
#pragma unroll
	for (unsigned t = 0; t < 2 * TILES; t++)
		step_fp64(c[t % TILES], a, plus[t % TILES]);
	to = clock_now();
#pragma unroll
	for (unsigned t = 0; t < TILES; t++)
#pragma unroll
		for (unsigned r = 0; r < 4; r++)
			sum += (2 * (t * 4 + r) + 1) * (long long)c[t][r];
	record(args, from, to, sum);
}

extern "C" __global__ void __cluster_dims__(8) sm_cluster(sm_cluster_args a)
{
	__shared__ unsigned number;
	unsigned rank, first;

	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	if (rank == 0 && threadIdx.x == 0)
		number = 1 + atomicAdd(a.next, 1u);
	asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
	/* Reads the shared memory of the cluster's first block. */
	asm volatile("{ .reg .u32 p; mapa.shared::cluster.u32 p, %1, 0; ld.shared::cluster.u32 %0, [p]; }"
		     : "=r"(first)
		     : "r"((unsigned)__cvta_generic_to_shared(&number))
		     : "memory");
	if (sm_number() < a.records_count)
		a.of_sm[sm_number()] = first;
	asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
