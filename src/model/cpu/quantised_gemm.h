/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with weights that stay in GGUF's blocks of 32 (Q8_0, Q4_0, Q4_1), for generation: few rows of x
 * become bytes with a scale a block as well, and whole numbers are multiplied; many rows are multiplied with
 * panels of weights made numbers.
 */
#ifndef MODEL_CPU_QUANTISED_GEMM_H
#define MODEL_CPU_QUANTISED_GEMM_H
#include "model/backend/ops.h"

enum { CPU_BLOCK = 32 };
struct cpu_block {	  /* of x: about scale * q */
	float scale, sum; /* sum: scale times the sum of q */
	int8_t q[CPU_BLOCK];
};

/* A row of weights in blocks times a row of x in blocks. */
typedef float (*row_dot)(const uint8_t *w, const struct cpu_block *x, int64_t blocks);
enum cpu_width { CPU_PLAIN, CPU_AVX2, CPU_VNNI, CPU_WIDTHS };
/* NULL: this machine has no such instructions; CPU_PLAIN is there always. */
row_dot cpu_blocks_dot(enum dtype dtype, enum cpu_width width);

/* Types that stay as they are. */
bool cpu_blocks_of(enum dtype dtype);
/* g->b is such weights, op(b) is transposed, the rest F32. */
enum status cpu_gemm_blocks(struct backend *back, const struct gemm *g, struct error *err);
#endif
