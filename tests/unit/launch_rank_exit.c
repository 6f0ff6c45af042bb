/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several exit codes a team ends with. */
#include "test.h"
#include <stdlib.h>
#include "launch/process_group.h"
#include "launch/rank_exit.h"

static void test_told__there_and_back(void **state)
{
	static const int codes[] = {0, 1, 2, 64, 75};
	int told;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		for (int leads = 0; leads < 2; leads++) {
			assert_int_equal(rank_exit_code(rank_exit_of(codes[i], leads)), codes[i]);
			assert_true(rank_exit_by(&told, rank_exit_of(codes[i], leads)));
			assert_int_equal(told, rank_exit_of(codes[i], leads));
			assert_true(rank_exit_of(codes[i], leads) < 128); /* a shell has signals from there on */
		}
	assert_int_equal(rank_exit_of(0, true), 0);
	assert_true(rank_exit_by(&told, 64));
	assert_int_equal(rank_exit_code(told), 64);
	assert_false(rank_exit_by(&told, 255));
	assert_int_equal(rank_exit_code(told), 2);
	assert_int_equal(rank_exit_code(rank_exit_of(255, false)), 2);
}

/* Wait statuses of ranks, and the team's code. */
static int ended_with(const int *status, size_t count)
{
	struct member m[4] = {{.name = "rank 0"}, {.name = "rank 1"}, {.name = "rank 2"}, {.name = "rank 3"}};
	const struct process_group c = {.member = m, .count = count, .log = NULL};

	for (size_t i = 0; i < count; i++)
		m[i].process.wait_status = status[i];
	return rank_exit_code(process_group_exit(&c));
}

#define EXITED(code, leads) (rank_exit_of((code), (leads)) << 8)

static void test_told__of_several_the_largest_counts(void **state)
{
	static const struct {
		int first;
		bool met;
		int others[3], code;
	} rows[] = {
		{0, false, {2, 2, 2}, 2},  {0, true, {2, 0, 0}, 2},    {0, true, {2, 1, 0}, 1},
		{0, true, {2, 1, 64}, 64}, {2, true, {1, 1, 64}, 2},   {1, true, {2, 64, 0}, 1},
		{2, false, {1, 0, 0}, 1},  {2, false, {1, 64, 0}, 64}, {0, true, {0, 0, 0}, 0},
		{64, true, {1, 2, 0}, 64}, {1, false, {2, 2, 2}, 1},   {75, true, {75, 75, 75}, 75},
		{75, true, {2, 1, 75}, 75}, {0, false, {75, 0, 0}, 75}, {75, false, {2, 75, 75}, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int status[4] = {EXITED(rows[i].first, rows[i].met)};

		for (size_t k = 0; k < 3; k++)
			status[k + 1] = EXITED(rows[i].others[k], false);
		assert_int_equal(ended_with(status, 4), rows[i].code);
	}
}

static void test_told__a_signal_is_inconclusive(void **state)
{
	const int killed[] = {0, SIGKILL}, with_failed[] = {EXITED(1, false), SIGKILL},
		  led[] = {EXITED(1, true), SIGSEGV, EXITED(64, false)}, strange[] = {0, 255 << 8};

	(void)state;
	assert_int_equal(ended_with(killed, 2), 2);
	assert_int_equal(ended_with(with_failed, 2), 1);
	assert_int_equal(ended_with(led, 3), 1);
	assert_int_equal(ended_with(strange, 2), 2);
}

/* What a rank starts is not asked again. */
static void test_told__the_question_is_taken_away(void **state)
{
	(void)state;
	unsetenv(RANK_EXIT_VARIABLE);
	assert_false(rank_exit_asked());
	setenv(RANK_EXIT_VARIABLE, "1", 1);
	assert_true(rank_exit_asked());
	assert_null(getenv(RANK_EXIT_VARIABLE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told__there_and_back),
		cmocka_unit_test(test_told__of_several_the_largest_counts),
		cmocka_unit_test(test_told__a_signal_is_inconclusive),
		cmocka_unit_test(test_told__the_question_is_taken_away),
	};

	return cmocka_run_group_tests_name("launch_told", tests, NULL, NULL);
}
