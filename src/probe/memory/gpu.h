/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions that the two GPU engines of probe `memory` share. */
#ifndef PROBE_MEMORY_GPU_H
#define PROBE_MEMORY_GPU_H
#include "gpu/memory/move.h"
#include "probe/memory/memory.h"

struct memory_gpu {
	struct memory common;
	struct gpu_device *device;
	struct gpu_stream *stream;
	gpu_ptr a, b, c;       /* floats (count); 0: the operation does not use it */
	gpu_ptr out;	       /* the output array, or 0 */
	gpu_ptr partial;       /* doubles (blocks of the launch): partial sums */
	gpu_ptr index;	       /* gather: uint32 (count) */
	gpu_ptr nodes, cursor; /* chase */
	gpu_ptr record;	       /* compare_record */
	uint64_t first_node;   /* chase: address of the node at position 0 */
	uint64_t node_count;
	struct gpu_kernel *kernel;	 /* gather, chase */
	struct move move;		 /* selected variant */
	const struct move_shape *shapes; /* (shape_count) */
	unsigned shape_count;
};

/* Allocates and fills the streams, and the nodes or indices of chase and gather. */
enum status memory_gpu_make(struct memory_gpu *s, const struct bench *b, const struct memory_opts *o,
			    const struct memory_access *access, struct error *err);
void memory_gpu_release(void *state);
/* Functions of memory_access for both engines, all but run. */
enum status memory_gpu_poison(void *state, struct error *err);
enum status memory_gpu_fetch(void *state, uint64_t first, size_t count, double *out, struct error *err);
enum status memory_gpu_sum(void *state, double *out, struct error *err);
enum status memory_gpu_check(void *state, struct wrong *wrong, struct error *err);
#endif
