/* SPDX-License-Identifier: Apache-2.0 */
/* A CUtensorMap as kernels receive it in their arguments (gpu/device/tensor_map.h makes it). */
#ifndef KERNEL_TENSOR_MAP_H
#define KERNEL_TENSOR_MAP_H
#include "kernel/args.h"

/* Rank 4; gpu_tensor_map says what a box is. */
#ifdef __CUDACC__
struct __align__(64) tensor_map
{
	uint64_t opaque[16];
};
#else
struct tensor_map {
	_Alignas(64) uint64_t opaque[16];
};
#endif
#endif
