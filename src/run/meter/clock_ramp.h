/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's clock is brought up before it is measured: spins, until the clock is near its highest. */
#ifndef RUN_METER_CLOCK_RAMP_H
#define RUN_METER_CLOCK_RAMP_H
#include "core/clock.h"
#include "gpu/device/gpu.h"

/* Spins for `limit_ns` at most; *reached: the clock came up. *stamps is made where it is NULL: the caller's.
 */
enum status meter_ramp(struct gpu_device *device, struct gpu_stream *stream, struct gpu_stamps **stamps,
		       const struct clock *clock, uint64_t limit_ns, bool *reached, struct error *err);
#endif
