/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TIMING_EMPTY_H
#define KERNEL_TIMING_EMPTY_H
#include "kernel/args.h"

struct empty_args {
	uint64_t unused;
};
static_assert(sizeof(struct empty_args) == 8, "layout shared with nvcc");
#endif
