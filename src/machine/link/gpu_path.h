/* SPDX-License-Identifier: Apache-2.0 */
/* Paths between GPUs, from the facts. */
#ifndef MACHINE_LINK_GPU_PATH_H
#define MACHINE_LINK_GPU_PATH_H
#include "machine/machine.h"

/* Number of active NVLinks of GPU `a` that lead to `b`, directly or, if both have links to switches, through
 * these. */
unsigned machine_nvlinks(const struct machine *m, unsigned a, unsigned b);
/* Number of NVLinks that could connect the two GPUs, up or not; 0: unknown, for example if some links lead
 * elsewhere. */
unsigned machine_nvlinks_most(const struct machine *m, unsigned a, unsigned b);

/* Number of active NVLinks by which a GPU of this group reaches the others, for the GPU with the fewest.
 * *most: the same including links that are down; 0: unknown. */
unsigned machine_nvlinks_node(const struct machine *m, const uint16_t *gpu, unsigned count, unsigned *most);

/* Kinds of PCIe paths between two GPUs, nearest first. */
struct pci_path {
	int level; /* largest value of NVML's level for this kind */
	const char *word, *help;
};
extern const struct pci_path pci_paths[];
extern const int pci_path_count;
/* Index into pci_paths; -1: unknown. */
int machine_pci_path(const struct machine *m, unsigned a, unsigned b);
#endif
