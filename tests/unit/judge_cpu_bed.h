/* SPDX-License-Identifier: Apache-2.0 */
/* A small machine's CPU: its ceilings, and a product held against them. */
#ifndef TESTS_JUDGE_CPU_BED_H
#define TESTS_JUDGE_CPU_BED_H
#include "judge_bed.h"

/* Two threads, FMA ceilings of one and both, dependent-add clock, read stream: as a small machine leaves
 * them. */
static inline void ceilings(void)
{
	struct record_case *c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=0");

	world_set(c, "sustained", "flop_rate", 200e9);
	world_set(c, "sustained", "threads", 2);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=1");
	world_set(c, "sustained", "flop_rate", 110e9);
	world_set(c, "sustained", "threads", 1);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "memory", "unit=read threads=0");
	world_set(c, "sustained", "byte_rate", 20e9);
	world_verified(c);
}

static inline struct record_case *sgemm(double gflops, double cpu_share)
{
	struct record_case *c =
		world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32 m=2048 n=2048 k=2048 data=random");

	c->engine = "openblas";
	world_set(c, "sustained", "flop_rate", gflops * 1e9);
	world_set(c, "sustained", "cpu_share", cpu_share);
	world_set(c, "sustained", "threads", 2);
	world_set(c, "sustained", "half_width_share", 0.003);
	world_verified(c);
	return c;
}

/* Takes the last case out of the world again. */
static inline void forget(struct record_case *c)
{
	for (size_t p = 0; p < c->phase_count; p++)
		json_decref(c->phase[p].values);
	free(c->phase);
	json_decref((json_t *)c->plan);
	w.r.case_count--;
}
#endif
