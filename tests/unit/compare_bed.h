/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of made-up machines, judged and compared. */
#ifndef TESTS_COMPARE_BED_H
#define TESTS_COMPARE_BED_H
#include "judge_world.h"
#include "judge/compare/compare.h"

enum { RUNS = 8 };
static struct world w[RUNS];
static struct compare_run runs[RUNS];
static struct comparison result;

static inline json_t *facts(const char *hostname, const char *uuid, const char *vbios)
{
	return json_pack("{s:{s:{s:s, s:s}, s:{s:s}, s:[{s:s, s:s, s:s, s:s, s:{s:i}}]}}", "facts", "system",
			 "hostname", hostname, "loadavg", hostname, "cpu", "model", "Xeon", "gpus", "pci",
			 "0000:10:00.0", "uuid", uuid, "vbios", vbios, "name", "NVIDIA H100 80GB HBM3",
			 "facts", "power_limit_w", 700);
}

static inline int begin(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	size_t i;

	(void)state;
	for (i = 0; i < RUNS; i++) {
		world_begin(&w[i], 1, false);
		w[i].r.machine = facts("node", "GPU-1", "96.00");
		runs[i] = (struct compare_run){.name = names[i], .record = &w[i].r, .judged = &w[i].out};
	}
	return 0;
}

static inline int end(void **state)
{
	size_t i;

	(void)state;
	comparison_release(&result);
	for (i = 0; i < RUNS; i++) {
		json_decref(w[i].r.machine);
		world_end(&w[i]);
	}
	return 0;
}

static inline void compare(size_t count, enum compare_as as)
{
	struct error err = {0};
	size_t i;

	for (i = 0; i < count; i++)
		world_judge(&w[i]);
	comparison_release(&result);
	if (compare_runs(&result, runs, count, as, &err))
		fail_msg("%s", err.text);
}

static inline void gemm(size_t run, double tflops, double mhz)
{
	world_gemm(&w[run], "gpu0", "bf16", 8192, tflops, mhz, 695, 0.918);
}
#endif
