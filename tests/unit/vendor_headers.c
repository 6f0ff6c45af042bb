/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vendor tables against the vendors' own headers, where the build machine has them: a row with a wrong parameter,
 * or a constant with a wrong value, does not compile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#if __has_include(<cuda.h>)
#define HAVE_CUDA_H 1
#define __CUDA_API_VERSION_INTERNAL 1 /* every version of each function, not the newest alone */
#include <cuda.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAVE_CUBLASLT_H
#endif
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<cupti_range_profiler.h>) && __has_include(<cupti_pmsampling.h>) && HAVE_CUDA_H
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h> /* C but for an include of <string>: of no file, see unit/plain */
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>
#if CUPTI_API_VERSION >= 130000 /* older ones have the structures, and not every result */
#define HAVE_CUPTI_H
#endif
#endif
#if __has_include(<cblas.h>)
#include <cblas.h>
#endif
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#endif
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif
#include "vendor/cpu/openblas.h"
#include "vendor/cublaslt.h"
#include "vendor/cublaslt_shapes.h"
#include "vendor/cuda.h"
#include "vendor/cudnn.h"
#include "vendor/cupti.h"
#include "vendor/cpu/onednn.h"
#include "vendor/nccl.h"

#ifdef HAVE_CUDA_H
#define X(need, ret, field, symbol, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct cuda *)0)->field), __typeof__(&symbol)), \
		       #symbol);
CUDA_FUNCTIONS(X)
#undef X
#define X(name, value, status, cause) _Static_assert((int)name == value, #name);
CUDA_RESULTS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
CUDA_ATTRIBUTES(X)
CUDA_CONSTANTS(X)
#undef X
#endif

#ifdef HAVE_CUBLASLT_H
#define X(need, ret, field, symbol, params)                                                                    \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct cublaslt *)0)->field), __typeof__(&symbol)), \
		       #symbol);
CUBLASLT_FUNCTIONS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
CUBLASLT_CONSTANTS(X)
#undef X
#define X(m, n) TILE_##m##x##n,
enum { TILE_NONE, CUBLASLT_TILES(X) };
#undef X
#define X(m, n) _Static_assert((int)CUBLASLT_MATMUL_TILE_##m##x##n == (int)TILE_##m##x##n, #m "x" #n);
CUBLASLT_TILES(X)
#undef X
#define X(id, k, stages) _Static_assert((int)CUBLASLT_MATMUL_STAGES_##k##x##stages == id, #k "x" #stages);
CUBLASLT_STAGES(X)
#undef X
#define X(id, m, n) _Static_assert((int)CUBLASLT_CLUSTER_SHAPE_##m##x##n##x1 == id, #m "x" #n);
CUBLASLT_CLUSTERS(X)
#undef X
#endif
#define X(type, size) _Static_assert(sizeof(type) == size, #type);
CUBLASLT_SIZES(X)
#undef X

#if defined(CUDNN_GRAPH_H_) && CUDNN_VERSION >= 91301 /* the first with the fused operation's names */
#define X(need, ret, field, symbol, params)                                                                 \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct cudnn *)0)->field), __typeof__(&symbol)), \
		       #symbol);
CUDNN_FUNCTIONS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
CUDNN_CONSTANTS(X)
#undef X
#endif
#ifdef HAVE_CUPTI_H
/* Each of our structures beside CUPTI's: the function's type, the size told, every member's place and size. */
#define MEMBER(type, own, its)                                                              \
	_Static_assert(offsetof(ours, own) == offsetof(theirs, its), #its);                 \
	_Static_assert(sizeof(((ours *)0)->own) == sizeof(((theirs *)0)->its), #its " of " #own);
#define X(need, name, symbol, real, members)                                                                        \
	__attribute__((unused)) static void check_##name(void)                                                      \
	{                                                                                                           \
		typedef struct cupti_##name ours;                                                                   \
		typedef real theirs;                                                                                \
		_Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), CUptiResult(*)(theirs *)), #symbol); \
		_Static_assert(offsetof(ours, end) == real##_STRUCT_SIZE, #real);                                   \
		members(MEMBER)                                                                                     \
	}
CUPTI_FUNCTIONS(X)
#undef X
#undef MEMBER
#define X(name, value, status, cause) _Static_assert((int)name == value, #name);
CUPTI_RESULTS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
CUPTI_CONSTANTS(X)
#undef X
#endif

#define X(need, ret, field, symbol, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct blas *)0)->field), __typeof__(&symbol)), \
		       #symbol);
#ifdef CBLAS_H
BLAS_CBLAS_FUNCTIONS(X)
#endif
#ifdef OPENBLAS_CONST /* OpenBLAS's own cblas.h has its threads' functions too */
BLAS_OPENBLAS_FUNCTIONS(X)
#endif
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
BLAS_CONSTANTS(X)
#undef X

#ifdef ONEAPI_DNNL_DNNL_H
#define X(need, ret, field, symbol, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct dnnl *)0)->field), __typeof__(&symbol)), \
		       #symbol);
DNNL_COMMON_FUNCTIONS(X)
DNNL_POINTER_FUNCTIONS(X)
#if DNNL_VERSION_MAJOR < 3
DNNL_2_FUNCTIONS(X)
_Static_assert(sizeof(dnnl_memory_desc_t) <= DNNL_MEMORY_DESC_ROOM, "room of a memory descriptor");
_Static_assert(sizeof(dnnl_matmul_desc_t) <= DNNL_MATMUL_DESC_ROOM, "room of a product's descriptor");
#else
DNNL_3_FUNCTIONS(X)
#endif
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
DNNL_CONSTANTS(X)
DNNL_ARGUMENTS(X)
#undef X
#endif

#ifdef NCCL_H_
#define X(need, ret, field, symbol, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct nccl *)0)->field), __typeof__(&symbol)), \
		       #symbol);
NCCL_FUNCTIONS(X)
#undef X
#define X(name, value, status, cause) _Static_assert((int)name == value, #name);
NCCL_RESULTS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
NCCL_TYPES(X)
NCCL_OPS(X)
#undef X
#endif
/* What an older library reads of it lies where it did. */
_Static_assert(offsetof(ncclConfig_t, blocking) == 16 && offsetof(ncclConfig_t, netName) == 32, "NCCL's configuration");
_Static_assert(offsetof(ncclConfig_t, commName) == 48 && sizeof(ncclConfig_t) >= 80, "NCCL's configuration");

static void test_vendor_headers__cupti_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef HAVE_CUPTI_H
	print_message("# no CUPTI headers of CUDA 13 on this machine: its rows are not held against it\n");
	skip();
#endif
	assert_int_equal(cupti_lib.table_size, cupti_lib.symbol_count * sizeof(void (*)(void)));
}

static void test_vendor_headers__nccl_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef NCCL_H_
	print_message("# no nccl.h on this machine: its rows are not held against it\n");
	skip();
#endif
	assert_int_equal(nccl_lib.table_size, nccl_lib.symbol_count * sizeof(void (*)(void)));
}

static void test_vendor_headers__cublaslt_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef HAVE_CUBLASLT_H
	print_message("# no cublasLt.h on this machine: its rows are not held against it\n");
	skip();
#endif
	assert_int_equal(cublaslt_lib.table_size, cublaslt_lib.symbol_count * sizeof(void (*)(void)));
}

static void test_vendor_headers__cudnn_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef CUDNN_GRAPH_H_
	print_message("# no cudnn.h on this machine: its rows are not held against it\n");
	skip();
#endif
	assert_int_equal(cudnn_lib.table_size, cudnn_lib.symbol_count * sizeof(void (*)(void)));
}

static void test_vendor_headers__cuda_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef HAVE_CUDA_H
	print_message("# no cuda.h on this machine: its rows are not held against it\n");
	skip();
#endif
	assert_int_equal(cuda_lib.table_size, cuda_lib.symbol_count * sizeof(void (*)(void)));
}

static void test_vendor_headers__blas_and_onednn_rows_are_the_headers(void **state)
{
	(void)state;
	assert_int_equal(openblas_lib.table_size, openblas_lib.symbol_count * sizeof(void (*)(void)));
	assert_int_equal(onednn_lib.table_size, onednn_lib.symbol_count * sizeof(void (*)(void)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vendor_headers__blas_and_onednn_rows_are_the_headers),
		cmocka_unit_test(test_vendor_headers__cublaslt_rows_are_the_headers),
		cmocka_unit_test(test_vendor_headers__cuda_rows_are_the_headers),
		cmocka_unit_test(test_vendor_headers__cudnn_rows_are_the_headers),
		cmocka_unit_test(test_vendor_headers__cupti_rows_are_the_headers),
		cmocka_unit_test(test_vendor_headers__nccl_rows_are_the_headers),
	};

	return cmocka_run_group_tests_name("vendor_headers", tests, NULL, NULL);
}
