/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the system and its memory. */
#include <ctype.h>
#include "core/text/text.h"
#include "machine/facts/facts.h"

static void unquote(char *s)
{
	size_t n = strlen(s);

	if (n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
		memmove(s, s + 1, n - 2);
		s[n - 2] = 0;
	}
}

/* Names the hypervisor by the vendor and product in the DMI data. */
static const char *hypervisor_of(const char *vendor, const char *product)
{
	static const struct {
		const char *word, *name;
	} known[] = {{"KVM", "kvm"},
		     {"QEMU", "kvm"},
		     {"VMware", "vmware"},
		     {"VirtualBox", "virtualbox"},
		     {"Virtual Machine", "hyper-v"},
		     {"Amazon EC2", "ec2"},
		     {"Google", "kvm (google)"},
		     {"Xen", "xen"},
		     {"OpenStack", "kvm (openstack)"},
		     {"Alibaba", "kvm (alibaba)"},
		     {"Bochs", "bochs"},
		     {"Nebius", "kvm (nebius)"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if ((product && strstr(product, known[i].word)) || (vendor && strstr(vendor, known[i].word)))
			return known[i].name;
	}
	return NULL;
}

/* Names the hypervisor by the CPU's signature if there is no DMI data. */
static const char *hypervisor_by_signature(const json_t *value)
{
	static const struct {
		const char *signature, *name;
	} known[] = {{"KVMKVMKVM", "kvm"},	{"Microsoft Hv", "hyper-v"}, {"VMwareVMware", "vmware"},
		     {"XenVMMXenVMM", "xen"},	{"TCGTCGTCGTCG", "qemu"},    {"VBoxVBoxVBox", "virtualbox"},
		     {"bhyve bhyve ", "bhyve"}, {"ACRNACRNACRN", "acrn"}};
	const char *text = json_string_value(json_object_get(value, "signature"));

	for (size_t i = 0; text && i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(text, known[i].signature))
			return known[i].name;
	}
	return NULL;
}

static const char *container_of(struct facts *f)
{
	const json_t *marks = source_value(f->source, "marks");
	const char *cgroup = source_text(f->source, "/proc/1/cgroup");

	if (json_is_true(json_object_get(marks, "containerenv")))
		return "podman";
	if (cgroup && strstr(cgroup, "kubepods"))
		return "kubernetes";
	if (json_is_true(json_object_get(marks, "dockerenv")))
		return "docker";
	if (cgroup && (strstr(cgroup, "docker") || strstr(cgroup, "containerd")))
		return "docker";
	if (cgroup && strstr(cgroup, "/lxc"))
		return "lxc";
	return NULL;
}

static void read_os(struct facts *f, json_t *system)
{
	const char *text = source_text(f->source, "/etc/os-release");
	char value[128];

	if (!text)
		text = source_text(f->source, "/usr/lib/os-release");
	if (text && facts_line(text, "PRETTY_NAME", '=', value, sizeof(value))) {
		unquote(value);
		facts_set_text(system, "os", value);
	}
	if (text && facts_line(text, "ID", '=', value, sizeof(value))) {
		unquote(value);
		facts_set_text(system, "os_id", value);
	}
	if (text && facts_line(text, "VERSION_ID", '=', value, sizeof(value))) {
		unquote(value);
		facts_set_text(system, "os_version", value);
	}
}

static void read_virtual(struct facts *f, json_t *system)
{
	const char *product = source_text(f->source, "/sys/class/dmi/id/product_name");
	const char *vendor = source_text(f->source, "/sys/class/dmi/id/sys_vendor");
	const char *cpuinfo = source_text(f->source, "/proc/cpuinfo");
	const char *type = source_text(f->source, "/sys/hypervisor/type");
	const char *name = hypervisor_of(vendor, product);
	bool flag = cpuinfo && strstr(cpuinfo, " hypervisor");

	facts_set_text(system, "product", product);
	facts_set_text(system, "vendor", vendor);
	facts_set_text(system, "bios", source_text(f->source, "/sys/class/dmi/id/bios_version"));
	if (!name)
		name = hypervisor_by_signature(source_value(f->source, "hypervisor"));
	if (type)
		name = type;
	/* Names of Amazon's bare-metal products end in ".metal". */
	if (product && strstr(product, ".metal"))
		name = NULL, flag = false;
	facts_set(system, "virtual_machine", json_boolean(flag || name));
	if (flag || name)
		facts_set_text(system, "hypervisor", name ? name : "unnamed");
}

void facts_system(struct facts *f)
{
	const json_t *raw = source_value(f->source, "system"), *value;
	json_t *system = json_object();
	const char *container = container_of(f), *key;

	json_object_set_new(f->tree, "system", system);
	json_object_foreach((json_t *)raw, key, value) json_object_set(system, key, (json_t *)value);
	facts_set_text(system, "boot_id", source_text(f->source, "/proc/sys/kernel/random/boot_id"));
	read_os(f, system);
	read_virtual(f, system);
	facts_set_text(system, "container", container);
	value = source_value(f->source, "kernel_options");
	if (json_array_size(value))
		json_object_set(system, "kernel_options", (json_t *)value);
	facts_set_text(system, "transparent_hugepage",
		       source_text(f->source, "/sys/kernel/mm/transparent_hugepage/enabled"));
	facts_set_text(system, "numa_balancing", source_text(f->source, "/proc/sys/kernel/numa_balancing"));
	facts_set_text(
		system, "clocksource",
		source_text(f->source, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
	facts_set_text(system, "loadavg", source_text(f->source, "/proc/loadavg"));
	value = source_value(f->source, "limits");
	if (value)
		json_object_set(f->tree, "limits", (json_t *)value);
	value = source_value(f->source, "environment");
	if (value)
		json_object_set(f->tree, "environment", (json_t *)value);
	value = source_value(f->source, "nccl_files");
	if (json_array_size(value))
		json_object_set(f->tree, "nccl_files", (json_t *)value);
}

static double limit_of(const char *text)
{
	double value;

	/* For no limit, v1 has 2^63 rounded down to a page, v2 has "max" */
	return facts_number(text, &value) && value > 0 && value < 9e18 ? value : 0;
}

/* The value of "NAME 12" in memory.stat; 0: not found. */
static double stat_of(const char *text, const char *name)
{
	size_t size = strlen(name);
	double value = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, size) && line[size] == ' ')
			return sscanf(line + size, "%lf", &value) == 1 ? value : 0;
	}
	return 0;
}

/* Memory that cgroups allow: the lowest limit, and the smallest free amount below a limit. 0: none. */
struct memory_left {
	double limit, available;
};

/* Memory that the kernel can reclaim before a cgroup reaches its limit: pages of files, except some that are
 * in use, and the kernel's caches. prefix: of the names in version 1. */
static double reclaimable(const char *stat, const char *prefix)
{
	char inactive[32], active[32];

	snprintf(inactive, sizeof(inactive), "%sinactive_file", prefix);
	snprintf(active, sizeof(active), "%sactive_file", prefix);
	return stat_of(stat, inactive) + stat_of(stat, active) / 2 + stat_of(stat, "slab_reclaimable");
}

/* Applies a cgroup's limit, and the memory that is free below it. */
static void add_limit(struct memory_left *left, double limit, const char *used, const char *stat,
		      const char *prefix)
{
	double value = 0, free_bytes = limit;

	if (limit <= 0)
		return;
	if (facts_number(used, &value))
		free_bytes += reclaimable(stat, prefix) - value;
	free_bytes = free_bytes > limit ? limit : free_bytes < 1 ? 1 : free_bytes;
	if (left->limit <= 0 || limit < left->limit)
		left->limit = limit;
	if (left->available <= 0 || free_bytes < left->available)
		left->available = free_bytes;
}

static void add_v1(struct facts *f, const char *group, struct memory_left *left)
{
	const char *at = "/sys/fs/cgroup/memory";

	add_limit(left, limit_of(source_textf(f->source, "%s%s/memory.limit_in_bytes", at, group)),
		  source_textf(f->source, "%s%s/memory.usage_in_bytes", at, group),
		  source_textf(f->source, "%s%s/memory.stat", at, group), "total_");
}

static void add_v2(struct facts *f, const char *group, struct memory_left *left)
{
	const char *at = "/sys/fs/cgroup";

	add_limit(left, limit_of(source_textf(f->source, "%s%s/memory.max", at, group)),
		  source_textf(f->source, "%s%s/memory.current", at, group),
		  source_textf(f->source, "%s%s/memory.stat", at, group), "");
}

/* Applies the limits of our cgroup and of all its parents: each may have its own limit, which also counts
 * memory of other processes in it. In a container whose path is the host's, only the top cgroup is visible.
 */
static void add_all(struct facts *f, const char *controller,
		    void (*add)(struct facts *f, const char *group, struct memory_left *left),
		    struct memory_left *left)
{
	char path[512], *slash;

	if (!facts_cgroup(f, controller, path, sizeof(path)))
		return;
	while (path[0] && (slash = strrchr(path, '/'))) {
		if (slash[1])
			add(f, path, left);
		*slash = 0;
	}
	add(f, "", left);
}

/* The memory controller may be of either version. */
static struct memory_left memory_left(struct facts *f)
{
	struct memory_left left = {0};

	add_all(f, "", add_v2, &left);
	add_all(f, "memory", add_v1, &left);
	return left;
}

/* MemAvailable, or less if a cgroup allows less. Old kernels do not report MemAvailable. */
static void add_left(json_t *memory, const struct memory_left *left)
{
	const json_t *available = json_object_get(memory, "available_bytes");

	if (left->limit <= 0)
		return;
	if (left->limit < json_number_value(json_object_get(memory, "total_bytes")))
		facts_set_number(memory, "limit_bytes", left->limit);
	if (left->available < json_number_value(available) ||
	    (!available && json_object_get(memory, "limit_bytes")))
		facts_set_number(memory, "available_bytes", left->available);
}

void facts_memory(struct facts *f)
{
	static const struct {
		const char *line, *key;
		double scale;
	} rows[] = {{"MemTotal", "total_bytes", 1024},	      {"MemAvailable", "available_bytes", 1024},
		    {"SwapTotal", "swap_bytes", 1024},	      {"SwapFree", "swap_free_bytes", 1024},
		    {"Hugepagesize", "hugepage_bytes", 1024}, {"HugePages_Total", "hugepages_total", 1},
		    {"HugePages_Free", "hugepages_free", 1}};
	const char *meminfo = source_text(f->source, "/proc/meminfo");
	const json_t *dimms = source_value(f->source, "dmi_memory");
	json_t *memory = json_object();
	const struct memory_left left = memory_left(f);
	char value[64];

	json_object_set_new(f->tree, "memory", memory);
	for (size_t i = 0; meminfo && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (facts_line(meminfo, rows[i].line, ':', value, sizeof(value)))
			facts_set_number(memory, rows[i].key, strtod(value, NULL) * rows[i].scale);
	}
	if (!meminfo)
		facts_unreadable(f, "memory size", facts_cause_of(source_why(f->source, "/proc/meminfo")),
				 source_why(f->source, "/proc/meminfo"));
	add_left(memory, &left);
	if (json_array_size(dimms))
		json_object_set(memory, "dimms", (json_t *)dimms);
	else
		facts_unreadable(f, "memory speed", facts_cause_of(source_why(f->source, "dmi_memory")),
				 dimms ? "the DMI table lists no memory modules"
				       : source_why(f->source, "dmi_memory"));
}
