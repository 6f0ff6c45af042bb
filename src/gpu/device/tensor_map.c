/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/device/tensor_map.h"
#include "gpu/device/internal.h"

enum { ALIGNMENT = 16, BOX_BYTES = 128, NARROW_BYTES = 64 };

enum status gpu_tensor_map(struct gpu_device *d, struct tensor_map *map, const struct gpu_tensor *t,
			   unsigned box_rows, struct error *err)
{
	const uint64_t sizes[4] = {t->columns, t->rows, t->heads, t->batches};
	const uint64_t strides[3] = {t->row_step * t->element_bytes, t->head_step * t->element_bytes,
				     t->batch_step * t->element_bytes};
	const uint32_t bytes = t->narrow ? NARROW_BYTES : BOX_BYTES;
	const uint32_t box[4] = {bytes / t->element_bytes, box_rows, 1, 1}, steps[4] = {1, 1, 1, 1};

	if (!d->cu.tensor_map)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD,
				       "the driver of %s has no tensor maps (cuTensorMapEncodeTiled)",
				       d->name);
	if (t->data % ALIGNMENT || strides[0] % ALIGNMENT || strides[1] % ALIGNMENT || strides[2] % ALIGNMENT)
		return error_set(err, STATUS_UNSUPPORTED,
				 "the copy engine needs rows, heads and batches that start at multiples of "
				 "%d bytes",
				 ALIGNMENT);
	return CUDA_CALL(
		&d->cu, err, tensor_map, (CUtensorMap *)map,
		t->element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
		(void *)(uintptr_t)t->data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		t->narrow ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
		t->short_fetch ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
