/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of the test's own. Link with -Wl,--wrap=machine_cpu,--wrap=machine_gpu,.. (meson.build). */
#ifndef TESTS_FAKE_MACHINE_H
#define TESTS_FAKE_MACHINE_H
#include "machine/machine.h"

struct machine {
	struct cpu cpu;
	struct gpu gpu[20];
	unsigned gpus;
	bool live;
};

const struct cpu *__wrap_machine_cpu(const struct machine *m);
const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index);
unsigned __wrap_machine_gpu_count(const struct machine *m);
bool __wrap_machine_is_live(const struct machine *m);

const struct cpu *__wrap_machine_cpu(const struct machine *m)
{
	return &m->cpu;
}

const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index)
{
	return index < m->gpus ? &m->gpu[index] : NULL;
}

unsigned __wrap_machine_gpu_count(const struct machine *m)
{
	return m->gpus;
}

bool __wrap_machine_is_live(const struct machine *m)
{
	return m->live;
}

static inline void fake_gpu_fact(struct gpu *g, enum gpu_fact fact, double value)
{
	g->fact[fact] = value;
	g->present |= 1ull << fact;
}

/* Live, one NUMA node, this many healthy idle GPUs. */
static inline void fake_machine_init(struct machine *m, unsigned gpus)
{
	*m = (struct machine){ .gpus = gpus, .live = true };
	m->cpu.numa_count = 1;
	m->cpu.numa[0].cpus = 4;
	for (unsigned i = 0; i < gpus; i++) {
		struct gpu *g = &m->gpu[i];

		snprintf(g->pci, sizeof(g->pci), "0000:%02x:00.0", 0x1b + i);
		g->granted = true;
		fake_gpu_fact(g, GPU_FACT_memory_bytes, 80e9);
		fake_gpu_fact(g, GPU_FACT_memory_free_bytes, 79.5e9);
		fake_gpu_fact(g, GPU_FACT_processes, 0);
		fake_gpu_fact(g, GPU_FACT_utilization_share, 0);
	}
}
#endif
