/* SPDX-License-Identifier: Apache-2.0 */
/* The world of one test: a CPU alone, with one H100, with eight. */
#ifndef TESTS_JUDGE_BED_H
#define TESTS_JUDGE_BED_H
#include "judge_world.h"

static struct world w;

static inline int begin_cpu(void **state)
{
	(void)state;
	world_begin(&w, 0, false);
	return 0;
}

static inline int begin_one(void **state)
{
	(void)state;
	world_begin(&w, 1, false);
	return 0;
}

static inline int begin_eight(void **state)
{
	(void)state;
	world_begin(&w, 8, false);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	world_end(&w);
	return 0;
}

static inline struct record_case *healthy(void)
{
	return world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
}
#endif
