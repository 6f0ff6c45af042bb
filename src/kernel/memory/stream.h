/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_MEMORY_STREAM_H
#define KERNEL_MEMORY_STREAM_H
#include "kernel/args.h"

/* stream.cu and stream_bulk.cu. Arrays of `count` floats, 16-byte aligned; bulk: 128-byte aligned, count % 4
 * == 0. */
struct memory_args {
	DEVICE_PTR(const float) in0;
	DEVICE_PTR(const float) in1; /* add, triad, dot */
	DEVICE_PTR(float) out;	     /* read, dot: unused */
	DEVICE_PTR(double) partial;  /* read, dot: (blocks), the sum of what each block read */
	uint64_t count;
	float factor;	      /* scale, triad; write: the value */
	uint32_t tile_bytes;  /* bulk: one copy's size, a multiple of 128 */
	uint32_t stages;      /* bulk: tiles in flight a block, at most MEMORY_STAGES_MAX */
	uint32_t evict_first; /* bulk: 1 asks the L2 to let the data go first */
	uint32_t grouped;     /* bulk: 1: a block takes `stages` neighbouring tiles and ends */
	uint32_t vectors;     /* v10: count / 4; the grid has more threads than that */
};
static_assert(sizeof(struct memory_args) == 64, "layout shared with nvcc");

#define MEMORY_STAGES_MAX 16

struct gather_args { /* sum of in[index[i]] */
	DEVICE_PTR(const float) in;
	DEVICE_PTR(const uint32_t) index; /* (count), each below count */
	DEVICE_PTR(double) partial;	  /* (blocks) */
	uint64_t count;
};
static_assert(sizeof(struct gather_args) == 32, "layout shared with nvcc");

#define CHASE_NODE_BYTES 128
struct memory_node { /* one a cache line of 128 bytes */
	DEVICE_PTR(struct memory_node) next;
	uint64_t place; /* in the order of the walk */
	uint64_t unused[14];
};
static_assert(sizeof(struct memory_node) == CHASE_NODE_BYTES, "one line");

struct chase_args {
	DEVICE_PTR(DEVICE_PTR(struct memory_node)) cursor; /* (1): where the walk is; it goes on from there */
	uint64_t hops;
};
static_assert(sizeof(struct chase_args) == 16, "layout shared with nvcc");
#endif
