/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the fake cuBLASLt (cublaslt.c) share. */
#ifndef TESTS_FAKE_CUBLASLT_FAKE_H
#define TESTS_FAKE_CUBLASLT_FAKE_H
#include <stdbool.h>
#include <stdint.h>
#include "vendor/cublaslt.h"

struct layout {
	cudaDataType type;
	uint64_t rows, columns;
	int64_t step, batch_step;
	int32_t batch;
};

struct description {
	cublasComputeType_t compute;
	cudaDataType_t scale;
	uint32_t transpose_a, transpose_b, epilogue;
	const void *bias;
	const float *scale_a, *scale_b;
	uint32_t mode_a, mode_b; /* of the scales: one, one per row, or one per 128 elements or 128 x 128 */
};

/* All that a product is of, as it was when it was asked for. */
struct product {
	struct description e;
	struct layout la, lb, lc, ld;
	int64_t parts; /* k is split into so many, whose sums are rounded to D's type; 1: none is rounded */
	bool rounds_product; /* to D's type, before C is added */
	double alpha, beta;
	const void *a, *b, *c;
	void *d;
};

/* Whether scales are per 128 elements or per 128 x 128. */
bool fake_is_blocks(uint32_t mode);
/* The type's number in kernel/test_data/gemm.h; -1: it has none. */
int fake_operand_type(cudaDataType type);
/* Computes D now. */
void fake_multiply(const struct product *p);
#endif
