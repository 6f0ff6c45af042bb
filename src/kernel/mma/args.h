/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiply-add loops that touch no memory, for probes `peak` (unit mma) and `sm`: one block an SM, operands
 * in registers or shared memory, every accumulator checked.
 *
 * The operands are small integers by position, a(row, k) and b(k, column) below, so all sums are exact. Step
 * i adds A B where i is even and -A B where it is odd, and the last step adds A B whatever i is: with an even
 * number of steps each accumulator must end as 2 (A B)[row][column]. It never grows, so limited accumulators
 * stay exact, yet a step that went wrong stays in the sum and a constant fault shows in the last two.
 *
 * A thread folds its accumulators c[0 ..] into sum of (2 r + 1) c[r], which must equal expected[thread].
 */
#ifndef KERNEL_MMA_ARGS_H
#define KERNEL_MMA_ARGS_H
#include "kernel/args.h"

/* -3 .. 3 and -2 .. 2: exact in every type, products below 2^4. */
#define MMA_A(row, k) ((int)(((row)*5u + (k)*3u) % 7u) - 3)
#define MMA_B(k, column) ((int)(((k)*11u + (column)*2u + ((k) * (column)) % 3u) % 5u) - 2)

/* What one SM did, by its number; the host zeroes it, cycles_min and ns_min to all ones. */
struct mma_record {
	unsigned long long runs, cycles_sum, cycles_min, cycles_max, ns_sum, ns_min;
	unsigned wrong_threads, wrong_first; /* first: 1 + a thread whose sum was wrong */
};
static_assert(sizeof(struct mma_record) == 56, "layout shared with nvcc");

/*
 * Entries mma_TYPE. File mma (portable: mma.sync; fused multiply-adds for FP32): fp64 fp32 tf32 fp16 bf16
 * int8. File mma_sm90 (sm_90a: wgmma; FP64 by its larger mma.sync): fp64 tf32 fp16 bf16 e4m3 e5m2 int8.
 */
struct mma_args {
	DEVICE_PTR(struct mma_record) records; /* one an SM number; room for `records_count` */
	DEVICE_PTR(const long long) expected;  /* one a thread of the block */
	uint32_t steps;			       /* a multiple of MMA_STEPS_GROUP */
	uint32_t records_count;
	int32_t only_sm; /* -1: all SMs; else every other block returns at once */
	uint32_t reserved;
};
static_assert(sizeof(struct mma_args) == 32, "layout shared with nvcc");

enum {
	/* mma: 16 warps, each 8 tiles of 16 x 8 (FP64: 8 x 8) side by side, or 32 chains a thread */
	MMA_THREADS = 512,
	MMA_TILES = 8,
	MMA_CHAINS = 32,
	MMA_STEPS_GROUP = 16,
	/* mma_sm90: 2 warpgroups, each 64 rows x 256 columns, 32 bytes along k; FP64 16 warps, each 4 tiles
	   of 16 x 8 */
	MMA_SM90_THREADS = 256,
	MMA_SM90_COLUMNS = 256,
	MMA_SM90_K_BYTES = 32,
	MMA_SM90_FP64_TILES = 4,
	/* What a block asks for so that an SM holds one: over half of an SM's 164 KB (sm_80) or 228 KB
	   (sm_90). */
	MMA_SHARED_BYTES = 116 * 1024,
};

/*
 * entry sm_cluster (file mma_sm90): blocks of a cluster of 8 lie in one GPC. Each cluster takes a number and
 * writes it to of_sm[its SM]; the host launches it again and again and joins what shared a cluster.
 */
struct sm_cluster_args {
	DEVICE_PTR(unsigned) next;  /* cluster counter */
	DEVICE_PTR(unsigned) of_sm; /* 1 + cluster number by SM; 0: no block ran there */
	uint32_t records_count, reserved;
};
static_assert(sizeof(struct sm_cluster_args) == 24, "layout shared with nvcc");
#endif
