/* SPDX-License-Identifier: Apache-2.0 */
/* assay info cpu and assay info memory. */
#include "cmd/info/info.h"
#include "core/json/member.h"

/* Joins the words of a list with `sep` between them. */
static void join(struct text *t, const json_t *list, const char *sep)
{
	const json_t *word;
	size_t i;

	json_array_foreach((json_t *)list, i, word)
		text_addf(t, "%s%s", i ? sep : "", json_string_value(word) ? json_string_value(word) : "");
}

void info_cpu_rows(struct text *t, const struct machine *m)
{
	const struct cpu *c = machine_cpu(m);

	info_row(t, "CPU", "%s", c->model[0] ? c->model : "model hidden");
	if (c->cores)
		info_row(t, "", "%u socket%s, %u core%s, %u threads, %u usable", c->sockets,
			 c->sockets == 1 ? "" : "s", c->cores, c->cores == 1 ? "" : "s", c->threads,
			 c->usable);
	else
		info_row(t, "", "cores hidden, %u threads, %u usable", c->threads, c->usable);
	if (c->quota > 0)
		info_row(t, "CPU quota", "%.4g CPUs (cgroup)", c->quota);
}

static void clock_row(struct text *t, const struct machine *m, const json_t *cpu)
{
	const json_t *reported = json_object_get(cpu, "mhz_reported");
	char told[64] = "";

	if (reported)
		snprintf(told, sizeof(told), "; /proc/cpuinfo says %.0f MHz", json_number_value(reported));
	if (json_object_get(cpu, "mhz_now"))
		info_row(t, "clock", "%.0f MHz now, %.0f to %.0f MHz, governor %s",
			 info_number(cpu, "mhz_now"), info_number(cpu, "mhz_min"),
			 info_number(cpu, "mhz_max"), json_member_text(cpu, "governor"));
	else
		info_row(t, "clock", "unreadable: %s%s", info_why(m, "CPU clocks"), told);
}

static void cache_table(struct text *t, const struct machine *m, const json_t *cpu)
{
	const json_t *caches = json_object_get(cpu, "caches"), *row;
	struct text lines = {0};
	char bytes[32], all[32];
	size_t i;

	if (!caches) {
		info_row_unreadable(t, "caches", info_why(m, "CPU caches"));
		return;
	}
	text_add(&lines, "cache\tkind\t>each\t>count\t>together\t>threads share one\n");
	json_array_foreach((json_t *)caches, i, row)
	{
		double each = info_number(row, "bytes"), count = info_number(row, "count");

		text_addf(&lines, "L%.0f\t%s\t%s", info_number(row, "level"), json_member_text(row, "type"),
			  info_bytes(bytes, each));
		if (count > 0)
			text_addf(&lines, "\t%.0f\t%s\t%.0f", count, info_bytes(all, each * count),
				  info_number(row, "shared_by"));
		text_add(&lines, "\n");
	}
	info_columns(t, text_str(&lines));
	text_release(&lines);
}

static bool stands_at(const json_t *value, double node)
{
	return json_is_number(value) && json_number_value(value) == node;
}

/* GPUs, ports and disks of one NUMA node; node -1: those whose node is not known. */
static void devices_of_node(struct text *t, const struct machine *m, double node)
{
	const json_t *tree = machine_json(m), *row;
	size_t i;

	json_array_foreach(json_object_get(tree, "gpus"), i, row)
	{
		if (stands_at(json_object_get(json_object_get(row, "facts"), "numa_node"), node))
			text_addf(t, "%sGPU %zu (%s)", t->size ? ", " : "", i, json_member_text(row, "pci"));
	}
	json_array_foreach(json_object_get(tree, "ports"), i, row)
	{
		if (stands_at(json_object_get(row, "numa_node"), node))
			text_addf(t, "%s%s%s%s%s", t->size ? ", " : "", json_member_text(row, "device"),
				  *json_member_text(row, "pci") ? " (" : "", json_member_text(row, "pci"),
				  *json_member_text(row, "pci") ? ")" : "");
	}
	json_array_foreach(json_object_get(json_object_get(tree, "storage"), "disks"), i, row)
	{
		if (stands_at(json_object_get(row, "numa_node"), node))
			text_addf(t, "%s%s", t->size ? ", " : "", json_member_text(row, "name"));
	}
}

static void node_line(struct text *lines, const struct machine *m, const json_t *row, double *sum)
{
	double node = info_number(row, "node"), memory = info_number(row, "memory_bytes");
	struct text devices = {0};
	char bytes[32];

	devices_of_node(&devices, m, node);
	text_addf(lines, "%.0f\t%s\t%s\t%s\t%s\n", node, json_member_text(row, "cpus"),
		  info_bytes(bytes, memory), json_member_text(row, "distances"), text_str(&devices));
	*sum += memory;
	text_release(&devices);
}

static void numa_table(struct text *t, const struct machine *m, const json_t *cpu)
{
	const json_t *nodes = json_object_get(cpu, "numa"), *row;
	double total = (double)machine_cpu(m)->memory_bytes, sum = 0;
	struct text lines = {0}, lost = {0};
	char a[32], b[32];
	size_t i;

	if (!nodes) {
		info_row_unreadable(t, "NUMA", info_why(m, "NUMA nodes"));
		return;
	}
	text_add(&lines, "NUMA node\tCPUs\t>memory\tdistances\tdevices\n");
	json_array_foreach((json_t *)nodes, i, row) node_line(&lines, m, row, &sum);
	info_columns(t, text_str(&lines));
	devices_of_node(&lost, m, -1);
	if (lost.size)
		info_row(t, "node not reported", "%s", text_str(&lost));
	if (sum > 0 && total > 0 && (sum < 0.9 * total || sum > 1.1 * total))
		info_row(
			t, "memory of nodes",
			"%s according to the nodes, %s according to /proc/meminfo: the kernel's two counts differ",
			info_bytes(a, sum), info_bytes(b, total));
	text_release(&lines);
	text_release(&lost);
}

void info_cpu(struct text *t, const struct machine *m)
{
	const json_t *cpu = json_object_get(machine_json(m), "cpu");
	struct text isa = {0};

	text_add(t, "CPU\n");
	info_cpu_rows(t, m);
	info_row(t, "affinity", "%s", json_member_text(cpu, "affinity"));
	join(&isa, json_object_get(cpu, "isa"), " ");
	info_row(t, "instruction sets", "%s", text_str(&isa));
	text_release(&isa);
	clock_row(t, m, cpu);
	cache_table(t, m, cpu);
	numa_table(t, m, cpu);
}

static void module_table(struct text *t, const json_t *dimms)
{
	struct text lines = {0};
	const json_t *row;
	char bytes[32];
	size_t i;

	text_add(&lines, "module\t>size\tkind\t>speed\t>of\n");
	json_array_foreach((json_t *)dimms, i, row)
	{
		text_addf(&lines, "%s\t%s\t%s", json_member_text(row, "locator"),
			  info_bytes(bytes, info_number(row, "bytes")), json_member_text(row, "type"));
		if (json_object_get(row, "mts_configured"))
			text_addf(&lines, "\t%.0f MT/s", info_number(row, "mts_configured"));
		else
			text_add(&lines, "\tnot reported");
		if (json_object_get(row, "mts"))
			text_addf(&lines, "\t%.0f MT/s", info_number(row, "mts"));
		text_add(&lines, "\n");
	}
	info_columns(t, text_str(&lines));
	text_release(&lines);
}

void info_memory(struct text *t, const struct machine *m)
{
	const json_t *memory = json_object_get(machine_json(m), "memory");
	const json_t *dimms = json_object_get(memory, "dimms");
	char a[32], b[32];

	text_add(t, "Memory\n");
	if (json_object_get(memory, "total_bytes"))
		info_row(t, "memory", "%s, %s available", info_bytes(a, info_number(memory, "total_bytes")),
			 info_bytes(b, info_number(memory, "available_bytes")));
	else
		info_row_unreadable(t, "memory", info_why(m, "memory size"));
	info_row(t, "cgroup limit", "%s",
		 json_object_get(memory, "limit_bytes") ? info_bytes(a, info_number(memory, "limit_bytes"))
							: "none below the memory size");
	info_row(t, "swap", "%s",
		 info_number(memory, "swap_bytes") > 0 ? info_bytes(a, info_number(memory, "swap_bytes"))
						       : "none");
	info_row(t, "huge pages", "%.0f of %s, transparent: %s", info_number(memory, "hugepages_total"),
		 info_bytes(a, info_number(memory, "hugepage_bytes")),
		 json_member_text(json_object_get(machine_json(m), "system"), "transparent_hugepage"));
	if (dimms)
		module_table(t, dimms);
	else
		info_row_unreadable(t, "speed", info_why(m, "memory speed"));
}
