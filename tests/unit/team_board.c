/* SPDX-License-Identifier: Apache-2.0 */
/* What the board of ranks says after a hang: who waited where, and for how long. */
#include "test.h"
#include "core/clock.h"
#include "team/team.h"

static void stand(struct team_board *b, unsigned rank, enum team_op op, uint64_t since_ns)
{
	team_board_take(b, rank);
	team_at(b, op);
	b->since_ns = since_ns;
}

static void test_team_links__the_board_says_who_waited_where(void **state)
{
	struct team_board b[8] = {0};
	char text[256];

	(void)state;
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "");
	for (unsigned r = 0; r < 3; r++)
		stand(&b[r], r, TEAM_OP_AGREE, 5000000000u + r);
	stand(&b[3], 3, TEAM_OP_INIT, 4900000000u);
	stand(&b[4], 6, TEAM_OP_AGREE, 5000000000u);
	stand(&b[5], 5, TEAM_OP_IDLE, 5000000000u);
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "rank 3 waited 4.1 s in making the communicator, "
				  "ranks 0, 1, 2, 6 waited 4.0 s in agreeing with the other ranks");
	b[0].op = 4711; /* garbage says nothing */
	b[1].since_ns = UINT64_MAX;
	b[2].used = 7;
	b[4].rank = 0xffffffff;
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "rank 3 waited 4.1 s in making the communicator");
}

/* One that another's end has just let go: what it waited for is told, not the moment since. */
static void test_team_links__the_board_keeps_a_long_wait(void **state)
{
	struct team_board b[2] = {0};
	uint64_t now = clock_now_ns(clock_monotonic());
	char text[256];

	(void)state;
	stand(&b[0], 0, TEAM_OP_AGREE, now - 4000000000u);
	team_at(&b[0], TEAM_OP_COMMAND);
	stand(&b[1], 1, TEAM_OP_AGREE, now - TEAM_LONG_NS / 2);
	team_at(&b[1], TEAM_OP_RELEASE);
	b[0].since_ns = b[0].long_end_ns = now;
	b[1].since_ns = now - 100000000u;
	now += 100000000u;
	team_board_text(text, sizeof(text), b, 2, now);
	assert_string_equal(text, "rank 1 waited 0.2 s in releasing, "
				  "rank 0 waited 4.0 s in agreeing with the other ranks");
	b[1].used = 0;
	team_board_text(text, sizeof(text), b, 2, now + 60000000000u); /* long ago: nobody's reason */
	assert_string_equal(text, "rank 0 waited 60.1 s in waiting for a command from rank 0");
	b[0].long_op = 4711;
	team_board_text(text, sizeof(text), b, 2, now);
	assert_string_equal(text, "");
}

/* A call of NVML that has not returned, whoever of the ranks made it. */
static void test_team_links__the_board_names_a_call_that_did_not_return(void **state)
{
	struct team_board b[4] = {0};

	(void)state;
	assert_string_equal(team_board_call(b, 4), "");
	team_call(&b[2], TEAM_CALL_INIT);
	assert_string_equal(team_board_call(b, 4), "nvmlInit_v2");
	assert_string_equal(team_board_call(b, 2), "");
	team_call(&b[2], TEAM_CALL_NONE);
	assert_string_equal(team_board_call(b, 4), "");
	b[1].call = 4711; /* garbage says nothing */
	assert_string_equal(team_board_call(b, 4), "");
	team_call(NULL, TEAM_CALL_INIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_team_links__the_board_says_who_waited_where),
		cmocka_unit_test(test_team_links__the_board_keeps_a_long_wait),
		cmocka_unit_test(test_team_links__the_board_names_a_call_that_did_not_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
