/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by matmul.c and search.c. No other file includes this header. */
#ifndef GPU_MATMUL_INTERNAL_H
#define GPU_MATMUL_INTERNAL_H
#include "gpu/matmul/matmul.h"
#include "vendor/cublaslt.h"

struct matmul {
	struct cublaslt lt;
	struct lib_fact fact;
	cublasLtHandle_t handle;
	struct gpu_device *device;
	gpu_ptr workspace;
	uint64_t workspace_bytes;
};

/* cuBLASLt's type codes of a GEMM. The library's A and B are our B and A. */
struct matmul_codes {
	cublasComputeType_t compute;
	cudaDataType_t scale, a, b, c, d;
};

struct matmul_plan {
	struct matmul *mm;
	struct matmul_shape shape;
	struct matmul_codes codes;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c, d;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t *candidates;
	unsigned count, room, selected;
	bool only_wide; /* the library's candidates all have wider clusters than the shape's cluster_most */
	gpu_ptr bias, scale_a, scale_b; /* current values in the descriptor */
};

/* Runs one library call. Converts its status to ours, and fills *err with the call's name and the library's
 * name of the error. */
#define LT_CALL(mm, err, field, ...) matmul_check((mm), (mm)->lt.field(__VA_ARGS__), #field, (err))
enum status matmul_check(const struct matmul *mm, cublasStatus_t code, const char *call, struct error *err);
#endif
