/* SPDX-License-Identifier: Apache-2.0 */
/* How long a rank waits for the others before a line of the suite: control_line is the test's own. */
#include "test.h"

#include "run/supervisor/supervisor.h"
#include "team/control/control.h"

enum { SLACK_MS = 15000, END_MS = 10000 };
static struct {
	unsigned round, line, work_ms, limit_ms; /* as the run asked */
	unsigned most_ms;			 /* answered; 0: what it said itself */
	unsigned calls;
} asked;

enum status __wrap_control_line(struct control *c, unsigned round, unsigned line, unsigned *work_ms,
				unsigned limit_ms, struct error *err);
enum status __wrap_control_line(struct control *c, unsigned round, unsigned line, unsigned *work_ms,
				unsigned limit_ms, struct error *err)
{
	(void)c, (void)err;
	asked.round = round;
	asked.line = line;
	asked.work_ms = *work_ms;
	asked.limit_ms = limit_ms;
	asked.calls++;
	if (asked.most_ms > *work_ms)
		*work_ms = asked.most_ms;
	return STATUS_OK;
}

/* Line 1 has a case that is skipped here, where another node measures 56 pairs of 60 s. */
static void test_team_wait__for_the_rank_that_has_most_to_do(void **state)
{
	struct bench_case cases[] = {{.line = 1, .limit_ms = 60000, .skip = STATUS_UNSUPPORTED},
				     {.line = 2, .limit_ms = 20000},
				     {.line = 2, .limit_ms = 5000},
				     {.line = 3, .limit_ms = 5000}};
	struct step step = {.cases = cases, .count = 4};
	const struct plan plan = {.steps = &step, .count = 1};
	int there = 0;
	const struct run_options o = {.control = (struct control *)&there};
	struct run r = {.plan = &plan, .o = &o};

	(void)state;
	asked.most_ms = 56 * (60000 + END_MS);
	team_line(&r, &cases[0]);
	assert_int_equal(asked.round, 1);
	assert_int_equal(asked.line, 1);
	assert_int_equal(asked.work_ms, 60000 + END_MS);
	assert_int_equal(asked.limit_ms, SLACK_MS); /* nothing was to be done before it */
	asked.most_ms = 0;
	team_line(&r, &cases[1]);
	assert_int_equal(asked.line, 2);
	assert_int_equal(asked.limit_ms, SLACK_MS + 56 * (60000 + END_MS));
	assert_int_equal(asked.work_ms, 25000 + 2 * END_MS);
	team_line(&r, &cases[2]); /* stands there */
	assert_int_equal(asked.calls, 2);
	team_line(&r, &cases[3]);
	assert_int_equal(asked.limit_ms, SLACK_MS + 25000 + 2 * END_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_team_wait__for_the_rank_that_has_most_to_do),
	};

	return cmocka_run_group_tests_name("team_wait", tests, NULL, NULL);
}
