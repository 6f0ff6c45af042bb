/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiply-add loops that touch no global memory, for the probes `peak` (unit mma) and `sm`. One block runs
 * on each SM. Operands are in registers or shared memory. Every accumulator is checked.
 * The operands are small integers that depend on the position: a(row, k) and b(k, column) below. So all sums
 * are exact. Step i adds A B if i is even and -A B if i is odd. The last step always adds A B. The number of
 * steps is even, so each accumulator must end as 2 (A B)[row][column].
 * Accumulators never grow, so even narrow ones stay exact. A single wrong step stays in the sum. A fault that
 * repeats in every step cancels, except in the last two steps, so it shows too.
 * A thread reduces its accumulators c[0 ..] to the sum of (2 r + 1) c[r]. It must equal expected[thread].
 */
#ifndef KERNEL_MMA_ARGS_H
#define KERNEL_MMA_ARGS_H
#include "kernel/args.h"

/* Values -3 .. 3 and -2 .. 2. They are exact in every type, and each a(row, k) b(k, column) is below 2^4. */
#define MMA_A(row, k) ((int)(((row)*5u + (k)*3u) % 7u) - 3)
#define MMA_B(k, column) ((int)(((k)*11u + (column)*2u + ((k) * (column)) % 3u) % 5u) - 2)

/* Results of one SM, indexed by SM number. Before the launch the host sets cycles_min and ns_min to all ones
 * and everything else to zero. */
struct mma_record {
	unsigned long long runs, cycles_sum, cycles_min, cycles_max, ns_sum, ns_min;
	unsigned wrong_threads, wrong_first; /* wrong_first: 1 + a thread whose sum was wrong */
};
static_assert(sizeof(struct mma_record) == 56, "layout shared with nvcc");

/*
 * Entries are mma_TYPE.
 * File mma (portable): fp64 fp32 tf32 fp16 bf16 int8. It uses mma.sync, and fused multiply-adds for FP32.
 * File mma_sm90 (sm_90a): fp64 tf32 fp16 bf16 e4m3 e5m2 int8. It uses wgmma, and the larger mma.sync for
 * FP64.
 */
struct mma_args {
	DEVICE_PTR(struct mma_record) records; /* one per SM number, `records_count` in total */
	DEVICE_PTR(const long long) expected;  /* one per thread of the block */
	uint32_t steps;			       /* a multiple of MMA_STEPS_GROUP */
	uint32_t records_count;
	int32_t only_sm; /* -1: all SMs; else blocks on other SMs return at once */
	uint32_t reserved;
};
static_assert(sizeof(struct mma_args) == 32, "layout shared with nvcc");

enum {
	/* mma: 16 warps. Each has 8 independent tiles of 16 x 8 (FP64: 8 x 8). FP32 has 32 chains per
	 * thread. */
	MMA_THREADS = 512,
	MMA_TILES = 8,
	MMA_CHAINS = 32,
	MMA_STEPS_GROUP = 16,
	/* mma_sm90: 2 warpgroups, each with 64 rows x 256 columns and 32 bytes along k. FP64: 16 warps, each
	 * with 4 tiles of 16 x 8. */
	MMA_SM90_THREADS = 256,
	MMA_SM90_COLUMNS = 256,
	MMA_SM90_K_BYTES = 32,
	MMA_SM90_FP64_TILES = 4,
	/* Shared memory that a block requests so that an SM holds only one block: more than half of the 164
	 * KB of an SM (sm_80) or 228 KB (sm_90). */
	MMA_SHARED_BYTES = 116 * 1024,
};

/*
 * Entry sm_cluster (file mma_sm90). Blocks of a cluster of 8 run in one GPC. Each cluster takes a number and
 * writes it to of_sm[its SM]. The host repeats the launch and joins SMs that shared a cluster.
 */
struct sm_cluster_args {
	DEVICE_PTR(unsigned) next;  /* cluster counter */
	DEVICE_PTR(unsigned) of_sm; /* 1 + cluster number, indexed by SM; 0: no block ran there */
	uint32_t records_count, reserved;
};
static_assert(sizeof(struct sm_cluster_args) == 24, "layout shared with nvcc");
#endif
