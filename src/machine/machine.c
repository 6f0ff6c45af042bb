/* SPDX-License-Identifier: Apache-2.0 */
/* Builds struct machine from the facts tree only, so the facts in a journal give the same machine as a live
 * reading. */
#include "machine/machine.h"
#include <limits.h>
#include <math.h>
#include <unistd.h>
#include "core/math/plausible_range.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "machine/facts/facts.h"

enum { GPUS_MAX = 256, LIBS_MAX = 64 };

struct machine {
	json_t *json;
	bool live;
	char label[160];
	struct cpu cpu;
	struct gpu *gpu;
	unsigned gpu_count;
	struct lib_found *lib;
	unsigned lib_count;
};

static const struct {
	const char *name, *unit;
} gpu_fact_rows[] = {
#define X(name, unit, layer, help) {#name, unit},
	GPU_FACTS(X)
#undef X
};

static const char *const isa_names[] = {
#define X(name) #name,
	CPU_ISA(X)
#undef X
};

const char *gpu_fact_name(enum gpu_fact fact)
{
	return gpu_fact_rows[fact].name;
}

const char *gpu_fact_unit(enum gpu_fact fact)
{
	return gpu_fact_rows[fact].unit;
}

bool gpu_has(const struct gpu *g, enum gpu_fact fact)
{
	return g->present >> fact & 1;
}

double gpu_get(const struct gpu *g, enum gpu_fact fact, double fallback)
{
	return gpu_has(g, fact) ? g->fact[fact] : fallback;
}

/* Reads a number of untrusted JSON. Absent, negative and too large values become 0. */
static double number(const json_t *map, const char *key, double high)
{
	double v = json_number_value(json_object_get(map, key));

	return isfinite(v) && v > 0 && v <= high ? v : 0;
}

static void copy_text(char *out, size_t size, const json_t *map, const char *key)
{
	text_copy(out, size, json_member_text(map, key));
}

static void build_caches(struct cpu *c, const json_t *cpu)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(cpu, "caches"), i, row)
	{
		const char *type = json_string_value(json_object_get(row, "type"));
		uint64_t bytes = (uint64_t)number(row, "bytes", 1e13);

		switch ((int)number(row, "level", 9)) {
		case 1:
			if (type && strcmp(type, "Instruction"))
				c->l1d_bytes = bytes;
			break;
		case 2:
			c->l2_bytes = bytes;
			break;
		case 3:
			c->l3_bytes = bytes;
			c->l3_count = (unsigned)number(row, "count", 65536);
			break;
		default:
			break;
		}
	}
}

/* Number of CPUs that are in both lists, such as "0-3,8" and "2-9". */
static unsigned common_cpus(const char *a, const char *b)
{
	unsigned count = 0;

	if (!a || !b)
		return 0;
	for (const char *p = a; *p;) {
		char *end;
		unsigned long from = strtoul(p, &end, 10),
			      to = *end == '-' ? strtoul(end + 1, &end, 10) : from;

		for (const char *q = b; *q;) {
			char *stop;
			unsigned long low = strtoul(q, &stop, 10),
				      high = *stop == '-' ? strtoul(stop + 1, &stop, 10) : low;
			unsigned long first = low > from ? low : from, last = high < to ? high : to;

			if (last >= first && last < 65536)
				count += (unsigned)(last - first + 1);
			if (*stop != ',' || stop == q)
				break;
			q = stop + 1;
		}
		if (*end != ',' || end == p)
			break;
		p = end + 1;
	}
	return count;
}

/* Number of last-level caches that share CPUs with a node. */
static unsigned caches_of(const json_t *cpu, const char *cpus)
{
	const json_t *row, *list;
	unsigned count = 0;
	size_t i, k;

	json_array_foreach(json_object_get(cpu, "caches"), i, row)
	{
		if (json_integer_value(json_object_get(row, "level")) != 3)
			continue;
		json_array_foreach(json_object_get(row, "instances"), k, list) count +=
			common_cpus(json_string_value(list), cpus) > 0;
	}
	return count;
}

static void build_numa(struct cpu *c, const json_t *cpu)
{
	const char *affinity = json_string_value(json_object_get(cpu, "affinity"));
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(cpu, "numa"), i, row)
	{
		const char *cpus = json_string_value(json_object_get(row, "cpus"));

		if (c->numa_count == sizeof(c->numa) / sizeof(c->numa[0]))
			break;
		c->numa[c->numa_count++] = (struct numa){
			.node = (int)number(row, "node", 65535),
			.cpus = affinity ? common_cpus(cpus, affinity) : facts_cpulist_count(cpus),
			.l3_count = caches_of(cpu, cpus),
			.memory_bytes = (uint64_t)number(row, "memory_bytes", 1e16),
		};
	}
}

static void build_cpu(struct machine *m)
{
	const json_t *cpu = json_object_get(m->json, "cpu"), *memory = json_object_get(m->json, "memory");
	const json_t *system = json_object_get(m->json, "system"), *word;
	struct cpu *c = &m->cpu;
	size_t i;

	copy_text(c->model, sizeof(c->model), cpu, "model");
	copy_text(c->vendor, sizeof(c->vendor), cpu, "vendor");
	c->sockets = (unsigned)number(cpu, "sockets", 4096);
	c->cores = (unsigned)number(cpu, "cores", 65536);
	c->threads = (unsigned)number(cpu, "threads", 65536);
	c->usable = (unsigned)number(cpu, "usable", 65536);
	if (!c->usable)
		c->usable = c->threads ? c->threads : 1;
	c->quota = number(cpu, "quota", 65536);
	c->memory_bytes = (uint64_t)number(memory, "total_bytes", 1e16);
	c->memory_limit_bytes = (uint64_t)number(memory, "limit_bytes", 1e16);
	c->memory_available_bytes = (uint64_t)number(memory, "available_bytes", 1e16);
	c->page_bytes = (uint64_t)number(system, "page_bytes", 1 << 26);
	if (!c->page_bytes)
		c->page_bytes = 4096;
	c->virtual_machine = json_is_true(json_object_get(system, "virtual_machine"));
	json_array_foreach(json_object_get(cpu, "isa"), i, word)
	{
		for (unsigned bit = 0; bit < CPU_ISA_COUNT; bit++) {
			if (json_string_value(word) && !strcmp(json_string_value(word), isa_names[bit]))
				c->isa |= 1u << bit;
		}
	}
	build_caches(c, cpu);
	build_numa(c, cpu);
}

static int index_of(const json_t *gpu, const char *key)
{
	const json_t *v = json_object_get(gpu, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < 4096
		       ? (int)json_integer_value(v)
		       : -1;
}

static void build_gpu(struct gpu *g, const json_t *gpu)
{
	const json_t *facts = json_object_get(gpu, "facts"), *v;
	const char *status = json_string_value(json_object_get(gpu, "status"));
	const char *cause = json_string_value(json_object_get(gpu, "cause"));

	copy_text(g->name, sizeof(g->name), gpu, "name");
	copy_text(g->uuid, sizeof(g->uuid), gpu, "uuid");
	copy_text(g->serial, sizeof(g->serial), gpu, "serial");
	copy_text(g->vbios, sizeof(g->vbios), gpu, "vbios");
	copy_text(g->pci, sizeof(g->pci), gpu, "pci");
	copy_text(g->slot, sizeof(g->slot), gpu, "slot");
	copy_text(g->reason, sizeof(g->reason), gpu, "reason");
	g->pci_device = (unsigned)number(gpu, "pci_device", 4294967295.0);
	g->pci_subsystem = (unsigned)number(gpu, "pci_subsystem", 4294967295.0);
	g->cuda_index = index_of(gpu, "cuda_index");
	g->nvml_index = index_of(gpu, "nvml_index");
	g->granted = json_is_true(json_object_get(gpu, "granted"));
	if (!status || !status_from_name(status, &g->status))
		g->status = STATUS_UNAVAILABLE;
	if (!cause || !cause_from_name(cause, &g->cause))
		g->cause = CAUSE_NONE;
	for (unsigned i = 0; i < GPU_FACT_COUNT; i++) {
		v = json_object_get(facts, gpu_fact_rows[i].name);
		if (!json_is_number(v) || !plausible(gpu_fact_rows[i].name, json_number_value(v)))
			continue;
		g->fact[i] = json_number_value(v);
		g->present |= 1ULL << i;
	}
}

static enum status build_gpus(struct machine *m, struct error *err)
{
	const json_t *list = json_object_get(m->json, "gpus");
	size_t count = json_array_size(list);

	if (count > GPUS_MAX)
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "machine: %zu GPUs exceed the limit of %d", count, GPUS_MAX);
	m->gpu = calloc(count ? count : 1, sizeof(*m->gpu));
	if (!m->gpu)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "machine: out of memory");
	for (size_t i = 0; i < count; i++)
		build_gpu(&m->gpu[m->gpu_count++], json_array_get(list, i));
	return STATUS_OK;
}

static enum status build_libs(struct machine *m, struct error *err)
{
	const json_t *row;
	const char *name;

	m->lib = calloc(LIBS_MAX, sizeof(*m->lib));
	if (!m->lib)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "machine: out of memory");
	json_object_foreach(json_object_get(m->json, "software"), name, row)
	{
		struct lib_found *l = &m->lib[m->lib_count];

		if (m->lib_count == LIBS_MAX || strlen(name) >= sizeof(l->name))
			continue;
		text_copy(l->name, sizeof(l->name), name);
		copy_text(l->path, sizeof(l->path), row, "path");
		copy_text(l->version, sizeof(l->version), row, "version");
		copy_text(l->missing, sizeof(l->missing), row, "missing");
		l->status = l->path[0] ? STATUS_OK : STATUS_UNAVAILABLE;
		l->cause = l->path[0] ? CAUSE_NONE : CAUSE_LIBRARY_MISSING;
		m->lib_count++;
	}
	return STATUS_OK;
}

/* Takes ownership of `facts`. */
static enum status build(struct machine **out, json_t *facts, struct error *err)
{
	struct machine *m = calloc(1, sizeof(*m));
	enum status st;

	if (!m || !facts) {
		json_decref(facts);
		free(m);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "machine: out of memory");
	}
	m->json = facts;
	m->live = json_is_true(json_object_get(facts, "live"));
	copy_text(m->label, sizeof(m->label), facts, "label");
	build_cpu(m);
	st = build_gpus(m, err);
	if (!st)
		st = build_libs(m, err);
	if (st) {
		machine_free(m);
		return st;
	}
	*out = m;
	return STATUS_OK;
}

/* Makes the path absolute without file access: the folder need not exist yet. */
static json_t *absolute(const char *path)
{
	char here[PATH_MAX];

	if (*path == '/')
		return json_string(path);
	return getcwd(here, sizeof(here)) ? json_sprintf("%s/%s", here, path) : NULL;
}

enum status machine_read_scope(struct machine **m, const struct machine_scope *scope, const char *recording,
			       const struct log *log, struct error *err)
{
	struct source *s = NULL;
	enum status st = recording ? source_open(&s, recording, err) : source_live(&s, log, err);

	*m = NULL;
	if (!st)
		source_heed(s, scope->stop);
	if (!st && scope->out)
		source_record_value(s, "output", absolute(scope->out));
	if (!st)
		st = build(m, facts_read(s, scope), err);
	if (!st && source_stopped(s, err)) {
		machine_free(*m);
		*m = NULL;
		st = STATUS_CANCELLED;
	}
	source_close(s);
	return st;
}

enum status machine_read(struct machine **m, enum layer up_to, const char *recording, const struct log *log,
			 struct error *err)
{
	return machine_read_scope(m, &(struct machine_scope){.up_to = up_to}, recording, log, err);
}

enum status machine_from_json(struct machine **m, const json_t *facts, struct error *err)
{
	*m = NULL;
	if (!json_is_object(facts) || json_integer_value(json_object_get(facts, "format")) != 1)
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "machine: the facts are not of format 1");
	return build(m, json_deep_copy(facts), err);
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	json_decref(m->json);
	free(m->gpu);
	free(m->lib);
	free(m);
}

const json_t *machine_json(const struct machine *m)
{
	return m->json;
}

const json_t *machine_gpu_json(const struct machine *m, unsigned index)
{
	return json_array_get(json_object_get(m->json, "gpus"), index);
}

bool machine_is_live(const struct machine *m)
{
	return m->live;
}

const char *machine_label(const struct machine *m)
{
	return m->label;
}

const struct cpu *machine_cpu(const struct machine *m)
{
	return &m->cpu;
}

const struct gpu *machine_gpu(const struct machine *m, unsigned index)
{
	return m && index < m->gpu_count ? &m->gpu[index] : NULL;
}

unsigned machine_gpu_count(const struct machine *m)
{
	return m->gpu_count;
}

const struct lib_found *machine_lib(const struct machine *m, const char *name)
{
	for (unsigned i = 0; i < m->lib_count; i++) {
		if (!strcmp(m->lib[i].name, name))
			return &m->lib[i];
	}
	return NULL;
}
