/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on a GPU. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "watch/read/gpu.h"

enum { ANSWERED_MAX = 512, SAMPLES_MAX = 1024 };
#define PID_MAX (1u << 22)		 /* PID_MAX_LIMIT of the kernel */
#define TIME_MAX_US 10000000000000000ull /* microseconds since 1970: in the year 2286 */

/* The largest by memory stay when there are too many. */
static int by_memory(const void *a, const void *b)
{
	const nvmlProcessInfo_t *p = a, *q = b;

	if (p->pid == q->pid)
		return 0;
	return p->usedGpuMemory == q->usedGpuMemory
		       ? (p->pid > q->pid) - (p->pid < q->pid)
		       : (p->usedGpuMemory < q->usedGpuMemory) - (p->usedGpuMemory > q->usedGpuMemory);
}

static struct gpu_process *process_of(struct gpu_reader *r, struct gpu *g, const nvmlProcessInfo_t *info)
{
	char pid[16], instance[16];
	unsigned i = 0;

	while (i < g->processes && g->process[i].pid != info->pid)
		i++;
	if (i < g->processes)
		return &g->process[i];
	if (g->processes == GPU_PROCESSES_MAX)
		return NULL;
	snprintf(pid, sizeof(pid), "%u", info->pid);
	snprintf(instance, sizeof(instance), "%u", info->gpuInstanceId);
	g->process[i] = (struct gpu_process){.pid = info->pid};
	g->process[i].e = out_entity(
		&r->out, METRIC_SCOPE_PROCESS, g->e, "pci_bus_id", g->pci, "pid", pid, "gpu", g->number,
		"GPU_I_ID", info->gpuInstanceId == UINT_MAX || !g->instances ? NULL : instance, NULL);
	g->processes++;
	return &g->process[i];
}

/* Compute and graphics processes in one list. The lists may overlap. */
static nvmlReturn_t ask(struct gpu_reader *r, struct gpu *g, nvmlProcessInfo_t *info, unsigned *count)
{
	unsigned room = ANSWERED_MAX, more;
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	*count = 0;
	if (r->nvml.compute_processes) {
		ret = r->nvml.compute_processes(g->device, &room, info);
		*count = ret || room > ANSWERED_MAX ? 0 : room;
	}
	more = ANSWERED_MAX - *count;
	if (!ret && r->nvml.graphics_processes && more &&
	    !r->nvml.graphics_processes(g->device, &more, info + *count) && more <= ANSWERED_MAX - *count)
		*count += more;
	return ret;
}

static void take_memory(struct gpu_reader *r, struct gpu_process *p, unsigned long long bytes)
{
	if (bytes == ULLONG_MAX)
		out_absent(&r->out, p->e, CATALOGUE_PROCESS_MEMORY, "NVML does not know it");
	else
		gpu_set(r, p->e, CATALOGUE_PROCESS_MEMORY, (double)bytes);
}

/* Mean SM share of each process over the samples since the last call. */
static void take_shares(struct gpu_reader *r, struct gpu *g)
{
	static nvmlProcessUtilizationSample_t sample[SAMPLES_MAX];
	unsigned long long newest = g->process_seen_us;
	unsigned count = SAMPLES_MAX;
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (r->nvml.process_utilization && !g->never[CATALOGUE_PROCESS_SM])
		ret = r->nvml.process_utilization(g->device, sample, &count, g->process_seen_us);
	if (count > SAMPLES_MAX)
		count = 0; /* more than there was room for */
	g->never[CATALOGUE_PROCESS_SM] |= nvml_lacks(ret);
	for (unsigned i = 0; !ret && i < count; i++)
		if (sample[i].timeStamp > newest && sample[i].timeStamp < TIME_MAX_US)
			newest = sample[i].timeStamp;
	for (unsigned k = 0; k < g->processes; k++) {
		double sum = 0;
		unsigned found = 0, impossible = 0;

		for (unsigned i = 0; !ret && i < count; i++) {
			if (sample[i].pid != g->process[k].pid)
				continue;
			if (sample[i].smUtil > 100) {
				impossible++;
				continue;
			}
			sum += sample[i].smUtil;
			found++;
		}
		if (found)
			out_set(&r->out, g->process[k].e, CATALOGUE_PROCESS_SM, 0.01 * sum / found);
		else if (impossible)
			out_absent(&r->out, g->process[k].e, CATALOGUE_PROCESS_SM,
				   gpu_impossible(r, CATALOGUE_PROCESS_SM));
		else
			out_absent(&r->out, g->process[k].e, CATALOGUE_PROCESS_SM,
				   ret && ret != NVML_ERROR_NOT_FOUND
					   ? nvml_code_text((int)ret)
					   : "the driver has no sample of this process");
	}
	g->process_seen_us = newest;
}

static void remove_unseen(struct gpu_reader *r, struct gpu *g)
{
	for (unsigned i = 0; i < g->processes; i++) {
		if (g->process[i].seen)
			continue;
		out_gone(&r->out, g->process[i].e);
		g->process[i--] = g->process[--g->processes];
	}
}

void gpu_read_processes(struct gpu_reader *r, struct gpu *g)
{
	static nvmlProcessInfo_t info[ANSWERED_MAX];
	unsigned count = 0;
	nvmlReturn_t ret;

	if (g->gone)
		return;
	ret = ask(r, g, info, &count);
	if (ret == NVML_ERROR_GPU_IS_LOST) {
		g->gone = ret;
		return;
	}
	if (ret && ret != NVML_ERROR_NOT_SUPPORTED && ret != NVML_ERROR_FUNCTION_NOT_FOUND)
		return; /* a list that cannot be read for once removes no process */
	qsort(info, count, sizeof(info[0]), by_memory);
	for (unsigned i = 0; i < g->processes; i++)
		g->process[i].seen = false;
	for (unsigned i = 0; i < count && i < ANSWERED_MAX; i++) {
		struct gpu_process *p = info[i].pid <= PID_MAX ? process_of(r, g, &info[i]) : NULL;

		if (!p || p->seen)
			continue;
		p->seen = true;
		take_memory(r, p, info[i].usedGpuMemory);
	}
	remove_unseen(r, g);
	if (g->processes)
		take_shares(r, g);
}

void gpu_drop_parts(struct gpu_reader *r, struct gpu *g)
{
	for (unsigned i = 0; i < g->processes; i++)
		out_gone(&r->out, g->process[i].e);
	gpu_drop_instances(r, g);
	for (unsigned i = 0; i < g->links; i++)
		out_gone(&r->out, g->link[i]);
	g->processes = g->links = 0;
	g->links_asked = false;
}
