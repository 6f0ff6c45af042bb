/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths as people write them, their limits, and what is refused. */
#include "test.h"

#include "load/plan/length.h"

static struct load_length_spec good(const char *text)
{
	struct load_length_spec s;
	struct error err = {0};

	if (load_length_read(&s, text, &err))
		fail_msg("%s: %s", text, err.text);
	return s;
}

static void test_load_length__forms(void **state)
{
	struct load_length_spec s = good("1000");

	(void)state;
	assert_true(s.kind == LOAD_FIXED && s.mean == 1000);
	s = good("uniform:500,1500");
	assert_true(s.kind == LOAD_UNIFORM && s.min == 500 && s.max == 1500 && s.mean == 1000 &&
		    s.spread == 500);
	s = good("normal:1000,200.5");
	assert_true(s.kind == LOAD_NORMAL && s.mean == 1000 && s.spread == 200.5 && s.min == 1 &&
		    s.max == LOAD_TOKENS_MOST);
	s = good("lognormal:1000,300,20");
	assert_true(s.kind == LOAD_LOGNORMAL && s.min == 20 && s.max == LOAD_TOKENS_MOST);
	s = good("lognormal:1000,300,20,4000");
	assert_true(s.min == 20 && s.max == 4000);
}

static void test_load_length__what_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"0",
		"1.5",
		"-1",
		"10000001",
		"nan",
		"1000,200",
		"uniform:5",
		"uniform:5,4",
		"uniform:0,4",
		"uniform:1.5,4",
		"uniform:1,2,3",
		"normal:1000",
		"normal:1000,-1",
		"normal:nan,1",
		"normal:0,1",
		"normal:5,1,0",
		"normal:5,1,9,8",
		"normal:5,1,2,3,4",
		"poisson:5",
		"normal:5,1,",
		"normal:5,,1",
		"1000 tokens",
		"normal:5,1,2.5",
		"normal:1e99,1",
		"fixed:5",
		"lognormal:5,00000000000000000000000000000000000000000000000000000000000000001",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct load_length_spec s;
		struct error err = {0};
		char want[120];

		if (load_length_read(&s, bad[i], &err) != STATUS_BAD_INPUT)
			fail_msg("%s was read", bad[i]);
		snprintf(want, sizeof(want), "\"%.60s\" is not a length in tokens", bad[i]);
		assert_non_null(strstr(err.text, want));
	}
}

static void test_load_length__values_are_clamped(void **state)
{
	struct load_length_spec s = good("normal:100,1000,50,150");
	size_t low = 0, high = 0;
	struct draw d;

	(void)state;
	draw_begin(&d, 1, DRAW_INPUT);
	for (int i = 0; i < 1000; i++) {
		uint32_t tokens = load_length_draw(&s, &d);

		assert_true(tokens >= 50 && tokens <= 150);
		low += tokens == 50;
		high += tokens == 150;
	}
	assert_true(low > 300 && high > 300);
	s = good("normal:7,0");
	assert_int_equal(load_length_draw(&s, &d), 7);
	s = good("lognormal:7,0");
	assert_int_equal(load_length_draw(&s, &d), 7);
	s = good("uniform:3,3");
	assert_int_equal(load_length_draw(&s, &d), 3);
}

/* The generator is Philox (Salmon et al.); its first words for seed 0 and counter 0 are in Random123's list
 * of known answers. */
static void test_load_draw__known_words(void **state)
{
	struct draw d, again;

	(void)state;
	draw_begin(&d, 0, 0);
	assert_true(draw_u64(&d) == 0x6627e8d5e169c58du);
	assert_true(draw_u64(&d) == 0xbc57ac4c9b00dbd8u);
	draw_begin(&d, 5, DRAW_INPUT);
	draw_begin(&again, 5, DRAW_OUTPUT);
	assert_true(draw_u64(&d) != draw_u64(&again));
	for (int i = 0; i < 1000; i++) {
		double u = draw_uniform(&d);

		assert_true(u > 0 && u < 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_length__forms),
		cmocka_unit_test(test_load_length__what_is_refused),
		cmocka_unit_test(test_load_length__values_are_clamped),
		cmocka_unit_test(test_load_draw__known_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
