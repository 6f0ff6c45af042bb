/* SPDX-License-Identifier: Apache-2.0 */
#include "run/plan/memory_need.h"
#include <math.h>
#include "core/text/units.h"

void memory_need_estimate(struct bench_case *c, const struct machine *m)
{
	c->need = (struct need){0};
	if (!c->probe->need)
		return;
	c->probe->need(m, &c->target, c->opts, &c->need);
	c->need.known = true;
}

static enum status check_device(const struct bench_case *c, const struct gpu *g, struct error *err)
{
	double total = gpu_get(g, GPU_FACT_memory_bytes, 0);
	double available = gpu_get(g, GPU_FACT_memory_free_bytes, total);
	bool never = total > 0 && c->need.device_bytes + MEMORY_NEED_LEFT_ALONE > total;
	char need[32], there[32], left[32];

	if (!(available > 0) || !(c->need.device_bytes > 0) ||
	    (!never && c->need.device_bytes + MEMORY_NEED_LEFT_ALONE <= available))
		return STATUS_OK;
	units_format(need, sizeof(need), c->need.device_bytes, "B");
	units_format(there, sizeof(there), never ? total : available, "B");
	units_format(left, sizeof(left), MEMORY_NEED_LEFT_ALONE, "B");
	return error_set_cause(err, never ? STATUS_UNSUPPORTED : STATUS_UNAVAILABLE, CAUSE_NO_MEMORY,
			       "%s: needs %s of device memory, %s %s %s, of which %s stay reserved",
			       c->probe->name, need, g->pci, never ? "has" : "has free only", there, left);
}

static enum status check_host(const struct bench_case *c, const struct machine *m, struct error *err)
{
	const struct cpu *cpu = machine_cpu(m);
	double total = (double)cpu->memory_bytes, limit = (double)cpu->memory_limit_bytes;
	double available = (double)cpu->memory_available_bytes;
	char need[32], there[32];
	bool never;

	if (limit > 0 && (limit < total || !(total > 0)))
		total = limit;
	never = total > 0 && c->need.host_bytes > total;
	if (!never && (!(available > 0) || c->need.host_bytes <= available))
		return STATUS_OK;
	units_format(need, sizeof(need), c->need.host_bytes, "B");
	units_format(there, sizeof(there), never ? total : available, "B");
	return error_set_cause(err, never ? STATUS_UNSUPPORTED : STATUS_UNAVAILABLE, CAUSE_NO_MEMORY,
			       "%s: needs %s of host memory, %s %s %s", c->probe->name, need,
			       limit > 0 ? "this control group" : "this machine",
			       !never	   ? "has free only"
			       : limit > 0 ? "may use"
					   : "has",
			       there);
}

enum status memory_need_check(const struct bench_case *c, const struct machine *m, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned i = 0; !st && c->need.known && i < c->target.gpu_count; i++) {
		const struct gpu *g = machine_gpu(m, c->target.gpu[i]);

		if (g)
			st = check_device(c, g, err);
	}
	return st || !c->need.known ? st : check_host(c, m, err);
}

struct memory_need_peak memory_need_peak(const struct plan *p)
{
	struct memory_need_peak peak = {0};

	for (size_t i = 0; i < p->count; i++) {
		double together = 0;

		for (size_t k = 0; k < p->steps[i].count; k++) {
			const struct bench_case *c = &p->steps[i].cases[k];

			if (c->skip || c->probe->kind != PROBE_TIMED)
				continue;
			peak.unknown += !c->need.known;
			peak.device_bytes = fmax(peak.device_bytes, c->need.device_bytes);
			peak.host_bytes = fmax(peak.host_bytes, c->need.host_bytes);
			together += c->need.host_bytes;
		}
		if (p->steps[i].order)
			peak.host_bytes = fmax(peak.host_bytes, together);
	}
	return peak;
}
