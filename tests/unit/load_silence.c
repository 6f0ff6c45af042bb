/* SPDX-License-Identifier: Apache-2.0 */
/* Times without telemetry of the server's node: when they are noticed, where they begin and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>
#include "cmd/load/silence.h"
#include "core/json/member.h"

static const uint64_t second_ns = 1000000000, begun_ns = 100000000000;

static uint64_t at(uint64_t seconds)
{
	return begun_ns + seconds * second_ns;
}

static void assert_silence(const struct load_silence *s, size_t i, double from_s, double seconds,
			   const char *cause)
{
	const json_t *one = json_array_get(s->list, i);

	assert_true(fabs(json_member_number(one, "from_s") - from_s) < 1e-9);
	assert_true(fabs(json_member_number(one, "seconds") - seconds) < 1e-9);
	assert_string_equal(json_member_text(one, "cause"), cause);
}

static void test_silence__of_a_node_that_comes_back_and_falls_silent_again(void **state)
{
	struct load_silence s;

	(void)state;
	load_silence_begin(&s, begun_ns);
	assert_false(load_silence_noticed(&s, at(20))); /* it has not begun to send */
	assert_false(load_silence_heard(&s, at(30)));
	assert_false(load_silence_noticed(&s, at(34)));
	assert_true(load_silence_noticed(&s, at(35)));
	assert_false(load_silence_noticed(&s, at(36))); /* it was told already */
	assert_true(load_silence_heard(&s, at(42)));
	assert_false(load_silence_heard(&s, at(43)));
	assert_true(load_silence_noticed(&s, at(50)));
	load_silence_close(&s, at(60));
	assert_int_equal(json_array_size(s.list), 2);
	assert_silence(&s, 0, 30, 12, "silent");
	assert_silence(&s, 1, 43, 17, "silent");
	load_silence_release(&s);
}

static void test_silence__after_the_end_of_the_connection(void **state)
{
	struct load_silence s;

	(void)state;
	load_silence_begin(&s, begun_ns);
	load_silence_heard(&s, at(3));
	load_silence_ended(&s);
	assert_false(load_silence_noticed(&s, at(30)));
	load_silence_close(&s, at(40));
	assert_int_equal(json_array_size(s.list), 1);
	assert_silence(&s, 0, 3, 37, "ended");
	load_silence_release(&s);
}

static void test_silence__of_a_node_that_never_answered(void **state)
{
	struct load_silence s;

	(void)state;
	load_silence_begin(&s, begun_ns);
	load_silence_ended(&s);
	load_silence_close(&s, at(9));
	assert_int_equal(json_array_size(s.list), 1);
	assert_silence(&s, 0, 0, 9, "no answer");
	load_silence_release(&s);
}

static void test_silence__a_node_that_sends_to_the_end_has_none(void **state)
{
	struct load_silence s;

	(void)state;
	load_silence_begin(&s, begun_ns);
	for (uint64_t i = 1; i < 60; i += 4)
		load_silence_heard(&s, at(i));
	load_silence_close(&s, at(60));
	assert_null(s.list);
	load_silence_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence__of_a_node_that_comes_back_and_falls_silent_again),
		cmocka_unit_test(test_silence__after_the_end_of_the_connection),
		cmocka_unit_test(test_silence__of_a_node_that_never_answered),
		cmocka_unit_test(test_silence__a_node_that_sends_to_the_end_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
