/* SPDX-License-Identifier: Apache-2.0 */
/* src/kernel/step itself in its references' place, as emulate_decode.c has decode.cu. */
#include "emulate.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"     /* of unrolling */
#pragma GCC diagnostic ignored "-Wshadow"	       /* each kernel declares its shared memory */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* vectors that a part does not have */
#pragma GCC diagnostic ignored "-Wunused-function"
/* emulate.h stands first: it says what nvcc's words mean. */
#include "kernel/step/rows.cu"
#include "kernel/step/sample_general.cu"
#include "kernel/step/sample_plain.cu"
#undef __CUDACC__
#include "ref.h"

#define STEP_ENTRIES(X)                                                                                      \
	X(step_embed, step_embed_args)                                                                       \
	X(step_rmsnorm, step_norm_args)                                                                      \
	X(step_adapter_mask, step_mask_args)                                                                 \
	X(step_adapter_scale, step_scale_args)                                                               \
	X(step_swiglu, step_swiglu_args)                                                                     \
	X(step_swiglu_e4m3, step_swiglu_args)                                                                \
	X(step_swiglu_e4m3_wide, step_swiglu_args)                                                           \
	X(step_quantize, step_quantize_args)                                                                 \
	X(step_rope, step_rope_args)                                                                         \
	X(step_sample_greedy, step_sample_args)                                                              \
	X(step_sample_plain, step_sample_args)                                                               \
	X(step_sample_scan, step_sample_args)                                                                \
	X(step_sample_choose, step_sample_args)                                                              \
	X(step_sample_count, step_count_args)
#define X(entry, type)                                                                                       \
	static void call_##entry(const void *args)                                                           \
	{                                                                                                    \
		entry(*(const struct type *)args);                                                           \
	}                                                                                                    \
	static void run_##entry(const char *name, struct ref_grid grid, const void *args)                    \
	{                                                                                                    \
		(void)name;                                                                                  \
		emulate(call_##entry, args, grid.blocks, grid.threads);                                      \
	}
STEP_ENTRIES(X)
#undef X

#define ROW(entry, type, out)                                                                                \
	{                                                                                                    \
#entry, run_##entry, sizeof(struct type), offsetof(struct type, out)                         \
	}
const struct ref_row ref_step_rows[] = {
	ROW(step_embed, step_embed_args, x),
	ROW(step_rmsnorm, step_norm_args, y),
	ROW(step_swiglu, step_swiglu_args, h),
	ROW(step_swiglu_e4m3, step_swiglu_args, h),
	ROW(step_swiglu_e4m3_wide, step_swiglu_args, h),
	ROW(step_quantize, step_quantize_args, y_e4m3),
	ROW(step_rope, step_rope_args, qkv),
	ROW(step_adapter_mask, step_mask_args, u),
	ROW(step_adapter_scale, step_scale_args, y),
	{NULL, NULL, 0, 0},
};
const struct ref_row ref_step_sample[] = {
	ROW(step_sample_greedy, step_sample_args, results),
	ROW(step_sample_plain, step_sample_args, results),
	ROW(step_sample_scan, step_sample_args, part),
	ROW(step_sample_choose, step_sample_args, results),
	ROW(step_sample_count, step_count_args, counts),
	{NULL, NULL, 0, 0},
};
