/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps for the copy engine of sm_90 and newer. A kernel that receives one in its arguments loads and
 * stores boxes with it. */
#ifndef GPU_DEVICE_TENSOR_MAP_H
#define GPU_DEVICE_TENSOR_MAP_H
#include "gpu/device/gpu.h"
#include "kernel/tensor_map.h"

/* A tensor (columns, rows, heads, batches). The columns of a row are contiguous. */
struct gpu_tensor {
	gpu_ptr data;
	unsigned element_bytes; /* 1 or 2: FP8 or 16 bits */
	bool narrow;		/* boxes are 64 bytes wide, with a 64-byte swizzle */
	bool short_fetch;	/* the L2 fetches 128 bytes at once from memory, and not 256 */
	uint64_t columns, rows, heads, batches;
	uint64_t row_step, head_step, batch_step; /* elements */
};

/* Makes a map with boxes of 128 bytes of columns (narrow: 64) and `box_rows` rows, with a swizzle of the same
 * width. Elements outside the tensor are read as zeros and not written. UNSUPPORTED: the driver has no tensor
 * maps, or the address or a step is not a multiple of 16 bytes. */
enum status gpu_tensor_map(struct gpu_device *d, struct tensor_map *map, const struct gpu_tensor *t,
			   unsigned box_rows, struct error *err);
#endif
