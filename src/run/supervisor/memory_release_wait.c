/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervisor/memory_release_wait.h"
#include "machine/machine.h"

#define PATIENCE_NS 5000000000u
#define SLACK_BYTES 268435456.0 /* other programs allocate and free memory meanwhile */

/* Free memory of the GPU now; false: it cannot be read. */
static bool free_now(const char *pci, double *bytes)
{
	struct machine *m = NULL;
	bool found = false;

	if (machine_read(&m, LAYER_NVML, NULL, NULL, NULL))
		return false;
	for (unsigned i = 0; i < machine_gpu_count(m) && !found; i++) {
		const struct gpu *g = machine_gpu(m, i);

		found = !strcmp(g->pci, pci) && gpu_has(g, GPU_FACT_memory_free_bytes);
		if (found)
			*bytes = gpu_get(g, GPU_FACT_memory_free_bytes, 0);
	}
	machine_free(m);
	return found;
}

void memory_release_wait(const struct run *r, unsigned gpu)
{
	const struct gpu *g = machine_gpu(r->machine, gpu);
	double wanted = gpu_get(g, GPU_FACT_memory_free_bytes, 0) - SLACK_BYTES, bytes;
	uint64_t end = clock_now_ns(r->o->clock) + PATIENCE_NS;

	while (free_now(g->pci, &bytes) && bytes < wanted && !run_stopping(r)) {
		if (clock_now_ns(r->o->clock) >= end) {
			log_warn(r->o->log, LOG_TOPIC_RUN,
				 "%s: %.1f GiB of GPU memory are still in use after a worker was ended",
				 g->pci, (wanted + SLACK_BYTES - bytes) / 1073741824.0);
			return;
		}
		clock_sleep_ns(r->o->clock, 100000000u);
	}
}
