/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of a step with one row on a GPU: one launch of kernel/decode/decode.cu. It reads the
 * model's weights and the paged KV cache in place.
 */
#ifndef MODEL_GPU_DECODE_H
#define MODEL_GPU_DECODE_H
#include "model/model.h"

struct decode;
/* Allocates its workspace in back->arena, which may be a plan. `cache` [layers] is BF16 and must outlive the
 * decoder. Its matrices may be placed after this call. *d stays NULL, with OK, if the kernels do not support
 * the model or the device: weights in E4M3, rows that are not multiples of 16 bytes, or too little shared
 * memory. Owner: caller, decode_release. */
enum status decode_create(struct decode **d, const struct model *m, struct backend *back,
			  const struct paged_layer *cache, struct error *err);
void decode_release(struct decode **d); /* NULL-safe */
/* Enqueues the forward pass of the only row, as ops->paged_put placed it. `last` [1, places]: ids for rows
 * whose token is below 0. *logits becomes the F32 row [1, vocab], which the next call overwrites. The first
 * call notes the addresses of weights, adapters and cache, which must not change after it; the numbers may.
 */
enum status decode_forward(struct decode *d, const struct paged_rows *rows, struct mat last,
			   struct mat *logits, struct error *err);
#endif
