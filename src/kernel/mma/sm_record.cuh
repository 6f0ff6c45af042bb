/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the multiply-add loops: SM number, clock and result record. */
#ifndef KERNEL_MMA_SM_RECORD_CUH
#define KERNEL_MMA_SM_RECORD_CUH
#include "kernel/mma/args.h"

static __device__ __forceinline__ unsigned sm_number()
{
	unsigned id;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
	return id;
}

static __device__ __forceinline__ unsigned long long global_ns()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

struct mma_clock {
	long long cycles;
	unsigned long long ns;
};

/* Reads the clock after a barrier of the block. So the span between two calls covers the slowest warp. */
static __device__ __forceinline__ mma_clock clock_now()
{
	mma_clock c;

	__syncthreads();
	c.ns = global_ns();
	c.cycles = clock64();
	return c;
}

static __device__ void record(const mma_args &a, mma_clock from, mma_clock to, long long sum)
{
	unsigned sm = sm_number();
	mma_record *r = a.records + sm;

	if (sm >= a.records_count)
		return;
	if (sum != a.expected[threadIdx.x]) {
		atomicAdd(&r->wrong_threads, 1u);
		atomicCAS(&r->wrong_first, 0u, threadIdx.x + 1);
	}
	if (threadIdx.x)
		return;
	atomicAdd(&r->runs, 1ull);
	atomicAdd(&r->cycles_sum, (unsigned long long)(to.cycles - from.cycles));
	atomicMin(&r->cycles_min, (unsigned long long)(to.cycles - from.cycles));
	atomicMax(&r->cycles_max, (unsigned long long)(to.cycles - from.cycles));
	atomicAdd(&r->ns_sum, to.ns - from.ns);
	atomicMin(&r->ns_min, to.ns - from.ns);
}
#endif
