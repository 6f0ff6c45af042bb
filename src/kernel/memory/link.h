/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_MEMORY_LINK_H
#define KERNEL_MEMORY_LINK_H
#include "kernel/args.h"

struct link_args { /* one of the two is host memory, mapped, or another GPU's */
	DEVICE_PTR(const void) from;
	DEVICE_PTR(void) to;
	uint64_t count; /* 16-byte words */
};
static_assert(sizeof(struct link_args) == 24, "layout shared with nvcc");

struct flag_args { /* one round trip of the link: a dependent read of memory beyond it, `hops` times */
	DEVICE_PTR(const uint64_t) next; /* host memory: (1024) indices into itself */
	DEVICE_PTR(uint64_t) at;	 /* device memory: (1), where it ended */
	uint64_t hops;
};
static_assert(sizeof(struct flag_args) == 24, "layout shared with nvcc");
#endif
