/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include "core/text/text.h"
#include "machine/facts/facts.h"

/* Names of instruction sets in the facts and in the kernel's spelling (x86 "flags", ARM "Features"): those of
 * CPU_ISA, by which kernels and libraries are selected, and others of interest to readers. */
static const struct {
	const char *name, *flag;
} isa[] = {
	{"sse2", "sse2"},
	{"sse4_2", "sse4_2"},
	{"avx", "avx"},
	{"f16c", "f16c"},
	{"avx2", "avx2"},
	{"fma", "fma"},
	{"avx512f", "avx512f"},
	{"avx512bw", "avx512bw"},
	{"avx512dq", "avx512dq"},
	{"avx512vl", "avx512vl"},
	{"avx512_bf16", "avx512_bf16"},
	{"avx512_fp16", "avx512_fp16"},
	{"avx512_vnni", "avx512_vnni"},
	{"avx_vnni", "avx_vnni"},
	{"amx_tile", "amx_tile"},
	{"amx_bf16", "amx_bf16"},
	{"amx_int8", "amx_int8"},
	{"amx_fp16", "amx_fp16"},
	{"neon", "asimd"},
	{"fp16", "asimdhp"},
	{"dotprod", "asimddp"},
	{"bf16", "bf16"},
	{"i8mm", "i8mm"},
	{"sve", "sve"},
	{"sve2", "sve2"},
	{"sme", "sme"},
};

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) {
		if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	}
	return false;
}

static void read_isa(json_t *cpu, const char *cpuinfo)
{
	json_t *list = json_array();
	char *flags = malloc(16384);

	if (flags && (facts_line(cpuinfo, "flags", ':', flags, 16384) ||
		      facts_line(cpuinfo, "Features", ':', flags, 16384))) {
		for (size_t i = 0; i < sizeof(isa) / sizeof(isa[0]); i++) {
			if (has_word(flags, isa[i].flag))
				json_array_append_new(list, json_string(isa[i].name));
		}
		facts_set(cpu, "hypervisor_flag", json_boolean(has_word(flags, "hypervisor")));
		facts_set(cpu, "isa", json_incref(list));
	}
	json_decref(list);
	free(flags);
}

/* Counts sockets (different values of "physical id") and cores (different pairs with "core id") over all
 * processors. */
static void count_cores(json_t *cpu, const char *cpuinfo)
{
	json_t *sockets = json_object(), *cores = json_object();
	unsigned threads = 0;
	char socket[32] = "", core[32], key[80];

	for (const char *line = cpuinfo; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "processor", 9) && isspace((unsigned char)line[9]))
			threads++;
		if (!strncmp(line, "physical id", 11) &&
		    facts_line(line, "physical id", ':', socket, sizeof(socket)))
			json_object_set_new(sockets, socket, json_true());
		if (!strncmp(line, "core id", 7) && facts_line(line, "core id", ':', core, sizeof(core))) {
			snprintf(key, sizeof(key), "%s/%s", socket, core);
			json_object_set_new(cores, key, json_true());
		}
		if (!*line)
			break;
	}
	facts_set_number(cpu, "threads", threads);
	if (json_object_size(sockets))
		facts_set_number(cpu, "sockets", (double)json_object_size(sockets));
	if (json_object_size(cores))
		facts_set_number(cpu, "cores", (double)json_object_size(cores));
	json_decref(sockets);
	json_decref(cores);
}

/* If /proc/cpuinfo has no topology (ARM), reads it from each CPU's folder. */
static void count_cores_sysfs(struct facts *f, json_t *cpu)
{
	const json_t *names = source_list(f->source, "/sys/devices/system/cpu");
	json_t *sockets = json_object(), *cores = json_object(), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *cpu_name = json_string_value(name), *socket, *core;
		char key[80];

		if (!cpu_name || strncmp(cpu_name, "cpu", 3) || !isdigit((unsigned char)cpu_name[3]))
			continue;
		socket = source_textf(f->source, "/sys/devices/system/cpu/%s/topology/physical_package_id",
				      cpu_name);
		core = source_textf(f->source, "/sys/devices/system/cpu/%s/topology/core_id", cpu_name);
		if (!socket || !core)
			continue;
		snprintf(key, sizeof(key), "%.32s/%.32s", socket, core);
		json_object_set_new(sockets, socket, json_true());
		json_object_set_new(cores, key, json_true());
	}
	if (json_object_size(cores)) {
		facts_set_number(cpu, "sockets", (double)json_object_size(sockets));
		facts_set_number(cpu, "cores", (double)json_object_size(cores));
	}
	json_decref(sockets);
	json_decref(cores);
}

static void read_model(json_t *cpu, const char *cpuinfo)
{
	static const struct {
		const char *line, *key;
	} texts[] = {{"model name", "model"},	    {"Model", "model"},	      {"vendor_id", "vendor"},
		     {"CPU implementer", "vendor"}, {"cpu family", "family"}, {"stepping", "stepping"},
		     {"microcode", "microcode"}};
	char value[128];
	double number;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!json_object_get(cpu, texts[i].key) &&
		    facts_line(cpuinfo, texts[i].line, ':', value, sizeof(value)))
			facts_set_text(cpu, texts[i].key, value);
	}
	if (facts_line(cpuinfo, "model", ':', value, sizeof(value)))
		facts_set_text(cpu, "model_number", value);
	if (facts_line(cpuinfo, "cpu MHz", ':', value, sizeof(value)) && facts_number(value, &number))
		facts_set_number(cpu, "mhz_reported", number);
}

static double cache_bytes(const char *text)
{
	char *end;
	double value = text ? strtod(text, &end) : 0;

	if (!text || end == text || value < 0)
		return 0;
	return value * (*end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1);
}

/* The CPUs of each instance of a cache: one list for every set of CPUs that share one. NULL: only cpu0's
 * cache is described. */
static json_t *cache_instances(struct facts *f, const char *index)
{
	const json_t *names = source_list(f->source, "/sys/devices/system/cpu"), *name;
	json_t *seen = json_object(), *list = json_array();
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *cpu = json_string_value(name), *shared;

		if (!cpu || strncmp(cpu, "cpu", 3) || !isdigit((unsigned char)cpu[3]))
			continue;
		shared = source_textf(f->source, "/sys/devices/system/cpu/%s/cache/%s/shared_cpu_list", cpu,
				      index);
		if (!facts_cpulist_count(shared) || json_object_get(seen, shared))
			continue;
		json_object_set_new(seen, shared, json_true());
		json_array_append_new(list, json_string(shared));
	}
	json_decref(seen);
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

static void read_caches(struct facts *f, json_t *cpu)
{
	static const char *const base = "/sys/devices/system/cpu/cpu0/cache";
	const json_t *names = source_list(f->source, base);
	json_t *list = json_array(), *name;
	double threads = json_number_value(json_object_get(cpu, "threads"));
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *index = json_string_value(name), *type, *level, *size, *shared;
		double bytes, number = 0;
		unsigned sharing;
		json_t *row;

		if (!index || strncmp(index, "index", 5))
			continue;
		level = source_textf(f->source, "%s/%s/level", base, index);
		type = source_textf(f->source, "%s/%s/type", base, index);
		size = source_textf(f->source, "%s/%s/size", base, index);
		shared = source_textf(f->source, "%s/%s/shared_cpu_list", base, index);
		bytes = cache_bytes(size);
		sharing = facts_cpulist_count(shared);
		if (!facts_number(level, &number) || bytes <= 0)
			continue;
		row = json_pack("{s:i,s:s}", "level", (int)number, "type", type ? type : "");
		facts_set_number(row, "bytes", bytes);
		if (sharing) {
			facts_set_number(row, "shared_by", sharing);
			facts_set_number(row, "count", (double)(((unsigned)threads + sharing - 1) / sharing));
		}
		if (row && number == 3) { /* counts the instances, because some sockets have several */
			json_t *instances = cache_instances(f, index);

			if (json_array_size(instances) > 1) {
				facts_set_number(row, "count", (double)json_array_size(instances));
				facts_set(row, "instances", json_incref(instances));
			}
			json_decref(instances);
		}
		if (row)
			json_array_append_new(list, row);
	}
	if (json_array_size(list))
		facts_set(cpu, "caches", json_incref(list));
	else
		facts_unreadable(f, "CPU caches", facts_cause_of(source_why(f->source, base)),
				 source_why(f->source, base));
	json_decref(list);
}

/* Clocks from cpufreq, in kHz. Virtual machines have none. */
static void read_clocks(struct facts *f, json_t *cpu)
{
	static const char *const base = "/sys/devices/system/cpu/cpu0/cpufreq";
	const char *text;
	double khz;

	if (facts_number(source_textf(f->source, "%s/scaling_cur_freq", base), &khz))
		facts_set_number(cpu, "mhz_now", khz / 1000);
	if (facts_number(source_textf(f->source, "%s/cpuinfo_max_freq", base), &khz))
		facts_set_number(cpu, "mhz_max", khz / 1000);
	if (facts_number(source_textf(f->source, "%s/cpuinfo_min_freq", base), &khz))
		facts_set_number(cpu, "mhz_min", khz / 1000);
	text = source_textf(f->source, "%s/scaling_governor", base);
	facts_set_text(cpu, "governor", text);
	if (!json_object_get(cpu, "mhz_now"))
		facts_unreadable(
			f, "CPU clocks", CAUSE_UNSUPPORTED,
			"/sys/devices/system/cpu/cpu0/cpufreq does not exist (usual in virtual machines)");
}

static void read_numa(struct facts *f, json_t *cpu)
{
	static const char *const base = "/sys/devices/system/node";
	const json_t *names = source_list(f->source, base);
	json_t *list = json_array(), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *node = json_string_value(name), *text;
		char value[64], label[64];
		double number = 0;
		json_t *row;

		if (!node || strncmp(node, "node", 4) || !facts_number(node + 4, &number))
			continue;
		row = json_pack("{s:i}", "node", (int)number);
		facts_set_text(row, "cpus", source_textf(f->source, "%s/%s/cpulist", base, node));
		facts_set_text(row, "distances", source_textf(f->source, "%s/%s/distance", base, node));
		text = source_textf(f->source, "%s/%s/meminfo", base, node);
		snprintf(label, sizeof(label), "Node %d MemTotal", (int)number);
		if (facts_line(text, label, ':', value, sizeof(value)))
			facts_set_number(row, "memory_bytes", strtod(value, NULL) * 1024);
		json_array_append_new(list, row);
	}
	if (json_array_size(list))
		facts_set(cpu, "numa", json_incref(list));
	else
		facts_unreadable(f, "NUMA nodes", facts_cause_of(source_why(f->source, base)),
				 source_why(f->source, base));
	json_decref(list);
}

/* The lowest quota / period of the cgroup and its parents, in CPUs. */
static double quota_v2(struct facts *f, const char *group)
{
	char path[512];
	double lowest = 0;

	text_copy(path, sizeof(path), group);
	for (;;) {
		const char *text =
			source_textf(f->source, "/sys/fs/cgroup%s/cpu.max", strcmp(path, "/") ? path : "");
		char *slash = strrchr(path, '/');
		double quota, period;

		if (text && sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 &&
		    (lowest <= 0 || quota / period < lowest))
			lowest = quota / period;
		if (!slash || !path[1])
			return lowest;
		*slash = 0;
		if (!path[0])
			text_copy(path, sizeof(path), "/");
	}
}

static double quota_v1(struct facts *f, const char *group)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
	double quota = 0, period = 0;

	for (size_t i = 0; i < 2; i++) {
		for (int own = 1; own >= 0; own--) {
			const char *at = own && strcmp(group, "/") ? group : "";

			if (facts_number(source_textf(f->source, "%s%s/cpu.cfs_quota_us", mounts[i], at),
					 &quota) &&
			    facts_number(source_textf(f->source, "%s%s/cpu.cfs_period_us", mounts[i], at),
					 &period))
				return quota > 0 && period > 0 ? quota / period : 0;
		}
	}
	return 0;
}

bool facts_cgroup(struct facts *f, const char *controller, char *out, size_t size)
{
	const char *text = source_text(f->source, "/proc/self/cgroup");

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *names, *path;

		line += *line == '\n';
		names = strchr(line, ':');
		path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			return false;
		for (const char *p = names + 1; p <= path; p += strcspn(p, ",:") + 1) {
			size_t n = strcspn(p, ",:");

			if (n == strlen(controller) && !strncmp(p, controller, n)) {
				snprintf(out, size, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
				return out[0] == '/';
			}
		}
	}
	return false;
}

void facts_cpu(struct facts *f)
{
	const char *cpuinfo = source_text(f->source, "/proc/cpuinfo");
	const char *affinity = json_string_value(source_value(f->source, "affinity"));
	json_t *cpu = json_object();
	char group[512];
	double quota = 0;

	json_object_set_new(f->tree, "cpu", cpu);
	if (cpuinfo) {
		read_model(cpu, cpuinfo);
		read_isa(cpu, cpuinfo);
		count_cores(cpu, cpuinfo);
		if (!json_object_get(cpu, "cores"))
			count_cores_sysfs(f, cpu);
	} else {
		facts_unreadable(f, "CPU model", facts_cause_of(source_why(f->source, "/proc/cpuinfo")),
				 source_why(f->source, "/proc/cpuinfo"));
	}
	facts_set_text(cpu, "affinity", affinity);
	facts_set_number(cpu, "usable", facts_cpulist_count(affinity));
	if (facts_cgroup(f, "", group, sizeof(group)))
		quota = quota_v2(f, group);
	if (quota <= 0 && facts_cgroup(f, "cpu", group, sizeof(group)))
		quota = quota_v1(f, group);
	if (quota > 0)
		facts_set_number(cpu, "quota", quota);
	read_caches(f, cpu);
	read_clocks(f, cpu);
	read_numa(f, cpu);
}
