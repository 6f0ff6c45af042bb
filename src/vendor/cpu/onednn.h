/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN: the GEMM of both C APIs. Version 2 (Debian 12: libdnnl.so.2) has descriptors as structs that the
 * caller holds. Version 3 (libdnnl.so.3) has them as handles. Functions that both versions have in the same
 * form are required. The others are optional rows, and one version's rows are complete (dnnl_api). Types are
 * written by hand. tests/unit/vendor_headers.c checks rows, sizes and constants against the header of the
 * installed version.
 */
#ifndef VENDOR_CPU_ONEDNN_H
#define VENDOR_CPU_ONEDNN_H
#include <stddef.h>
#include <stdint.h>
#include "vendor/lib.h"

#ifndef ONEAPI_DNNL_DNNL_H /* <oneapi/dnnl/dnnl.h> was not included */
typedef struct dnnl_engine *dnnl_engine_t;
typedef struct dnnl_stream *dnnl_stream_t;
typedef struct dnnl_memory *dnnl_memory_t;
typedef struct dnnl_primitive *dnnl_primitive_t;
typedef const struct dnnl_primitive *const_dnnl_primitive_t;
typedef struct dnnl_primitive_desc *dnnl_primitive_desc_t;
typedef const struct dnnl_primitive_desc *const_dnnl_primitive_desc_t;
typedef const struct dnnl_primitive_attr *const_dnnl_primitive_attr_t;
typedef const void *const_dnnl_op_desc_t;
typedef unsigned dnnl_status_t, dnnl_engine_kind_t, dnnl_data_type_t, dnnl_query_t;
typedef int64_t dnnl_dims_t[12];
typedef struct {
	int arg;
	dnnl_memory_t memory;
} dnnl_exec_arg_t;
typedef struct {
	int major, minor, patch;
	const char *hash;
	unsigned cpu_runtime, gpu_runtime;
} dnnl_version_t;
#endif
#if !defined(ONEAPI_DNNL_DNNL_H)
#define DNNL_DESC_IN const void *
#define DNNL_2_DESC void
#define DNNL_2_MATMUL void
#define DNNL_3_DESC void *
#elif DNNL_VERSION_MAJOR < 3
#define DNNL_DESC_IN const dnnl_memory_desc_t *
#define DNNL_2_DESC dnnl_memory_desc_t
#define DNNL_2_MATMUL dnnl_matmul_desc_t
#define DNNL_3_DESC void *
#else
#define DNNL_DESC_IN const_dnnl_memory_desc_t
#define DNNL_2_DESC void
#define DNNL_2_MATMUL void
#define DNNL_3_DESC dnnl_memory_desc_t
typedef const void *const_dnnl_op_desc_t;
#endif

/* Room for version 2's structs: they have 696 and 2800 bytes in 2.6. */
enum { DNNL_MEMORY_DESC_ROOM = 1024, DNNL_MATMUL_DESC_ROOM = 4096 };

#define DNNL_CONSTANTS(X)                                                                                    \
	X(dnnl_success, 0)                                                                                   \
	X(dnnl_out_of_memory, 1)                                                                             \
	X(dnnl_unimplemented, 3)                                                                             \
	X(dnnl_cpu, 1)                                                                                       \
	X(dnnl_bf16, 2)                                                                                      \
	X(dnnl_f32, 3)                                                                                       \
	X(dnnl_s32, 4)                                                                                       \
	X(dnnl_s8, 5)                                                                                        \
	X(dnnl_stream_in_order, 1)                                                                           \
	X(dnnl_query_impl_info_str, 8)
/* The header has these as macros, so we define constants of our own. */
#define DNNL_ARGUMENTS(X)                                                                                    \
	X(DNNL_ARG_SRC, 1)                                                                                   \
	X(DNNL_ARG_DST, 17)                                                                                  \
	X(DNNL_ARG_WEIGHTS, 33)                                                                              \
	X(DNNL_ARG_BIAS, 41)

#ifndef ONEAPI_DNNL_DNNL_H
#define X(name, value) name = value,
enum { DNNL_CONSTANTS(X) DNNL_ARGUMENTS(X) };
#undef X
#endif

/* Columns: need, ret, field, symbol, params. In both versions. A memory descriptor is a pointer in either. */
#define DNNL_COMMON_FUNCTIONS(X)                                                                             \
	X(REQUIRED, const dnnl_version_t *, version, dnnl_version, (void))                                   \
	X(REQUIRED, dnnl_status_t, engine_create, dnnl_engine_create,                                        \
	  (dnnl_engine_t *, dnnl_engine_kind_t, size_t index))                                               \
	X(REQUIRED, dnnl_status_t, engine_destroy, dnnl_engine_destroy, (dnnl_engine_t))                     \
	X(REQUIRED, dnnl_status_t, stream_create, dnnl_stream_create,                                        \
	  (dnnl_stream_t *, dnnl_engine_t, unsigned flags))                                                  \
	X(REQUIRED, dnnl_status_t, stream_wait, dnnl_stream_wait, (dnnl_stream_t))                           \
	X(REQUIRED, dnnl_status_t, stream_destroy, dnnl_stream_destroy, (dnnl_stream_t))                     \
	X(REQUIRED, dnnl_status_t, memory_destroy, dnnl_memory_destroy, (dnnl_memory_t))                     \
	X(REQUIRED, dnnl_status_t, primitive_create, dnnl_primitive_create,                                  \
	  (dnnl_primitive_t *, const_dnnl_primitive_desc_t))                                                 \
	X(REQUIRED, dnnl_status_t, primitive_destroy, dnnl_primitive_destroy, (dnnl_primitive_t))            \
	X(REQUIRED, dnnl_status_t, primitive_desc_destroy, dnnl_primitive_desc_destroy,                      \
	  (dnnl_primitive_desc_t))                                                                           \
	X(REQUIRED, dnnl_status_t, primitive_desc_query, dnnl_primitive_desc_query,                          \
	  (const_dnnl_primitive_desc_t, dnnl_query_t, int index, void *result))                              \
	X(REQUIRED, dnnl_status_t, primitive_execute, dnnl_primitive_execute,                                \
	  (const_dnnl_primitive_t, dnnl_stream_t, int count, const dnnl_exec_arg_t *))
/* Version 2 passes a descriptor by address, version 3 by handle: a pointer either way. */
#define DNNL_POINTER_FUNCTIONS(X)                                                                            \
	X(REQUIRED, dnnl_status_t, memory_create, dnnl_memory_create,                                        \
	  (dnnl_memory_t *, DNNL_DESC_IN, dnnl_engine_t, void *data))
#define DNNL_2_FUNCTIONS(X)                                                                                  \
	X(OPTIONAL, dnnl_status_t, memory_desc_init_by_strides, dnnl_memory_desc_init_by_strides,            \
	  (DNNL_2_DESC *, int count, const dnnl_dims_t, dnnl_data_type_t, const dnnl_dims_t strides))        \
	X(OPTIONAL, dnnl_status_t, matmul_desc_init, dnnl_matmul_desc_init,                                  \
	  (DNNL_2_MATMUL *, const DNNL_2_DESC *a, const DNNL_2_DESC *b, const DNNL_2_DESC *bias,             \
	   const DNNL_2_DESC *c))                                                                            \
	X(OPTIONAL, dnnl_status_t, primitive_desc_create, dnnl_primitive_desc_create,                        \
	  (dnnl_primitive_desc_t *, const_dnnl_op_desc_t, const_dnnl_primitive_attr_t, dnnl_engine_t,        \
	   const_dnnl_primitive_desc_t hint))
#define DNNL_3_FUNCTIONS(X)                                                                                  \
	X(OPTIONAL, dnnl_status_t, memory_desc_create_with_strides, dnnl_memory_desc_create_with_strides,    \
	  (DNNL_3_DESC *, int count, const dnnl_dims_t, dnnl_data_type_t, const dnnl_dims_t strides))        \
	X(OPTIONAL, dnnl_status_t, memory_desc_destroy, dnnl_memory_desc_destroy, (DNNL_3_DESC))             \
	X(OPTIONAL, dnnl_status_t, matmul_primitive_desc_create, dnnl_matmul_primitive_desc_create,          \
	  (dnnl_primitive_desc_t *, dnnl_engine_t, DNNL_DESC_IN a, DNNL_DESC_IN b, DNNL_DESC_IN bias,        \
	   DNNL_DESC_IN c, const_dnnl_primitive_attr_t))
/* Sets the threads of the library's OpenMP. Found through the library's own dependencies. */
#define DNNL_OPENMP_FUNCTIONS(X) X(OPTIONAL, void, omp_set_num_threads, omp_set_num_threads, (int count))
#define DNNL_FUNCTIONS(X)                                                                                    \
	DNNL_COMMON_FUNCTIONS(X)                                                                             \
	DNNL_POINTER_FUNCTIONS(X)                                                                            \
	DNNL_2_FUNCTIONS(X)                                                                                  \
	DNNL_3_FUNCTIONS(X)                                                                                  \
	DNNL_OPENMP_FUNCTIONS(X)

struct dnnl {
#define X(need, ret, field, symbol, params) ret(*field) params;
	DNNL_FUNCTIONS(X)
#undef X
};

/* The API version whose GEMM this table can call, 2 or 3; 0: neither is complete. */
int dnnl_api(const struct dnnl *dnnl);
const char *dnnl_status_text(dnnl_status_t status);

extern const struct lib_spec onednn_lib; /* "onednn" */
#endif
