/* SPDX-License-Identifier: Apache-2.0 */
/* Each check of trust fails when it should, and a sound run keeps all of them. */
#include "load_bed.h"

#include "load/measure/saturation.h"

enum { REQUESTS = 1000 };

/* 100 requests/s for 10 s; nothing is wrong. */
static void open_sound(struct load_bed *b)
{
	load_bed_open(b, 0, 10, 100);
	for (int i = 0; i < REQUESTS; i++)
		load_bed_add(b, 0.01 * i, 0.02, 5000, 20);
}

static bool has_check(const struct load_bed *b, const char *name, bool kept)
{
	json_t *check;
	size_t i;

	json_array_foreach(json_object_get(b->out, "checks"), i,
			   check) if (!strcmp(json_string_value(json_object_get(check, "name")),
					      name)) return json_is_true(json_object_get(check, "kept")) ==
		kept;
	return false;
}

static size_t reasons(const struct load_bed *b)
{
	return json_array_size(json_object_get(b->out, "untrusted"));
}

static void expect_untrusted(struct load_bed *b, const char *check)
{
	load_bed_measure(b);
	if (reasons(b) != 1 || !has_check(b, check, false))
		fail_msg("%s: %zu reasons", check, reasons(b));
	load_bed_close(b);
}

static void expect_trusted(struct load_bed *b)
{
	load_bed_measure(b);
	if (reasons(b))
		fail_msg("%s", json_string_value(json_array_get(json_object_get(b->out, "untrusted"), 0)));
	load_bed_close(b);
}

static void test_trust__a_sound_run_keeps_all_checks(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	load_bed_measure(&b);
	assert_int_equal(reasons(&b), 0);
	assert_true(has_check(&b, "client_lag_p99_s", true) && has_check(&b, "send_deviation", true));
	assert_true(has_check(&b, "client_cpu_share", true) && has_check(&b, "cache_share", true));
	assert_true(has_check(&b, "usage_deviation", true) && has_check(&b, "duplicates", true));
	assert_int_equal(json_array_size(json_object_get(b.out, "notes")), 0);
	load_bed_close(&b);
}

/* Sends each n-th request late. */
static void delay(struct load_bed *b, size_t every, double by_s)
{
	for (size_t i = 0; i < b->all.count; i += every) {
		struct load_record *r = &b->all.record[i];
		const uint64_t by = ns_of(by_s);

		r->handed_ns += by;
		r->connected_ns += by;
		r->sent_ns += by;
		r->first_byte_ns += by;
		r->first_token_ns += by;
		r->last_token_ns += by;
		r->end_ns += by;
	}
}

static void test_lag__above_1_ms_and_2_percent_of_ttft(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	delay(&b, 50, 0.0011); /* 2 % of the requests; TTFT is 20 ms */
	expect_untrusted(&b, "client_lag_p99_s");
	open_sound(&b);
	delay(&b, 50, 0.0009);
	expect_trusted(&b);
	open_sound(&b);
	delay(&b, 200, 0.005); /* 0.5 % are below P99 */
	expect_trusted(&b);
	load_bed_open(&b, 0, 10, 100);
	for (int i = 0; i < REQUESTS; i++)
		load_bed_add(&b, 0.01 * i, 0.2, 5000, 20); /* the limit is 4 ms */
	delay(&b, 50, 0.0039);
	expect_trusted(&b);
}

static void test_lag__of_a_full_cap_on_connections_is_the_users_choice(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	delay(&b, 2, 0.5);
	b.spec.use.waited_for_connection = 500;
	load_bed_measure(&b);
	assert_int_equal(reasons(&b), 0);
	assert_int_equal(json_array_size(json_object_get(b.out, "notes")), 1);
	load_bed_close(&b);
	open_sound(&b);
	delay(&b, 2, 0.5);
	b.spec.use.waited_for_connection = 400; /* a tenth of the requests was late without it */
	load_bed_measure(&b);
	assert_true(has_check(&b, "client_lag_p99_s", false));
	load_bed_close(&b);
}

static void test_client__busy_or_late_to_read(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	b.spec.use.cpu_share = 0.81;
	expect_untrusted(&b, "client_cpu_share");
	open_sound(&b);
	b.spec.use.cpu_share = 0.8;
	expect_trusted(&b);
	open_sound(&b);
	b.spec.use.receive_late_p99_s = 0.0011;
	expect_untrusted(&b, "receive_late_p99_s");
}

static void test_sends__that_differ_from_the_schedule(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	for (size_t i = 0; i < 6; i++) /* 0.6 % were never handed over */
		b.all.record[i].handed_ns = LOAD_NEVER;
	expect_untrusted(&b, "send_deviation");
	open_sound(&b);
	for (size_t i = 0; i < 5; i++)
		b.all.record[i].handed_ns = LOAD_NEVER;
	expect_trusted(&b);
	load_bed_open(&b, 0, 10, 10); /* of few requests, two may lie beyond the edge */
	for (int i = 0; i < 100; i++)
		load_bed_add(&b, 0.1 * i, 0.02, 5000, 20);
	b.all.record[0].handed_ns = b.all.record[1].handed_ns = LOAD_NEVER;
	expect_trusted(&b);
}

static void test_cache__unexpected_hits(void **state)
{
	struct load_bed b;

	(void)state;
	for (int expected = 0; expected < 2; expected++) {
		open_sound(&b);
		for (size_t i = 0; i < b.all.count; i++)
			b.all.record[i].cached = 6;
		b.spec.expect_cached = expected;
		if (expected)
			expect_trusted(&b);
		else
			expect_untrusted(&b, "cache_share");
	}
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].cached = 5;
	expect_trusted(&b);
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].cached = LOAD_UNKNOWN;
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "cache_share"));
	load_bed_close(&b);
}

/* Too many on some requests and too few on others do not cancel out. */
static void test_usage__that_differs_from_the_counted_tokens(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].output_usage += i % 2 ? 2 : -2; /* of 20; one token is an end token's */
	load_bed_measure(&b);
	load_bed_expect(&b, "usage_deviation", 0.05, 1e-12);
	assert_true(has_check(&b, "usage_deviation", false));
	load_bed_close(&b);
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].output_usage++;
	expect_trusted(&b);
}

static void test_usage__of_texts_beyond_their_end_is_a_note(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	b.spec.ignores_end = true;
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].output_counted -= 8;
	load_bed_measure(&b);
	assert_int_equal(reasons(&b), 0);
	assert_int_equal(json_array_size(json_object_get(b.out, "notes")), 1);
	load_bed_close(&b);
}

/* Each hundredth stream lost `events` events, and its text `tokens` tokens. */
static void lose(struct load_bed *b, uint32_t events, int64_t tokens)
{
	for (size_t i = 0; i < b->all.count; i++) {
		struct load_record *r = &b->all.record[i];

		r->blanks = 1; /* the event with the finish_reason */
		if (i % 100)
			continue;
		r->chunks -= events;
		r->gap_count -= events;
		r->output_counted -= tokens;
	}
}

static void test_lost__events_and_text_are_fewer(void **state)
{
	struct load_bed b;

	(void)state;
	for (uint32_t lost = 1; lost <= 3; lost++) {
		open_sound(&b);
		b.spec.ignores_end = true;
		lose(&b, lost, lost);
		b.all.record[7].chunks -= 2; /* two tokens without text, each in an event of its own */
		b.all.record[7].gap_count -= 2;
		b.all.record[7].blanks += 2;
		b.all.record[7].output_counted -= 2;
		load_bed_measure(&b);
		load_bed_expect(&b, "lost_tokens", 10, 0);
		expect_untrusted(&b, "lost_tokens");
	}
}

static void test_lost__is_a_note_if_it_may_be_another_reason(void **state)
{
	struct load_bed b;

	(void)state;
	for (int known = 0; known < 2; known++) {
		open_sound(&b);
		b.spec.ignores_end = true;
		lose(&b, 1, 1);
		for (size_t i = 0; i < b.all.count && !known; i++)
			b.all.record[i].output_counted = LOAD_UNKNOWN;
		load_bed_measure(&b);
		load_bed_expect(&b, "lost_tokens", 10, 0);
		assert_int_equal(reasons(&b), 0);
		assert_int_equal(json_array_size(json_object_get(b.out, "notes")), 1);
		load_bed_close(&b);
	}
}

static void test_lost__not_if_the_text_is_whole_or_events_hold_several_tokens(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	b.spec.ignores_end = true;
	lose(&b, 1, 0); /* two tokens came in one event */
	load_bed_measure(&b);
	load_bed_expect(&b, "lost_tokens", 0, 0);
	expect_trusted(&b);
	open_sound(&b);
	b.spec.ignores_end = true;
	for (size_t i = 0; i < b.all.count; i++) { /* three tokens in an event */
		b.all.record[i].chunks = 7;
		b.all.record[i].gap_count = 6;
	}
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "lost_tokens"));
	load_bed_close(&b);
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++) { /* a text that ended early has an end token in usage */
		b.all.record[i].output_asked = 30;
		b.all.record[i].output_usage++;
	}
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "lost_tokens"));
	load_bed_close(&b);
}

static void test_usage__beyond_what_was_asked(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].output_asked =
			(uint32_t)b.all.record[i].output_usage - 1; /* and an end token */
	expect_trusted(&b);
	open_sound(&b);
	for (size_t i = 0; i < b.all.count; i++)
		b.all.record[i].output_asked = (uint32_t)b.all.record[i].output_usage;
	b.all.record[b.all.count / 2].output_asked -= 2;
	load_bed_measure(&b);
	load_bed_expect(&b, "usage_over_asked", 1, 1e-12);
	assert_true(has_check(&b, "usage_over_asked", false));
	load_bed_close(&b);
}

static void test_flags__of_a_single_answer(void **state)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} of[] = {{LOAD_FLAG_NO_DONE, "no_done"},
		  {LOAD_FLAG_NO_FINISH, "no_finish"},
		  {LOAD_FLAG_DUPLICATE, "duplicates"},
		  {LOAD_FLAG_AFTER_DONE, "after_done"},
		  {LOAD_FLAG_LOW_USAGE, "usage_under_events"}};
	struct load_bed b;

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		open_sound(&b);
		b.all.record[500].flags = of[i].flag;
		expect_untrusted(&b, of[i].name);
		open_sound(&b);
		b.all.record[500].flags = of[i].flag;
		b.all.record[500].error = LOAD_ERROR_RESET; /* its error is counted already */
		expect_trusted(&b);
	}
	open_sound(&b);
	b.all.record[500].flags = LOAD_FLAG_NO_USAGE;
	load_bed_measure(&b);
	load_bed_expect(&b, "no_usage", 1, 0);
	assert_true(!reasons(&b) && json_array_size(json_object_get(b.out, "notes")) == 1);
	load_bed_close(&b);
}

static void test_notes__of_errors_and_of_an_interrupted_run(void **state)
{
	struct load_bed b;

	(void)state;
	open_sound(&b);
	b.spec.cut = true;
	for (size_t i = 0; i < 11; i++)
		b.all.record[i].error = LOAD_ERROR_LIMITED;
	load_bed_measure(&b);
	load_bed_expect(&b, "error_share", 0.011, 1e-12);
	assert_int_equal(json_array_size(json_object_get(b.out, "notes")), 2);
	load_bed_close(&b);
}

/* ---- over-saturation ---- */

/* One server that takes service_s for each request, at Poisson arrivals for 60 s. */
static void open_queue(struct load_bed *b, double rate, double service_s)
{
	double due = 0, free_at = 0;

	load_bed_open(b, 0, 60, rate);
	for (uint64_t i = 0; (due += -log(load_bed_uniform(i)) / rate) < 60; i++) {
		free_at = (free_at > due ? free_at : due) + service_s;
		load_bed_add(b, due, free_at - due, 1000, 2);
	}
	load_bed_measure(b);
}

static void test_saturation__a_queue_that_grows(void **state)
{
	struct load_bed b;

	(void)state;
	open_queue(&b, 24, 0.05); /* 20 requests/s are served */
	load_bed_expect(&b, "over_saturated", 1, 0);
	/* 24 come and 20 leave each second; each waits 0.2 s longer for each second later */
	load_bed_expect(&b, "in_flight_slope", 4, 1.5);
	load_bed_expect(&b, "ttft_slope", 0.2, 0.08);
	assert_true(load_bed_value(&b, "in_flight_slope_low") > 0);
	load_bed_close(&b);
}

static void test_saturation__a_stable_queue(void **state)
{
	struct load_bed b;

	(void)state;
	for (int i = 1; i <= 8; i++) {
		open_queue(&b, 2 * i, 0.05);
		load_bed_expect(&b, "over_saturated", 0, 0);
		load_bed_close(&b);
	}
}

static void test_saturation__a_closed_loop_has_no_verdict(void **state)
{
	struct load_bed b;

	(void)state;
	open_queue(&b, 24, 0.05);
	b.spec.closed_loop = true;
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "over_saturated") || load_bed_has(&b, "in_flight_slope"));
	assert_false(load_bed_has(&b, "offered_rate") || load_bed_has(&b, "due_rate"));
	assert_true(load_bed_has(&b, "in_flight_mean") && load_bed_has(&b, "achieved_rate"));
	load_bed_close(&b);
	load_bed_open(&b, 0, 29, 10); /* too short */
	for (int i = 0; i < 290; i++)
		load_bed_add(&b, 0.1 * i, 0.1 + 0.02 * i, 1000, 2);
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "over_saturated"));
	load_bed_close(&b);
}

static double normal(uint64_t i)
{
	return sqrt(-2 * log(load_bed_uniform(2 * i))) *
	       cos(2 * 3.14159265358979323846 * load_bed_uniform(2 * i + 1));
}

/* Share of series with a true slope of 0.01 whose interval holds it; rho: correlation of neighbours;
 * 1: a random walk. */
static double coverage(double rho)
{
	enum { RUNS = 1000, POINTS = 120 };
	double t[POINTS], y[POINTS];
	size_t held = 0;

	for (uint64_t run = 0; run < RUNS; run++) {
		double e = normal(run * 200);
		struct load_slope s;

		for (uint64_t i = 0; i < POINTS; i++) {
			t[i] = (double)i;
			y[i] = 0.01 * (double)i + e;
			e = rho * e + (rho < 1 ? sqrt(1 - rho * rho) : 0.1) * normal(run * 200 + i + 1);
		}
		s = load_slope_of(t, y, POINTS);
		assert_true(s.known && s.low < s.value && s.value < s.high);
		held += s.low <= 0.01 && 0.01 <= s.high;
	}
	return (double)held / RUNS;
}

static void test_slope__its_interval_covers(void **state)
{
	double c;

	(void)state;
	c = coverage(0);
	assert_true(c > 0.93 && c < 0.99);
	c = coverage(0.6);
	assert_true(c > 0.9 && c < 0.99);
	c = coverage(0.9);
	assert_true(c > 0.9);
	c = coverage(1);
	assert_true(c > 0.9 && c < 0.99);
}

static void test_slope__of_a_straight_line(void **state)
{
	const double t[] = {0, 1, 2, 3, 4, 5}, y[] = {1, 3, 5, 7, 9, 11};
	/* residuals 1 -1 1 -1 1 -1 about the line: slope -6/35 per step, not correlated upwards */
	const double zigzag[] = {1, -1, 1, -1, 1, -1};
	struct load_slope s = load_slope_of(t, y, 6);

	(void)state;
	assert_true(s.known && fabs(s.value - 2) < 1e-12 && fabs(s.low - 2) < 1e-9 &&
		    fabs(s.high - 2) < 1e-9);
	s = load_slope_of(t, zigzag, 6);
	/* s_e^2 = (6 - (6/35)^2 17.5) / 4, t(4) = 2.7764451, half = t s_e / sqrt(17.5) */
	assert_true(s.known && fabs(s.value + 6 / 35.0) < 1e-12);
	assert_float_equal(s.high - s.value, 2.776445105197793 * sqrt((6 - 36 / 1225.0 * 17.5) / 4 / 17.5),
			   1e-9);
	assert_false(load_slope_of(t, y, 4).known);
	assert_false(load_slope_of(t, y, 2).known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trust__a_sound_run_keeps_all_checks),
		cmocka_unit_test(test_lag__above_1_ms_and_2_percent_of_ttft),
		cmocka_unit_test(test_lag__of_a_full_cap_on_connections_is_the_users_choice),
		cmocka_unit_test(test_client__busy_or_late_to_read),
		cmocka_unit_test(test_sends__that_differ_from_the_schedule),
		cmocka_unit_test(test_cache__unexpected_hits),
		cmocka_unit_test(test_usage__that_differs_from_the_counted_tokens),
		cmocka_unit_test(test_usage__of_texts_beyond_their_end_is_a_note),
		cmocka_unit_test(test_lost__events_and_text_are_fewer),
		cmocka_unit_test(test_lost__is_a_note_if_it_may_be_another_reason),
		cmocka_unit_test(test_lost__not_if_the_text_is_whole_or_events_hold_several_tokens),
		cmocka_unit_test(test_usage__beyond_what_was_asked),
		cmocka_unit_test(test_flags__of_a_single_answer),
		cmocka_unit_test(test_notes__of_errors_and_of_an_interrupted_run),
		cmocka_unit_test(test_saturation__a_queue_that_grows),
		cmocka_unit_test(test_saturation__a_stable_queue),
		cmocka_unit_test(test_saturation__a_closed_loop_has_no_verdict),
		cmocka_unit_test(test_slope__its_interval_covers),
		cmocka_unit_test(test_slope__of_a_straight_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
