/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a step over a paged KV cache on the device: those of struct paged_rows, and attention's work. */
#ifndef MODEL_GPU_PAGED_LISTS_H
#define MODEL_GPU_PAGED_LISTS_H
#include "gpu/device/gpu.h"
#include "model/backend/ops.h"

/* Where attention's lists are (kernel/paged/attention.h), and the step's own lists in host memory. The device
 * addresses of steps without tiles and with equal numbers of rows and outputs are equal. */
struct paged_placed {
	gpu_ptr page, unit, block, first, arrived;
	/* If the step has tiles: blocks of the units of all other sequences, and the tiles. */
	gpu_ptr rest_block, rest_first, tile;
	gpu_ptr copied; /* blocks of the copy (kernel/paged/copy.h) */
	/* [parts] the parts of the tiles in host memory, lent as long as `host` */
	const struct paged_part *part;
	int64_t parts;		/* 0: the step has no tiles */
	struct paged_rows host; /* begin and keys only; lent until the third step after this one */
};

/* Blocks of the copy of pages (kernel/paged/copy.h); 0: no step has tiles. */
int64_t paged_lists_copy_blocks(const struct attention *at, const struct paged_limits *most);
/* Largest size of the lists in 32-bit words, for any device. */
int64_t paged_lists_words(const struct attention *at, const struct paged_limits *most);
struct paged_lists;
void paged_lists_release(struct paged_lists **l);	 /* to be called after the stream's work has ended */
uint32_t paged_lists_blocks(const struct backend *back); /* of attention's grid */
extern __typeof__(*((struct ops *)0)->paged_put) gpu_paged_put;
extern __typeof__(*((struct ops *)0)->paged_attention) gpu_paged_attention;
#endif
