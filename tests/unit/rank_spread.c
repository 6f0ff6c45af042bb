/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow and who is waited for, from what each rank timed. */
#include "test.h"
#include <math.h>
#include "run/meter/meter.h"

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

/* Two ranks that take turns in being late: no iteration of theirs took 12. */
static void test_rank_row__samples_add_up_to_what_the_last_rank_took(void **state)
{
	double a[COUNT] = {99, 12, 8, 12, 8}, b[COUNT] = {99, 8, 12, 8, 13};
	double *ns[2] = {a, b};
	const struct rank_times t = {.ranks = 2, .count = COUNT, .ns = ns};
	struct sample s[COUNT] = {{.ns = 99, .batch = 1}, {.batch = 2}, {.batch = 2}, {.batch = 2}, {.batch = 1}};
	double sum = 0;

	(void)state;
	rank_row_samples(&t, 1, s);
	assert_true(fabs(s[0].ns - 99) < 1e-9); /* of the row before */
	assert_true(fabs(s[1].ns - 12) < 1e-9);
	assert_true(fabs(s[2].ns - 8) < 1e-9);	/* both have done it at 40 */
	assert_true(fabs(s[3].ns - 12) < 1e-9); /* 64 and 56 */
	assert_true(fabs(s[4].ns - 8) < 1e-9);	/* 72 and 69 */
	for (int k = 1; k < COUNT; k++)
		sum += s[k].ns * (double)s[k].batch;
	assert_true(fabs(sum - 72) < 1e-9);
	assert_int_equal(s[2].batch, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_spread__the_last_to_begin_has_the_shortest),
		cmocka_unit_test(test_rank_spread__batches_say_nothing_of_waiting_and_nothing_nothing),
		cmocka_unit_test(test_rank_row__samples_add_up_to_what_the_last_rank_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
