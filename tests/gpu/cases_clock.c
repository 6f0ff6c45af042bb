/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: kernel/timing/stamp.cu, spin.cu, empty.cu. There is no reference for a clock: it must be plausible and
 * steady. */
#include "cases.h"
#include "kernel/timing/empty.h"
#include "kernel/timing/spin.h"
#include "vendor/cuda.h"
#include "vendor/nvml.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* count: nanoseconds to spin */
static const struct kernel_case cases[] = {
	{"empty", "one block", 0, 1, 32, 0, 0},
	{"empty", "a grid", 0, 1000, 1024, 0, 0},
	{"stamp", "every SM is stamped and agrees within 2 %", 20000000, 132, 32, 0, 0},
};

static enum status launch_spin(struct kit *k, uint64_t ns, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "spin", "spin", err);

	return st ? st
		  : gpu_launch_1d(kernel, k->stream, gpu_sm_count(k->device), 32, 0, &(struct spin_args){ns},
				  err);
}

static enum status held_clock(struct kit *k, uint64_t ns, struct gpu_clock *clock, struct error *err)
{
	struct gpu_stamps *stamps = NULL;
	enum status st = gpu_stamps_create(k->device, &stamps, err);

	if (!st)
		st = gpu_stamps_enqueue(stamps, 0, k->stream, err);
	if (!st)
		st = launch_spin(k, ns, err);
	if (!st)
		st = gpu_stamps_enqueue(stamps, 1, k->stream, err);
	if (!st)
		st = gpu_stamps_read(stamps, clock, err);
	gpu_stamps_destroy(&stamps);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	double max = 1e3 * gpu_attribute(k->device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	struct gpu_clock clock;
	struct gpu_kernel *kernel;
	enum status st;

	if (!strcmp(c->entry, "empty")) {
		st = gpu_kernel(k->device, &kernel, "empty", "empty", err);
		if (!st)
			st = gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0,
					   &(struct empty_args){0}, err);
		return st ? st : gpu_stream_wait(k->stream, err);
	}
	st = held_clock(k, 300 * 1000000ull, &clock, err); /* the clock comes up first */
	if (!st)
		st = held_clock(k, c->count, &clock, err);
	if (st)
		return st;
	if (clock.sms != gpu_sm_count(k->device))
		return error_set(err, STATUS_MISMATCH, "%u of %u SMs were stamped", clock.sms,
				 gpu_sm_count(k->device));
	if (!(clock.hz_max - clock.hz_min < 0.02 * clock.hz_mean))
		return error_set(err, STATUS_MISMATCH, "clocks of %.0f to %.0f Hz", clock.hz_min,
				 clock.hz_max);
	if (!(clock.hz_mean > 1e8 && (max <= 0 || clock.hz_mean < 1.05 * max)))
		return error_set(err, STATUS_MISMATCH, "a clock of %.0f Hz where %.0f is the maximum",
				 clock.hz_mean, max);
	return STATUS_OK;
}

static void test(struct kit *k)
{
	kit_cases(k, &group_clock, one);
}

/* Stamped clock beside NVML's, second by second. */
static enum status compare_with_nvml(struct kit *k, struct error *err)
{
	struct lib_fact fact = {0};
	struct nvml nvml = {0};
	nvmlDevice_t device;
	enum status st = lib_open(&nvml, &nvml_lib, NULL, &fact, err);

	lib_fact_release(&fact);
	if (!st && (nvml.init() || nvml.by_index(0, &device) || !nvml.clock))
		st = error_set(err, STATUS_UNAVAILABLE, "NVML does not tell a clock");
	for (int i = 0; i < 6 && !st; i++) {
		struct gpu_clock clock;
		unsigned mhz[2] = {0, 0};

		nvml.clock(device, 1 /* SM */, &mhz[0]);
		st = held_clock(k, 250 * 1000000ull, &clock, err);
		nvml.clock(device, 1, &mhz[1]);
		if (!st)
			printf("time clock spin: stamped %.2f MHz (%.2f to %.2f over %u SMs), NVML %u then "
			       "%u MHz\n",
			       clock.hz_mean / 1e6, clock.hz_min / 1e6, clock.hz_max / 1e6, clock.sms, mhz[0],
			       mhz[1]);
	}
	return st;
}

struct empty_call {
	struct gpu_kernel *kernel;
	struct gpu_stream *stream;
};

static enum status call_empty(void *arg, struct error *err)
{
	const struct empty_call *c = arg;

	return gpu_launch_1d(c->kernel, c->stream, 1, 32, 0, &(struct empty_args){0}, err);
}

static enum status time_clock(struct kit *k, struct error *err)
{
	struct empty_call call = {.stream = k->stream};
	double ns = 0;
	enum status st = gpu_kernel(k->device, &call.kernel, "empty", "empty", err);

	if (!st)
		st = kit_time(k, call_empty, &call, 1000, &ns, err);
	if (st)
		return st;
	printf("time clock empty launch: %.0f ns each of 1000\n", ns);
	return compare_with_nvml(k, err);
}

const struct kernel_group group_clock = {
	.name = "clock",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
	.time = time_clock,
};
