/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: a CPU copies at once, within the same memory, so there is nothing to wait for. */
#include "model/cpu/internal.h"
#include "model/tensor/dtype.h"

enum status cpu_lane_copy(struct backend *back, const struct lane_copies *copies, struct error *err)
{
	(void)err;
	cost_lane(back, copies);
	for (int i = 0; i < copies->count; i++) {
		const struct mat *device = &copies->copy[i].device, *host = &copies->copy[i].host;
		const size_t bytes = dtype_bytes(host->dtype, (uint64_t)(host->rows * host->cols));

		if (bytes)
			memcpy(copies->out ? host->data : device->data,
			       copies->out ? device->data : host->data, bytes);
	}
	return STATUS_OK;
}

enum status cpu_lane_event(struct backend *back, enum lane lane, int slot, enum lane_event event,
			   struct error *err)
{
	(void)back, (void)lane, (void)slot, (void)event, (void)err;
	return STATUS_OK;
}

enum status cpu_lane_run(struct backend *back, enum lane lane, enum status (*run)(void *arg, struct error *),
			 void *arg, struct error *err)
{
	(void)back, (void)lane;
	return run(arg, err);
}

enum status cpu_lane_join(struct backend *back, enum lane lane, struct error *err)
{
	(void)back, (void)lane, (void)err;
	return STATUS_OK;
}
