/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampling kernels share: parts of a row, the best of a block, scans over a block, the search for an
 * element by its rank, and results.
 */
#ifndef KERNEL_STEP_SAMPLE_CUH
#define KERNEL_STEP_SAMPLE_CUH
#include "kernel/step/device.cuh"
#include "kernel/step/sample.h"
#include "kernel/philox.cuh"

#define THREADS STEP_SAMPLE_THREADS
#define WARPS (THREADS / 32)
#define SAMPLE_OK 0
#define SAMPLE_NOT_FINITE 1
#define SAMPLE_EMPTY 2

/* The block's shared memory. `notes` are STEP_SAMPLE_NOTES bytes. */
struct notes {
	uint64_t sum[2][WARPS]; /* of warps: integers or doubles */
	uint64_t best[WARPS];
	uint64_t word[16]; /* results that one thread found */
	uint32_t last;	   /* this block is the row's last */
};
static_assert(sizeof(struct notes) <= STEP_SAMPLE_NOTES, "what the host leaves room for");

/* The part of a row that a block has. */
struct part {
	uint32_t row, number, begin, end;
};

/* Every part begins at a multiple of eight elements. */
static __device__ __forceinline__ uint32_t part_begin(const struct step_sample_args *a, uint32_t number)
{
	const uint32_t each = ((a->vocab + a->parts - 1) / a->parts + 7) / 8 * 8;
	const uint64_t begin = (uint64_t)number * each;

	return begin < a->vocab ? (uint32_t)begin : a->vocab;
}

static __device__ __forceinline__ struct part part_of(const struct step_sample_args *a)
{
	struct part p;

	p.row = blockIdx.x / a->parts;
	p.number = blockIdx.x % a->parts;
	p.begin = part_begin(a, p.number);
	p.end = part_begin(a, p.number + 1);
	return p;
}

static __device__ __forceinline__ int row_is_wide(const struct step_sample_args *a)
{
	return wide16(a->logits, a->ld * (a->bf16 ? 2 : 4));
}

static __device__ __forceinline__ const uint16_t *row_bf16(const struct step_sample_args *a, uint32_t row)
{
	return (const uint16_t *)a->logits + (int64_t)row * a->ld;
}

static __device__ __forceinline__ float logit_at(const struct step_sample_args *a, uint32_t row, uint32_t id)
{
	return a->bf16 ? bf16_low(row_bf16(a, row)[id]) : ((const float *)a->logits)[(int64_t)row * a->ld + id];
}

/* Eight logits from `id` on, a multiple of eight. Those from `end` on are not set. */
static __device__ __forceinline__ void logits8(const struct step_sample_args *a, uint32_t row, uint32_t id,
					       uint32_t end, int wide, float v[8])
{
	if (a->bf16) {
		unpack8(v, load8(row_bf16(a, row) + id, (int64_t)end - id, wide));
	} else {
		const float *from = (const float *)a->logits + (int64_t)row * a->ld + id;

#pragma unroll
		for (int j = 0; j < 8; j++)
			if (id + j < end)
				v[j] = from[j];
	}
}

/* A number in the order of values; -0 as 0. Above 0 for all but NaN. */
static __device__ __forceinline__ uint32_t ordered(float v)
{
	const uint32_t bits = __float_as_uint(v + 0.0f);

	return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

static __device__ __forceinline__ float of_ordered(uint32_t key)
{
	return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}

static __device__ __forceinline__ uint64_t best_of(float v, uint32_t id)
{
	return (uint64_t)ordered(v) << 32 | (0xffffffffu - id);
}

static __device__ __forceinline__ uint32_t best_id(uint64_t best)
{
	return 0xffffffffu - (uint32_t)best;
}

static __device__ __forceinline__ float best_value(uint64_t best)
{
	return of_ordered((uint32_t)(best >> 32));
}

static __device__ __forceinline__ uint64_t warp_best(uint64_t v)
{
	for (unsigned offset = 16; offset; offset /= 2) {
		const uint64_t other = lane_u64(v, (threadIdx.x % 32) ^ offset);

		v = other > v ? other : v;
	}
	return v;
}

static __device__ __forceinline__ double warp_sum_f64(double v)
{
	for (unsigned offset = 16; offset; offset /= 2)
		v += lane_f64(v, (threadIdx.x % 32) ^ offset);
	return v;
}

/* The largest of the block's numbers, in every thread. */
static __device__ __forceinline__ uint64_t block_best(uint64_t v, struct notes *n)
{
	const unsigned lane = threadIdx.x % 32;

	v = warp_best(v);
	__syncthreads();
	if (lane == 0)
		n->best[threadIdx.x / 32] = v;
	__syncthreads();
	return warp_best(n->best[lane % WARPS]);
}

static __device__ __forceinline__ uint32_t warp_sum_u32(uint32_t v)
{
#if defined(__CUDA_ARCH__)
	return __reduce_add_sync(0xffffffffu, v);
#else
	for (unsigned offset = 16; offset; offset /= 2)
		v += lane_u32(v, (threadIdx.x % 32) ^ offset);
	return v;
#endif
}

/* The largest number of 16 bits that at least `wanted` of the block's numbers reach; 0: there is none. Each thread
 * has `count` numbers, a constant. */
static __device__ __forceinline__ uint32_t reached16(const uint32_t *own, int count, uint32_t wanted, struct notes *n)
{
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t found = 0;

	__syncthreads();
	for (int bit = 15; bit >= 0; bit--) {
		uint32_t *sum = (uint32_t *)n->sum[bit % 2], reach = 0;
		const uint32_t next = found | 1u << bit;

#pragma unroll
		for (int i = 0; i < count; i++)
			reach += own[i] >= next;
		reach = warp_sum_u32(reach);
		if (lane == 0)
			sum[warp] = reach;
		__syncthreads(); /* the other half is free: all threads have read it */
		if (warp_sum_u32(lane < WARPS ? sum[lane] : 0) >= wanted)
			found = next;
	}
	__syncthreads();
	return found;
}

/* The sum of the numbers of the threads before, and the sum of all. */
struct scan64 {
	uint64_t before, all;
};
struct scan_f64 {
	double before, all;
};

static __device__ __forceinline__ struct scan64 block_scan(uint64_t v, struct notes *n)
{
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	struct scan64 s = {0, 0};
	uint64_t up = v;

	for (unsigned offset = 1; offset < 32; offset *= 2) {
		const uint64_t other = lane_u64(up, lane >= offset ? lane - offset : lane);

		up += lane >= offset ? other : 0;
	}
	__syncthreads();
	if (lane == 31)
		n->sum[0][warp] = up;
	__syncthreads();
	for (unsigned w = 0; w < WARPS; w++) {
		s.before += w < warp ? n->sum[0][w] : 0;
		s.all += n->sum[0][w];
	}
	s.before += up - v;
	return s;
}

static __device__ __forceinline__ struct scan_f64 block_scan_f64(double v, struct notes *n)
{
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	double *sum = (double *)n->sum[0];
	struct scan_f64 s = {0, 0};
	double up = v, left;

	for (unsigned offset = 1; offset < 32; offset *= 2) {
		const double other = lane_f64(up, lane >= offset ? lane - offset : lane);

		up += lane >= offset ? other : 0;
	}
	left = lane_f64(up, lane ? lane - 1 : 0);
	__syncthreads();
	if (lane == 31)
		sum[warp] = up;
	__syncthreads();
	for (unsigned w = 0; w < WARPS; w++) {
		s.before += w < warp ? sum[w] : 0;
		s.all += sum[w];
	}
	s.before += lane ? left : 0;
	return s;
}

/* True in all threads of the block of the row that ends last. It sees what the others wrote (bypassing its L1:
 * __ldcg). */
static __device__ __forceinline__ int is_last(const struct step_sample_args *a, uint32_t row, struct notes *n)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		n->last = atomicAdd(&a->row[row].arrived, 1u) == a->parts - 1;
		if (n->last)
			a->row[row].arrived = 0;
		__threadfence();
	}
	__syncthreads();
	return (int)n->last;
}

/* The row's number in (0, 1). */
static __device__ __forceinline__ double row_random(const struct step_sample_row *r)
{
	const uint4 w = philox_words(r->seed, r->stream, r->index / 4);
	const uint32_t i = r->index % 4, word = i < 2 ? (i ? w.y : w.x) : (i == 2 ? w.z : w.w);

	return ((double)word + 0.5) * 0x1p-32;
}

/* The result without log probabilities, and the last id of the place, by one thread. */
static __device__ __forceinline__ void put_result(const struct step_sample_args *a, uint32_t row, int32_t id,
						  int32_t status)
{
	int32_t *out = a->results + (int64_t)row * a->ld_results;

	out[0] = id;
	out[1] = status;
	out[2] = 0;
	out[3] = 0;
	if (a->row[row].place >= 0)
		a->last[a->row[row].place] = id;
}

#endif
