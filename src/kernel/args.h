/* SPDX-License-Identifier: Apache-2.0 */
/* Macros that every kernel argument header needs. Both C17 on the host and nvcc on the device include it. */
#ifndef KERNEL_ARGS_H
#define KERNEL_ARGS_H
#include <assert.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DEVICE_PTR(type) type *
#else
#define DEVICE_PTR(type) uint64_t /* a CUdeviceptr; the host never dereferences it */
#endif
#endif
