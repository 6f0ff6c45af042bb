/* SPDX-License-Identifier: Apache-2.0 */
/* src/kernel/train/fp8.cu itself in its references' place, as emulate_step.c has src/kernel/step. */
#include "emulate.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* of unrolling */
#pragma GCC diagnostic ignored "-Wunused-function"
/* emulate.h stands first: it says what nvcc's words mean. */
#include "kernel/train/fp8.cu"
#undef __CUDACC__
#include "ref.h"

#define FP8_ENTRIES(X)                                                                                       \
	X(train_fp8_quantize, train_fp8_quantize_args, y.to)                                                 \
	X(train_fp8_rmsnorm, train_fp8_norm_args, y)                                                         \
	X(train_fp8_swiglu, train_fp8_swiglu_args, q.to)                                                     \
	X(train_fp8_swiglu_bwd, train_fp8_swiglu_args, gate_up)                                              \
	X(train_fp8_swiglu_bwd_columns, train_fp8_swiglu_columns_args, y.to)                                 \
	X(train_fp8_weights, train_fp8_weights_args, q.to)                                                   \
	X(train_fp8_transpose, train_fp8_transpose_args, to)                                                 \
	X(train_fp8_columns, train_fp8_columns_args, y.to)                                                   \
	X(train_fp8_add_bias, train_fp8_bias_args, y)
#define X(entry, type, out)                                                                                  \
	static void call_##entry(const void *args)                                                           \
	{                                                                                                    \
		entry(*(const struct type *)args);                                                           \
	}                                                                                                    \
	static void run_##entry(const char *name, struct ref_grid grid, const void *args)                    \
	{                                                                                                    \
		(void)name;                                                                                  \
		emulate(call_##entry, args, grid.blocks, grid.threads);                                      \
	}
FP8_ENTRIES(X)
#undef X

#define X(entry, type, out) {#entry, run_##entry, sizeof(struct type), offsetof(struct type, out)},
const struct ref_row ref_train_fp8[] = {FP8_ENTRIES(X){NULL, NULL, 0, 0}};
#undef X
