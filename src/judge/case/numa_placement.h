/* SPDX-License-Identifier: Apache-2.0 */
/* The NUMA nodes of a copy's host memory and of its GPU. */
#ifndef JUDGE_CASE_NUMA_PLACEMENT_H
#define JUDGE_CASE_NUMA_PLACEMENT_H
#include "judge/case/context.h"

/* For a host-link case below its range: adds to the reason whether NUMA distance explains it, or that the
 * placement is not known. */
void numa_placement_explain(struct judgement *out, const struct subject *s);
#endif
