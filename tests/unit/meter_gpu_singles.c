/* SPDX-License-Identifier: Apache-2.0 */
/* Single iterations on the GPU's meter, each timed by itself. */
#include "meter_bed.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meter_gpu__singles_are_timed_one_by_one),
		cmocka_unit_test(test_meter_gpu__singles_that_the_device_waited_for_are_marked),
		cmocka_unit_test(test_meter_gpu__singles_of_a_graph_are_captured_once_with_their_events),
		cmocka_unit_test(test_meter_gpu__short_singles_are_replayed_as_samples_are),
		cmocka_unit_test(test_meter_gpu__singles_that_fail_say_what_did),
	};

	return cmocka_run_group_tests_name("meter_gpu_singles", tests, NULL, NULL);
}
