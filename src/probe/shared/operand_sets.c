/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/shared/operand_sets.h"
#include "gpu/device/gpu.h"
#include "probe/shared/cpu.h"
#include "vendor/cuda.h"

enum { LEAST = 3, CACHES = 4 }; /* LEAST: sets; CACHES: size of all sets together, in L2 caches */

/* Number of sets: three, or as many as exceed the L2 cache (l2_bytes, 0: not known), limited to `usable`
 * bytes (0: not known), at least 1. */
static uint64_t operand_sets_wanted(uint64_t set_bytes, uint64_t l2_bytes, uint64_t usable)
{
	uint64_t sets = l2_bytes && set_bytes ? CACHES * l2_bytes / set_bytes + 1 : LEAST;

	sets = sets < LEAST ? LEAST : sets > OPERAND_SETS_MAX ? OPERAND_SETS_MAX : sets;
	if (usable && set_bytes && sets > usable / set_bytes)
		sets = usable / set_bytes ? usable / set_bytes : 1;
	return sets;
}

uint64_t operand_sets_on_device(const struct gpu_device *d, uint64_t set_bytes)
{
	int l2 = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);

	return operand_sets_wanted(set_bytes, l2 > 0 ? (uint64_t)l2 : 0, gpu_memory_usable(d));
}

void operand_sets_need(const struct machine *m, const struct target *t, double set_bytes, struct need *out)
{
	const struct gpu *g = t->kind == TARGET_GPU ? machine_gpu(m, t->gpu[0]) : NULL;
	double room = g ? gpu_get(g, GPU_FACT_memory_free_bytes, 0) - 3.0 * (1 << 30) : 0;
	uint64_t fit = LEAST;

	if (t->kind == TARGET_GPU) {
		out->device_bytes = set_bytes * (double)operand_sets_wanted(
							(uint64_t)set_bytes,
							g ? (uint64_t)gpu_get(g, GPU_FACT_l2_bytes, 0) : 0,
							room > 0 ? (uint64_t)room : 0);
		return;
	}
	if (set_bytes > 0 && cpu_memory_bytes(m, t) > 0)
		fit = (uint64_t)((double)cpu_memory_bytes(m, t) / set_bytes);
	out->host_bytes = set_bytes * (double)(fit < 1 ? 1 : fit > LEAST ? LEAST : fit);
}
