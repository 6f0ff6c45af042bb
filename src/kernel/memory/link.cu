/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel reads or writes host memory, or another GPU's memory, through the link. Reference: memcpy
 * (tests/gpu/ref_link.c).
 *   link_v1   16 bytes per thread
 *   link_v2   64 bytes in flight per thread, one tile per block; PCIe's round trip of about 1 us needs that
 *             many bytes
 *   link_hop  one thread follows a chain of dependent reads; this gives the latency of a read
 */
#include "kernel/memory/link.h"

extern "C" __global__ void link_v1(link_args a)
{
	const uint4 *from = (const uint4 *)a.from;
	uint4 *to = (uint4 *)a.to;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x)
		__stcs(to + i, __ldcs(from + i));
}

extern "C" __global__ void link_v2(link_args a)
{
	const uint4 *from = (const uint4 *)a.from;
	uint4 *to = (uint4 *)a.to;
	constexpr unsigned unroll = 4;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x * unroll + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x * unroll) {
		uint4 v[unroll];

#pragma unroll
		for (unsigned j = 0; j < unroll; j++)
			if (i + j * blockDim.x < a.count)
				v[j] = __ldcs(from + i + j * blockDim.x);
#pragma unroll
		for (unsigned j = 0; j < unroll; j++)
			if (i + j * blockDim.x < a.count)
				__stcs(to + i + j * blockDim.x, v[j]);
	}
}

extern "C" __global__ void link_hop(flag_args a)
{
	const volatile uint64_t *next = a.next;
	uint64_t at = *a.at;

	for (uint64_t i = 0; i < a.hops; i++)
		at = next[at];
	*a.at = at;
}
