/* SPDX-License-Identifier: Apache-2.0 */
/* The way from GPU to GPU, as the facts have it. */
#ifndef MACHINE_LINK_GPU_PATH_H
#define MACHINE_LINK_GPU_PATH_H
#include "machine/machine.h"

/* Active NVLinks of GPU `a` that lead to `b`, straight or, where both have some, through switches. */
unsigned machine_nvlinks(const struct machine *m, unsigned a, unsigned b);
/* NVLinks that could lead from one to the other, up or not; 0: not told, as where some lead elsewhere. */
unsigned machine_nvlinks_most(const struct machine *m, unsigned a, unsigned b);

/* NVLinks by which one of these GPUs reaches the others, of the one that has fewest; *most: up or not, 0
 * where not told. */
unsigned machine_nvlinks_node(const struct machine *m, const uint16_t *gpu, unsigned count, unsigned *most);

/* What lies between two GPUs on PCIe, nearest first. */
struct pci_path {
	int level; /* NVML's, at most */
	const char *word, *help;
};
extern const struct pci_path pci_paths[];
extern const int pci_path_count;
/* Index into pci_paths; -1: nothing is said of the two. */
int machine_pci_path(const struct machine *m, unsigned a, unsigned b);
#endif
