/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS: the two GEMMs, its threads, and its description of itself. MKL and BLIS have the same GEMMs and
 * are used if ASSAY_LIB_OPENBLAS names them. Types are written by hand, so the program builds without its
 * headers. tests/unit/vendor_headers.c checks the rows against cblas.h if that is installed.
 */
#ifndef VENDOR_CPU_OPENBLAS_H
#define VENDOR_CPU_OPENBLAS_H
#include <stdint.h>
#include "vendor/lib.h"

#ifndef CBLAS_H /* <cblas.h> was not included */
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
#endif

#define BLAS_CONSTANTS(X)                                                                                    \
	X(CblasRowMajor, 101)                                                                                \
	X(CblasNoTrans, 111)                                                                                 \
	X(CblasTrans, 112)

/* Columns: need, ret, field, symbol, params. C = alpha op(A) op(B) + beta C; with beta 0, C is not read.
 * blas_settle determines which of these a library has. */
#define BLAS_CBLAS_FUNCTIONS(X)                                                                              \
	X(OPTIONAL, void, sgemm, cblas_sgemm,                                                                \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, float alpha, const float *a, \
	   int lda, const float *b, int ldb, float beta, float *c, int ldc))                                 \
	X(OPTIONAL, void, dgemm, cblas_dgemm,                                                                \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, double alpha,                \
	   const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc))
#define BLAS_OPENBLAS_FUNCTIONS(X)                                                                           \
	X(OPTIONAL, void, set_num_threads, openblas_set_num_threads, (int count))                            \
	X(OPTIONAL, int, get_num_threads, openblas_get_num_threads, (void))                                  \
	X(OPTIONAL, char *, get_config, openblas_get_config, (void))                                         \
	X(OPTIONAL, char *, get_corename, openblas_get_corename, (void))
/* Names in Python's wheels: with a prefix (scipy.libs), and for 64-bit integers also a suffix
 * (numpy.libs). */
#define BLAS_WHEEL_FUNCTIONS(X)                                                                              \
	X(OPTIONAL, void, wheel_sgemm, scipy_cblas_sgemm,                                                    \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, float alpha, const float *a, \
	   int lda, const float *b, int ldb, float beta, float *c, int ldc))                                 \
	X(OPTIONAL, void, wheel_dgemm, scipy_cblas_dgemm,                                                    \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, double alpha,                \
	   const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc))             \
	X(OPTIONAL, void, wheel_set_num_threads, scipy_openblas_set_num_threads, (int count))                \
	X(OPTIONAL, char *, wheel_get_config, scipy_openblas_get_config, (void))                             \
	X(OPTIONAL, char *, wheel_get_corename, scipy_openblas_get_corename, (void))
#define BLAS_WIDE_FUNCTIONS(X)                                                                               \
	X(OPTIONAL, void, wide_sgemm, scipy_cblas_sgemm64_,                                                  \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int64_t m, int64_t n, int64_t k, float alpha,     \
	   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc))     \
	X(OPTIONAL, void, wide_dgemm, scipy_cblas_dgemm64_,                                                  \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int64_t m, int64_t n, int64_t k, double alpha,    \
	   const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c, int64_t ldc)) \
	X(OPTIONAL, void, wide_set_num_threads, scipy_openblas_set_num_threads64_, (int count))              \
	X(OPTIONAL, char *, wide_get_config, scipy_openblas_get_config64_, (void))                           \
	X(OPTIONAL, char *, wide_get_corename, scipy_openblas_get_corename64_, (void))
/* Thread functions of the other libraries that have cblas_sgemm under its plain name. */
#define BLAS_OTHER_FUNCTIONS(X)                                                                              \
	X(OPTIONAL, void, mkl_set_num_threads, MKL_Set_Num_Threads, (int count))                             \
	X(OPTIONAL, void, blis_set_num_threads, bli_thread_set_num_threads, (int64_t count))
#define BLAS_FUNCTIONS(X)                                                                                    \
	BLAS_CBLAS_FUNCTIONS(X)                                                                              \
	BLAS_OPENBLAS_FUNCTIONS(X)                                                                           \
	BLAS_WHEEL_FUNCTIONS(X)                                                                              \
	BLAS_WIDE_FUNCTIONS(X)                                                                               \
	BLAS_OTHER_FUNCTIONS(X)

struct blas {
#define X(need, ret, field, symbol, params) ret(*field) params;
	BLAS_FUNCTIONS(X)
#undef X
};

/*
 * Call after lib_open. Copies functions that the library has under other names to sgemm, dgemm,
 * set_num_threads, get_config and get_corename. With 64-bit integers, sgemm and dgemm are NULL, and
 * wide_sgemm and wide_dgemm are set. LIBRARY_MISSING: no set is complete; `fact` names the file.
 */
enum status blas_settle(struct blas *b, const struct lib_fact *fact, struct error *err);
/* Opens and settles the library for a caller that distributes the work itself: one thread. If this call is
 * the first to open the library, it creates no other threads. With little address space it could not create
 * them all, and its exit would wait for the missing ones. */
enum status blas_open_alone(struct blas *b, struct lib_fact *fact, struct error *err);
enum { BLAS_BUFFER_MB = 128 }; /* address space of a calling thread, from its first GEMM on */
/* Whether the buffers of this many threads can be mapped. If one cannot, the library retries forever (its
 * blas_memory_alloc). NO_RESOURCE with LIMIT_LOW. */
enum status blas_check_buffers(unsigned threads, struct error *err);
/* C = alpha A B + beta C of one type, row-major. Leading dimensions are as in cblas. Call after
 * blas_settle. */
void blas_sgemm(const struct blas *b, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
		float alpha, const float *x, int ldx, const float *y, int ldy, float beta, float *z, int ldz);
void blas_dgemm(const struct blas *b, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
		double alpha, const double *x, int ldx, const double *y, int ldy, double beta, double *z,
		int ldz);

extern const struct lib_spec openblas_lib; /* "openblas" */
#endif
