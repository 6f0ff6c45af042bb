/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of tensors for the copy engine of sm_90 and newer: kernels that take one in their arguments load and
 * store boxes by it. */
#ifndef GPU_DEVICE_TENSOR_MAP_H
#define GPU_DEVICE_TENSOR_MAP_H
#include "gpu/device/gpu.h"
#include "kernel/attention/forward/args.h"

/* A tensor (columns, rows, heads, batches); columns of a row stand side by side. */
struct gpu_tensor {
	gpu_ptr data;
	unsigned element_bytes; /* 1 or 2: FP8 or 16 bits */
	bool narrow;		/* boxes of 64 bytes of columns, swizzled by 64 */
	uint64_t columns, rows, heads, batches;
	uint64_t row_step, head_step, batch_step; /* elements */
};

/* Boxes of 128 bytes of columns, or 64, and `box_rows` rows, swizzled by as much; what lies outside is read
 * as zeros and not written. UNSUPPORTED: the driver knows no maps, or address and steps are no multiples of
 * 16 bytes. */
enum status gpu_tensor_map(struct gpu_device *d, struct tensor_map *map, const struct gpu_tensor *t,
			   unsigned box_rows, struct error *err);
#endif
