/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's meter on the fake driver, whose time is counted: exact samples, replays, stamps, a device lost in
 * a window. */
#include "test.h"
#include "fake_clock.h"
#include "fake_machine.h"
#include "gpu/gpu.h"
#include "kernel/fatbin.h"
#include "kernel/spin.h"
#include "probe/memory/memory.h"
#include "run/meter.h"

#define FAKE FAKE_DIR "/libcuda.so.1"
enum { LAUNCH_NS = 2000 }; /* the fake's cost of a launch */

/* An engine whose iteration is one spin of `ns`; of each `slow_every` (0: none) one is nine times as long. */
struct spinner {
	struct gpu_kernel *kernel;
	struct gpu_stream *stream;
	uint64_t ns, slow_every, calls, last;
};

static enum status spinner_enqueue(void *state, uint64_t i, struct error *err)
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

static enum launch always_graph(const void *opts)
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

static void stage(const char *faults)
{
	setenv("ASSAY_LIB_CUDA", FAKE, 1);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	setenv("FAKE_CUDA", faults, 1);
}

static void stand_open(struct stand *s, const struct engine *engine, uint64_t ns)
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

static void stand_close(struct stand *s)
{
	meter_destroy(&s->meter);
	gpu_stream_destroy(&s->bench.stream[0]);
	gpu_close(&s->bench.device);
}

static void test_meter_gpu__a_sample_is_the_devices_time(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 98000);
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	for (int i = 0; i < 100; i++)
		assert_int_equal(s.meter->ops->sample(s.meter, 10, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_int_equal(s.window.count, 100);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(s.sample[i].batch, 10);
		assert_true(s.sample[i].ns > 99999 && s.sample[i].ns < 100001);
		assert_true(s.sample[i].end_ns > 0.999e6 * (double)(i + 1) &&
			    s.sample[i].end_ns < 1.001e6 * (double)(i + 1));
	}
	assert_int_equal(s.spinner.calls, 1000);
	assert_int_equal(s.spinner.last, 999);
	assert_false(s.window.has_clock);
	assert_true(s.window.t1_ns > s.window.t0_ns);
	stand_close(&s);
}

static void test_meter_gpu__short_iterations_are_replayed(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->sample(s.meter, 100, &err),
			 STATUS_OK); /* nothing is known yet: plain */
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_int_equal(s.spinner.calls, 100);
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(s.meter->ops->sample(s.meter, 100, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_int_equal(s.spinner.calls, 200); /* captured once */
	assert_int_equal(s.window.count, 6);
	assert_true(s.sample[5].ns > 2999 && s.sample[5].ns < 3001);
	stand_close(&s);
}

/* A window of singles; `times` calls of METER_SINGLES. */
static enum status take_singles(struct stand *s, unsigned times, struct error *err)
{
	enum status st = s->meter->ops->begin(s->meter, &s->window, err);

	for (unsigned i = 0; i < times && !st; i++)
		st = s->meter->ops->singles(s->meter, METER_SINGLES, err);
	return st ? st : s->meter->ops->end(s->meter, err);
}

static size_t starved(const struct stand *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->window.count; i++)
		n += s->sample[i].starved;
	return n;
}

/* Every 50th takes 9 spins, the others one; between two of them an event. */
static void expect_planted(const struct stand *s, double event_ns)
{
	double end_ns = s->sample[0].end_ns - s->sample[0].ns;

	for (size_t i = 0; i < s->window.count; i++) {
		double spins = i % 50 == 49 ? 9 : 1, ns = LAUNCH_NS + 8000 * spins + event_ns;

		end_ns += ns;
		assert_int_equal(s->sample[i].batch, 1);
		assert_true(s->sample[i].ns > ns - 1 && s->sample[i].ns < ns + 1);
		assert_true(s->sample[i].end_ns > end_ns - 1e3 && s->sample[i].end_ns < end_ns + 1e3);
	}
}

static void test_meter_gpu__singles_are_timed_one_by_one(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &plain_engine, 8000);
	s.spinner.slow_every = 50;
	stage("event=1500,ahead=1");
	assert_int_equal(take_singles(&s, 2, &err), STATUS_OK);
	assert_int_equal(s.window.count, 2 * METER_SINGLES);
	assert_int_equal(s.spinner.calls, 2 * METER_SINGLES);
	s.window.count = METER_SINGLES; /* the second row begins anew */
	expect_planted(&s, 1500);
	assert_true(s.window.has_mark);
	assert_true(s.window.mark_ns > 1499 && s.window.mark_ns < 1501);
	assert_int_equal(starved(&s), 0);
	stand_close(&s);
}

static void test_meter_gpu__singles_that_the_device_waited_for_are_marked(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &plain_engine, 8000); /* the fake device is done at once */
	assert_int_equal(take_singles(&s, 1, &err), STATUS_OK);
	assert_int_equal(starved(&s), METER_SINGLES);
	stand_close(&s);
}

static void test_meter_gpu__singles_of_a_graph_are_captured_once_with_their_events(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &graph_engine, 8000);
	s.spinner.slow_every = 50;
	stage("event=700");
	assert_int_equal(take_singles(&s, 3, &err), STATUS_OK);
	assert_int_equal(s.window.count, 3 * METER_SINGLES);
	assert_int_equal(s.spinner.calls, METER_SINGLES);
	assert_int_equal(s.meter->next, 3 * METER_SINGLES); /* buffers rotate on */
	for (size_t i = 0; i < METER_SINGLES; i++) {
		assert_true(s.sample[i].ns == s.sample[i + METER_SINGLES].ns);
		assert_true(s.sample[i].end_ns < s.sample[i + METER_SINGLES].end_ns);
	}
	s.window.count = METER_SINGLES;
	expect_planted(&s, 700);
	assert_int_equal(starved(&s), 0);
	stand_close(&s);
}

static void test_meter_gpu__short_singles_are_replayed_as_samples_are(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->sample(s.meter, 10, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_int_equal(take_singles(&s, 2, &err), STATUS_OK);
	assert_int_equal(s.spinner.calls, 10 + METER_SINGLES);
	assert_true(s.sample[1].ns > 2999 && s.sample[1].ns < 3001);
	/* An engine that cannot be captured is put on the stream. */
	stage("cuEventRecordWithFlags=801");
	s.window = (struct window){.sample = s.sample, .room = 1024};
	assert_int_equal(take_singles(&s, 2, &err), STATUS_OK);
	assert_int_equal(s.window.count, 2 * METER_SINGLES);
	assert_int_equal(s.meter->next, 10 + 4 * METER_SINGLES);
	stand_close(&s);
}

static void test_meter_gpu__singles_that_fail_say_what_did(void **state)
{
	static const struct {
		const char *staged;
		enum status status;
	} rows[] = {
		{"cuEventCreate=2@100", STATUS_NO_RESOURCE},
		{"cuEventRecordWithFlags=801", STATUS_UNSUPPORTED},
		{"cuGraphInstantiateWithFlags=2", STATUS_NO_RESOURCE},
		{"cuGraphLaunch=999", STATUS_LOST},
		{"cuEventElapsedTime=1@40", STATUS_VENDOR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		struct stand s;

		stand_open(&s, &graph_engine, 8000);
		stage(rows[i].staged);
		assert_int_equal(take_singles(&s, 1, &err), rows[i].status);
		assert_true(err.text[0]);
		stage("");
		stand_close(&s);
	}
}

static void test_meter_gpu__a_plain_engine_is_never_replayed(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &plain_engine, 1000);
	for (int w = 0; w < 2; w++) {
		assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
		assert_int_equal(s.meter->ops->sample(s.meter, 100, &err), STATUS_OK);
		assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	}
	assert_int_equal(s.spinner.calls, 200);
	stand_close(&s);
}

static void test_meter_gpu__an_engine_that_cannot_be_captured_is_timed_plainly(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	stage("cuGraphInstantiateWithFlags=801");
	for (int w = 0; w < 2; w++) {
		assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
		assert_int_equal(s.meter->ops->sample(s.meter, 100, &err), STATUS_OK);
		assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	}
	assert_int_equal(err.status, STATUS_OK);
	assert_int_equal(s.window.count, 2);
	assert_true(s.sample[1].ns > 2999 && s.sample[1].ns < 3001);
	stand_close(&s);
}

static void test_meter_gpu__a_stamped_window_has_the_held_clock(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000000);
	stage("clock=1234");
	s.window.stamp = true;
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(s.meter->ops->sample(s.meter, 2, &err), STATUS_OK);
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_true(s.window.has_clock);
	assert_true(s.window.clock_hz > 1233.9e6 && s.window.clock_hz < 1234.1e6);
	assert_true(s.window.clock_spread_share < 1e-6);
	stand_close(&s);
}

static void copies(struct stand *s, const char *nvml, const char *values, bool wanted)
{
	struct error err = {0};

	stand_open(s, &plain_engine, 1000000);
	setenv("ASSAY_LIB_NVML", nvml, 1);
	setenv("FAKE_NVML_VALUE", values, 1);
	s->window.link = wanted;
	assert_int_equal(s->meter->ops->begin(s->meter, &s->window, &err), STATUS_OK);
	for (int i = 0; i < 20; i++)
		assert_int_equal(s->meter->ops->sample(s->meter, 1, &err), STATUS_OK);
	assert_int_equal(s->meter->ops->end(s->meter, &err), STATUS_OK);
	unsetenv("FAKE_NVML_VALUE");
	stand_close(s);
}

static void test_meter_gpu__the_link_is_read_once_while_copies_run(void **state)
{
	struct stand s;

	(void)state;
	copies(&s, FAKE_DIR "/libnvidia-ml.so.1", "pcie_gen=4,pcie_width=8", true);
	assert_true(s.window.has_link);
	assert_int_equal(s.window.link_gen, 4);
	assert_int_equal(s.window.link_width, 8);
	copies(&s, FAKE_DIR "/libnvidia-ml.so.1", "pcie_gen=4,pcie_width=8", false);
	assert_false(s.window.has_link); /* nobody asked */
	copies(&s, "/nowhere/libnvidia-ml.so.1", "", true);
	assert_false(s.window.has_link); /* can't be read: absent */
}

static void test_meter_gpu__the_ramp_says_whether_the_clock_came_up(void **state)
{
	struct error err = {0};
	bool reached;
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	assert_int_equal(s.meter->ops->ramp(s.meter, 300000000, &reached, &err), STATUS_OK);
	assert_true(reached);
	stage("clock=900");
	assert_int_equal(s.meter->ops->ramp(s.meter, 300000000, &reached, &err), STATUS_OK);
	assert_false(reached);
	assert_int_equal(s.spinner.calls, 0);
	stand_close(&s);
}

static void test_meter_gpu__a_device_lost_in_a_window_ends_it(void **state)
{
	enum status st = STATUS_OK;
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 100000);
	stage("cuEventSynchronize=999@20");
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	for (int i = 0; i < 200 && !st; i++)
		st = s.meter->ops->sample(s.meter, 10, &err);
	assert_int_equal(st, STATUS_LOST);
	assert_int_equal(err.cause, CAUSE_GPU_LOST);
	assert_int_equal(s.window.count, 19); /* what was known before is kept */
	stand_close(&s);
}

static void test_meter_gpu__what_fails_to_be_made_leaves_nothing(void **state)
{
	struct meter *m = (struct meter *)1;
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	stage("cuEventCreate=2@5");
	assert_int_equal(meter_gpu_create(&m,
					  &(struct meter_spec){.engine = &spin_engine,
							       .state = &s.spinner,
							       .bench = &s.bench,
							       .clock = &s.clock.clock},
					  &err),
			 STATUS_NO_RESOURCE);
	assert_null(m);
	stand_close(&s);
}

static void test_meter_gpu__once_counts_host_time_and_one_iteration(void **state)
{
	struct error err = {0};
	struct stand s;
	double ns;

	(void)state;
	stand_open(&s, &spin_engine, 1000);
	assert_int_equal(s.meter->ops->once(s.meter, &ns, &err), STATUS_OK);
	assert_true(ns > 0);
	assert_int_equal(s.spinner.calls, 1);
	assert_int_equal(s.meter->next, 1);
	stand_close(&s);
}

extern const struct probe probe_memory;

/* What a variant left on the device is not the next one's: its iterations are forgotten, and a verification runs one of its own. */
static void test_meter_gpu__a_variant_is_not_verified_by_what_another_left(void **state)
{
	static const enum memory_op ops[] = {MEMORY_READ, MEMORY_DOT, MEMORY_COPY};

	(void)state;
	if (!kernel_fatbin_at(0))
		skip(); /* built without nvcc */
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const struct engine *e = &memory_gpu_engine;
		struct memory_opts o = {.op = ops[i], .size = 1 << 20};
		struct memory *memory = calloc(1, e->state_size);
		struct error err = {0};
		struct wrong wrong;
		const char *name;
		struct stand s;

		stand_open(&s, &spin_engine, 1000);
		s.bench.out = result_create();
		if (e->prepare(memory, &s.bench, &o, &err))
			fail_msg("%s", err.text);
		assert_int_equal(probe_memory.verify(memory, &wrong, &err), STATUS_OK);
		for (unsigned v = 0; v < 2; v++) { /* offered for large streams alone */
			assert_int_equal(e->select(memory, v, &name, &err), STATUS_OK);
			assert_int_equal(memory->iterations, 0);
			for (uint64_t k = 0; k < 3; k++)
				assert_int_equal(e->enqueue(memory, k, &err), STATUS_OK);
			assert_int_equal(memory->iterations, 3);
		}
		/* Selected with another's iterations behind it, not run yet, and poisoned by nobody. */
		assert_int_equal(e->select(memory, 0, &name, &err), STATUS_OK);
		assert_int_equal(memory->iterations, 0);
		if (probe_memory.verify(memory, &wrong, &err))
			fail_msg("%s", err.text);
		assert_int_equal(wrong.count, 0);
		e->release(memory);
		free(memory);
		result_destroy(s.bench.out);
		stand_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meter_gpu__a_sample_is_the_devices_time),
		cmocka_unit_test(test_meter_gpu__short_iterations_are_replayed),
		cmocka_unit_test(test_meter_gpu__singles_are_timed_one_by_one),
		cmocka_unit_test(test_meter_gpu__singles_that_the_device_waited_for_are_marked),
		cmocka_unit_test(test_meter_gpu__singles_of_a_graph_are_captured_once_with_their_events),
		cmocka_unit_test(test_meter_gpu__short_singles_are_replayed_as_samples_are),
		cmocka_unit_test(test_meter_gpu__singles_that_fail_say_what_did),
		cmocka_unit_test(test_meter_gpu__a_plain_engine_is_never_replayed),
		cmocka_unit_test(test_meter_gpu__an_engine_that_cannot_be_captured_is_timed_plainly),
		cmocka_unit_test(test_meter_gpu__a_stamped_window_has_the_held_clock),
		cmocka_unit_test(test_meter_gpu__the_link_is_read_once_while_copies_run),
		cmocka_unit_test(test_meter_gpu__the_ramp_says_whether_the_clock_came_up),
		cmocka_unit_test(test_meter_gpu__a_device_lost_in_a_window_ends_it),
		cmocka_unit_test(test_meter_gpu__what_fails_to_be_made_leaves_nothing),
		cmocka_unit_test(test_meter_gpu__a_variant_is_not_verified_by_what_another_left),
		cmocka_unit_test(test_meter_gpu__once_counts_host_time_and_one_iteration),
	};

	return cmocka_run_group_tests_name("meter_gpu", tests, NULL, NULL);
}
