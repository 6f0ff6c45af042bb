/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/case/numa_placement.h"
#include <stdarg.h>
#include "core/text/units.h"

#define NEARER 1.05 /* factor by which another node must beat this copy's rate to be called nearer */

/* Finds the fastest of the same copies that used memory of a node requested by number. */
static bool best_node(const struct subject *s, struct subject *best, const char **node)
{
	const struct record *r = s->ctx->record;
	struct subject other;
	bool any = false;

	*best = *s;
	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		const char *asked = record_option(c, "numa");

		if (c == s->c || !asked || *asked < '0' || *asked > '9' || strcmp(c->target, s->c->target) ||
		    strcmp(c->engine, s->c->engine) || !case_sound(c) ||
		    !record_same_options(s->c, c, (const char *const[]){"numa", NULL}))
			continue;
		subject_of(&other, s->ctx, c);
		if (!other.has_figure || (any && other.figure <= best->figure))
			continue;
		*best = other;
		*node = asked;
		any = true;
	}
	return any;
}

/* Node of the host memory: the requested one, else that of the CPU that allocated it. -1: not known. */
static int memory_node(const struct subject *s)
{
	double node;

	return case_number(s->c, "host_node", &node) || case_number(s->c, "cpu_node", &node) ? (int)node : -1;
}

static void append_reason(struct judgement *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void append_reason(struct judgement *out, const char *format, ...)
{
	size_t used = strlen(out->reason);
	va_list args;

	va_start(args, format);
	vsnprintf(out->reason + used, sizeof(out->reason) - used, format, args);
	va_end(args);
}

void numa_placement_explain(struct judgement *out, const struct subject *s)
{
	const struct cpu *cpu = s->ctx->cpu;
	int memory, gpu;
	struct subject best;
	const char *node;
	char rate[32];

	if (strcmp(s->c->probe, "link") || out->cause != CAUSE_BELOW_BAND || s->gpu_count != 1 || !s->gpu)
		return;
	memory = memory_node(s);
	gpu = (int)gpu_get(s->gpu, GPU_FACT_numa_node, -1);
	if (best_node(s, &best, &node) && best.figure > NEARER * s->figure) {
		out->cause = CAUSE_NUMA_FAR;
		units_format(rate, sizeof(rate), best.figure, s->unit);
		append_reason(out, "; NUMA distance: memory of node %s reached %s (case %u)", node, rate,
			      best.c->id);
	} else if (memory >= 0 && gpu >= 0 && memory != gpu) {
		out->cause = CAUSE_NUMA_FAR;
		append_reason(out, "; NUMA distance: the host memory is on node %d, the GPU on node %d",
			      memory, gpu);
	} else if (memory >= 0 && gpu >= 0) {
		append_reason(out,
			      "; NUMA distance is not the reason: host memory and GPU are both on node %d",
			      gpu);
	} else if (cpu && cpu->numa_count == 1 && !cpu->virtual_machine) {
		append_reason(out, "; NUMA distance is not the reason: the machine has one node");
	} else {
		append_reason(out, "; NUMA placement is unknown: the system does not report the node of %s",
			      gpu < 0 && memory < 0 ? "the GPU and the host memory"
			      : gpu < 0		    ? "the GPU"
						    : "the host memory");
	}
}
