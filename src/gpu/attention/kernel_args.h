/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a problem (gpu/attention/problem.h) to the arguments of our kernels
 * (kernel/attention/forward/args.h). */
#ifndef GPU_ATTENTION_KERNEL_ARGS_H
#define GPU_ATTENTION_KERNEL_ARGS_H
#include "gpu/attention/problem.h"
#include "gpu/device/tensor_map.h"
#include "kernel/attention/forward/args.h"

/* Number of keys that a row sees before (`left`) or after its own position. */
static inline int32_t attention_side(const struct attention_problem *p, bool left)
{
	const uint32_t keys = left ? p->window_left : p->window_right;

	if (p->mask == ATTENTION_CAUSAL && !left)
		return 0;
	return p->mask == ATTENTION_WINDOW && keys < ATTENTION_OPEN ? (int32_t)keys : ATTENTION_OPEN;
}

static inline struct attention_steps attention_steps_of(struct attention_strides s)
{
	return (struct attention_steps){(int64_t)s.batch, (int64_t)s.head, (int64_t)s.row};
}

enum attention_tensor { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O };

/* Makes the tensor map of an attention operand. `rows` are those of a batch element, or of the whole tensor
 * if sequences have starts; the starts are not read. Boxes are 128 bytes wide, or 64 for FP8 with head_dim <=
 * 64. */
static inline enum status attention_map(struct gpu_device *d, struct tensor_map *map,
					const struct attention_problem *p, enum attention_tensor which,
					gpu_ptr data, uint64_t rows, unsigned box_rows, struct error *err)
{
	const struct attention_strides steps[] = {attention_q_strides(p), attention_k_strides(p),
						  attention_v_strides(p), attention_o_strides(p)};
	const struct attention_strides s = steps[which];
	const unsigned bytes = attention_type_bytes(which == ATTENTION_O ? p->out_type : p->type);
	const struct gpu_tensor t = {.data = data,
				     .element_bytes = bytes,
				     .narrow = p->head_dim <= 64 && bytes == 1,
				     .columns = p->head_dim,
				     .rows = rows,
				     .heads = which == ATTENTION_Q || which == ATTENTION_O ? p->heads
											   : p->kv_heads,
				     .batches = p->q_starts ? 1 : p->batch,
				     .row_step = s.row,
				     .head_step = s.head,
				     .batch_step = p->q_starts ? rows * s.row : s.batch};

	return gpu_tensor_map(d, map, &t, box_rows, err);
}
#endif
