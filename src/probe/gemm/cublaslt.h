/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions that the files of engine `cublaslt` share. */
#ifndef PROBE_GEMM_CUBLASLT_H
#define PROBE_GEMM_CUBLASLT_H
#include "gpu/matmul/matmul.h"
#include "probe/gemm/gemm.h"
#include "probe/shared/operand_sets.h"

struct gemm_set {
	gpu_ptr a, b, c;
};

struct gemm_cublaslt {
	struct gemm common;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct matmul *matmul;
	struct matmul_plan *plan;
	struct matmul_shape shape;
	struct gemm_set set[OPERAND_SETS_MAX];
	gpu_ptr bias, scale_a, scale_b, sums, odd, record;
	uint64_t c_words; /* 32-bit words of one C; the last word is padded */
	uint8_t *tried;	  /* per candidate: 1 it runs, 2 it does not run */
	char name[96];
	struct gpu_kernel *fill, *products, *compare, *hash;
};

/* Enqueues one GEMM on the set. */
enum status gemm_cublaslt_multiply(struct gemm_cublaslt *s, unsigned set, struct error *err);
/* Loads the kernels that gemm_cublaslt_access uses. Call it first. */
enum status gemm_cublaslt_kernels(struct gemm_cublaslt *s, struct error *err);
extern const struct gemm_access gemm_cublaslt_access;
#endif
