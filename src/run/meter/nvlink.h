/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic and errors of a device's NVLinks during a window, from their own counters. They are read only at
 * its ends, with nothing in flight, because a reading takes 0.65 ms per counter. */
#ifndef RUN_METER_NVLINK_H
#define RUN_METER_NVLINK_H
#include "run/meter/nvml.h"

struct nvlink_errors { /* replay, recovery and CRC errors since the driver was loaded, sum of each link */
	bool known;
	uint64_t link[NVML_LINKS_MAX];
};

struct meter_nvlink {	   /* zeroed: nothing read yet */
	unsigned counters; /* number of counters in `before`: links, or one for all; 0: unknown */
	struct nvlink_bytes before;
	struct nvlink_errors errors;
};

/* Before and after a window with window.nvlink set: fills in the window's NVLink values. A value that cannot
 * be read at both ends is absent. `gpu` names the device in the place of an error. */
void meter_nvlink_begin(struct meter_nvlink *l, struct meter_nvml *n, const struct window *w);
void meter_nvlink_end(struct meter_nvlink *l, struct meter_nvml *n, struct window *w, unsigned gpu);
#endif
