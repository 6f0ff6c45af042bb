/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_MEMORY_LINK_H
#define KERNEL_MEMORY_LINK_H
#include "kernel/args.h"

struct link_args { /* either `from` or `to` is mapped host memory or another GPU's memory */
	DEVICE_PTR(const void) from;
	DEVICE_PTR(void) to;
	uint64_t count; /* 16-byte words */
};
static_assert(sizeof(struct link_args) == 24, "layout shared with nvcc");

struct flag_args { /* link_hop: `hops` dependent reads of memory beyond the link; each is one round trip */
	DEVICE_PTR(const uint64_t) next; /* host memory: (1024) indices into the same array */
	DEVICE_PTR(uint64_t) at;	 /* device memory: (1) index where the chain ended */
	uint64_t hops;
};
static_assert(sizeof(struct flag_args) == 24, "layout shared with nvcc");
#endif
