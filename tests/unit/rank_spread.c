/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow and who is waited for, from what each rank timed. */
#include "test.h"
#include <math.h>
#include "run/meter.h"

enum { RANKS = 3, COUNT = 5 };

static void test_rank_spread__the_last_to_begin_has_the_shortest(void **state)
{
	double a[COUNT] = {10, 10, 10, 10, 10}, b[COUNT] = {4, 4, 4, 4, 12}, c[COUNT] = {9, 9, 9, 9, 9};
	double *ns[RANKS] = {a, b, c};
	const struct rank_times t = {.ranks = RANKS, .count = COUNT, .ns = ns};
	struct rank_spread s = rank_spread_of(&t, true);

	(void)state;
	assert_int_equal(s.ranks, RANKS);
	assert_int_equal(s.longest, 0);
	assert_int_equal(s.shortest, 1);
	assert_true(fabs(s.ns_median - 9) < 1e-9);
	assert_true(fabs(s.ns_max - 10) < 1e-9 && fabs(s.ns_min - 5.6) < 1e-9);
	assert_true(s.single);
	assert_int_equal(s.late, 1); /* four of five */
	assert_true(fabs(s.skew_ns - 6) < 1e-9);
	/* ((10 + 4 + 9) / 3 - 4) x 4 + (10 + 12 + 9) / 3 - 9, over 4 x 10 + 12 */
	assert_true(fabs(s.wait_share - (4 * (23.0 / 3 - 4) + (31.0 / 3 - 9)) / 52) < 1e-9);
}

static void test_rank_spread__batches_say_nothing_of_waiting_and_nothing_nothing(void **state)
{
	double a[COUNT] = {3, 1, 1, 3, 1}, b[COUNT] = {1, 3, 3, 1, 1};
	double *ns[2] = {a, b};
	struct rank_times t = {.ranks = 2, .count = COUNT, .ns = ns};
	struct rank_spread s = rank_spread_of(&t, false);

	(void)state;
	assert_false(s.single);
	assert_int_equal(s.late, -1);
	s = rank_spread_of(&t, true);
	assert_true(s.single);
	assert_int_equal(s.late, -1); /* three of five against two */
	t.count = 0;
	assert_int_equal(rank_spread_of(&t, true).ranks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_spread__the_last_to_begin_has_the_shortest),
		cmocka_unit_test(test_rank_spread__batches_say_nothing_of_waiting_and_nothing_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
