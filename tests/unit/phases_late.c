/* SPDX-License-Identifier: Apache-2.0 */
/* The phases on a meter whose samples come late, with a clock and a power cap. */
#include "phases_bed.h"

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
	double one_ns;	/* an iteration */
	bool jolts;	/* the tenth sample of a window takes a hundred times as long */
	uint64_t begun; /* of `asked`, as the window began */
	double free_s;	/* capped only in every second stretch of so long; 0: always */
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
	((struct late_meter *)m)->begun = ((struct late_meter *)m)->asked;
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
	double ns = l->one_ns * (double)batch;

	(void)err;
	if (l->pending == m->depth) {
		clock_sleep_ns(m->clock, (uint64_t)l->pending_ns[0]);
		yield_oldest(l);
	}
	if (l->jolts && l->asked - l->begun == 10)
		ns *= 100;
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
	if (l->free_s > 0 && (uint64_t)(l->end_ns * 1e-9 / l->free_s) % 2)
		out->capped = false;
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
		.one_ns = 100e3,
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

static void test_phases__short_operations_of_ranks_take_a_wide_window_again(void **state)
{
	static const struct {
		unsigned ranks;
		double one_ns;
		bool jolts;
		double repeats; /* -1: not told */
	} rows[] = {
		{2, 20e3, true, 2},
		{2, 20e3, false, -1}, /* a quiet machine */
		{2, 200e3, true, -1}, /* the device paces these */
		{1, 20e3, true, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct late_meter l;
		struct timing t;
		struct bed b;
		struct error err = {0};

		late_init(&l, &t, &b);
		b.c.phases = PHASES_BURST;
		b.c.seconds = 0.5;
		b.c.target = (struct target){.kind = TARGET_NODE, .ranks = rows[i].ranks};
		l.jolts = rows[i].jolts;
		l.one_ns = t.iteration_ns = rows[i].one_ns;
		assert_int_equal(phase_burst(&t, &err), STATUS_OK);
		assert_true(value(&b, "burst", "repeats") == rows[i].repeats);
		if (rows[i].one_ns < 100e3)
			assert_true((value(&b, "burst", "half_width_share") > PHASE_WIDE) == rows[i].jolts);
		timing_release(&t);
		bed_release(&b);
	}
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

/* With short windows (seconds below 2) half of the window under the cap will do: METHODS, "Settle". */
static void test_phases__a_short_case_settles_under_the_cap_in_half_its_window(void **state)
{
	static const struct {
		double seconds, capped_s;
	} rows[] = {{0.4, 0.2}, {1, 0.5}, {1.8, 0.9}, {2, 1}, {8, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct late_meter l;
		struct timing t;
		struct bed b;
		struct error err = {0};

		late_init(&l, &t, &b);
		b.c.seconds = rows[i].seconds;
		l.fall_hz = 0.2 * l.clock_hz;
		l.capped = true;
		assert_int_equal(phase_settle(&t, &err), STATUS_OK);
		assert_true(t.settled);
		/* the cap is looked at every 100 ms, and seen first 100 ms into the window */
		assert_true(length_s(&b, "settle") >= rows[i].capped_s + 0.1 - 1e-9);
		assert_true(length_s(&b, "settle") < rows[i].capped_s + 0.25);
		timing_release(&t);
		bed_release(&b);
	}
}

static void test_phases__a_cap_that_lets_go_is_counted_anew(void **state)
{
	struct late_meter l;
	struct timing t;
	struct bed b;
	struct error err = {0};

	(void)state;
	late_init(&l, &t, &b);
	b.c.seconds = 1; /* settling takes 2 s at most, capped for 0.5 s is enough */
	l.fall_hz = 0.2 * l.clock_hz;
	l.capped = true;
	l.free_s = 0.4; /* not capped in every second 0.4 s */
	assert_int_equal(phase_settle(&t, &err), STATUS_OK);
	assert_false(t.settled);
	near(length_s(&b, "settle"), 2, 1e-2);
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
		cmocka_unit_test(test_phases__late_samples_do_not_prolong_a_window),
		cmocka_unit_test(test_phases__short_operations_of_ranks_take_a_wide_window_again),
		cmocka_unit_test(test_phases__a_falling_clock_has_not_settled_though_the_rate_has),
		cmocka_unit_test(test_phases__a_second_under_the_power_cap_counts_as_settled),
		cmocka_unit_test(test_phases__a_short_case_settles_under_the_cap_in_half_its_window),
		cmocka_unit_test(test_phases__a_cap_that_lets_go_is_counted_anew),
	};

	return cmocka_run_group_tests_name("phases_late", tests, NULL, NULL);
}
