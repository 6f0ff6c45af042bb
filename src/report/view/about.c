/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/about.h"
#include <inttypes.h>
#include <math.h>
#include "core/json/member.h"
#include "report/text/format.h"

struct visitor {
	const struct view *v;
	about_visit *visit;
	void *arg;
};

static void say(const struct visitor *to, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(const struct visitor *to, const char *name, const char *format, ...)
{
	struct text shown = {0};
	char value[512];
	va_list list;

	va_start(list, format);
	vsnprintf(value, sizeof(value), format, list);
	va_end(list);
	if (!value[0])
		return;
	pseudonym_map_add(&to->v->names, &shown, value);
	to->visit(to->arg, name, text_str(&shown));
	text_release(&shown);
}

static void cpu_facts(const struct visitor *to, const struct cpu *c)
{
#define X(name) {CPU_ISA_##name, #name},
	static const struct {
		int bit;
		const char *name;
	} isas[] = {CPU_ISA(X)};
#undef X
	char bytes[32], isa[128] = "";
	size_t used = 0;

	say(to, "CPU", "%s%s", c->model[0] ? c->model : "model unreadable",
	    c->virtual_machine ? " (virtual machine)" : "");
	if (c->cores)
		say(to, "Cores", "%u socket%s, %u core%s, %u threads, %u usable", c->sockets,
		    c->sockets == 1 ? "" : "s", c->cores, c->cores == 1 ? "" : "s", c->threads, c->usable);
	else
		say(to, "Cores", "%u threads, %u usable", c->threads, c->usable);
	if (c->quota > 0)
		say(to, "CPU quota", "%.2f CPUs by cgroup", c->quota);
	if (c->l3_bytes || c->l2_bytes || c->l1d_bytes) {
		char l1[32], l2[32], l3[32];

		format_bytes(l1, sizeof(l1), (double)c->l1d_bytes);
		format_bytes(l2, sizeof(l2), (double)c->l2_bytes);
		format_bytes(l3, sizeof(l3), (double)c->l3_bytes);
		say(to, "Caches", "L1d %s, L2 %s, L3 %s", c->l1d_bytes ? l1 : "hidden",
		    c->l2_bytes ? l2 : "hidden", c->l3_bytes ? l3 : "hidden");
	}
	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
		if (c->isa & 1u << isas[i].bit)
			used += (size_t)snprintf(isa + used, sizeof(isa) - used, "%s%s", used ? " " : "",
						 isas[i].name);
	say(to, "Instruction sets", "%s", isa);
	if (c->memory_bytes) {
		format_bytes(bytes, sizeof(bytes), (double)c->memory_bytes);
		say(to, "Memory", "%s, %u NUMA node%s", bytes, c->numa_count, c->numa_count == 1 ? "" : "s");
	}
}

void about_machine(const struct view *v, about_visit *visit, void *arg)
{
	const struct visitor to = {v, visit, arg};
	const struct machine *m = v->in->machine;

	if (!m) {
		say(&to, "Machine", "the journal has no facts about the machine");
		return;
	}
	if (machine_label(m)[0])
		say(&to, "Recording", "%s", machine_label(m));
	if (machine_cpu(m))
		cpu_facts(&to, machine_cpu(m));
	say(&to, "GPUs", "%u", machine_gpu_count(m));
}

static bool have(const struct gpu *g, enum gpu_fact fact, double *value)
{
	*value = gpu_get(g, fact, 0);
	return gpu_has(g, fact) && isfinite(*value);
}

static void gpu_power(const struct visitor *to, const struct gpu *g)
{
	double limit, preset;

	if (have(g, GPU_FACT_power_limit_w, &limit)) {
		if (have(g, GPU_FACT_power_limit_default_w, &preset) && preset != limit)
			say(to, "Power limit", "%.0f W (default %.0f W)", limit, preset);
		else
			say(to, "Power limit", "%.0f W", limit);
	}
}

static void gpu_pcie(const struct visitor *to, const struct gpu *g)
{
	double gen, width;

	if (have(g, GPU_FACT_pcie_gen_max, &gen) && have(g, GPU_FACT_pcie_width_max, &width))
		say(to, "PCIe", "generation %.0f, %.0f lanes possible", gen, width);
}

void about_gpu(const struct view *v, const struct gpu *g, about_visit *visit, void *arg)
{
	const struct visitor to = {v, visit, arg};
	char bytes[32];
	double value, more;

	say(&to, "Name", "%s", g->name[0] ? g->name : "unreadable");
	say(&to, "PCI address", "%s", g->pci);
	say(&to, "Slot", "%s", g->slot);
	say(&to, "Product row", "%s", about_sku(v, g));
	if (g->status != STATUS_OK)
		say(&to, "State", "%s", g->reason[0] ? g->reason : cause_text(g->cause));
	if (have(g, GPU_FACT_sm_count, &value))
		say(&to, "Multiprocessors", "%.0f", value);
	if (have(g, GPU_FACT_memory_bytes, &value)) {
		format_bytes(bytes, sizeof(bytes), value);
		say(&to, "Memory", "%s%s", bytes,
		    have(g, GPU_FACT_ecc_enabled, &more) ? more > 0 ? ", ECC on" : ", ECC off" : "");
	}
	if (have(g, GPU_FACT_sm_clock_max_mhz, &value))
		say(&to, "SM clock, maximum", "%.0f MHz", value);
	if (have(g, GPU_FACT_memory_clock_max_mhz, &value) && have(g, GPU_FACT_bus_bits, &more))
		say(&to, "Memory clock, bus", "%.0f MHz, %.0f bit", value, more);
	gpu_power(&to, g);
	gpu_pcie(&to, g);
	if (have(g, GPU_FACT_nvlink_count, &value) && value > 0)
		say(&to, "NVLinks", "%.0f of %.0f up", gpu_get(g, GPU_FACT_nvlink_active, 0), value);
	if (have(g, GPU_FACT_mig_mode, &value) && value > 0)
		say(&to, "MIG", "on");
	say(&to, "VBIOS", "%s", g->vbios);
	say(&to, "Serial number", "%s", g->serial);
	say(&to, "UUID", "%s", g->uuid);
}

/* Visits every library that was found, sorted by name. */
static void library_versions(const struct visitor *to, const struct machine *m)
{
	const json_t *software = json_object_get(machine_json(m), "software");
	const char **names = calloc(json_object_size(software) + 1, sizeof(*names)), *name;
	size_t count = 0;
	json_t *row;

	json_object_foreach((json_t *)software, name, row) if (names) names[count++] = name;
	if (names)
		qsort(names, count, sizeof(*names), text_compare);
	for (size_t i = 0; i < count; i++) {
		const struct lib_found *lib = machine_lib(m, names[i]);

		/* Not through the pseudonym map: a version of four numbers looks like an address. */
		if (lib && lib->status == STATUS_OK)
			to->visit(to->arg, names[i], lib->version[0] ? lib->version : "version unreadable");
	}
	free(names);
}

void about_software(const struct view *v, about_visit *visit, void *arg)
{
	const struct visitor to = {v, visit, arg};
	const struct machine *m = v->in->machine;
	const char *program = json_string_value(json_object_get(v->in->record->open, "program"));
	const json_t *system, *driver;

	say(&to, "assay", "%s", program ? program : "unknown");
	if (!m)
		return;
	system = json_object_get(machine_json(m), "system");
	driver = json_object_get(machine_json(m), "driver");
	say(&to, "Kernel", "%s", json_member_text(system, "kernel"));
	say(&to, "System", "%s", json_member_text(system, "os"));
	say(&to, "Container", "%s", json_member_text(system, "container"));
	say(&to, "NVIDIA driver", "%s", json_member_text(driver, "version"));
	say(&to, "CUDA of the driver", "%s", json_member_text(driver, "cuda_version"));
	library_versions(&to, m);
}

void about_run(const struct view *v, about_visit *visit, void *arg)
{
	const struct visitor to = {v, visit, arg};
	const struct record *r = v->in->record;
	const json_t *open = r->open, *price = json_object_get(open, "price_per_hour");
	const json_t *seed = json_object_get(open, "seed");

	say(&to, "Suite", "%s", json_member_text(open, "suite"));
	if (json_is_integer(seed))
		say(&to, "Seed", "%" JSON_INTEGER_FORMAT, json_integer_value(seed));
	say(&to, "Started", "%s", json_member_text(open, "wall"));
	if (r->t_last_ns > r->t_first_ns)
		say(&to, "Took", "%.1f s", (double)(r->t_last_ns - r->t_first_ns) * 1e-9);
	say(&to, "Plan", "%.16s", json_member_text(r->plan, "hash"));
	say(&to, "Judged against", "%.16s", v->in->judged->expectations_hash);
	if (json_is_number(price) && json_number_value(price) > 0)
		say(&to, "Price", "$%.2f an hour, stated with the run", json_number_value(price));
	if (!r->closed)
		say(&to, "Ended", "the journal has no end: the run was cut");
	else
		say(&to, "Ended", "%s", ending_name(r->close_ending));
	if (r->cut_bytes)
		say(&to, "Cut", "%" PRIu64 " bytes from line %" PRIu64 " of the journal could not be read",
		    r->cut_bytes, r->cut_line);
}

const char *about_sku(const struct view *v, const struct gpu *gpu)
{
	return v->in->expectations && gpu ? expectations_sku(v->in->expectations, gpu) : "";
}
