/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and expected results in host memory, for the types that MPI supports. Pure. */
#ifndef PROBE_COLLECTIVE_HOST_H
#define PROBE_COLLECTIVE_HOST_H
#include "probe/collective/collective.h"

/* True for F32, F64, S8 and S32. */
bool collective_host_type(enum operand_type type);
/* Writes the values that this rank gives in the range `gift` to out, which starts at the range's first
 * element. */
void collective_host_fill(const struct collective_inputs *in, const struct collective_part *gift, void *out);
/* Checks every element of one part of the result, which starts at `data`. Adds to checked, total, count and
 * nan of *w, and records the place of the first wrong element. For sums it also adds to suspect[2 ranks + 1],
 * which kernel/test_data/collective.h defines. */
void collective_host_check(const struct collective_inputs *in, const struct collective_part *part,
			   const void *data, struct wrong *w, unsigned long long *suspect);
#endif
