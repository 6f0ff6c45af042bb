/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the device busy at low power for a given time. One warp per block reads the timer in a loop, so the
 * clock rises and the chip stays cool. The kernel touches no memory and has no reference.
 */
#include "kernel/timing/spin.h"

extern "C" __global__ void spin(spin_args a)
{
	uint64_t start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
	while (now - start < a.ns);
}
