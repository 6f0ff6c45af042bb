/* SPDX-License-Identifier: Apache-2.0 */
/* Products that are low on a CPU and were done again by other kernels and other libraries
 * (run/followup/blas_kernel_search.c). */
#ifndef JUDGE_ADVICE_BLAS_KERNELS_H
#define JUDGE_ADVICE_BLAS_KERNELS_H
#include "judge/case/context.h"

/* The evidence itself: told, judged by nothing. False: the case is none such. */
bool blas_retry_case(struct judgement *out, const struct subject *s);
/* The low case, after its own judgement: `warn blas_kernel` where something else reaches the mark; else what
 * was tried is told. */
void blas_retry_tell(struct judgement *out, const struct subject *s);
/* What to type for `blas_kernel`, and its gain, as advice. */
void blas_retry_advise(struct judgement *out, const struct subject *s);
/* "; kernels SkylakeX": the set that the library chose; "" where it named none. */
void blas_retry_named(const struct subject *s, char *out, size_t size);
#endif
