/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop under a clock of the test's own: every figure is exact. */
#include "phases_bed.h"

static void test_phases__a_headline_case_runs_all_in_order(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst settle sustained verify");
	bed_release(&b);
}

static void test_phases__a_point_of_a_curve_runs_burst_alone(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst verify");
	assert_null(json_object_get(b.seen.values, "sustained"));
	bed_release(&b);
}

static void test_phases__a_sample_is_a_batch_of_a_millisecond(void **state)
{
	static const struct {
		const char *time;
		json_int_t batch;
	} cases[] = {{"100ns", 10000}, {"100us", 12}, {"1ms", 1}, {"7ms", 1}, {"300us", 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bed b;

		bed_init(&b, PHASES_BURST, 0);
		bed_set(&b, "time", cases[i].time);
		bed_run(&b);
		assert_int_equal(b.status, STATUS_OK);
		assert_int_equal(whole(b.seen.batch, "burst"), cases[i].batch);
		assert_int_equal((json_int_t)value(&b, "burst", "batch"), cases[i].batch);
		bed_release(&b);
	}
}

static void test_phases__burst_is_fifty_milliseconds(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b); /* 100 us x 12 = 1.2 ms a sample: 42 samples reach 50.4 ms */
	assert_int_equal(whole(b.seen.count, "burst"), 42);
	near(length_s(&b, "burst"), 0.0504, 1e-9);
	near(value(&b, "burst", "window_s"), 0.0504, 1e-9);
	near(value(&b, "burst", "time_ns_mean"), 100000, 1e-9);
	near(value(&b, "burst", "iterations"), 42 * 12, 0);
	near(value(&b, "burst", "flop_rate"), 1000 / 100e-6, 1e-9);
	near(value(&b, "burst", "byte_rate"), 64 / 100e-6, 1e-9);
	assert_true(value(&b, "burst", "link_rate") == -1); /* no work of that kind: absent, not zero */
	assert_true(value(&b, "burst", "settled") == -1);
	assert_true(value(&b, "cold", "time_ns_mean") == 100000);
	bed_release(&b);
}

static void test_phases__slow_iterations_give_three_samples_or_a_second(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "time", "200ms");
	bed_run(&b);
	assert_int_equal(whole(b.seen.count, "burst"), 3);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "time", "5s");
	bed_run(&b);
	assert_int_equal(whole(b.seen.count, "burst"), 1);
	assert_true(value(&b, "burst", "half_width_share") == -1);
	bed_release(&b);
}

static void test_phases__a_steady_rate_settles_after_four_blocks(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(length_s(&b, "settle"), 2.0, 1e-9);
	assert_true(value(&b, "settle", "settled") == 1);
	assert_true(value(&b, "sustained", "settled") == 1);
	/* No scatter: the mean is known at once, and the window is as short as it may be. */
	near(value(&b, "sustained", "window_s"), 1.0, 1e-9);
	assert_true(value(&b, "sustained", "half_width_share") < 1e-9);
	bed_release(&b);
}

static void test_phases__a_drift_settles_when_it_ends(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "drift", "0.05"); /* 5 %/s for 3 s */
	bed_set(&b, "drift_time", "3s");
	bed_run(&b);
	assert_true(value(&b, "sustained", "settled") == 1);
	assert_true(length_s(&b, "settle") > 3.9 && length_s(&b, "settle") < 5.6);
	near(value(&b, "sustained", "time_ns_mean"), 1.15e6, 1e-6);
	bed_release(&b);
}

static void test_phases__an_endless_drift_is_called_unsettled(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "drift", "0.05");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(value(&b, "sustained", "settled") == 0);
	near(length_s(&b, "settle"), 10.0, 1e-3);
	bed_release(&b);
}

static void test_phases__scatter_prolongs_the_sustained_window_to_its_limit(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "100ms");
	bed_set(&b, "scatter", "0.9"); /* at 10 samples a second no 0.5 % in 10 s */
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 10.0, 0.05);
	assert_true(value(&b, "sustained", "half_width_share") > 0.005);
	bed_release(&b);
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "2ms");
	bed_set(&b, "scatter", "0.1");
	bed_run(&b);
	assert_true(value(&b, "sustained", "window_s") < 9);
	assert_true(value(&b, "sustained", "half_width_share") <= 0.005);
	bed_release(&b);
}

static void test_phases__a_wish_sets_the_windows_length(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0.5);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 0.5, 1e-9);
	near(length_s(&b, "settle"), 0.5, 1e-9); /* four blocks of an eighth of twice the wish */
	bed_release(&b);
	bed_init(&b, PHASES_HEADLINE, 6);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 6, 1e-9);
	near(length_s(&b, "settle"), 2, 1e-9);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0.2);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "burst", "window_s"), 0.2, 1e-9);
	bed_release(&b);
}

static void test_phases__together_all_windows_have_fixed_length(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	b.c.together = true;
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(length_s(&b, "settle"), 2, 1e-9); /* settled after 1 s already */
	assert_true(value(&b, "settle", "settled") == 1);
	near(length_s(&b, "sustained"), 1, 1e-9);
	bed_release(&b);
}

static void test_phases__a_day_of_short_iterations_fits_the_room(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 86400);
	bed_set(&b, "time", "10ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 86400, 1e-4);
	assert_true(whole(b.seen.count, "sustained") <= 1 << 20);
	assert_true(whole(b.seen.batch, "sustained") >= 16);
	assert_int_equal(whole(b.seen.batch, "burst"), 1);
	bed_release(&b);
}

static void test_phases__cpu_time_shows_contention(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b);
	near(value(&b, "burst", "cpu_share"), 1, 1e-6);
	assert_true(value(&b, "burst", "threads") >= 1);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "cpu_share", "0.6");
	bed_run(&b);
	near(value(&b, "burst", "cpu_share"), 0.6, 1e-6);
	bed_release(&b);
}

static void test_phases__a_wrong_answer_is_never_timed(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "wrong", "data");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_WRONG_RESULT);
	assert_non_null(strstr(b.err.text, "element 3: expected 1, found 2"));
	assert_string_equal(b.seen.order, "prepare cold verify");
	assert_true(value(&b, "once", "wrong_count") == 1);
	assert_true(value(&b, "once", "wrong_checked") == 10);
	assert_non_null(strstr(text(&b, "once", "wrong_place"), "element 3"));
	bed_release(&b);
}

static void test_phases__an_answer_that_turns_wrong_in_the_window_fails_with_its_figures_kept(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "wrong", "nan");
	bed_set(&b, "after", "100");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_NAN);
	assert_true(value(&b, "burst", "time_ns_mean") > 0);
	bed_release(&b);
}

static void test_phases__failures_keep_their_status_and_words(void **state)
{
	static const char *const points[] = {"prepare", "enqueue", "verify", "finish"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct bed b;

		bed_init(&b, PHASES_BURST, 0);
		bed_set(&b, "fail", points[i]);
		bed_set(&b, "status", i == 1 ? "lost" : "no_resource");
		bed_run(&b);
		assert_int_equal(b.status, i == 1 ? STATUS_LOST : STATUS_NO_RESOURCE);
		assert_non_null(strstr(b.err.text, points[i]));
		bed_release(&b);
	}
}

static void test_phases__a_stop_ends_any_phase(void **state)
{
	static const char *const phases[] = {"ramp", "burst", "settle", "sustained", "search", "pairs"};

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		struct bed b;

		bed_init(&b, PHASES_HEADLINE, 0);
		bed_set(&b, "time", "1ms");
		bed_set(&b, "variants", "3");
		b.seen.stop_at = phases[i];
		bed_run(&b);
		assert_int_equal(b.status, STATUS_CANCELLED);
		assert_int_equal(b.err.cause, CAUSE_INTERRUPTED);
		assert_true(strlen(b.seen.order) >= strlen(phases[i]));
		assert_string_equal(b.seen.order + strlen(b.seen.order) - strlen(phases[i]), phases[i]);
		bed_release(&b);
	}
}

static void test_phases__the_best_is_timed_against_the_first_in_pairs(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "4"); /* v3 takes 1/1.03 of the time */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(text(&b, "sustained", "variant"), "v0"); /* the judged figure is the first's */
	near(value(&b, "sustained", "time_ns_mean"), 1e6, 1e-9);
	assert_string_equal(text(&b, "best", "variant"), "v3");
	near(value(&b, "best", "time_ns_mean"), 1e6 / 1.03, 1e-6);
	near(value(&b, "best", "best_ratio"), 1.03, 1e-6);
	near(value(&b, "best", "best_ratio_low"), 1.03, 1e-6);
	assert_true(value(&b, "best", "variants_tried") == 4);
	assert_non_null(json_object_get(b.seen.t0, "pairs"));
	bed_release(&b);
}

static void test_phases__a_first_that_is_best_needs_no_pairs(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "3");
	bed_set(&b, "fail", "select"); /* all but the first refuse */
	bed_set(&b, "status", "unsupported");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(value(&b, "best", "variants_tried") == 1);
	assert_true(value(&b, "best", "best_ratio") == 1);
	assert_null(json_object_get(b.seen.t0, "pairs"));
	bed_release(&b);
}

/* A meter as a GPU has it: samples become known `depth` calls later, and the device has a clock and a power
 * cap. */
struct late_meter {
	struct meter base;
	double end_ns, pending_ns[8];
	uint64_t pending_batch;
	unsigned pending;
	uint64_t asked, drains;
	double clock_hz, fall_hz; /* a second */
	bool capped;
	double limit_w, power_w, swing_w; /* the power swings around its mean from look to look */
	unsigned looks;
};

static enum status late_once(struct meter *m, double *ns, struct error *err)
{
	(void)m, (void)err;
	*ns = 5000;
	return STATUS_OK;
}

static enum status late_ramp(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err)
{
	(void)err;
	clock_sleep_ns(m->clock, limit_ns);
	*reached = false;
	return STATUS_OK;
}

static enum status late_begin(struct meter *m, struct window *w, struct error *err)
{
	(void)err;
	m->window = w;
	w->t0_ns = clock_now_ns(m->clock);
	((struct late_meter *)m)->end_ns = 0;
	return STATUS_OK;
}

static void yield_oldest(struct late_meter *l)
{
	l->end_ns += l->pending_ns[0];
	window_add(l->base.window, l->pending_ns[0], l->end_ns, l->pending_batch);
	memmove(l->pending_ns, l->pending_ns + 1, sizeof(l->pending_ns) - sizeof(l->pending_ns[0]));
	l->pending--;
}

static enum status late_sample(struct meter *m, uint64_t batch, struct error *err)
{
	struct late_meter *l = (struct late_meter *)m;
	double ns = 100e3 * (double)batch;

	(void)err;
	if (l->pending == m->depth) {
		clock_sleep_ns(m->clock, (uint64_t)l->pending_ns[0]);
		yield_oldest(l);
	}
	l->pending_batch = batch;
	l->pending_ns[l->pending++] = ns;
	l->asked++;
	m->next += batch;
	return STATUS_OK;
}

static enum status late_drain(struct meter *m, struct error *err)
{
	struct late_meter *l = (struct late_meter *)m;

	(void)err;
	l->drains++;
	while (l->pending) {
		clock_sleep_ns(m->clock, (uint64_t)l->pending_ns[0]);
		yield_oldest(l);
	}
	return STATUS_OK;
}

static enum status late_end(struct meter *m, struct error *err)
{
	struct window *w = m->window;

	late_drain(m, err);
	w->t1_ns = clock_now_ns(m->clock);
	w->has_clock = w->stamp;
	w->clock_hz = 1.5e9;
	w->clock_spread_share = 0.001;
	m->window = NULL;
	return STATUS_OK;
}

static enum status late_state(struct meter *m, struct meter_state *out, struct error *err)
{
	struct late_meter *l = (struct late_meter *)m;

	(void)err;
	*out = (struct meter_state){.has_clock = true, .has_capped = true, .capped = l->capped};
	out->clock_hz = l->clock_hz - l->fall_hz * l->end_ns * 1e-9;
	out->has_power = l->limit_w > 0;
	out->power_w = l->power_w + (l->looks++ % 2 ? l->swing_w : -l->swing_w);
	out->limit_w = l->limit_w;
	return STATUS_OK;
}

static const struct meter_ops late_ops = {
	.name = "late",
	.once = late_once,
	.ramp = late_ramp,
	.begin = late_begin,
	.sample = late_sample,
	.drain = late_drain,
	.end = late_end,
	.state = late_state,
};

static void late_init(struct late_meter *l, struct timing *t, struct bed *b)
{
	struct error err = {0};

	bed_init(b, PHASES_HEADLINE, 0);
	*l = (struct late_meter){
		.base = {.ops = &late_ops, .engine = b->c.engine, .clock = &b->fake.clock, .depth = 8},
		.clock_hz = 1.98e9,
	};
	*t = (struct timing){.c = &b->c, .w = &b->w, .meter = &l->base};
	assert_int_equal(timing_init(t, &err), STATUS_OK);
	assert_int_equal(phase_ramp(t, &err), STATUS_OK);
}

static void test_phases__late_samples_do_not_prolong_a_window(void **state)
{
	struct late_meter l;
	struct timing t;
	struct bed b;
	struct error err = {0};

	(void)state;
	late_init(&l, &t, &b);
	assert_int_equal(t.batch, 12);
	l.asked = 0;
	assert_int_equal(phase_burst(&t, &err), STATUS_OK);
	assert_int_equal(l.asked, 42); /* as many as a meter without depth takes */
	assert_int_equal(whole(b.seen.count, "burst"), 42);
	assert_true(value(&b, "burst", "clock_hz") == 1.5e9);
	assert_true(value(&b, "burst", "cpu_share") == -1);
	assert_true(value(&b, "burst", "threads") == -1);
	timing_release(&t);
	bed_release(&b);
}

static void test_phases__a_falling_clock_has_not_settled_though_the_rate_has(void **state)
{
	struct late_meter l;
	struct timing t;
	struct bed b;
	struct error err = {0};

	(void)state;
	late_init(&l, &t, &b);
	l.fall_hz = 0.02 * l.clock_hz;
	assert_int_equal(phase_settle(&t, &err), STATUS_OK);
	assert_false(t.settled);
	near(length_s(&b, "settle"), 10, 1e-2);
	timing_release(&t);
	bed_release(&b);
}

static void test_phases__a_second_under_the_power_cap_counts_as_settled(void **state)
{
	struct late_meter l;
	struct timing t;
	struct bed b;
	struct error err = {0};

	(void)state;
	late_init(&l, &t, &b);
	l.fall_hz = 0.02 * l.clock_hz;
	l.capped = true;
	assert_int_equal(phase_settle(&t, &err), STATUS_OK);
	assert_true(t.settled);
	assert_true(length_s(&b, "settle") >= 1.1 && length_s(&b, "settle") < 1.3);
	timing_release(&t);
	bed_release(&b);
}

static void test_phases__a_cap_is_known_by_its_bit_and_the_mean_power(void **state)
{
	static const struct {
		double power_w;
		bool settled;
	} rows[] = {{690, true}, {460, false}}; /* of 700: at the limit; a current limit, with the same bit */

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct late_meter l;
		struct timing t;
		struct bed b;
		struct error err = {0};

		late_init(&l, &t, &b);
		l.fall_hz = 0.02 * l.clock_hz;
		l.capped = true;
		l.limit_w = 700;
		l.power_w = rows[i].power_w;
		l.swing_w = 60;
		assert_int_equal(phase_settle(&t, &err), STATUS_OK);
		assert_int_equal(t.settled, rows[i].settled);
		assert_int_equal(t.capped, rows[i].settled);
		timing_release(&t);
		bed_release(&b);
	}
}

static void test_phases__under_the_cap_the_window_covers_its_swings(void **state)
{
	static const struct {
		double seconds, capped, least;
		bool under_cap;
	} rows[] = {{0, 0, 6, true}, {2, 6, 6, true},  {2, 0, 2, true},
		    {8, 6, 8, true}, {2, 6, 2, false}, {0, 0, 1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct late_meter l;
		struct timing t;
		struct bed b;
		struct error err = {0};

		late_init(&l, &t, &b);
		b.c.seconds = rows[i].seconds;
		b.c.seconds_capped = rows[i].capped;
		t.capped = rows[i].under_cap;
		assert_int_equal(phase_sustained(&t, &err), STATUS_OK);
		near(length_s(&b, "sustained"), rows[i].least, 0.11);
		timing_release(&t);
		bed_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases__a_cap_is_known_by_its_bit_and_the_mean_power),
		cmocka_unit_test(test_phases__under_the_cap_the_window_covers_its_swings),
		cmocka_unit_test(test_phases__a_headline_case_runs_all_in_order),
		cmocka_unit_test(test_phases__a_point_of_a_curve_runs_burst_alone),
		cmocka_unit_test(test_phases__a_sample_is_a_batch_of_a_millisecond),
		cmocka_unit_test(test_phases__burst_is_fifty_milliseconds),
		cmocka_unit_test(test_phases__slow_iterations_give_three_samples_or_a_second),
		cmocka_unit_test(test_phases__a_steady_rate_settles_after_four_blocks),
		cmocka_unit_test(test_phases__a_drift_settles_when_it_ends),
		cmocka_unit_test(test_phases__an_endless_drift_is_called_unsettled),
		cmocka_unit_test(test_phases__scatter_prolongs_the_sustained_window_to_its_limit),
		cmocka_unit_test(test_phases__a_wish_sets_the_windows_length),
		cmocka_unit_test(test_phases__together_all_windows_have_fixed_length),
		cmocka_unit_test(test_phases__a_day_of_short_iterations_fits_the_room),
		cmocka_unit_test(test_phases__cpu_time_shows_contention),
		cmocka_unit_test(test_phases__a_wrong_answer_is_never_timed),
		cmocka_unit_test(
			test_phases__an_answer_that_turns_wrong_in_the_window_fails_with_its_figures_kept),
		cmocka_unit_test(test_phases__failures_keep_their_status_and_words),
		cmocka_unit_test(test_phases__a_stop_ends_any_phase),
		cmocka_unit_test(test_phases__the_best_is_timed_against_the_first_in_pairs),
		cmocka_unit_test(test_phases__a_first_that_is_best_needs_no_pairs),
		cmocka_unit_test(test_phases__late_samples_do_not_prolong_a_window),
		cmocka_unit_test(test_phases__a_falling_clock_has_not_settled_though_the_rate_has),
		cmocka_unit_test(test_phases__a_second_under_the_power_cap_counts_as_settled),
	};

	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
