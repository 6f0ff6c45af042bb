/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of a GPU under MIG. */
#include <string.h>
#include "watch/read/gpu.h"

/* "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb". */
static const char *profile_of(const char *name)
{
	const char *mig = strstr(name, "MIG ");

	return mig ? mig + 4 : NULL;
}

static void find_instance(struct gpu_reader *r, struct gpu *g, nvmlDevice_t device)
{
	char gi[16], ci[16], name[96] = "", uuid[96] = "";
	unsigned instance = 0, compute = 0, i = 0;

	if (!r->nvml.mig_instance || r->nvml.mig_instance(device, &instance))
		return;
	if (r->nvml.mig_compute)
		r->nvml.mig_compute(device, &compute);
	while (i < g->instances && (g->instance[i].gi != instance || g->instance[i].ci != compute))
		i++;
	if (i == METRIC_GPU_INSTANCES_MOST)
		return;
	g->instance[i].device = device;
	g->instance[i].seen = true;
	if (i < g->instances)
		return;
	g->instances++;
	g->instance[i] = (struct gpu_instance){.device = device, .gi = instance, .ci = compute, .seen = true};
	if (r->nvml.name)
		r->nvml.name(device, name, sizeof(name));
	if (r->nvml.uuid)
		r->nvml.uuid(device, uuid, sizeof(uuid));
	snprintf(gi, sizeof(gi), "%u", instance);
	snprintf(ci, sizeof(ci), "%u", compute);
	g->instance[i].e = out_entity(&r->out, METRIC_SCOPE_GPU_INSTANCE, g->e, "pci_bus_id", g->pci,
				      "GPU_I_ID", gi, "GPU_C_ID", ci, "gpu", g->number, "GPU_I_PROFILE",
				      profile_of(name), "UUID", *uuid ? uuid : NULL, NULL);
}

static void find_instances(struct gpu_reader *r, struct gpu *g)
{
	unsigned mode = 0, pending;

	for (unsigned i = 0; i < g->instances; i++)
		g->instance[i].seen = false;
	if (!g->mig && !g->rare)
		return; /* a mode is changed by an administrator while nothing uses the GPU */
	if (r->nvml.mig_mode && (r->nvml.mig_mode(g->device, &mode, &pending) || mode > 1))
		mode = g->mig; /* it did not tell */
	if (mode != g->mig)    /* another mode has other readings */
		memset(g->never, 0, sizeof(g->never));
	g->mig = mode;
	if (mode && r->nvml.mig_device)
		for (unsigned i = 0; i < METRIC_GPU_INSTANCES_MOST; i++) {
			nvmlDevice_t device;

			if (!r->nvml.mig_device(g->device, i, &device))
				find_instance(r, g, device);
		}
	for (unsigned i = 0; i < g->instances; i++) {
		if (g->instance[i].seen)
			continue;
		out_gone(&r->out, g->instance[i].e);
		gpu_close_gpm(&r->nvml, &g->instance[i].gpm);
		g->instance[i--] = g->instance[--g->instances];
	}
}

static void read_memory(struct gpu_reader *r, const struct gpu_instance *in, bool slow)
{
	nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (r->nvml.memory_v2)
		ret = r->nvml.memory_v2(in->device, &m);
	if (ret) {
		out_absent(&r->out, in->e, CATALOGUE_INSTANCE_MEMORY_USED, nvml_code_text((int)ret));
		return;
	}
	gpu_set(r, in->e, CATALOGUE_INSTANCE_MEMORY_USED, (double)m.used);
	if (slow)
		gpu_set(r, in->e, CATALOGUE_INSTANCE_MEMORY, (double)m.total);
}

void gpu_read_instances(struct gpu_reader *r, struct gpu *g, bool slow)
{
	if (g->gone)
		return;
	if (slow)
		find_instances(r, g);
	for (unsigned i = 0; i < g->instances; i++) {
		read_memory(r, &g->instance[i], slow);
		gpu_read_instance_gpm(r, g, &g->instance[i]);
	}
}

void gpu_drop_instances(struct gpu_reader *r, struct gpu *g)
{
	for (unsigned i = 0; i < g->instances; i++) {
		out_gone(&r->out, g->instance[i].e);
		gpu_close_gpm(&r->nvml, &g->instance[i].gpm);
	}
	g->instances = 0;
}
