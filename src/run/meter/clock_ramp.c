/* SPDX-License-Identifier: Apache-2.0 */
#include "run/meter/clock_ramp.h"
#include "kernel/timing/spin.h"
#include "vendor/cuda.h"

enum { SPIN_NS = 5000000 };

static enum status spin_once(struct gpu_device *device, struct gpu_stream *stream, struct gpu_stamps *stamps,
			     struct gpu_kernel *spin, double *hz, struct error *err)
{
	struct gpu_clock clock;
	enum status st = gpu_stamps_enqueue(stamps, 0, stream, err);

	if (!st)
		st = gpu_launch_1d(spin, stream, gpu_sm_count(device), 32, 0, &(struct spin_args){SPIN_NS},
				   err);
	if (!st)
		st = gpu_stamps_enqueue(stamps, 1, stream, err);
	if (!st)
		st = gpu_stamps_read(stamps, &clock, err);
	*hz = st ? 0 : clock.hz_mean;
	/* the clock is unknown because other work uses the SMs, so it counts as not up */
	if (st != STATUS_UNAVAILABLE)
		return st;
	error_clear(err);
	return STATUS_OK;
}

enum status meter_ramp(struct gpu_device *device, struct gpu_stream *stream, struct gpu_stamps **stamps,
		       const struct clock *clock, uint64_t limit_ns, bool *reached, struct error *err)
{
	double max_hz = 1e3 * gpu_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE), hz = 0;
	uint64_t t0 = clock_now_ns(clock);
	struct gpu_kernel *spin;
	enum status st = gpu_kernel(device, &spin, "spin", "spin", err);

	*reached = false;
	if (!st && !*stamps)
		st = gpu_stamps_create(device, stamps, err);
	/* The spins count too, because time does not pass on a test's own clock. */
	for (uint64_t spun_ns = 0; !st && !*reached && spun_ns < limit_ns; spun_ns += SPIN_NS) {
		if (clock_now_ns(clock) - t0 >= limit_ns)
			break;
		st = spin_once(device, stream, *stamps, spin, &hz, err);
		*reached = max_hz > 0 && hz >= 0.97 * max_hz;
	}
	return st;
}
