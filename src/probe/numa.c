/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the node: the NUMA node of each GPU, and whether assay may run on that node's CPUs. */
#include "core/text/text.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(numa_nodes, "", U64, 0, "NUMA nodes with memory or CPUs")                                          \
	X(numa_gpus_unknown, "", U64, -1, "GPUs whose NUMA node the system does not report")                 \
	X(numa_gpus_unreachable, "", U64, -1, "GPUs on a NUMA node on which assay may use no CPU")           \
	X(numa_map, "", TEXT, 0, "NUMA node of each GPU, in PCI order")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };

static const struct numa *node_of(const struct cpu *cpu, double number)
{
	unsigned i;

	for (i = 0; i < cpu->numa_count; i++)
		if (cpu->numa[i].node == (int)number)
			return &cpu->numa[i];
	return NULL;
}

static void place_gpus(const struct machine *m, const struct cpu *cpu, struct result *out)
{
	unsigned unknown = 0, unreachable = 0, i;
	struct text map = {0};

	for (i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);
		double node = gpu_get(g, GPU_FACT_numa_node, -1);
		const struct numa *numa;

		/* On machines with one node, firmware reports no node for a GPU. */
		if (node < 0 && cpu->numa_count == 1)
			node = cpu->numa[0].node;
		if (node < 0) {
			unknown++;
			text_addf(&map, "%s%s ?", map.size ? ", " : "", g->pci);
			continue;
		}
		numa = node_of(cpu, node);
		unreachable += !numa || !numa->cpus;
		text_addf(&map, "%s%s %d", map.size ? ", " : "", g->pci, (int)node);
	}
	result_u64(out, &fields[AT_numa_gpus_unknown], unknown);
	result_u64(out, &fields[AT_numa_gpus_unreachable], unreachable);
	if (map.size && !map.failed)
		result_text(out, &fields[AT_numa_map], map.data);
	text_release(&map);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const struct cpu *cpu = machine_cpu(m);

	(void)t, (void)opts;
	if (!reading_has_gpus(m, "NUMA placement of GPUs", err))
		return STATUS_UNSUPPORTED;
	if (!cpu->numa_count)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "NUMA placement of GPUs: the system reports no NUMA nodes");
	result_u64(out, &fields[AT_numa_nodes], cpu->numa_count);
	place_gpus(m, cpu, out);
	return STATUS_OK;
}

const struct probe probe_numa = {
	.name = "numa",
	.summary = "NUMA node of each GPU, and whether assay may run on its CPUs",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
