/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/path.h"
#include <strings.h>

static const json_t *gpu_row(const struct machine *m, unsigned index)
{
	return json_array_get(json_object_get(machine_json(m), "gpus"), index);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool link_up(const json_t *link)
{
	return json_is_true(json_object_get(link, "active"));
}

/* "00000000:05:00.0" of NVML and "0000:05:00.0" of the kernel name one place. */
static bool same_place(const char *remote, const char *pci)
{
	size_t n = strlen(remote), m = strlen(pci);

	return m && n >= m && !strcasecmp(remote + n - m, pci);
}

unsigned machine_nvlinks(const struct machine *m, unsigned a, unsigned b)
{
	unsigned straight = 0, through = 0, back = 0;
	const json_t *link;
	size_t i;

	json_array_foreach(json_object_get(gpu_row(m, a), "links"), i, link)
	{
		straight += link_up(link) && same_place(text_of(link, "remote_pci"), machine_gpu(m, b)->pci);
		through += link_up(link) && !strcmp(text_of(link, "remote_type"), "switch");
	}
	json_array_foreach(json_object_get(gpu_row(m, b), "links"), i, link) back +=
		link_up(link) && !strcmp(text_of(link, "remote_type"), "switch");
	return straight ? straight : through < back ? through : back;
}

const struct pci_path pci_paths[] = {
	{0, "BOARD", "one board"},	{10, "PIX", "one PCIe switch"}, {20, "PXB", "several PCIe switches"},
	{30, "PHB", "one host bridge"}, {40, "NODE", "one NUMA node"},	{1000, "SYS", "across NUMA nodes"},
};
const int pci_path_count = sizeof(pci_paths) / sizeof(pci_paths[0]);

/* NVML's topology goes by its own indices. -1: nothing is said of the pair. */
static int level_of(const struct machine *m, unsigned a, unsigned b)
{
	int x = machine_gpu(m, a)->nvml_index, y = machine_gpu(m, b)->nvml_index;
	const json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "gpu_topology"), i, pair)
	{
		int p = (int)json_integer_value(json_array_get(pair, 0));
		int q = (int)json_integer_value(json_array_get(pair, 1));

		if ((p == x && q == y) || (p == y && q == x))
			return (int)json_integer_value(json_array_get(pair, 2));
	}
	return -1;
}

int machine_pci_path(const struct machine *m, unsigned a, unsigned b)
{
	int level = level_of(m, a, b);

	for (int i = 0; level >= 0 && i < pci_path_count; i++)
		if (level <= pci_paths[i].level)
			return i;
	return -1;
}
