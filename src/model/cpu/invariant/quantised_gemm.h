/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs with weights that stay in GGUF's quantized blocks of 32 (Q8_0, Q4_0, Q4_1), for generation. Rows of x
 * are quantized to bytes with one scale per block, and integers are multiplied. Each element of the result is
 * the sum over its blocks in their order, so its bits do not depend on the number of rows.
 *
 * Weights are packed once after loading (struct mat, `panels`): 16 rows are interleaved, so that one vector
 * holds four elements of each. For each block, a panel has 16 scales first (for Q4_1 also 16 least values).
 * Then come the first four bytes of each row's block, the next four bytes of each, and so on. Rows beyond the
 * last whole panel stay as they are.
 */
#ifndef MODEL_CPU_QUANTISED_GEMM_H
#define MODEL_CPU_QUANTISED_GEMM_H
#include "model/backend/ops.h"

enum { CPU_BLOCK = 32, CPU_PANEL = 16 };

/* Rows of x: scale * q, and the sum of each block's q. */
struct cpu_rows {
	const int8_t *q;    /* [rows, 32 blocks] */
	const float *scale; /* [rows, blocks] */
	const int32_t *sum; /* [rows, blocks] */
	int64_t blocks;
};

/* Dot products of a panel with rows first .. first + rows - 1 of x: out [rows, 16]. */
typedef void (*panel_dot)(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,
			  float *out);
enum cpu_width { CPU_PLAIN, CPU_AVX2, CPU_AVX_VNNI, CPU_AVX512_VNNI, CPU_WIDTHS };
/* NULL: this machine lacks the instructions. CPU_PLAIN is always available. */
panel_dot cpu_panel_dot(enum dtype dtype, enum cpu_width width);
/* The same for one row of weights that is not in a panel: out [rows, 16], of which the first of each 16 is
 * set. */
void cpu_row_dot(enum dtype dtype, const uint8_t *w, const struct cpu_rows *x, int64_t first, int64_t rows,
		 float *out);

/* Whether weights of this type stay quantized in memory. */
bool cpu_blocks_of(enum dtype dtype);
/* Bytes of quantized x, and its parts in memory of that size. */
int64_t cpu_rows_bytes(int64_t rows, int64_t cols);
/* Packs weights in place. NO_RESOURCE: no memory for one panel. */
enum status cpu_pack(struct backend *back, struct mat *w, struct error *err);
/* Elements of one row, from a packed matrix or one that is not. */
void cpu_unpack_row(const struct mat *m, int64_t row, float *out);
/* g->b has such a type and op(b) is transposed; everything else is F32. */
enum status cpu_gemm_blocks(struct backend *back, const struct gemm *g, struct error *err);
#endif
