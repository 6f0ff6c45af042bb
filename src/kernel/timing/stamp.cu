/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every SM writes its cycle counter and the nanosecond timer. Two such stamps around a window give the clock
 * of each SM (docs/explanation/methods/gpu-memory-and-links.md, "Measured SM clock").
 * Launch two blocks of one warp for each SM. The first block on an SM claims the SM's record. Every block
 * stays for HOLD_NS, so no SM is missed because another one took two blocks in a row.
 * The counters are read right after the timer steps, because a step is up to 1 us on some devices.
 * A clock has no reference, so tests/gpu checks that the result is plausible.
 */
#include "kernel/timing/stamp.h"

static constexpr uint64_t HOLD_NS = 4000;

static __device__ uint64_t timer_ns()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
	return ns;
}

extern "C" __global__ void stamp(stamp_args a)
{
	uint32_t sm;
	uint64_t start, ns, cycles;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	if (threadIdx.x != 0)
		return;
	start = timer_ns();
	do
		ns = timer_ns();
	while (ns == start);
	cycles = clock64();
	if (sm < a.slots && atomicExch(&a.record[sm].sequence, a.sequence) != a.sequence) {
		a.record[sm].cycles = cycles;
		a.record[sm].ns = ns;
	}
	while (timer_ns() - start < HOLD_NS)
		;
}
