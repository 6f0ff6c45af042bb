/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that move data (kernel/memory/stream.cu, stream_bulk.cu) and their launch shapes. A kernel with a
 * shape is one candidate. The probe `memory` times the candidates of an operation, and tests/gpu checks and
 * sweeps them.
 */
#ifndef GPU_MEMORY_MOVE_H
#define GPU_MEMORY_MOVE_H
#include "gpu/device/gpu.h"

/* clang-format off */
#define MOVE_OPS(X)           \
	X(READ, "read", 1, 0)   \
	X(WRITE, "write", 0, 1) \
	X(COPY, "copy", 1, 1)   \
	X(SCALE, "scale", 1, 1) \
	X(ADD, "add", 2, 1)     \
	X(TRIAD, "triad", 2, 1) \
	X(DOT, "dot", 2, 0)
/* clang-format on */
#define X(name, text, reads, writes) MOVE_##name,
enum move_op { MOVE_OPS(X) MOVE_OP_COUNT };
#undef X

enum move_rung {
	MOVE_V1 = 1,
	MOVE_V2,
	MOVE_V3,
	MOVE_V4,
	MOVE_V5,
	MOVE_V6,
	MOVE_V7,
	MOVE_V8,
	MOVE_V9,
	MOVE_V10,
	MOVE_BULK
};

struct move_shape {
	enum move_rung rung;
	unsigned threads;  /* bulk: includes the copying warp */
	unsigned per_sm;   /* blocks per SM; 0: one block per tile, in order (bulk: one per group of `stages`
			    * tiles) */
	unsigned resident; /* maximum blocks per SM, enforced by requesting shared memory; 0: as many as
			    * fit */
	/* Bulk only: bytes of a tile, tiles in flight per block, 1: evict first. */
	unsigned tile_bytes, stages, evict_first;
};

struct move { /* one candidate, ready to launch */
	struct gpu_kernel *kernel;
	struct move_shape shape;
	unsigned blocks, shared_bytes;
	char name[96]; /* e.g. "copy_v4, 256 threads, 8 blocks an SM" */
};

struct move_arrays { /* floats; arrays that the operation does not use stay 0 */
	gpu_ptr in0, in1, out;
	gpu_ptr partial; /* read, dot: doubles, move_blocks_max of them */
	uint64_t count;
	float factor;
};

/* The candidates of an operation on devices like `d`, the fastest measured one first (launch_shapes.c).
 * Static. */
const struct move_shape *move_shapes(const struct gpu_device *d, enum move_op op, unsigned *count);
/* Prepares a candidate for launch. UNSUPPORTED: the device lacks what the shape needs (bulk copies from sm_90
 * on, enough shared memory). */
enum status move_prepare(struct move *m, struct gpu_device *d, enum move_op op,
			 const struct move_shape *shape, uint64_t count, struct error *err);
enum status move_launch(const struct move *m, const struct move_arrays *a, struct gpu_stream *s,
			struct error *err);
/* Maximum number of blocks of any shape, for the size of `partial`. */
uint64_t move_blocks_max(uint64_t count);
/* Sums the partials of the last launch of `m`. Waits for the device. */
enum status move_sum(const struct move *m, struct gpu_device *d, gpu_ptr partial, double *sum,
		     struct error *err);
#endif
