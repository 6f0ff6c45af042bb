/* SPDX-License-Identifier: Apache-2.0 */
/* assay info summary: the machine on one page. */
#include "cmd/info/info.h"
#include "core/json/member.h"

/* Shows the hypervisor and the container, if any: "yes, hypervisor kvm"; "docker". */
static void confinement_row(struct text *t, const json_t *system)
{
	const char *container = json_member_text(system, "container"),
		   *hypervisor = json_member_text(system, "hypervisor");

	if (json_is_true(json_object_get(system, "virtual_machine")))
		info_row(t, "virtual machine", "yes, hypervisor %s", *hypervisor ? hypervisor : "unnamed");
	else
		info_row(t, "virtual machine", "no");
	info_row(t, "container", "%s", *container ? container : "no");
}

static void limits_row(struct text *t, const json_t *limits)
{
	const json_t *memlock = json_object_get(limits, "memlock_bytes"),
		     *files = json_object_get(limits, "nofile");
	char bytes[32], count[32];

	snprintf(count, sizeof(count), "%" JSON_INTEGER_FORMAT, json_integer_value(files));
	info_row(t, "limits", "locked memory %s, open files %s",
		 json_is_integer(memlock) ? info_bytes(bytes, json_number_value(memlock)) : "unlimited",
		 json_is_integer(files) ? count : "unlimited");
}

static void system_rows(struct text *t, const struct machine *m)
{
	const json_t *tree = machine_json(m), *s = json_object_get(tree, "system");
	const char *vendor = json_member_text(s, "vendor");

	info_row(t, "host", "%s", json_member_text(s, "hostname"));
	info_row(t, "product", "%s%s%s", vendor, *vendor ? " " : "", json_member_text(s, "product"));
	info_row(t, "system", "%s, kernel %s, %s", json_member_text(s, "os"), json_member_text(s, "kernel"),
		 json_member_text(s, "architecture"));
	confinement_row(t, s);
	limits_row(t, json_object_get(tree, "limits"));
}

static void memory_row(struct text *t, const struct machine *m)
{
	const json_t *memory = json_object_get(machine_json(m), "memory");
	char total[32], available[32], limit[32];

	if (!json_object_get(memory, "total_bytes")) {
		info_row_unreadable(t, "memory", info_why(m, "memory size"));
		return;
	}
	info_row(t, "memory", "%s, %s available%s%s", info_bytes(total, info_number(memory, "total_bytes")),
		 info_bytes(available, info_number(memory, "available_bytes")),
		 json_object_get(memory, "limit_bytes") ? "; cgroup limit " : "",
		 json_object_get(memory, "limit_bytes")
			 ? info_bytes(limit, info_number(memory, "limit_bytes"))
			 : "");
}

/* The main facts of a working GPU in one line. */
static void gpu_row(struct text *t, const char *name, const struct gpu *g)
{
	struct text line = {0};

	text_addf(&line, "%s, %s", g->name[0] ? g->name : "name unreadable", g->pci);
	if (gpu_has(g, GPU_FACT_memory_bytes)) {
		text_add(&line, ", ");
		info_fact(&line, g, GPU_FACT_memory_bytes);
	}
	if (gpu_has(g, GPU_FACT_power_w))
		text_addf(&line, ", %.0f W", gpu_get(g, GPU_FACT_power_w, 0));
	if (gpu_has(g, GPU_FACT_power_limit_w))
		text_addf(&line, " (limit %.0f W)", gpu_get(g, GPU_FACT_power_limit_w, 0));
	if (gpu_has(g, GPU_FACT_temperature_c))
		text_addf(&line, ", %.0f C", gpu_get(g, GPU_FACT_temperature_c, 0));
	info_row(t, name, "%s%s", text_str(&line), g->granted ? "" : ", access not granted");
	text_release(&line);
}

static void gpu_rows(struct text *t, const struct machine *m)
{
	const json_t *driver = json_object_get(machine_json(m), "driver");
	const char *version = json_member_text(driver, "version"),
		   *cuda = json_member_text(driver, "cuda_version");

	if (!machine_gpu_count(m)) {
		info_row(t, "GPUs", "none on the PCI bus");
		return;
	}
	info_row(t, "NVIDIA driver", "%s%s%s", *version ? version : "none", *cuda ? ", CUDA up to " : "",
		 cuda);
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);
		char name[24];

		snprintf(name, sizeof(name), "GPU %u", i);
		if (g->status)
			info_row(t, name, "%s%s%s: %s: %s", g->pci, g->name[0] ? ", " : "", g->name,
				 cause_name(g->cause), g->reason);
		else
			gpu_row(t, name, g);
	}
}

void info_summary(struct text *t, const struct machine *m)
{
	text_add(t, "Machine\n");
	if (!machine_is_live(m))
		info_row(t, "recording", "%s", machine_label(m)[0] ? machine_label(m) : "of a real machine");
	system_rows(t, m);
	info_cpu_rows(t, m);
	memory_row(t, m);
	gpu_rows(t, m);
	info_disk_row(t, m);
}
