/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs with weights that stay in GGUF's quantized blocks of 32 (Q8_0, Q4_0, Q4_1), for generation. Few rows
 * of x are quantized to bytes with one scale per block, and integers are multiplied. For many rows, panels of
 * the weights are dequantized.
 */
#ifndef MODEL_CPU_QUANTISED_GEMM_H
#define MODEL_CPU_QUANTISED_GEMM_H
#include "model/backend/ops.h"

enum { CPU_BLOCK = 32 };
struct cpu_block {	  /* A block of x, about scale * q. */
	float scale, sum; /* sum: scale times the sum of q */
	int8_t q[CPU_BLOCK];
};

/* Dot product of a quantized row of weights and a quantized row of x. */
typedef float (*row_dot)(const uint8_t *w, const struct cpu_block *x, int64_t blocks);
enum cpu_width { CPU_PLAIN, CPU_AVX2, CPU_VNNI, CPU_WIDTHS };
/* NULL: this machine lacks the instructions. CPU_PLAIN is always available. */
row_dot cpu_blocks_dot(enum dtype dtype, enum cpu_width width);

/* Whether weights of this type stay quantized in memory. */
bool cpu_blocks_of(enum dtype dtype);
/* g->b has such a type and op(b) is transposed; everything else is F32. */
enum status cpu_gemm_blocks(struct backend *back, const struct gemm *g, struct error *err);
#endif
