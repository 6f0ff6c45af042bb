/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and answers in memory of the host, for the types that MPI has. Pure. */
#ifndef PROBE_COLLECTIVE_HOST_H
#define PROBE_COLLECTIVE_HOST_H
#include "probe/collective/collective.h"

/* F32, F64, S8, S32. */
bool collective_host_type(enum operand_type type);
/* What this rank gives, into its array: `out` begins at its first element. */
void collective_host_fill(const struct collective_inputs *in, const struct collective_part *gift, void *out);
/* Every element of one part of the result that begins at `data`: adds to checked, total, count and nan of *w,
 * the first wrong one with its place; sums only: to suspect[2 ranks + 1] as kernel/test_data/collective.h has
 * it. */
void collective_host_check(const struct collective_inputs *in, const struct collective_part *part,
			   const void *data, struct wrong *w, unsigned long long *suspect);
#endif
