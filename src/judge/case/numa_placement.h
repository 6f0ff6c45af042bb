/* SPDX-License-Identifier: Apache-2.0 */
/* Which NUMA node a copy's host memory and its GPU are on. */
#ifndef JUDGE_CASE_NUMA_PLACEMENT_H
#define JUDGE_CASE_NUMA_PLACEMENT_H
#include "judge/case/context.h"

/* Of a host link below its range: names the NUMA distance where the placement is known, and says so where it
 * is not. */
void numa_placement_explain(struct judgement *out, const struct subject *s);
#endif
