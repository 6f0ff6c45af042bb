/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/info.h"
#include "vendor/nvml_types.h"

/* Facts whose number is a word. NULL ends. */
static const char *const virtual_words[] = {"none",	     "pass-through",  "vGPU",
					    "host of vGPUs", "host of vSGAs", NULL};
static const char *const fabric_words[] = {"not supported", "not started", "in progress", "completed", NULL};
static const char *const action_words[] = {"none",	"reset the GPU",   "reboot the node",
					   "drain P2P", "drain and reset", "recover the IMEX domain",
					   "bus reset", "system reboot",   NULL};
static const char *const compute_words[] = {"default", "exclusive thread", "prohibited", "exclusive process",
					    NULL};
static const char *const on_words[] = {"off", "on", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};

static const struct {
	enum gpu_fact fact;
	const char *const *words;
} worded[] = {
	{GPU_FACT_virtualization, virtual_words},
	{GPU_FACT_fabric_state, fabric_words},
	{GPU_FACT_recovery_action, action_words},
	{GPU_FACT_compute_mode, compute_words},
	{GPU_FACT_ecc_enabled, on_words},
	{GPU_FACT_mig_mode, on_words},
	{GPU_FACT_persistence, on_words},
	{GPU_FACT_remap_pending, yes_words},
	{GPU_FACT_remap_failed, yes_words},
	{GPU_FACT_ecc_sram_threshold, yes_words},
	{GPU_FACT_cuda_profiling_restricted, yes_words},
};

static const struct {
	unsigned bit;
	const char *name;
} reasons[] = {{NVML_REASON_IDLE, "idle"},
	       {NVML_REASON_APPLICATION_CLOCKS, "application clocks"},
	       {NVML_REASON_SW_POWER_CAP, "software power cap"},
	       {NVML_REASON_HW_SLOWDOWN, "hardware slowdown"},
	       {NVML_REASON_SYNC_BOOST, "sync boost"},
	       {NVML_REASON_SW_THERMAL, "software thermal"},
	       {NVML_REASON_HW_THERMAL, "hardware thermal"},
	       {NVML_REASON_HW_POWER_BRAKE, "power brake"},
	       {NVML_REASON_DISPLAY, "display clock"}};

static void reasons_text(struct text *t, unsigned bits)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (bits & reasons[i].bit)
			text_addf(t, "%s%s", t->size ? ", " : "", reasons[i].name);
	}
	if (!t->size)
		text_add(t, "none");
}

static void fact_text(struct text *t, const struct gpu *g, enum gpu_fact fact)
{
	double v = gpu_get(g, fact, 0);
	const char *unit = gpu_fact_unit(fact);
	char bytes[32];

	if (fact == GPU_FACT_clock_reasons) {
		reasons_text(t, (unsigned)v);
		return;
	}
	for (size_t i = 0; i < sizeof(worded) / sizeof(worded[0]); i++) {
		if (worded[i].fact != fact)
			continue;
		for (size_t w = 0; worded[i].words[w]; w++) {
			if ((double)w == v) {
				text_add(t, worded[i].words[w]);
				return;
			}
		}
	}
	if (!strcmp(unit, "B"))
		text_add(t, info_bytes(bytes, v));
	else
		text_addf(t, "%.10g%s%s", v, *unit ? " " : "", unit);
}

/* Why NVML or CUDA gave no value: what the raw answer said, or which layer was not asked. */
static const char *why_absent(const json_t *row, const struct gpu *g, enum gpu_fact fact)
{
	const char *why = info_string(json_object_get(row, "unreadable"), gpu_fact_name(fact));

	if (*why)
		return why;
	return g->status ? g->reason : "not told by the driver";
}

static void one_gpu(struct text *t, const json_t *row, const struct gpu *g, unsigned index)
{
	text_addf(t, "GPU %u\n", index);
	info_row(t, "name", "%s", g->name);
	info_row(t, "state", "%s%s%s", status_name(g->status), g->reason[0] ? ": " : "", g->reason);
	info_row(t, "granted", "%s%s%s", g->granted ? "yes" : "no",
		 info_string(row, "not_granted_because")[0] ? ": " : "",
		 info_string(row, "not_granted_because"));
	info_row(t, "pci", "%s, device %04x:%04x, board %04x:%04x", g->pci, g->pci_device & 0xffff,
		 g->pci_device >> 16, g->pci_subsystem & 0xffff, g->pci_subsystem >> 16);
	if (g->slot[0])
		info_row(t, "slot", "%s", g->slot);
	else
		info_row_unreadable(t, "slot", "no file below /sys/bus/pci/slots names it");
	info_row(t, "indices", "NVML %d, CUDA %d", g->nvml_index, g->cuda_index);
	info_row(t, "uuid", "%s", g->uuid);
	info_row(t, "serial", "%s", g->serial);
	info_row(t, "vbios", "%s", g->vbios);
	info_row(t, "firmware", "%s", info_string(row, "gsp_firmware"));
	info_row(t, "local CPUs", "%s", info_string(row, "local_cpus"));
	for (unsigned i = 0; i < GPU_FACT_COUNT; i++) {
		struct text value = {0};

		if (gpu_has(g, (enum gpu_fact)i)) {
			fact_text(&value, g, (enum gpu_fact)i);
			info_row(t, gpu_fact_name((enum gpu_fact)i), "%s", text_str(&value));
		} else if (!g->status) {
			info_row_unreadable(t, gpu_fact_name((enum gpu_fact)i),
					    why_absent(row, g, (enum gpu_fact)i));
		}
		text_release(&value);
	}
	if (g->status)
		info_row_unreadable(t, "all else", g->reason);
}

void info_gpu(struct text *t, const struct machine *m)
{
	const json_t *rows = json_object_get(machine_json(m), "gpus"), *p;
	size_t j;

	if (!machine_gpu_count(m))
		text_add(t, "GPUs\n  none on the PCI bus\n");
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const json_t *row = json_array_get(rows, i);
		char bytes[32];

		if (i)
			text_add(t, "\n");
		one_gpu(t, row, machine_gpu(m, i), i);
		json_array_foreach(json_object_get(row, "processes"), j, p) info_row(
			t, "process", "%s, %s, pid %" JSON_INTEGER_FORMAT "%s%s", info_string(p, "kind"),
			info_string(p, "name"), json_integer_value(json_object_get(p, "pid")),
			json_object_get(p, "memory_bytes") ? ", " : "",
			json_object_get(p, "memory_bytes")
				? info_bytes(bytes, json_number_value(json_object_get(p, "memory_bytes")))
				: "");
	}
}

static void one_links(struct text *t, const struct machine *m, const json_t *row, unsigned index)
{
	const struct gpu *g = machine_gpu(m, index);
	const json_t *link;
	char name[40];
	size_t i;

	snprintf(name, sizeof(name), "GPU %u NVLinks", index);
	if (!gpu_has(g, GPU_FACT_nvlink_active)) {
		const char *why = info_string(json_object_get(row, "unreadable"), "nvlink_active");

		if (json_is_true(
			    json_object_get(json_object_get(machine_json(m), "driver"), "nvlink_disabled")))
			why = "the driver was loaded with NvLinkDisable=1";
		info_row_unreadable(t, name, *why ? why : g->reason[0] ? g->reason : "not read");
		return;
	}
	info_row(t, name, "%.0f of %.0f up, %.4g GB/s each way a link", gpu_get(g, GPU_FACT_nvlink_active, 0),
		 gpu_get(g, GPU_FACT_nvlink_count, 0), gpu_get(g, GPU_FACT_nvlink_rate_gbps, 0));
	json_array_foreach(json_object_get(row, "links"), i, link)
	{
		double errors = json_number_value(json_object_get(link, "error_replay")) +
				json_number_value(json_object_get(link, "error_recovery")) +
				json_number_value(json_object_get(link, "error_crc"));

		snprintf(name, sizeof(name), "  link %zu", i);
		info_row(t, name, "%s, to %s %s, errors %.0f",
			 json_is_true(json_object_get(link, "active")) ? "up" : "DOWN",
			 info_string(link, "remote_type")[0] ? info_string(link, "remote_type") : "unknown",
			 info_string(link, "remote_pci"), errors);
	}
}

static const char *level_name(json_int_t level)
{
	return level <= 0    ? "one board"
	       : level <= 10 ? "one PCIe switch"
	       : level <= 20 ? "several PCIe switches"
	       : level <= 30 ? "one host bridge"
	       : level <= 40 ? "one NUMA node"
			     : "across NUMA nodes";
}

void info_links(struct text *t, const struct machine *m)
{
	const json_t *rows = json_object_get(machine_json(m), "gpus"), *pair;
	char name[32];
	size_t j;

	text_add(t, "Links\n");
	if (!machine_gpu_count(m))
		info_row(t, "GPUs", "none on the PCI bus");
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		snprintf(name, sizeof(name), "GPU %u PCIe", i);
		if (gpu_has(g, GPU_FACT_pcie_gen) && gpu_has(g, GPU_FACT_pcie_width))
			info_row(t, name, "gen %.0f x%.0f now, gen %.0f x%.0f possible, %.0f replays",
				 gpu_get(g, GPU_FACT_pcie_gen, 0), gpu_get(g, GPU_FACT_pcie_width, 0),
				 gpu_get(g, GPU_FACT_pcie_gen_max, 0), gpu_get(g, GPU_FACT_pcie_width_max, 0),
				 gpu_get(g, GPU_FACT_pcie_replays, 0));
		else
			info_row_unreadable(t, name,
					    why_absent(json_array_get(rows, i), g, GPU_FACT_pcie_gen));
		one_links(t, m, json_array_get(rows, i), i);
	}
	json_array_foreach(json_object_get(machine_json(m), "gpu_topology"), j, pair)
	{
		snprintf(name, sizeof(name), "GPU %d - GPU %d",
			 (int)json_integer_value(json_array_get(pair, 0)),
			 (int)json_integer_value(json_array_get(pair, 1)));
		info_row(t, name, "PCIe: %s", level_name(json_integer_value(json_array_get(pair, 2))));
	}
}

void info_fabric(struct text *t, const struct machine *m)
{
	const json_t *rows = json_object_get(machine_json(m), "ports"), *row;
	char name[32];
	size_t i;

	text_add(t, "Fabric\n");
	for (unsigned g = 0; g < machine_gpu_count(m); g++) {
		struct text value = {0};

		snprintf(name, sizeof(name), "GPU %u NVSwitch", g);
		if (gpu_has(machine_gpu(m, g), GPU_FACT_fabric_state)) {
			fact_text(&value, machine_gpu(m, g), GPU_FACT_fabric_state);
			info_row(t, name, "fabric %s, status %.0f", text_str(&value),
				 gpu_get(machine_gpu(m, g), GPU_FACT_fabric_status, 0));
		} else {
			info_row_unreadable(t, name, "the driver tells no fabric state");
		}
		text_release(&value);
	}
	json_array_foreach((json_t *)rows, i, row)
	{
		const json_t *rate = json_object_get(row, "rate_gbit"),
			     *node = json_object_get(row, "numa_node");
		char speed[32] = "rate unreadable", at[32] = "";

		if (rate)
			snprintf(speed, sizeof(speed), "%.4g Gbit/s", json_number_value(rate));
		if (json_is_number(node) && json_number_value(node) >= 0)
			snprintf(at, sizeof(at), ", NUMA node %.0f", json_number_value(node));
		info_row(t, info_string(row, "device"), "%s, %s, %s%s%s%s", info_string(row, "kind"),
			 info_string(row, "state"), speed, info_string(row, "pci")[0] ? ", " : "",
			 info_string(row, "pci"), at);
	}
	if (!json_array_size(rows))
		info_row(t, "ports", "none");
}
