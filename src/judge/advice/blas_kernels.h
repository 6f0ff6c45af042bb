/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs that were slow on a CPU and ran again with other kernels and other libraries
 * (run/followup/blas_kernel_search.c). */
#ifndef JUDGE_ADVICE_BLAS_KERNELS_H
#define JUDGE_ADVICE_BLAS_KERNELS_H
#include "judge/case/context.h"

/* Describes an attempt with other kernels; it is evidence and has no verdict of its own. False: the case is
 * no such attempt. */
bool blas_retry_case(struct judgement *out, const struct subject *s);
/* Judges the slow case again: `warn blas_kernel` if an attempt reaches the mark; else its reason lists the
 * attempts. */
void blas_retry_explain(struct judgement *out, const struct subject *s);
/* Adds advice for cause `blas_kernel`: the command to type, and its gain. */
void blas_retry_advise(struct judgement *out, const struct subject *s);
/* Writes "; kernels SkylakeX", the kernels that the library chose; "" if it reports none. */
void blas_retry_named(const struct subject *s, char *out, size_t size);
#endif
