/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS with 32-bit integers: the two products, its threads and what it says of itself. Types by hand, so
 * the program builds without its headers; tests/unit/vendor_headers.c holds the rows against cblas.h where
 * that is installed.
 */
#ifndef VENDOR_BLAS_H
#define VENDOR_BLAS_H
#include "vendor/lib.h"

#ifndef CBLAS_H /* <cblas.h> was not included */
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
#endif

#define BLAS_CONSTANTS(X)                                                                                    \
	X(CblasRowMajor, 101)                                                                                \
	X(CblasNoTrans, 111)                                                                                 \
	X(CblasTrans, 112)

/* need, ret, field, symbol, params. C = alpha op(A) op(B) + beta C; with beta 0 C is not read. */
#define BLAS_CBLAS_FUNCTIONS(X)                                                                              \
	X(REQUIRED, void, sgemm, cblas_sgemm,                                                                \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, float alpha, const float *a, \
	   int lda, const float *b, int ldb, float beta, float *c, int ldc))                                 \
	X(REQUIRED, void, dgemm, cblas_dgemm,                                                                \
	  (CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int m, int n, int k, double alpha,                \
	   const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc))
#define BLAS_OPENBLAS_FUNCTIONS(X)                                                                           \
	X(REQUIRED, void, set_num_threads, openblas_set_num_threads, (int count))                            \
	X(OPTIONAL, int, get_num_threads, openblas_get_num_threads, (void))                                  \
	X(OPTIONAL, char *, get_config, openblas_get_config, (void))                                         \
	X(OPTIONAL, char *, get_corename, openblas_get_corename, (void))
#define BLAS_FUNCTIONS(X) BLAS_CBLAS_FUNCTIONS(X) BLAS_OPENBLAS_FUNCTIONS(X)

struct blas {
#define X(need, ret, field, symbol, params) ret(*field) params;
	BLAS_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec openblas_lib; /* "openblas" */
#endif
