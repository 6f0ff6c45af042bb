/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are stored in 4 bits. A slot is filled at once, so there is nothing to wait for. */
#include "model/cpu/internal.h"
#include "model/tensor/dtype.h"

static bool is_supported(enum dtype dtype)
{
	return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16;
}

static enum status refuse(enum dtype dtype, struct error *err)
{
	return error_set(err, STATUS_BUG, "weights in 4 bits cannot be numbers of %s", dtype_name(dtype));
}

enum status cpu_quantize(struct backend *back, struct mat from, const struct stored *to, struct error *err)
{
	cost_touch(back, &from, 1);
	back->cost.bytes += (double)stored_bytes(to);
	return is_supported(from.dtype) ? bnb4_quantize(&to->bnb4, &from, cpu_of(back)->pool, err)
					: refuse(from.dtype, err);
}

enum status cpu_slot_fill(struct backend *back, const struct slot_fill *fill, struct error *err)
{
	cost_slot_fill(back, fill);
	for (int i = 0; i < fill->parts; i++) {
		const struct slot_part *p = &fill->part[i];

		if (!is_supported(p->to.dtype))
			return refuse(p->to.dtype, err);
		bnb4_dequantize(&p->from->bnb4, 0, &p->to, cpu_of(back)->pool);
	}
	return STATUS_OK;
}

enum status cpu_slot_event(struct backend *back, int slot, struct error *err)
{
	(void)back, (void)slot, (void)err;
	return STATUS_OK;
}
