/* SPDX-License-Identifier: Apache-2.0 */
/* Of two members: what each does by itself, and the two directions between them. */
#include "test.h"

#include <math.h>
#include "run/isolate/search_two.h"

static struct isolate_search_two two(const struct isolate_search_two_row *rows, size_t count)
{
	struct isolate_search_two out;

	isolate_search_two(&out, rows, count);
	return out;
}
#define TWO(...)                                                                                             \
	two((const struct isolate_search_two_row[]){__VA_ARGS__},                                                    \
	    sizeof((const struct isolate_search_two_row[]){__VA_ARGS__}) / sizeof(struct isolate_search_two_row))

static void test_two__alike_names_nobody(void **state)
{
	struct isolate_search_two t = TWO({"copies", true, false, {391, 394}, {0}, {0}},
				  {"reads", false, true, {4.62, 4.60}, {0}, {0}},
				  {"multiplies", false, true, {755, 722}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
	assert_null(t.shows);
}

static void test_two__the_one_that_is_slow_by_itself(void **state)
{
	struct isolate_search_two t = TWO({"copies", true, false, {391, 394}, {0}, {0}},
				  {"reads", false, true, {4.62, 3.1}, {0}, {0}},
				  {"multiplies", false, true, {755, 401}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_int_equal(t.a, 1);
	assert_string_equal(t.shows->what, "multiplies");
	assert_true(fabs(t.loss - (1 - 401.0 / 755)) < 1e-12);
}

static void test_two__the_one_that_is_not_done_in_time(void **state)
{
	struct isolate_search_two t = TWO({"reads", false, true, {4.62, 0}, .late = {false, true}});
	struct isolate_search_two both = TWO({"reads", false, true, {0, 0}, .late = {true, true}});
	struct isolate_search_two copies = TWO({"copies", true, false, {391, 0}, .late = {false, true}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_int_equal(t.a, 1);
	assert_int_equal(both.found, ISOLATE_SEARCH_NOBODY);
	assert_int_equal(copies.found, ISOLATE_SEARCH_NOBODY);
}

static void test_two__a_slow_direction_is_the_links(void **state)
{
	/* The kernels that go that way are as slow: that says nothing of who runs them. */
	struct isolate_search_two t = TWO({"copies", true, false, {391, 196}, {0}, {0}},
				  {"reads", false, true, {4.62, 4.6}, {0}, {0}},
				  {"stores", false, false, {380, 190}, {0}, {0}},
				  {"loads", false, false, {190, 380}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_PAIR);
	assert_int_equal(t.a, 1);
	assert_int_equal(t.b, 0);
}

/* A busy GPU slows the copies that it takes part in, one way more than the other. */
static void test_two__what_one_does_alone_explains_its_copies(void **state)
{
	struct isolate_search_two t = TWO({"copies", true, false, {391, 300}, {0}, {0}},
				  {"reads", false, true, {2.9, 4.6}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_int_equal(t.a, 0);
}

static void test_two__what_contradicts_itself_names_nobody(void **state)
{
	struct isolate_search_two t = TWO({"reads", false, true, {4.6, 3.1}, {0}, {0}},
				  {"multiplies", false, true, {401, 755}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
}

static void test_two__wrong_data_goes_before_all_else(void **state)
{
	struct isolate_search_two t = TWO({"copies", true, false, {391, 196}, {0}, {0}},
				  {"multiplies", false, true, {755, 754}, {false, true}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_int_equal(t.a, 1);
	t = TWO({"copies", true, false, {391, 390}, {true, false}, {0}});
	assert_int_equal(t.found, ISOLATE_SEARCH_PAIR);
	assert_int_equal(t.a, 0);
	t = TWO({"copies", true, false, {391, 390}, {true, true}, {0}});
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
}

/* What one gives, and what arrives: rows without a figure. */
static void test_two__whose_part_is_wrong_is_named(void **state)
{
	struct isolate_search_two t = TWO({"gives", false, false, {0}, {true, false}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_int_equal(t.a, 0);
	t = TWO({"gives", false, false, {0}, {0}, {0}}, {"arrives", true, false, {0}, {false, true}, {0}});
	assert_int_equal(t.found, ISOLATE_SEARCH_PAIR);
	assert_int_equal(t.a, 1);
	assert_int_equal(t.b, 0);
	t = TWO({"gives", false, false, {0}, {true, true}, {0}}); /* once the one's, once the other's */
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
}

static void test_two__what_was_not_measured_says_nothing(void **state)
{
	struct isolate_search_two t =
		TWO({"copies", true, false, {391, 0}, {0}, {0}}, {"reads", false, true, {0, 3.1}, {0}, {0}},
		    {"multiplies", false, true, {NAN, 401}, {0}, {0}});

	(void)state;
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
	isolate_search_two(&t, NULL, 0);
	assert_int_equal(t.found, ISOLATE_SEARCH_NOBODY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two__alike_names_nobody),
		cmocka_unit_test(test_two__the_one_that_is_slow_by_itself),
		cmocka_unit_test(test_two__the_one_that_is_not_done_in_time),
		cmocka_unit_test(test_two__a_slow_direction_is_the_links),
		cmocka_unit_test(test_two__what_one_does_alone_explains_its_copies),
		cmocka_unit_test(test_two__what_contradicts_itself_names_nobody),
		cmocka_unit_test(test_two__wrong_data_goes_before_all_else),
		cmocka_unit_test(test_two__whose_part_is_wrong_is_named),
		cmocka_unit_test(test_two__what_was_not_measured_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
