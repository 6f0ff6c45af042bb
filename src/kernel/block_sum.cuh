/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_BLOCK_SUM_CUH
#define KERNEL_BLOCK_SUM_CUH

/* Returns the block's sum of `value` in thread 0; other threads get no valid result. Every thread must call
 * it. blockDim.x is a multiple of 32, at most 1024. */
static __device__ double block_sum(double value)
{
	__shared__ double warp_sum[32];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

	for (int offset = 16; offset; offset /= 2)
		value += __shfl_down_sync(0xffffffffu, value, offset);
	if (lane == 0)
		warp_sum[warp] = value;
	__syncthreads();
	if (warp != 0)
		return 0;
	value = lane < blockDim.x / 32 ? warp_sum[lane] : 0;
	for (int offset = 16; offset; offset /= 2)
		value += __shfl_down_sync(0xffffffffu, value, offset);
	return value;
}
#endif
