/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's NVLinks carried and miscarried while a window was open, by their own counters. They are
 * read at its ends alone, with nothing in flight: a reading takes 0.65 ms a counter. */
#ifndef RUN_METER_NVLINK_H
#define RUN_METER_NVLINK_H
#include "run/meter/nvml.h"

struct nvlink_errors { /* replay, recovery and CRC errors since the driver was loaded, summed a link */
	bool known;
	uint64_t link[NVML_LINKS_MAX];
};

struct meter_nvlink {	   /* zeroed: nothing read yet */
	unsigned counters; /* that `before` is of: links, or one for all; 0: not known */
	struct nvlink_bytes before;
	struct nvlink_errors errors;
};

/* Before and after a window that asks for it (window.nvlink): fills what the window holds of NVLink. What
 * cannot be read, at either end, is absent. `gpu` names the device in the place of an error. */
void meter_nvlink_begin(struct meter_nvlink *l, struct meter_nvml *n, const struct window *w);
void meter_nvlink_end(struct meter_nvlink *l, struct meter_nvml *n, struct window *w, unsigned gpu);
#endif
