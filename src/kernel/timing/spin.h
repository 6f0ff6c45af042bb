/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TIMING_SPIN_H
#define KERNEL_TIMING_SPIN_H
#include "kernel/args.h"

struct spin_args {
	uint64_t ns; /* run time of each block */
};
static_assert(sizeof(struct spin_args) == 8, "layout shared with nvcc");
#endif
