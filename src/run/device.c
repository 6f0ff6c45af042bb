/* SPDX-License-Identifier: Apache-2.0 */
#include "run/device.h"
#include <errno.h>
#include <sched.h>
#include "core/text.h"
#include "gpu/gpu.h"

static bool wants_device(const struct bench_case *c)
{
	return c->target.kind == TARGET_GPU && c->engine && c->engine->streams;
}

void device_close(struct measure *w)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->stream[i])
			gpu_stream_destroy(&w->stream[i]);
	if (w->device)
		gpu_close(&w->device);
	w->device_pci[0] = '\0';
}

static enum status open_gpu(struct measure *w, const struct bench_case *c, struct error *err)
{
	const struct gpu *g = machine_gpu(w->machine, c->target.gpu[0]);
	enum status st = STATUS_OK;

	if (!g)
		return error_set(err, STATUS_BUG, "%s: the machine has no such GPU", c->target_text);
	if (!w->device || strcmp(w->device_pci, g->pci)) {
		device_close(w);
		st = gpu_open(&w->device, g->pci, err);
		if (st)
			return st;
		text_copy(w->device_pci, sizeof(w->device_pci), g->pci);
	}
	for (unsigned i = 0; !st && i < c->engine->streams && i < 2; i++)
		if (!w->stream[i])
			st = gpu_stream_create(w->device, &w->stream[i], err);
	return st;
}

/* The CPUs that this process may use: the supervisor has bound it to its node. */
static enum status own_cpus(struct bench *b, unsigned *cpus, struct error *err)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return error_errno(err, errno, "the CPUs that this process may use cannot be read");
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && b->threads < DEVICE_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[b->threads++] = cpu;
	b->cpus = cpus;
	return STATUS_OK;
}

enum status device_open(struct measure *w, const struct bench_case *c, struct bench *b, unsigned *cpus,
			struct error *err)
{
	enum status st;

	*b = (struct bench){
		.machine = w->machine,
		.target = &c->target,
		.seed = w->seed,
		.clock = w->clock,
		.log = w->log,
	};
	st = own_cpus(b, cpus, err);
	if (st || !wants_device(c))
		return st;
	st = open_gpu(w, c, err);
	if (st)
		return st;
	b->device = w->device;
	b->stream[0] = w->stream[0];
	b->stream[1] = w->stream[1];
	return STATUS_OK;
}

enum status device_meter(struct meter **m, const struct bench_case *c, const struct meter_spec *spec,
			 struct error *err)
{
	return wants_device(c) ? meter_gpu_create(m, spec, err) : meter_cpu_create(m, spec, err);
}
