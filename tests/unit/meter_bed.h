/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's meter on the fake driver, whose time is counted. */
#ifndef TESTS_METER_BED_H
#define TESTS_METER_BED_H
#include "test.h"
#include "fake_clock.h"
#include "fake_machine.h"
#include "gpu/device/gpu.h"
#include "kernel/fatbin.h"
#include "kernel/timing/spin.h"
#include "run/meter/meter.h"

#define FAKE FAKE_DIR "/libcuda.so.1"
enum { LAUNCH_NS = 2000 }; /* the fake's cost of a launch */

/* An engine whose iteration is one spin of `ns`; of each `slow_every` (0: none) one is nine times as long. */
struct spinner {
	struct gpu_kernel *kernel;
	struct gpu_stream *stream;
	uint64_t ns, slow_every, calls, last;
};

static inline enum status spinner_enqueue(void *state, uint64_t i, struct error *err)
{
	struct spinner *s = state;
	bool slow = s->slow_every && i % s->slow_every == s->slow_every - 1;

	s->calls++;
	s->last = i;
	return gpu_launch_1d(s->kernel, s->stream, 1, 32, 0, &(struct spin_args){slow ? 9 * s->ns : s->ns},
			     err);
}

static const struct engine spin_engine = {.name = "spin", .enqueue = spinner_enqueue, .streams = 1};
static const struct engine plain_engine = {
	.name = "spin", .enqueue = spinner_enqueue, .streams = 1, .plain = true};

static inline enum launch always_graph(const void *opts)
{
	(void)opts;
	return LAUNCH_GRAPH;
}

static const struct engine graph_engine = {
	.name = "spin", .enqueue = spinner_enqueue, .streams = 1, .launch = always_graph};

struct stand {
	struct machine machine;
	struct target target;
	struct bench bench;
	struct fake_clock clock;
	struct spinner spinner;
	struct meter *meter;
	struct sample sample[1024];
	struct window window;
};

static inline void stage(const char *faults)
{
	setenv("ASSAY_LIB_CUDA", FAKE, 1);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	setenv("FAKE_CUDA", faults, 1);
}

static inline void stand_open(struct stand *s, const struct engine *engine, uint64_t ns)
{
	struct error err = {0};

	stage("");
	*s = (struct stand){.spinner.ns = ns};
	fake_machine_init(&s->machine, 1);
	snprintf(s->machine.gpu[0].pci, sizeof(s->machine.gpu[0].pci),
		 "0000:8d:00.0"); /* as the fake NVML's */
	fake_clock_init(&s->clock, 1000);
	s->clock.tick_ns = 10;
	s->target = (struct target){.kind = TARGET_GPU, .gpu_count = 1};
	s->bench = (struct bench){.machine = &s->machine, .target = &s->target, .clock = &s->clock.clock};
	assert_int_equal(gpu_open(&s->bench.device, NULL, &err), STATUS_OK);
	assert_int_equal(gpu_stream_create(s->bench.device, &s->bench.stream[0], &err), STATUS_OK);
	s->spinner.stream = s->bench.stream[0];
	if (gpu_kernel(s->bench.device, &s->spinner.kernel, "spin", "spin", &err)) {
		gpu_stream_destroy(&s->bench.stream[0]);
		gpu_close(&s->bench.device);
		skip(); /* built without kernels */
	}
	assert_int_equal(meter_gpu_create(&s->meter,
					  &(struct meter_spec){.engine = engine,
							       .state = &s->spinner,
							       .bench = &s->bench,
							       .clock = &s->clock.clock},
					  &err),
			 STATUS_OK);
	s->window = (struct window){.sample = s->sample, .room = 1024};
}

static inline void stand_close(struct stand *s)
{
	meter_destroy(&s->meter);
	gpu_stream_destroy(&s->bench.stream[0]);
	gpu_close(&s->bench.device);
}
#endif
