/* SPDX-License-Identifier: Apache-2.0 */
/* Raises a GPU's clock before the measurement: spins until the clock is near its maximum. */
#ifndef RUN_METER_CLOCK_RAMP_H
#define RUN_METER_CLOCK_RAMP_H
#include "core/clock.h"
#include "gpu/device/gpu.h"

/* Spins for at most `limit_ns`. *reached: the clock is up. Creates *stamps if it is NULL; the caller frees
 * it. */
enum status meter_ramp(struct gpu_device *device, struct gpu_stream *stream, struct gpu_stamps **stamps,
		       const struct clock *clock, uint64_t limit_ns, bool *reached, struct error *err);
#endif
