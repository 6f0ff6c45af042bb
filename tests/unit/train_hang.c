/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a rank's end that the records do not explain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cmd/train/hang.h"

static void test_hang__a_hang_may_be_due_to_another_rank(void **state)
{
	char out[512];

	(void)state;
	train_hang_other(out, sizeof(out), 2, "node-b", "the training process was ended as hung", true);
	assert_string_equal(
		out, "rank 2 on node-b: the training process was ended as hung; the ranks' records do not "
		     "show which one of them hangs");
}

static void test_hang__another_time_limit_says_what_it_waited_for(void **state)
{
	char out[512];

	(void)state;
	train_hang_other(out, sizeof(out), 2, "node-b", "node-a, port 4711: Connection timed out", false);
	assert_string_equal(out, "rank 2 on node-b: node-a, port 4711: Connection timed out");
	train_hang_other(out, sizeof(out), 2, "node-b", "rank 1 did not join within 120.0 s", false);
	assert_string_equal(out, "rank 1 did not join within 120.0 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hang__a_hang_may_be_due_to_another_rank),
		cmocka_unit_test(test_hang__another_time_limit_says_what_it_waited_for),
	};

	return cmocka_run_group_tests_name("train_hang", tests, NULL, NULL);
}
