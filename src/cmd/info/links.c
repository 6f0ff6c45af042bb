/* SPDX-License-Identifier: Apache-2.0 */
/* assay info links and assay info fabric: how GPUs are connected to each other and to the network. */
#include "cmd/info/info.h"
#include "core/json/member.h"
#include "machine/link/gpu_path.h"

enum { MATRIX_MAX = 16 };

static double link_errors(const json_t *link)
{
	return info_number(link, "error_replay") + info_number(link, "error_recovery") +
	       info_number(link, "error_crc");
}

static bool link_up(const json_t *link)
{
	return json_is_true(json_object_get(link, "active"));
}

static void matrix_cell(struct text *t, const struct machine *m, unsigned a, unsigned b, unsigned *seen)
{
	unsigned links = a == b ? 0 : machine_nvlinks(m, a, b);
	int index = a == b ? -1 : machine_pci_path(m, a, b);

	if (a == b) {
		text_add(t, "\tX");
	} else if (links) {
		text_addf(t, "\tNV%u", links);
	} else {
		text_addf(t, "\t%s", index < 0 ? "?" : pci_paths[index].word);
		*seen |= index < 0 ? 0 : 1u << index;
	}
}

/* A matrix like that of nvidia-smi topo: the best path between each two GPUs, and the location of each
 * GPU. */
static void matrix(struct text *t, const struct machine *m)
{
	unsigned count = machine_gpu_count(m), seen = 0;
	struct text lines = {0};

	if (count < 2 || count > MATRIX_MAX)
		return;
	text_add(&lines, " ");
	for (unsigned b = 0; b < count; b++)
		text_addf(&lines, "\tGPU %u", b);
	text_add(&lines, "\tNUMA node\tlocal CPUs\n");
	for (unsigned a = 0; a < count; a++) {
		const struct gpu *g = machine_gpu(m, a);

		text_addf(&lines, "GPU %u", a);
		for (unsigned b = 0; b < count; b++)
			matrix_cell(&lines, m, a, b, &seen);
		text_add(&lines, "\t");
		if (gpu_has(g, GPU_FACT_numa_node))
			info_fact(&lines, g, GPU_FACT_numa_node);
		text_addf(&lines, "\t%s\n", json_member_text(machine_gpu_json(m, a), "local_cpus"));
	}
	info_columns(t, text_str(&lines));
	text_release(&lines);
	text_add(t, "  NVn: n NVLinks, direct or through switches");
	for (int i = 0; i < pci_path_count; i++) {
		if (seen >> i & 1)
			text_addf(t, "; %s: PCIe, %s", pci_paths[i].word, pci_paths[i].help);
	}
	text_add(t, "\n");
}

static void pcie_row(struct text *t, const struct machine *m, unsigned index)
{
	const struct gpu *g = machine_gpu(m, index);
	char name[24];

	snprintf(name, sizeof(name), "GPU %u PCIe", index);
	if (gpu_has(g, GPU_FACT_pcie_gen) && gpu_has(g, GPU_FACT_pcie_width))
		info_row(t, name, "gen %.0f x%.0f now, gen %.0f x%.0f possible, %.0f replays",
			 gpu_get(g, GPU_FACT_pcie_gen, 0), gpu_get(g, GPU_FACT_pcie_width, 0),
			 gpu_get(g, GPU_FACT_pcie_gen_max, 0), gpu_get(g, GPU_FACT_pcie_width_max, 0),
			 gpu_get(g, GPU_FACT_pcie_replays, 0));
	else
		info_row_unreadable(t, name, info_fact_why(machine_gpu_json(m, index), g, GPU_FACT_pcie_gen));
}

/* Where the links lead: "to gpu 0000:1b:00.0" or "to 4 switches". Each remote device counts once. */
static void remote_text(struct text *t, const json_t *links)
{
	json_t *places = json_object();
	const json_t *link;
	const char *type = "";
	size_t i;

	json_array_foreach((json_t *)links, i, link)
	{
		if (*json_member_text(link, "remote_type"))
			type = json_member_text(link, "remote_type");
		if (*json_member_text(link, "remote_pci"))
			json_object_set_new(places, json_member_text(link, "remote_pci"), json_true());
	}
	i = json_object_size(places);
	if (i)
		text_addf(t, ", to %zu %s%s", i, *type ? type : "device",
			  i == 1		    ? ""
			  : !strcmp(type, "switch") ? "es"
						    : "s");
	else if (!strcmp(type, "switch"))
		text_add(t, ", to switches");
	json_decref(places);
}

static void nvlink_rows(struct text *t, const struct machine *m, unsigned index)
{
	const struct gpu *g = machine_gpu(m, index);
	const json_t *row = machine_gpu_json(m, index), *links = json_object_get(row, "links"), *link;
	struct text line = {0};
	char name[40];
	size_t i;

	snprintf(name, sizeof(name), "GPU %u NVLink", index);
	if (!gpu_has(g, GPU_FACT_nvlink_active)) {
		const json_t *off =
			json_object_get(json_object_get(machine_json(m), "driver"), "nvlink_disabled");

		info_row_unreadable(t, name,
				    json_is_true(off) ? "the driver was loaded with NvLinkDisable=1"
						      : info_fact_why(row, g, GPU_FACT_nvlink_active));
		return;
	}
	text_addf(&line, "%.0f of %.0f up, %.4g GB/s per link and direction",
		  gpu_get(g, GPU_FACT_nvlink_active, 0), gpu_get(g, GPU_FACT_nvlink_count, 0),
		  gpu_get(g, GPU_FACT_nvlink_rate_gbps, 0));
	remote_text(&line, links);
	text_addf(&line, ", %.0f errors", gpu_get(g, GPU_FACT_nvlink_errors, 0));
	info_row(t, name, "%s", text_str(&line));
	text_release(&line);
	json_array_foreach((json_t *)links, i, link)
	{
		if (link_up(link) && link_errors(link) <= 0)
			continue;
		snprintf(name, sizeof(name), "  link %.0f", info_number(link, "link"));
		info_row(t, name, "%s, to %s %s, %.0f errors", link_up(link) ? "up" : "DOWN",
			 json_member_text(link, "remote_type")[0] ? json_member_text(link, "remote_type")
								  : "unknown",
			 json_member_text(link, "remote_pci"), link_errors(link));
	}
}

void info_links(struct text *t, const struct machine *m)
{
	text_add(t, "Links\n");
	if (!machine_gpu_count(m))
		info_row(t, "GPUs", "none on the PCI bus");
	matrix(t, m);
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		pcie_row(t, m, i);
		nvlink_rows(t, m, i);
	}
}

static void fabric_row(struct text *t, const struct machine *m, unsigned index)
{
	const struct gpu *g = machine_gpu(m, index);
	struct text state = {0};
	char name[24];

	snprintf(name, sizeof(name), "GPU %u NVSwitch", index);
	if (gpu_has(g, GPU_FACT_fabric_state)) {
		info_fact(&state, g, GPU_FACT_fabric_state);
		info_row(t, name, "fabric %s, status %.0f", text_str(&state),
			 gpu_get(g, GPU_FACT_fabric_status, 0));
	} else {
		info_row_unreadable(t, name,
				    info_fact_why(machine_gpu_json(m, index), g, GPU_FACT_fabric_state));
	}
	text_release(&state);
}

static void port_line(struct text *lines, const json_t *port)
{
	const json_t *rate = json_object_get(port, "rate_gbit"), *node = json_object_get(port, "numa_node");

	text_addf(lines, "%s%s%s\t%s\t%s\t", json_member_text(port, "device"),
		  *json_member_text(port, "port") ? "/" : "", json_member_text(port, "port"),
		  json_member_text(port, "kind"), json_member_text(port, "state"));
	if (rate)
		text_addf(lines, "%.4g Gbit/s", json_number_value(rate));
	else
		text_add(lines, "unreadable");
	text_addf(lines, "\t%s\t", json_member_text(port, "pci"));
	if (json_is_number(node) && json_number_value(node) >= 0)
		text_addf(lines, "%.0f", json_number_value(node));
	text_addf(lines, "\t%s\t%s\n", json_member_text(port, "driver"), json_member_text(port, "firmware"));
}

void info_fabric(struct text *t, const struct machine *m)
{
	const json_t *ports = json_object_get(machine_json(m), "ports"), *port;
	size_t switches = json_array_size(json_object_get(machine_json(m), "nvswitches")), i;
	struct text lines = {0};

	text_add(t, "Fabric\n");
	if (switches)
		info_row(t, "NVSwitches", "%zu on the PCI bus", switches);
	for (unsigned g = 0; g < machine_gpu_count(m); g++)
		fabric_row(t, m, g);
	text_add(&lines, "port\tkind\tstate\t>rate\tPCI\t>NUMA node\tdriver\tfirmware\n");
	json_array_foreach((json_t *)ports, i, port) port_line(&lines, port);
	if (json_array_size(ports))
		info_columns(t, text_str(&lines));
	else
		info_row(t, "ports", "%s",
			 info_why(m, "network ports") ? info_why(m, "network ports") : "none");
	text_release(&lines);
}
