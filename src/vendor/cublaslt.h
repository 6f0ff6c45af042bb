/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of cuBLASLt that plans, searches and runs GEMMs. Types and constants are written by hand, so the
 * program builds the same with and without the CUDA toolkit. tests/unit/vendor_headers.c defines
 * VENDOR_REAL_HEADERS and checks every row, size and constant against cublasLt.h if that is installed.
 */
#ifndef VENDOR_CUBLASLT_H
#define VENDOR_CUBLASLT_H
#include <stddef.h>
#include <stdint.h>
#include "vendor/lib.h"

#ifndef CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA /* <cublasLt.h> was not included */
struct CUstream_st;
struct cublasLtContext;
typedef struct CUstream_st *cudaStream_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef unsigned cublasStatus_t, cublasComputeType_t, cudaDataType_t, cudaDataType;
typedef unsigned cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t;
typedef unsigned cublasLtMatmulPreferenceAttributes_t;
typedef unsigned cublasLtMatmulAlgoCapAttributes_t, cublasLtMatmulAlgoConfigAttributes_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t, cublasLtMatmulAlgo_t, cublasLtMatmulPreferenceOpaque_t;
typedef struct {
	uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

/* type, bytes */
/* clang-format off */
#define CUBLASLT_SIZES(X)                       \
	X(cublasLtMatmulHeuristicResult_t, 96)  \
	X(cublasLtMatmulAlgo_t, 64)             \
	X(cublasLtMatmulDescOpaque_t, 256)      \
	X(cublasLtMatrixLayoutOpaque_t, 64)     \
	X(cublasLtMatmulPreferenceOpaque_t, 64) \
	X(cublasStatus_t, 4)                    \
	X(cublasComputeType_t, 4)               \
	X(cudaDataType_t, 4)                    \
	X(cublasLtMatrixLayoutAttribute_t, 4)   \
	X(cublasLtMatmulDescAttributes_t, 4)
/* clang-format on */

/* The constants that this program uses. */
/* clang-format off */
#define CUBLASLT_CONSTANTS(X)                              \
	X(CUBLAS_STATUS_SUCCESS, 0)                        \
	X(CUBLAS_STATUS_NOT_INITIALIZED, 1)                \
	X(CUBLAS_STATUS_ALLOC_FAILED, 3)                   \
	X(CUBLAS_STATUS_INVALID_VALUE, 7)                  \
	X(CUBLAS_STATUS_ARCH_MISMATCH, 8)                  \
	X(CUBLAS_STATUS_EXECUTION_FAILED, 13)              \
	X(CUBLAS_STATUS_INTERNAL_ERROR, 14)                \
	X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                 \
	X(CUBLAS_OP_N, 0)                                  \
	X(CUBLAS_OP_T, 1)                                  \
	X(CUBLAS_COMPUTE_32F, 68)                          \
	X(CUBLAS_COMPUTE_64F, 70)                          \
	X(CUBLAS_COMPUTE_32I, 72)                          \
	X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)                \
	X(CUDA_R_32F, 0)                                   \
	X(CUDA_R_64F, 1)                                   \
	X(CUDA_R_16F, 2)                                   \
	X(CUDA_R_8I, 3)                                    \
	X(CUDA_R_32I, 10)                                  \
	X(CUDA_R_16BF, 14)                                 \
	X(CUDA_R_8F_E4M3, 28)                              \
	X(CUDA_R_8F_E5M2, 29)                              \
	X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)           \
	X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)  \
	X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                  \
	X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                  \
	X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                \
	X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)            \
	X(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 10)      \
	X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)   \
	X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)        \
	X(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15)        \
	X(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)        \
	X(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)        \
	X(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20)        \
	X(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)             \
	X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)         \
	X(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)           \
	X(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)           \
	X(CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, 0)      \
	X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, 2)     \
	X(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)   \
	X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, 4)      \
	X(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, 5)  \
	X(CUBLASLT_EPILOGUE_DEFAULT, 1)                    \
	X(CUBLASLT_EPILOGUE_RELU, 2)                       \
	X(CUBLASLT_EPILOGUE_BIAS, 4)                       \
	X(CUBLASLT_EPILOGUE_RELU_BIAS, 6)                  \
	X(CUBLASLT_EPILOGUE_GELU, 32)                      \
	X(CUBLASLT_EPILOGUE_GELU_BIAS, 36)                 \
	X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)     \
	X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)   \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)   \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)   \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)   \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)   \
	X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)       \
	X(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4)        \
	X(CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 0)             \
	X(CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, 1)      \
	X(CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, 2)      \
	X(CUBLASLT_ALGO_CAP_TILE_IDS, 6)                   \
	X(CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, 7)          \
	X(CUBLASLT_ALGO_CAP_STAGES_IDS, 13)                \
	X(CUBLASLT_ALGO_CONFIG_ID, 0)                      \
	X(CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                 \
	X(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)              \
	X(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)        \
	X(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)           \
	X(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5)           \
	X(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)               \
	X(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7)          \
	X(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)        \
	X(CUBLASLT_CLUSTER_SHAPE_AUTO, 0)                  \
	X(CUBLASLT_CLUSTER_SHAPE_1x1x1, 2)                 \
	X(CUBLASLT_CLUSTER_SHAPE_2x1x1, 3)                 \
	X(CUBLASLT_CLUSTER_SHAPE_1x2x1, 5)                 \
	X(CUBLASLT_CLUSTER_SHAPE_2x2x1, 6)                 \
	X(CUBLASLT_CLUSTER_SHAPE_4x1x1, 4)                 \
	X(CUBLASLT_CLUSTER_SHAPE_1x4x1, 8)
/* clang-format on */
#ifndef CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA
enum cublaslt_constant {
#define X(name, value) name = value,
	CUBLASLT_CONSTANTS(X)
#undef X
};
#endif

/* clang-format off */
#define CUBLASLT_FUNCTIONS(X)                                                                                  \
	X(REQUIRED, cublasStatus_t, create, cublasLtCreate, (cublasLtHandle_t *))                              \
	X(REQUIRED, cublasStatus_t, destroy, cublasLtDestroy, (cublasLtHandle_t))                              \
	X(REQUIRED, size_t, version, cublasLtGetVersion, (void))                                               \
	X(OPTIONAL, const char *, status_name, cublasLtGetStatusName, (cublasStatus_t))                        \
	X(OPTIONAL, const char *, status_text, cublasLtGetStatusString, (cublasStatus_t))                      \
	X(REQUIRED, cublasStatus_t, layout_create, cublasLtMatrixLayoutCreate,                                 \
	  (cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t, int64_t))                               \
	X(REQUIRED, cublasStatus_t, layout_destroy, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t))     \
	X(REQUIRED, cublasStatus_t, layout_set, cublasLtMatrixLayoutSetAttribute,                              \
	  (cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, size_t))                     \
	X(REQUIRED, cublasStatus_t, desc_create, cublasLtMatmulDescCreate,                                     \
	  (cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t))                                       \
	X(REQUIRED, cublasStatus_t, desc_destroy, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t))           \
	X(REQUIRED, cublasStatus_t, desc_set, cublasLtMatmulDescSetAttribute,                                  \
	  (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, size_t))                        \
	X(REQUIRED, cublasStatus_t, preference_create, cublasLtMatmulPreferenceCreate,                         \
	  (cublasLtMatmulPreference_t *))                                                                      \
	X(REQUIRED, cublasStatus_t, preference_destroy, cublasLtMatmulPreferenceDestroy,                       \
	  (cublasLtMatmulPreference_t))                                                                        \
	X(REQUIRED, cublasStatus_t, preference_set, cublasLtMatmulPreferenceSetAttribute,                      \
	  (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void *, size_t))            \
	X(REQUIRED, cublasStatus_t, heuristic, cublasLtMatmulAlgoGetHeuristic,                                 \
	  (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,             \
	   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,                    \
	   cublasLtMatmulHeuristicResult_t *, int *))                                                          \
	X(REQUIRED, cublasStatus_t, matmul, cublasLtMatmul,                                                    \
	  (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t,         \
	   const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *,   \
	   cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t))                \
	X(REQUIRED, cublasStatus_t, algo_ids, cublasLtMatmulAlgoGetIds,                                        \
	  (cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t, cudaDataType_t,              \
	   cudaDataType_t, cudaDataType_t, int, int *, int *))                                                 \
	X(REQUIRED, cublasStatus_t, algo_init, cublasLtMatmulAlgoInit,                                         \
	  (cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t, cudaDataType_t,              \
	   cudaDataType_t, cudaDataType_t, int, cublasLtMatmulAlgo_t *))                                       \
	X(REQUIRED, cublasStatus_t, algo_check, cublasLtMatmulAlgoCheck,                                       \
	  (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,             \
	   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *,                       \
	   cublasLtMatmulHeuristicResult_t *))                                                                 \
	X(REQUIRED, cublasStatus_t, cap_get, cublasLtMatmulAlgoCapGetAttribute,                                \
	  (const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoCapAttributes_t, void *, size_t, size_t *))         \
	X(REQUIRED, cublasStatus_t, config_set, cublasLtMatmulAlgoConfigSetAttribute,                          \
	  (cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t, const void *, size_t))                \
	X(REQUIRED, cublasStatus_t, config_get, cublasLtMatmulAlgoConfigGetAttribute,                          \
	  (const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t, void *, size_t, size_t *))
/* clang-format on */

struct cublaslt {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CUBLASLT_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec cublaslt_lib;
#endif
