/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the node: errors in the kernel log, clock source, CPU governor, and the load by other
 * processes. */
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(kernel_log_readable, "", U64, 1, "the kernel log could be read (1)")                               \
	X(machine_checks, "", U64, -1, "hardware errors in the kernel log")                                  \
	X(oom_kills, "", U64, -1, "processes that the kernel killed because memory ran out")                 \
	X(sxid_count, "", U64, -1, "NVSwitch errors (SXid) in the kernel log")                               \
	X(governor, "", TEXT, 0, "CPU frequency governor")                                                   \
	X(clocksource, "", TEXT, 0, "the kernel's clock source")                                             \
	X(foreign_share, "", F64, -1,                                                                        \
	  "share of the usable CPUs that other processes used just before the run")                          \
	X(load_share, "", F64, -1,                                                                           \
	  "load average of the last minute divided by the usable CPUs, if foreign_share was not measured")   \
	X(virtual_machine, "", U64, 0, "a virtual machine (1)")                                              \
	X(container, "", TEXT, 0, "kind of container")                                                       \
	X(dmi_readable, "", U64, 1, "the memory modules could be read (1)")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };

static void read_log(const struct machine *m, struct result *out)
{
	const json_t *lines = json_object_get(json_object_get(machine_json(m), "kernel_log"), "other"), *line;
	uint64_t checks = 0, kills = 0, sxids = 0;
	bool readable;
	size_t i;

	if (!reading_log(m, &readable))
		return;
	result_u64(out, &fields[AT_kernel_log_readable], readable);
	if (!readable)
		return;
	json_array_foreach((json_t *)lines, i, line)
	{
		const char *text = json_string_value(line);

		if (!text)
			continue;
		checks += strstr(text, "Hardware Error") || strstr(text, "Machine check");
		kills += strstr(text, "Out of memory: Killed") != NULL ||
			 strstr(text, "Memory cgroup out of memory: Killed") != NULL;
		sxids += strstr(text, "SXid") != NULL;
	}
	result_u64(out, &fields[AT_machine_checks], checks);
	result_u64(out, &fields[AT_oom_kills], kills);
	result_u64(out, &fields[AT_sxid_count], sxids);
}

/* dmi_readable is absent unless it is known: a virtual machine may have no DMI at all, which is no lack of
 * permission. */
static void read_dmi(const struct machine *m, struct result *out)
{
	const json_t *tree = machine_json(m), *row;
	size_t i;

	if (json_array_size(json_object_get(json_object_get(tree, "memory"), "dimms"))) {
		result_u64(out, &fields[AT_dmi_readable], 1);
		return;
	}
	json_array_foreach(json_object_get(tree, "unreadable"), i, row)
	{
		const char *what = json_string_value(json_object_get(row, "what"));
		const char *cause = json_string_value(json_object_get(row, "cause"));

		if (what && cause && !strcmp(what, "memory speed") &&
		    !strcmp(cause, cause_name(CAUSE_PERMISSION)))
			result_u64(out, &fields[AT_dmi_readable], 0);
	}
}

/* The load average needs minutes to fall and includes assay's own last run. So it is used only in recordings
 * without cpu_use. An empty cpu_use object means that the measurement failed. */
static void read_load(const json_t *system, unsigned usable, struct result *out)
{
	const char *load = json_string_value(json_object_get(system, "loadavg"));
	double busy, own, minute;

	if (json_unpack((json_t *)json_object_get(system, "cpu_use"), "{s:F, s:F}", "busy_share", &busy,
			"own_share", &own) == 0)
		result_f64(out, &fields[AT_foreign_share], busy > own ? busy - own : 0);
	else if (!json_object_get(system, "cpu_use") && load && usable && sscanf(load, "%lf", &minute) == 1)
		result_f64(out, &fields[AT_load_share], minute / usable);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *system = json_object_get(machine_json(m), "system");
	const struct cpu *cpu = machine_cpu(m);

	(void)t, (void)opts, (void)err;
	read_log(m, out);
	read_dmi(m, out);
	result_text(out, &fields[AT_governor],
		    json_string_value(json_object_get(json_object_get(machine_json(m), "cpu"), "governor")));
	result_text(out, &fields[AT_clocksource], json_string_value(json_object_get(system, "clocksource")));
	result_text(out, &fields[AT_container], json_string_value(json_object_get(system, "container")));
	read_load(system, cpu->usable, out);
	result_u64(out, &fields[AT_virtual_machine], cpu->virtual_machine);
	return STATUS_OK;
}

const struct probe probe_host_state = {
	.name = "host_state",
	.summary = "kernel log, governor, clock source and load of the host",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
