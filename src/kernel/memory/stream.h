/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_MEMORY_STREAM_H
#define KERNEL_MEMORY_STREAM_H
#include "kernel/args.h"

/* Arguments of stream.cu and stream_bulk.cu. Arrays have `count` floats and are 16-byte aligned. For
 * stream_bulk.cu they are 128-byte aligned, and count is a multiple of 4. */
struct memory_args {
	DEVICE_PTR(const float) in0;
	DEVICE_PTR(const float) in1; /* used by add, triad, dot */
	DEVICE_PTR(float) out;	     /* not used by read, dot */
	DEVICE_PTR(double) partial;  /* read, dot: (blocks), the sum of the elements that each block read */
	uint64_t count;
	float factor;	      /* scale, triad: the factor; write: the value */
	uint32_t tile_bytes;  /* bulk: size of one copy, a multiple of 128 */
	uint32_t stages;      /* bulk: tiles in flight per block, at most MEMORY_STAGES_MAX */
	uint32_t evict_first; /* bulk: 1 marks the data as first to be evicted from the L2 */
	uint32_t grouped;     /* bulk: 1 gives each block `stages` neighbouring tiles, after which it ends */
	uint32_t vectors;     /* v10: count / 4; the grid must have more threads than that */
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
struct memory_node { /* one per 128-byte cache line */
	DEVICE_PTR(struct memory_node) next;
	uint64_t place; /* position in the order of the walk */
	uint64_t unused[14];
};
static_assert(sizeof(struct memory_node) == CHASE_NODE_BYTES, "one line");

struct chase_args {
	DEVICE_PTR(DEVICE_PTR(struct memory_node))
	cursor; /* (1) position; launches continue there */
	uint64_t hops;
};
static_assert(sizeof(struct chase_args) == 16, "layout shared with nvcc");
#endif
