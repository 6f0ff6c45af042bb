/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our block-sparse attention: block lists made on the device, or taken from elsewhere, and a kernel
 * that attends by them (kernel/attention/sparse/make_lists.h, kernel/attention/sparse/args.h). Query blocks
 * are of 128 rows, key blocks of 64 or 128; FP16 and BF16, head dims 64 and 128. On sm_90 by its own
 * instructions, elsewhere from sm_80 on by mma.sync.
 */
#ifndef GPU_ATTENTION_OWN_BLOCK_SPARSE_H
#define GPU_ATTENTION_OWN_BLOCK_SPARSE_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

struct attention_sparse;

/* Which blocks. The lists are of `batches` and `heads`: 1, or the problem's. */
struct attention_sparse_how {
	uint32_t source;  /* enum lists_source of kernel/attention/sparse/make_lists.h */
	uint32_t k_block; /* 64 or 128 */
	uint32_t batches, heads;
	uint32_t stride; /* STRIDED */
	double density;	 /* RANDOM */
	uint64_t seed;
	bool portable;	   /* mma.sync on sm_90 too */
	gpu_ptr map, mask; /* MAP: one of the two, as kernel/attention/sparse/make_lists.h lays them out */
};

/* Lists as kernel/attention/sparse/block_lists.h describes them, on the host. */
struct attention_sparse_lists {
	uint32_t *full_begin, *full, *partial_begin, *partial;
};

/* UNSUPPORTED: what these kernels do not do; pure. */
enum status attention_sparse_supports(const struct attention_problem *p, uint32_t q_block, uint32_t k_block,
				      struct error *err);
/* Room for lists in which every block is kept. `p` is lent for its life. Owner: caller. */
enum status attention_sparse_create(struct attention_sparse **s, struct gpu_device *d,
				    const struct attention_problem *p, const struct attention_sparse_how *how,
				    struct error *err);
void attention_sparse_destroy(struct attention_sparse **s);

/* Enqueues making the lists; of `o` the starts alone are read. */
enum status attention_sparse_build(struct attention_sparse *s, const struct attention_operands *o,
				   struct gpu_stream *stream, struct error *err);
/* Lists made elsewhere, of the sizes that `how` told; enqueues putting units in order. */
enum status attention_sparse_put(struct attention_sparse *s, const struct attention_sparse_lists *l,
				 struct gpu_stream *stream, struct error *err);
/* MISMATCH: the lists on the device are not these. Waits for the device. */
enum status attention_sparse_compare(struct attention_sparse *s, const struct attention_sparse_lists *l,
				     struct error *err);
/* One attention by the lists. */
enum status attention_sparse_enqueue(struct attention_sparse *s, const struct attention_operands *o,
				     struct gpu_stream *stream, struct error *err);
const char *attention_sparse_kernel(const struct attention_sparse *s); /* lent */
#endif
