/* SPDX-License-Identifier: Apache-2.0 */
/* What every argument header of this room needs on both sides of the launch: C17 on the host, nvcc on the
 * device. */
#ifndef KERNEL_ARGS_H
#define KERNEL_ARGS_H
#include <assert.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DEVICE_PTR(type) type *
#else
#define DEVICE_PTR(type) uint64_t /* a CUdeviceptr: never dereferenced on the host */
#endif
#endif
