/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs for generation with weights in F32, BF16 or F16, and the products of attention. Each element of the
 * result is a sum in a fixed order, so its bits do not depend on the number of rows.
 */
#ifndef MODEL_CPU_ROW_GEMM_H
#define MODEL_CPU_ROW_GEMM_H
#include "model/backend/ops.h"

/* Weights w [columns, k] and rows x [rows, k]; the distances of rows are in elements. */
struct row_product {
	const void *w;
	const float *x;
	float *out; /* [rows, columns] */
	int64_t rows, columns, k, ldw, ldx, ldo;
};
/* out = x w' */
typedef void (*row_multiply)(const struct row_product *p);
enum row_width { ROW_PLAIN, ROW_AVX2, ROW_AVX512, ROW_WIDTHS };
/* NULL: this machine lacks the instructions. ROW_PLAIN is always available. */
row_multiply cpu_row_multiply(enum dtype dtype, enum row_width width);

enum row_width cpu_row_widest(void);

/* Sums of rows v [count, columns] with weights p [rows, count]. */
struct row_sum {
	const float *p, *v;
	float *out; /* [rows, columns] */
	int64_t rows, columns, count, ldp, ldv, ldo;
};
/* out += p v, for each element in the order of the rows of v */
typedef void (*row_add)(const struct row_sum *s);
row_add cpu_row_add(enum row_width width); /* NULL as above */

/* Whether cpu_gemm_rows takes the operation: x w' with x in F32. */
bool cpu_rows_take(const struct gemm *g);
void cpu_gemm_rows(struct backend *back, const struct gemm *g);
#endif
