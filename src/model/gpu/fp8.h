/* SPDX-License-Identifier: Apache-2.0 */
/* Training in FP8 on a GPU (fp8.c). */
#ifndef MODEL_GPU_FP8_H
#define MODEL_GPU_FP8_H
#include "kernel/train/fp8.h"
#include "model/gpu/internal.h"
#include "model/tensor/fp8.h"

/* UNSUPPORTED, by name: the device or the library has no GEMMs in FP8 with block scales. OK without the
 * option fp8. */
enum status gpu_check_fp8(const struct gpu_state *g, struct error *err);
bool gpu_takes_fp8(const struct gemm *g);
/* A GEMM that gpu_takes_fp8: quantizes what is not E4M3 yet. before: back->cost.flop without its cost. */
enum status gpu_gemm_fp8(struct backend *back, const struct gemm *g, double before, struct error *err);
extern __typeof__(*((struct ops *)0)->quantize_e4m3) gpu_quantize_e4m3;
/* The places of a weight in E4M3 and of its transposed copy (rows 0: absent). */
struct train_fp8_weights gpu_fp8_weights(const struct mat *to, const struct mat *transposed);
/* Transposes bytes and scales of a weight in E4M3 on any stream, without timing. */
enum status gpu_fp8_transpose_on(struct backend *back, const struct mat *from, const struct mat *to,
				 struct gpu_stream *stream, struct error *err);
/* The norm and SwiGLU, which also write y->e4m3, h->e4m3, or in the backward pass gate_up->e4m3 (q). h_again
 * NULL: absent. If h has e4m3_columns, nothing reads it in BF16, and it is not written. */
enum status gpu_rmsnorm_fp8(struct backend *back, const struct mat *x, const struct mat *w, float eps,
			    const struct mat *y, const struct mat *rstd, struct error *err);
enum status gpu_swiglu_fp8(struct backend *back, const struct mat *gate_up, const struct mat *h,
			   const struct mat *h_again, const struct mat *q, struct error *err);
/* The backward pass of SwiGLU that writes copies in E4M3 alone: gate_up->e4m3, gate_up->e4m3_columns and, of
 * h, dh->e4m3_columns. */
enum status gpu_swiglu_bwd_columns(struct backend *back, const struct mat *dh, const struct mat *gate_up,
				   struct error *err);
extern __typeof__(*((struct ops *)0)->quantize_both) gpu_quantize_both;
#endif
