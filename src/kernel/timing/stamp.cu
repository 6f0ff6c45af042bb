/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every SM writes its cycle counter and the nanosecond timer: two stamps with a window between them give the clock that
 * each SM held (METHODS "The held clock"). Launch two blocks of one warp an SM: the first on each SM claims its record,
 * and every block stays HOLD_NS so that no SM is left over because another took two in a row.
 * The pair is read at an edge of the timer, whose steps are up to 1 us on some devices.
 * Checked by plausibility (tests/gpu): there is no reference for a clock.
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
