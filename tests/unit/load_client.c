/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a sender takes requests, the time limits of those under way, the search of a sweep, and
 * the counts of times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>
#include "load/client/agenda.h"
#include "load/client/flight.h"
#include "load/client/times.h"
#include "load/run/sweep.h"

enum { MS = 1000000 };

/* Two single requests and two conversations of three turns. */
static struct load_request requests[] = {
	{.at_ns = 0, .session = 0},
	{.at_ns = 5 * MS, .session = 1, .turn = 0},
	{.at_ns = LOAD_AFTER, .think_ns = 10 * MS, .session = 1, .turn = 1},
	{.at_ns = LOAD_AFTER, .think_ns = 0, .session = 1, .turn = 2},
	{.at_ns = 7 * MS, .session = 2},
	{.at_ns = 9 * MS, .session = 3, .turn = 0},
	{.at_ns = LOAD_AFTER, .think_ns = 1 * MS, .session = 3, .turn = 1},
};
static const struct load_plan plan = {
	.request = requests, .count = sizeof(requests) / sizeof(requests[0]), .sessions = 4};

static struct agenda *make(unsigned thread, unsigned threads)
{
	struct agenda *a;
	struct error err = {0};

	assert_int_equal(agenda_create(&a, &plan, 100 * MS, thread, threads, &err), STATUS_OK);
	return a;
}

static size_t take(struct agenda *a, uint64_t now_ns, uint64_t due_ns)
{
	const struct load_request *r = NULL;
	uint64_t due;

	assert_true(agenda_take(a, now_ns, &r, &due));
	assert_int_equal(due, due_ns);
	return (size_t)(r - requests);
}

static void in_order_of_time(void **state)
{
	struct agenda *a = make(0, 1);
	const struct load_request *r;
	uint64_t due;

	(void)state;
	assert_int_equal(agenda_due(a), 100 * MS);
	assert_false(agenda_take(a, 100 * MS - 1, &r, &due));
	assert_int_equal(take(a, 100 * MS, 100 * MS), 0);
	assert_ptr_equal(agenda_next(a), &requests[1]);
	assert_int_equal(take(a, 200 * MS, 105 * MS), 1); /* late: due when it was due */
	assert_int_equal(take(a, 200 * MS, 107 * MS), 4);
	assert_int_equal(take(a, 200 * MS, 109 * MS), 5);
	assert_int_equal(agenda_due(a), UINT64_MAX); /* the rest waits for answers */
	assert_null(agenda_next(a));
	assert_int_equal(agenda_answered(a, &requests[0], 300 * MS, true), 0);
	assert_int_equal(agenda_due(a), UINT64_MAX); /* a session of one request */
	agenda_destroy(&a);
	assert_null(a);
}

static void a_turn_waits_for_its_answer(void **state)
{
	struct agenda *a = make(0, 1);

	(void)state;
	for (int i = 0; i < 4; i++)
		take(a, UINT64_MAX, (uint64_t)(100 * MS) + requests[(int[]){0, 1, 4, 5}[i]].at_ns);
	assert_int_equal(agenda_answered(a, &requests[5], 150 * MS, true), 0);
	assert_int_equal(agenda_answered(a, &requests[1], 148 * MS, true), 0);
	assert_int_equal(take(a, UINT64_MAX, 151 * MS), 6);
	assert_int_equal(take(a, UINT64_MAX, 158 * MS), 2);
	assert_int_equal(agenda_answered(a, &requests[2], 170 * MS, true), 0);
	assert_int_equal(take(a, UINT64_MAX, 170 * MS), 3);
	assert_int_equal(agenda_answered(a, &requests[3], 180 * MS, true), 0);
	assert_int_equal(agenda_due(a), UINT64_MAX);
	agenda_destroy(&a);
}

static void a_failed_turn_drops_the_rest(void **state)
{
	struct agenda *a = make(0, 1);

	(void)state;
	take(a, UINT64_MAX, 100 * MS);
	take(a, UINT64_MAX, 105 * MS);
	assert_int_equal(agenda_answered(a, &requests[1], 148 * MS, false), 2);
	assert_int_equal(agenda_answered(a, &requests[0], 148 * MS, false), 0);
	agenda_destroy(&a);
}

/* A user of a closed loop has one conversation after the other. */
static void a_user_begins_another_conversation(void **state)
{
	static struct load_request of_user[] = {
		{.at_ns = 0},
		{.at_ns = LOAD_AFTER, .turn = 1},
		{.at_ns = LOAD_AFTER, .turn = 2},
		{.at_ns = LOAD_AFTER, .think_ns = 3 * MS},
		{.at_ns = LOAD_AFTER, .turn = 1},
	};
	const struct load_plan loop = {.request = of_user, .count = 5, .sessions = 1};
	const struct load_request *r;
	struct error err = {0};
	struct agenda *a;
	uint64_t due;

	(void)state;
	assert_int_equal(agenda_create(&a, &loop, 0, 0, 1, &err), STATUS_OK);
	assert_true(agenda_take(a, 0, &r, &due));
	assert_int_equal(agenda_answered(a, r, 10 * MS, false), 2);
	assert_true(agenda_take(a, 13 * MS, &r, &due));
	assert_ptr_equal(r, &of_user[3]);
	assert_int_equal(due, 13 * MS);
	agenda_destroy(&a);
}

static void threads_share_the_sessions(void **state)
{
	struct agenda *even = make(0, 2), *odd = make(1, 2);

	(void)state;
	assert_int_equal(take(even, UINT64_MAX, 100 * MS), 0);
	assert_int_equal(take(even, UINT64_MAX, 107 * MS), 4);
	assert_int_equal(agenda_due(even), UINT64_MAX);
	assert_int_equal(take(odd, UINT64_MAX, 105 * MS), 1);
	assert_int_equal(take(odd, UINT64_MAX, 109 * MS), 5);
	assert_int_equal(agenda_answered(odd, &requests[5], 200 * MS, true), 0);
	assert_int_equal(take(odd, UINT64_MAX, 201 * MS), 6);
	agenda_destroy(&even);
	agenda_destroy(&odd);
}

/* Searches with a server that meets rates up to `capacity`. */
static void search(struct sweep *s, double saturated, double capacity)
{
	double rate;

	sweep_begin(s, saturated);
	while ((rate = sweep_next(s)) > 0)
		sweep_take(s, rate, rate <= capacity, rate <= 0.9 * capacity);
}

static void a_sweep_finds_the_rate(void **state)
{
	struct sweep s;

	(void)state;
	for (double capacity = 5; capacity < 300; capacity += 1) { /* also more than the closed loop showed */
		search(&s, 100, capacity);
		assert_true(s.low <= capacity && s.high > capacity);
		assert_true(s.high - s.low <= 0.05 * s.high || s.stages == SWEEP_STAGES_MOST);
		assert_true(s.stages <= SWEEP_STAGES_MOST);
		assert_true(s.sure <= 0.9 * capacity && s.sure <= s.low);
	}
	search(&s, 100, 10000); /* no missed rate is made up */
	assert_true(s.low > 800 && !(s.high > 0));
	assert_int_equal(s.stages, SWEEP_STAGES_MOST);
	search(&s, 100, 0); /* nothing meets the limits */
	assert_true(!(s.low > 0) && s.high < 1 && !(s.sure > 0));
	search(&s, 0, 10);
	assert_int_equal(s.stages, 0);
}

static void a_rate_is_sure_by_the_low_ends_of_all_sets(void **state)
{
	static const struct {
		double low, low_of_second;
		double attainment;
		bool sure;
	} rows[] = {{0.991, 0.995, 0.99, true},
		    {0.985, 0.995, 0.99, false}, /* its share of 0.998 alone meets it */
		    {0.995, 0.985, 0.99, false},
		    {0.9, 0.9, 1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *values =
			json_pack("{s:[{s:f, s:f, s:f}, {s:f, s:f, s:f}]}", "slo", "attainment",
				  rows[i].attainment, "share", 0.998, "share_low", rows[i].low, "attainment",
				  rows[i].attainment, "share", 0.998, "share_low", rows[i].low_of_second);

		assert_non_null(values);
		assert_int_equal(sweep_is_sure(values), rows[i].sure);
		json_decref(values);
	}
	assert_false(sweep_is_sure(NULL));
}

static void times_give_quantiles(void **state)
{
	struct load_times t = {0}, other = {0};

	(void)state;
	assert_true(isnan(load_times_quantile(&t, 0.5)));
	for (unsigned ms = 1; ms <= 1000; ms++)
		load_times_add(ms % 2 ? &t : &other, ms * (uint64_t)MS);
	load_times_merge(&t, &other);
	assert_int_equal(t.count, 1000);
	assert_true(fabs(load_times_quantile(&t, 0.5) / 0.5 - 1) < 0.05);
	assert_true(fabs(load_times_quantile(&t, 0.99) / 0.99 - 1) < 0.05);
	load_times_add(&t, 0); /* the ends of the range */
	load_times_add(&t, UINT64_MAX);
	assert_int_equal(t.bucket[0], 1);
	assert_int_equal(t.bucket[LOAD_TIMES_BUCKETS - 1], 1);
}

static const struct http_options limits = {.connect_ms = 10, .request_ms = 100};

static void begin(struct flight_list *l, struct flight *f, uint64_t now_ns)
{
	*f = (struct flight){.record.sent_ns = LOAD_NEVER};
	flight_list_add(l, f, now_ns);
}

static void ends(struct flight_list *l, const struct flight *f, uint64_t end_ns)
{
	uint64_t found_ns = 0;

	assert_ptr_equal(flight_list_limit(l, &limits, &found_ns), f);
	assert_int_equal(found_ns, end_ns);
}

static void a_connection_has_a_limit_until_the_request_is_sent(void **state)
{
	struct flight_list l = {0};
	struct flight a, b;

	(void)state;
	ends(&l, NULL, UINT64_MAX);
	begin(&l, &a, 1 * MS);
	begin(&l, &b, 2 * MS);
	ends(&l, &a, 11 * MS);
	a.record.sent_ns = 3 * MS;
	ends(&l, &b, 12 * MS);
	b.record.sent_ns = 4 * MS;
	ends(&l, &a, 101 * MS);
	flight_list_remove(&l, &a);
	ends(&l, &b, 102 * MS);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.most, 2);
	b.resending = true; /* on a new connection, from now on */
	flight_list_remove(&l, &b);
	ends(&l, NULL, UINT64_MAX);
	flight_list_add(&l, &b, 50 * MS);
	ends(&l, &b, 60 * MS);
	b.resending = false;
	ends(&l, &b, 150 * MS);
}

static void no_limit_is_none(void **state)
{
	const struct http_options none = {0};
	struct flight_list l = {0};
	struct flight a;
	uint64_t end_ns = 0;

	(void)state;
	begin(&l, &a, 1 * MS);
	flight_list_limit(&l, &none, &end_ns);
	assert_true(end_ns == UINT64_MAX);
}

enum { FLIGHTS = 40, STEPS = 20000 };

static uint64_t least_end(const struct flight *all, const bool *in)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < FLIGHTS; i++) {
		const bool sent = all[i].record.sent_ns != LOAD_NEVER;
		const uint64_t end_ns = all[i].begun_ns + (uint64_t)(sent ? 100 : 10) * MS;

		if (in[i] && end_ns < least_ns)
			least_ns = end_ns;
	}
	return least_ns;
}

/* Flights begin, are sent and end in any order. */
static void the_first_limit_is_that_of_a_search(void **state)
{
	struct flight_list l = {0};
	struct flight all[FLIGHTS] = {0};
	bool in[FLIGHTS] = {0};
	uint32_t draw = 1;

	(void)state;
	for (uint64_t step = 1; step <= STEPS; step++) {
		uint64_t end_ns;
		int i;

		draw = draw * 1664525 + 1013904223;
		i = (int)(draw >> 16) % FLIGHTS;
		if (!in[i])
			begin(&l, &all[i], step * MS);
		else if (all[i].record.sent_ns == LOAD_NEVER && draw >> 31)
			all[i].record.sent_ns = step * MS;
		else
			flight_list_remove(&l, &all[i]);
		in[i] = !in[i] || (all[i].record.sent_ns == step * (uint64_t)MS);
		flight_list_limit(&l, &limits, &end_ns);
		assert_true(end_ns == least_end(all, in));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_of_time),
		cmocka_unit_test(a_turn_waits_for_its_answer),
		cmocka_unit_test(a_failed_turn_drops_the_rest),
		cmocka_unit_test(a_user_begins_another_conversation),
		cmocka_unit_test(threads_share_the_sessions),
		cmocka_unit_test(a_rate_is_sure_by_the_low_ends_of_all_sets),
		cmocka_unit_test(a_sweep_finds_the_rate),
		cmocka_unit_test(times_give_quantiles),
		cmocka_unit_test(a_connection_has_a_limit_until_the_request_is_sent),
		cmocka_unit_test(no_limit_is_none),
		cmocka_unit_test(the_first_limit_is_that_of_a_search),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
