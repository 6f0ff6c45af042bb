/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block-sparse attention by our own kernels. Block lists are made on the device or supplied by the caller,
 * and a kernel attends to the listed blocks (kernel/attention/sparse/make_lists.h,
 * kernel/attention/sparse/args.h). Query blocks have 128 rows, key blocks 64 or 128. Types are FP16 and BF16,
 * head dims 64 and 128. sm_90 has a kernel of its own; other devices from sm_80 on use mma.sync.
 */
#ifndef GPU_ATTENTION_OWN_BLOCK_SPARSE_H
#define GPU_ATTENTION_OWN_BLOCK_SPARSE_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

struct attention_sparse;

/* How blocks are selected. `batches` and `heads` of the lists are 1 or the problem's. */
struct attention_sparse_how {
	uint32_t source;  /* enum lists_source of kernel/attention/sparse/make_lists.h */
	uint32_t k_block; /* 64 or 128 */
	uint32_t batches, heads;
	uint32_t stride; /* STRIDED only */
	double density;	 /* RANDOM only */
	uint64_t seed;
	bool portable;	   /* use mma.sync on sm_90 too */
	gpu_ptr map, mask; /* MAP: one of the two, in the layout of kernel/attention/sparse/make_lists.h */
};

/* Lists in host memory, in the format of kernel/attention/sparse/block_lists.h. */
struct attention_sparse_lists {
	uint32_t *full_begin, *full, *partial_begin, *partial;
};

/* Whether the kernels support the problem; UNSUPPORTED: err names the unsupported property. Pure. */
enum status attention_sparse_supports(const struct attention_problem *p, uint32_t q_block, uint32_t k_block,
				      struct error *err);
/* Allocates lists with room for every block. `p` is borrowed until attention_sparse_destroy. Owner:
 * caller. */
enum status attention_sparse_create(struct attention_sparse **s, struct gpu_device *d,
				    const struct attention_problem *p, const struct attention_sparse_how *how,
				    struct error *err);
void attention_sparse_destroy(struct attention_sparse **s);

/* Enqueues the making of the lists. Of `o` only the starts are read. */
enum status attention_sparse_build(struct attention_sparse *s, const struct attention_operands *o,
				   struct gpu_stream *stream, struct error *err);
/* Uploads lists that the caller made, with the sizes given in `how`, and enqueues the ordering of units. */
enum status attention_sparse_put(struct attention_sparse *s, const struct attention_sparse_lists *l,
				 struct gpu_stream *stream, struct error *err);
/* Compares the lists on the device with `l`. MISMATCH: they differ. Waits for the device. */
enum status attention_sparse_compare(struct attention_sparse *s, const struct attention_sparse_lists *l,
				     struct error *err);
/* Enqueues one attention over the listed blocks. */
enum status attention_sparse_enqueue(struct attention_sparse *s, const struct attention_operands *o,
				     struct gpu_stream *stream, struct error *err);
const char *attention_sparse_kernel(const struct attention_sparse *s); /* lent */
#endif
