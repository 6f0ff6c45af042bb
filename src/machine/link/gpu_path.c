/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/link/gpu_path.h"
#include <limits.h>
#include <strings.h>
#include "core/json/member.h"

static bool link_up(const json_t *link)
{
	return json_is_true(json_object_get(link, "active"));
}

/* NVML's "00000000:05:00.0" and the kernel's "0000:05:00.0" are the same device. */
static bool same_place(const char *remote, const char *pci)
{
	size_t n = strlen(remote), m = strlen(pci);

	return m && n >= m && !strcasecmp(remote + n - m, pci);
}

static const json_t *links_of(const struct machine *m, unsigned gpu)
{
	return json_object_get(machine_gpu_json(m, gpu), "links");
}

/* Counts the active links of a GPU to switches, or directly to the GPU with this PCI address if it is not
 * NULL. */
static unsigned count_links(const struct machine *m, unsigned gpu, const char *straight_to)
{
	const json_t *link;
	unsigned count = 0;
	size_t i;

	json_array_foreach((json_t *)links_of(m, gpu), i, link) if (link_up(link)) count +=
		straight_to ? same_place(json_member_text(link, "remote_pci"), straight_to)
			    : !strcmp(json_member_text(link, "remote_type"), "switch");
	return count;
}

static unsigned count_up(const struct machine *m, unsigned gpu)
{
	const json_t *link;
	unsigned count = 0;
	size_t i;

	json_array_foreach((json_t *)links_of(m, gpu), i, link) count += link_up(link);
	return count;
}

static unsigned lesser(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned machine_nvlinks(const struct machine *m, unsigned a, unsigned b)
{
	unsigned straight = count_links(m, a, machine_gpu(m, b)->pci);

	return straight ? straight : lesser(count_links(m, a, NULL), count_links(m, b, NULL));
}

unsigned machine_nvlinks_most(const struct machine *m, unsigned a, unsigned b)
{
	unsigned links = machine_nvlinks(m, a, b);

	if (links != lesser(count_up(m, a), count_up(m, b)))
		return 0;
	return lesser((unsigned)gpu_get(machine_gpu(m, a), GPU_FACT_nvlink_count, 0),
		      (unsigned)gpu_get(machine_gpu(m, b), GPU_FACT_nvlink_count, 0));
}

unsigned machine_nvlinks_node(const struct machine *m, const uint16_t *gpu, unsigned count, unsigned *most)
{
	unsigned least = UINT_MAX, whole = UINT_MAX;
	bool told = true;

	for (unsigned a = 0; a < count; a++) {
		unsigned up = count_up(m, gpu[a]), reach = 0;

		for (unsigned b = 0; b < count; b++)
			reach += a == b ? 0 : machine_nvlinks(m, gpu[a], gpu[b]);
		told &= reach >= up;
		least = lesser(least, lesser(reach, up));
		whole = lesser(whole, (unsigned)gpu_get(machine_gpu(m, gpu[a]), GPU_FACT_nvlink_count, 0));
	}
	*most = told && count ? whole : 0;
	return count ? least : 0;
}

const struct pci_path pci_paths[] = {
	{0, "BOARD", "one board"},	{10, "PIX", "one PCIe switch"}, {20, "PXB", "several PCIe switches"},
	{30, "PHB", "one host bridge"}, {40, "NODE", "one NUMA node"},	{1000, "SYS", "across NUMA nodes"},
};
const int pci_path_count = sizeof(pci_paths) / sizeof(pci_paths[0]);

/* NVML's topology uses NVML's own indices. -1: unknown. */
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
