/* SPDX-License-Identifier: Apache-2.0 */
/* src/kernel/bnb4 itself in its references' place, as emulate_decode.c has decode.cu. */
#include "emulate.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"     /* of unrolling */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* vectors that a part does not have */
#pragma GCC diagnostic ignored "-Wunused-function"
#define __ldg(p) (*(p))
#define __fmul_rn(x, y) ((float)((x) * (y)))
#define __fadd_rn(x, y) ((float)((x) + (y)))
#define __fsub_rn(x, y) ((float)((x) - (y)))
#define __frcp_rn(x) (1.0f / (x))
/* emulate.h stands first: it says what nvcc's words mean. */
#include "kernel/bnb4/bnb4.cu"
#undef __CUDACC__
#include "ref.h"

#define BNB4_ENTRIES(X)                                                                                      \
	X(bnb4_dequantize, bnb4_dequantize_args, matrix[0].to)                                               \
	X(bnb4_to_fp8, bnb4_fp8_args, q.to)                                                                  \
	X(bnb4_quantize, bnb4_quantize_args, codes)                                                          \
	X(bnb4_group_sums, bnb4_nest_args, sums)                                                             \
	X(bnb4_mean, bnb4_nest_args, offset)                                                                 \
	X(bnb4_nest, bnb4_nest_args, absmax_codes)
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
BNB4_ENTRIES(X)
#undef X

const struct ref_row ref_bnb4[] = {
#define X(entry, type, out) {#entry, run_##entry, sizeof(struct type), offsetof(struct type, out)},
	BNB4_ENTRIES(X)
#undef X
		{NULL, NULL, 0, 0},
};
