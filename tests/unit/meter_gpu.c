/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's meter on the fake driver, whose time is counted: exact samples, replays, stamps, a device lost in
 * a window. */
#include "meter_bed.h"
#include "probe/memory/memory.h"

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

/* Beside a kernel that has the SMs a stamp finds no room: what was timed is kept. */
static void test_meter_gpu__a_window_without_stamps_has_no_clock(void **state)
{
	struct error err = {0};
	struct stand s;

	(void)state;
	stand_open(&s, &spin_engine, 1000000);
	s.window.stamp = true;
	assert_int_equal(s.meter->ops->begin(s.meter, &s.window, &err), STATUS_OK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(s.meter->ops->sample(s.meter, 2, &err), STATUS_OK);
	stage("drop=stamp");
	assert_int_equal(s.meter->ops->end(s.meter, &err), STATUS_OK);
	assert_int_equal(err.status, STATUS_OK);
	assert_false(s.window.has_clock);
	assert_int_equal(s.window.count, 50);
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

/* What a variant left on the device is not the next one's: its iterations are forgotten, and a verification
 * runs one of its own. */
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
		cmocka_unit_test(test_meter_gpu__a_plain_engine_is_never_replayed),
		cmocka_unit_test(test_meter_gpu__an_engine_that_cannot_be_captured_is_timed_plainly),
		cmocka_unit_test(test_meter_gpu__a_stamped_window_has_the_held_clock),
		cmocka_unit_test(test_meter_gpu__a_window_without_stamps_has_no_clock),
		cmocka_unit_test(test_meter_gpu__the_link_is_read_once_while_copies_run),
		cmocka_unit_test(test_meter_gpu__the_ramp_says_whether_the_clock_came_up),
		cmocka_unit_test(test_meter_gpu__a_device_lost_in_a_window_ends_it),
		cmocka_unit_test(test_meter_gpu__what_fails_to_be_made_leaves_nothing),
		cmocka_unit_test(test_meter_gpu__a_variant_is_not_verified_by_what_another_left),
		cmocka_unit_test(test_meter_gpu__once_counts_host_time_and_one_iteration),
	};

	return cmocka_run_group_tests_name("meter_gpu", tests, NULL, NULL);
}
