/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of 1 to 256 rows with LoRA adapters, in one kernel (kernel/matmul/skinny_adapters.h). It computes the
 * problem of skinny.h and adds u B' with u = x A'. Columns of u that do not belong to the row's adapter are
 * 0.
 */
#ifndef GPU_MATMUL_SKINNY_ADAPTERS_H
#define GPU_MATMUL_SKINNY_ADAPTERS_H
#include "gpu/matmul/skinny.h"

struct skinny_adapters {
	gpu_ptr a;	      /* BF16 [parts * width, k] */
	gpu_ptr b;	      /* BF16 [rows of all parts, width], part after part */
	gpu_ptr x;	      /* BF16 [rows, k]: the problem's x before it was quantized, if it is E4M3 */
	gpu_ptr u;	      /* BF16 [rows, parts * width]: room */
	gpu_ptr adapter;      /* I32 [rows]; -1: none */
	uint32_t width, rank; /* columns of u of a part: of all adapters, and of each one */
	/* Rows of W that part i belongs to, in ascending order; with SwiGLU the gate's or up's, or both
	 * parts. Other rows of W have no adapter. */
	unsigned parts;
	uint32_t begin[3], count[3];
	uint64_t row_a, row_b, row_x, row_u; /* elements from one row to the next; multiples of 8 */
};

/* To be called once before the kernels run, outside a capture; the kernels of one stream then share its
 * memory, which skinny_close releases. */
enum status skinny_adapters_open(struct skinny *s, struct gpu_stream *stream, struct error *err);
/* UNSUPPORTED, with the reason, if the kernels do not take the problem. They need what skinny_check needs,
 * activations of the weights' type, and parts that begin at multiples of 64 outputs. */
enum status skinny_adapters_check(const struct skinny_problem *p, const struct skinny_adapters *ad,
				  struct error *err);
/* As skinny_enqueue. No choice may be `invariant`. Only one kernel with adapters may run at a time. */
enum status skinny_adapters_enqueue(struct skinny *s, const struct skinny_problem *p,
				    const struct skinny_adapters *ad, const struct skinny_choice *c,
				    bool overlap, struct gpu_stream *stream, struct error *err);
#endif
