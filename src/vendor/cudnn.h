/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of cuDNN that builds and runs operation graphs: its backend descriptors. Types and constants are
 * written by hand, so the program builds the same with and without cuDNN's headers.
 * tests/unit/vendor_headers.c checks every row and constant against cudnn.h if that is installed.
 */
#ifndef VENDOR_CUDNN_H
#define VENDOR_CUDNN_H
#include <stddef.h>
#include <stdint.h>
#include "vendor/lib.h"

#ifndef CUDNN_GRAPH_H_ /* <cudnn.h> was not included */
struct CUstream_st;
struct cudnnContext;
typedef struct CUstream_st *cudaStream_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
typedef unsigned cudnnStatus_t, cudnnDataType_t, cudnnPointwiseMode_t, cudnnReduceTensorOp_t;
typedef unsigned cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t;
typedef unsigned cudnnBackendHeurMode_t, cudnnBackendKnobType_t;
#endif

/* The constants that this program uses. The thousands digit of a status is its kind. */
/* clang-format off */
#define CUDNN_CONSTANTS(X)                                                      \
	X(CUDNN_STATUS_SUCCESS, 0)                                              \
	X(CUDNN_STATUS_NOT_INITIALIZED, 1001)                                   \
	X(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)                       \
	X(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, 1008)                         \
	X(CUDNN_STATUS_BAD_PARAM, 2000)                                         \
	X(CUDNN_STATUS_NOT_SUPPORTED, 3000)                                     \
	X(CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, 3008)        \
	X(CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)              \
	X(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)            \
	X(CUDNN_STATUS_INTERNAL_ERROR, 4000)                                    \
	X(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)             \
	X(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004)           \
	X(CUDNN_STATUS_EXECUTION_FAILED, 5000)                                  \
	X(CUDNN_DATA_FLOAT, 0)                                                  \
	X(CUDNN_DATA_HALF, 2)                                                   \
	X(CUDNN_DATA_INT32, 4)                                                  \
	X(CUDNN_DATA_BFLOAT16, 9)                                               \
	X(CUDNN_DATA_INT64, 10)                                                 \
	X(CUDNN_DATA_BOOLEAN, 11)                                               \
	X(CUDNN_DATA_FP8_E4M3, 12)                                              \
	X(CUDNN_TYPE_HANDLE, 0)                                                 \
	X(CUDNN_TYPE_DATA_TYPE, 1)                                              \
	X(CUDNN_TYPE_BOOLEAN, 2)                                                \
	X(CUDNN_TYPE_INT64, 3)                                                  \
	X(CUDNN_TYPE_FLOAT, 4)                                                  \
	X(CUDNN_TYPE_VOID_PTR, 6)                                               \
	X(CUDNN_TYPE_HEUR_MODE, 8)                                              \
	X(CUDNN_TYPE_KNOB_TYPE, 9)                                              \
	X(CUDNN_TYPE_POINTWISE_MODE, 14)                                        \
	X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                    \
	X(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)                               \
	X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                \
	X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                   \
	X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                \
	X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                               \
	X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                           \
	X(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)                              \
	X(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, 8)                                \
	X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                     \
	X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                          \
	X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                            \
	X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                  \
	X(CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                                  \
	X(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                        \
	X(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                               \
	X(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                     \
	X(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                       \
	X(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, 41)                      \
	X(CUDNN_ATTR_POINTWISE_MODE, 0)                                         \
	X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                    \
	X(CUDNN_ATTR_POINTWISE_AXIS, 9)                                         \
	X(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                      \
	X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                           \
	X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                   \
	X(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                     \
	X(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302)                               \
	X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                \
	X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                         \
	X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                        \
	X(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                                \
	X(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                               \
	X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                    \
	X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                            \
	X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                            \
	X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                            \
	X(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)                            \
	X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                \
	X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                   \
	X(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)                   \
	X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                \
	X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                     \
	X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                    \
	X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                       \
	X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                     \
	X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                    \
	X(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                                   \
	X(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, 913)                            \
	X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                             \
	X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                          \
	X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                              \
	X(CUDNN_ATTR_KNOB_INFO_TYPE, 1200)                                      \
	X(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, 1201)                             \
	X(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, 1202)                             \
	X(CUDNN_ATTR_KNOB_INFO_STRIDE, 1203)                                    \
	X(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300)                              \
	X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                                 \
	X(CUDNN_ATTR_ENGINE_KNOB_INFO, 1302)                                    \
	X(CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                                    \
	X(CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                              \
	X(CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                              \
	X(CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                              \
	X(CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)                               \
	X(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, 1525)               \
	X(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, 1526)               \
	X(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, 1527)               \
	X(CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                                  \
	X(CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)                                 \
	X(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)                           \
	X(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)                           \
	X(CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)                            \
	X(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                             \
	X(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)                             \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, 2800)                            \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, 2801)                            \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, 2802)                            \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, 2803)                            \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, 2804)                        \
	X(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, 2805)                        \
	X(CUDNN_POINTWISE_ADD, 0)                                               \
	X(CUDNN_POINTWISE_MUL, 1)                                               \
	X(CUDNN_POINTWISE_DIV, 6)                                               \
	X(CUDNN_POINTWISE_SUB, 9)                                               \
	X(CUDNN_POINTWISE_EXP, 13)                                              \
	X(CUDNN_POINTWISE_LOG, 15)                                              \
	X(CUDNN_POINTWISE_IDENTITY, 21)                                         \
	X(CUDNN_POINTWISE_CMP_GT, 302)                                          \
	X(CUDNN_POINTWISE_CMP_GE, 303)                                          \
	X(CUDNN_POINTWISE_CMP_LT, 304)                                          \
	X(CUDNN_POINTWISE_LOGICAL_AND, 400)                                     \
	X(CUDNN_POINTWISE_GEN_INDEX, 501)                                       \
	X(CUDNN_POINTWISE_BINARY_SELECT, 601)                                   \
	X(CUDNN_REDUCE_TENSOR_ADD, 0)                                           \
	X(CUDNN_REDUCE_TENSOR_MAX, 3)                                           \
	X(CUDNN_REDUCE_TENSOR_AMAX, 4)                                          \
	X(CUDNN_HEUR_MODE_A, 3)                                                 \
	X(CUDNN_HEUR_MODE_FALLBACK, 2)
/* clang-format on */
#ifndef CUDNN_GRAPH_H_
enum cudnn_constant {
#define X(name, value) name = value,
	CUDNN_CONSTANTS(X)
#undef X
};
#endif

/* clang-format off */
#define CUDNN_FUNCTIONS(X)                                                                              \
	X(REQUIRED, size_t, version, cudnnGetVersion, (void))                                           \
	X(REQUIRED, const char *, status_text, cudnnGetErrorString, (cudnnStatus_t))                    \
	X(OPTIONAL, void, last_text, cudnnGetLastErrorString, (char *, size_t))                         \
	X(REQUIRED, cudnnStatus_t, create, cudnnCreate, (cudnnHandle_t *))                              \
	X(REQUIRED, cudnnStatus_t, destroy, cudnnDestroy, (cudnnHandle_t))                              \
	X(REQUIRED, cudnnStatus_t, set_stream, cudnnSetStream, (cudnnHandle_t, cudaStream_t))           \
	X(REQUIRED, cudnnStatus_t, desc_create, cudnnBackendCreateDescriptor,                           \
	  (cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *))                                   \
	X(REQUIRED, cudnnStatus_t, desc_destroy, cudnnBackendDestroyDescriptor,                         \
	  (cudnnBackendDescriptor_t))                                                                   \
	X(REQUIRED, cudnnStatus_t, desc_finalize, cudnnBackendFinalize, (cudnnBackendDescriptor_t))     \
	X(REQUIRED, cudnnStatus_t, desc_set, cudnnBackendSetAttribute,                                  \
	  (cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t, \
	   const void *))                                                                               \
	X(REQUIRED, cudnnStatus_t, desc_get, cudnnBackendGetAttribute,                                  \
	  (cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t, \
	   int64_t *, void *))                                                                          \
	X(REQUIRED, cudnnStatus_t, execute, cudnnBackendExecute,                                        \
	  (cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t))
/* clang-format on */

struct cudnn {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CUDNN_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec cudnn_lib;
#endif
