/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include "cmd/info.h"

enum { NAME_WIDTH = 25 };

void info_row(struct text *t, const char *name, const char *format, ...)
{
	char value[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (value[0])
		text_addf(t, "  %-*s %s\n", NAME_WIDTH, name, value);
}

void info_row_unreadable(struct text *t, const char *name, const char *why)
{
	text_addf(t, "  %-*s unreadable: %s\n", NAME_WIDTH, name, why ? why : "not read");
}

const char *info_string(const json_t *map, const char *key)
{
	const char *text = json_string_value(json_object_get(map, key));

	return text ? text : "";
}

static double num(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

const char *info_bytes(char out[32], double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	int i = 0;

	while (bytes >= 1024 && i < 5) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, 32, bytes >= 100 || i == 0 ? "%.0f %s" : "%.3g %s", bytes, units[i]);
	return out;
}

const char *info_why(const struct machine *m, const char *what)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "unreadable"), i, row)
	{
		if (!strcmp(info_string(row, "what"), what))
			return info_string(row, "why");
	}
	return NULL;
}

/* The words of a list, with `sep` between. */
static void join(struct text *t, const json_t *list, const char *sep)
{
	const json_t *word;
	size_t i;

	json_array_foreach((json_t *)list, i, word)
		text_addf(t, "%s%s", i ? sep : "", json_string_value(word) ? json_string_value(word) : "");
}

static void system_rows(struct text *t, const struct machine *m)
{
	const json_t *s = json_object_get(machine_json(m), "system"),
		     *limits = json_object_get(machine_json(m), "limits");
	const json_t *memlock = json_object_get(limits, "memlock_bytes"),
		     *files = json_object_get(limits, "nofile");
	char bytes[32], count[32];

	snprintf(count, sizeof(count), "%" JSON_INTEGER_FORMAT, json_integer_value(files));
	info_row(t, "host", "%s", info_string(s, "hostname"));
	info_row(t, "product", "%s%s%s", info_string(s, "vendor"), info_string(s, "vendor")[0] ? " " : "",
		 info_string(s, "product"));
	info_row(t, "system", "%s, kernel %s, %s", info_string(s, "os"), info_string(s, "kernel"),
		 info_string(s, "architecture"));
	info_row(t, "virtual machine", "%s%s%s",
		 json_is_true(json_object_get(s, "virtual_machine")) ? "yes" : "no",
		 info_string(s, "hypervisor")[0] ? ", hypervisor " : "", info_string(s, "hypervisor"));
	info_row(t, "container", "%s", info_string(s, "container")[0] ? info_string(s, "container") : "no");
	info_row(t, "limits", "memlock %s, open files %s",
		 json_is_integer(memlock) ? info_bytes(bytes, json_number_value(memlock)) : "unlimited",
		 json_is_integer(files) ? count : "unlimited");
}

static void cpu_line(struct text *t, const struct machine *m)
{
	const struct cpu *c = machine_cpu(m);
	char cores[64] = "cores hidden";

	if (c->cores)
		snprintf(cores, sizeof(cores), "%u socket%s, %u core%s", c->sockets,
			 c->sockets == 1 ? "" : "s", c->cores, c->cores == 1 ? "" : "s");
	info_row(t, "CPU", "%s", c->model[0] ? c->model : "model hidden");
	info_row(t, "", "%s, %u threads, %u usable", cores, c->threads, c->usable);
	if (c->quota > 0)
		info_row(t, "CPU quota", "%.4g CPUs (cgroup)", c->quota);
}

static void cache_rows(struct text *t, const struct machine *m, const json_t *cpu)
{
	const json_t *row;
	char name[32], bytes[32];
	size_t i;

	if (!json_object_get(cpu, "caches"))
		info_row_unreadable(t, "caches", info_why(m, "CPU caches"));
	json_array_foreach(json_object_get(cpu, "caches"), i, row)
	{
		const char *type = info_string(row, "type");

		snprintf(name, sizeof(name), "L%d%s", (int)num(row, "level"),
			 !strcmp(type, "Data")		? " data"
			 : !strcmp(type, "Instruction") ? " instruction"
							: "");
		info_row(t, name, "%s each, %.0f of them, shared by %.0f thread%s",
			 info_bytes(bytes, num(row, "bytes")), num(row, "count"), num(row, "shared_by"),
			 num(row, "shared_by") == 1 ? "" : "s");
	}
}

/* The PCI addresses of GPUs and ports of one node. */
static void devices_of_node(struct text *t, const struct machine *m, double node)
{
	const json_t *gpus = json_object_get(machine_json(m), "gpus");
	const json_t *ports = json_object_get(machine_json(m), "ports"), *row;
	size_t i;

	json_array_foreach((json_t *)gpus, i, row)
	{
		const json_t *at = json_object_get(json_object_get(row, "facts"), "numa_node");

		if (json_is_number(at) && json_number_value(at) == node)
			text_addf(t, ", GPU %s", info_string(row, "pci"));
	}
	json_array_foreach((json_t *)ports, i, row)
	{
		const json_t *at = json_object_get(row, "numa_node");

		if (json_is_number(at) && json_number_value(at) == node)
			text_addf(t, ", %s", info_string(row, "device"));
	}
}

static void numa_rows(struct text *t, const struct machine *m, const json_t *cpu)
{
	const json_t *row;
	size_t i;

	if (!json_object_get(cpu, "numa"))
		info_row_unreadable(t, "NUMA", info_why(m, "NUMA nodes"));
	json_array_foreach(json_object_get(cpu, "numa"), i, row)
	{
		struct text line = {0};
		char name[32], bytes[32];

		snprintf(name, sizeof(name), "NUMA node %d", (int)num(row, "node"));
		text_addf(&line, "CPUs %s, %s", info_string(row, "cpus"),
			  info_bytes(bytes, num(row, "memory_bytes")));
		if (info_string(row, "distances")[0])
			text_addf(&line, ", distances %s", info_string(row, "distances"));
		devices_of_node(&line, m, num(row, "node"));
		info_row(t, name, "%s", text_str(&line));
		text_release(&line);
	}
}

void info_cpu(struct text *t, const struct machine *m)
{
	const json_t *cpu = json_object_get(machine_json(m), "cpu");
	struct text isa = {0};

	text_add(t, "CPU\n");
	cpu_line(t, m);
	info_row(t, "affinity", "%s", info_string(cpu, "affinity"));
	join(&isa, json_object_get(cpu, "isa"), " ");
	info_row(t, "instruction sets", "%s", text_str(&isa));
	text_release(&isa);
	if (json_object_get(cpu, "mhz_now"))
		info_row(t, "clock", "%.0f MHz now, %.0f to %.0f MHz, governor %s", num(cpu, "mhz_now"),
			 num(cpu, "mhz_min"), num(cpu, "mhz_max"), info_string(cpu, "governor"));
	else
		info_row_unreadable(t, "clock", info_why(m, "CPU clocks"));
	cache_rows(t, m, cpu);
	numa_rows(t, m, cpu);
}

void info_memory(struct text *t, const struct machine *m)
{
	const json_t *memory = json_object_get(machine_json(m), "memory"), *row;
	const json_t *dimms = json_object_get(memory, "dimms");
	char a[32], b[32];
	size_t i;

	text_add(t, "Memory\n");
	if (json_object_get(memory, "total_bytes"))
		info_row(t, "memory", "%s, %s available", info_bytes(a, num(memory, "total_bytes")),
			 info_bytes(b, num(memory, "available_bytes")));
	else
		info_row_unreadable(t, "memory", info_why(m, "memory size"));
	if (json_object_get(memory, "limit_bytes"))
		info_row(t, "cgroup limit", "%s", info_bytes(a, num(memory, "limit_bytes")));
	info_row(t, "swap", "%s",
		 num(memory, "swap_bytes") > 0 ? info_bytes(a, num(memory, "swap_bytes")) : "none");
	info_row(t, "huge pages", "%.0f of %s, transparent: %s", num(memory, "hugepages_total"),
		 info_bytes(a, num(memory, "hugepage_bytes")),
		 info_string(json_object_get(machine_json(m), "system"), "transparent_hugepage"));
	if (!dimms)
		info_row_unreadable(t, "speed", info_why(m, "memory speed"));
	json_array_foreach((json_t *)dimms, i, row) info_row(
		t, info_string(row, "locator"), "%s %s, %.0f MT/s of %.0f", info_bytes(a, num(row, "bytes")),
		info_string(row, "type"), num(row, "mts_configured"), num(row, "mts"));
}

void info_storage(struct text *t, const struct machine *m)
{
	const json_t *storage = json_object_get(machine_json(m), "storage"), *row;
	char a[32], b[32];
	size_t i;

	text_add(t, "Storage\n");
	json_array_foreach(json_object_get(storage, "disks"), i, row)
		info_row(t, info_string(row, "name"), "%s%s%s%s", info_bytes(a, num(row, "bytes")),
			 info_string(row, "model")[0] ? ", " : "", info_string(row, "model"),
			 json_is_true(json_object_get(row, "rotational")) ? ", rotates" : "");
	if (info_why(m, "disks"))
		info_row_unreadable(t, "disks", info_why(m, "disks"));
	json_array_foreach(json_object_get(storage, "filesystems"), i, row)
	{
		if (json_object_get(row, "free_bytes"))
			info_row(t, info_string(row, "mount"), "%s free of %s, %s on %s",
				 info_bytes(a, num(row, "free_bytes")),
				 info_bytes(b, num(row, "total_bytes")), info_string(row, "type"),
				 info_string(row, "device"));
		else
			info_row(t, info_string(row, "mount"),
				 "%s on %s; free space not asked (a dead server would hang)",
				 info_string(row, "type"), info_string(row, "device"));
	}
}

void info_software(struct text *t, const struct machine *m)
{
	const json_t *tree = machine_json(m), *driver = json_object_get(tree, "driver"), *row;
	const char *name;

	text_add(t, "Software\n");
	info_row(t, "kernel", "%s", info_string(json_object_get(tree, "system"), "kernel"));
	info_row(t, "NVIDIA driver", "%s",
		 info_string(driver, "version")[0] ? info_string(driver, "version") : "none loaded");
	info_row(t, "CUDA of the driver", "%s", info_string(driver, "cuda_version"));
	json_object_foreach(json_object_get(tree, "software"), name, row)
	{
		if (info_string(row, "path")[0])
			info_row(t, name, "%s  %s",
				 info_string(row, "version")[0] ? info_string(row, "version") : "-",
				 info_string(row, "path"));
		else
			info_row(t, name, "not found: %s", info_string(row, "missing"));
	}
	if (info_why(m, "libraries"))
		info_row_unreadable(t, "libraries", info_why(m, "libraries"));
	json_object_foreach(json_object_get(tree, "environment"), name, row)
		info_row(t, name, "%s", json_string_value(row) ? json_string_value(row) : "");
}

void info_unreadable(struct text *t, const struct machine *m)
{
	const json_t *list = json_object_get(machine_json(m), "unreadable"), *row;
	size_t i;

	if (!json_array_size(list))
		return;
	text_add(t, "Could not look\n");
	json_array_foreach((json_t *)list, i, row)
		info_row(t, info_string(row, "what"), "%s", info_string(row, "why"));
}

/* The file system that holds most of what we write: the root, or the first. */
static void disk_line(struct text *t, const struct machine *m)
{
	const json_t *list = json_object_get(json_object_get(machine_json(m), "storage"), "filesystems"),
		     *row;
	char a[32];
	size_t i;

	json_array_foreach((json_t *)list, i, row)
	{
		if (!strcmp(info_string(row, "mount"), "/") && json_object_get(row, "free_bytes"))
			info_row(t, "disk", "%s free on /", info_bytes(a, num(row, "free_bytes")));
	}
}

/* What is known of a GPU that answers, in a line. */
static void gpu_line(struct text *t, const char *name, const struct gpu *g)
{
	struct text line = {0};
	char bytes[32];

	text_addf(&line, "%s, %s", g->name[0] ? g->name : "name unreadable", g->pci);
	if (gpu_has(g, GPU_FACT_memory_bytes))
		text_addf(&line, ", %s", info_bytes(bytes, gpu_get(g, GPU_FACT_memory_bytes, 0)));
	if (gpu_has(g, GPU_FACT_power_w))
		text_addf(&line, ", %.0f W", gpu_get(g, GPU_FACT_power_w, 0));
	if (gpu_has(g, GPU_FACT_power_limit_w))
		text_addf(&line, " (limit %.0f W)", gpu_get(g, GPU_FACT_power_limit_w, 0));
	if (gpu_has(g, GPU_FACT_temperature_c))
		text_addf(&line, ", %.0f C", gpu_get(g, GPU_FACT_temperature_c, 0));
	info_row(t, name, "%s%s", text_str(&line), g->granted ? "" : ", not granted to us");
	text_release(&line);
}

static void gpu_lines(struct text *t, const struct machine *m)
{
	const json_t *driver = json_object_get(machine_json(m), "driver");

	if (!machine_gpu_count(m)) {
		info_row(t, "GPUs", "none on the PCI bus");
		return;
	}
	info_row(t, "NVIDIA driver", "%s%s%s",
		 info_string(driver, "version")[0] ? info_string(driver, "version") : "none",
		 info_string(driver, "cuda_version")[0] ? ", CUDA " : "",
		 info_string(driver, "cuda_version"));
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);
		char name[24];

		snprintf(name, sizeof(name), "GPU %u", i);
		if (g->status)
			info_row(t, name, "%s%s%s: %s: %s", g->pci, g->name[0] ? ", " : "", g->name,
				 cause_name(g->cause), g->reason);
		else
			gpu_line(t, name, g);
	}
}

void info_summary(struct text *t, const struct machine *m)
{
	const struct cpu *c = machine_cpu(m);
	char a[32];

	text_add(t, "Machine\n");
	if (!machine_is_live(m))
		info_row(t, "recording", "%s", machine_label(m)[0] ? machine_label(m) : "of a real machine");
	system_rows(t, m);
	cpu_line(t, m);
	info_row(t, "memory", "%s%s", info_bytes(a, (double)c->memory_bytes),
		 c->memory_limit_bytes ? " (a cgroup allows less: info memory)" : "");
	gpu_lines(t, m);
	disk_line(t, m);
}
