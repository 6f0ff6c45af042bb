/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "core/text/units.h"

static void test_units__numbers_with_units_parse(void **state)
{
	static const struct {
		const char *text, *unit;
		double value;
	} rows[] = {
		{"250ms", "s", 0.25}, {"250 ms", "s", 0.25}, {"1.5 h", "min", 90},	 {"2", "ms", 2},
		{"1s", "ns", 1e9},    {"-3", "", -3},	     {"1e30", "", 1e30},	 {".5", "", 0.5},
		{"5.", "", 5},	      {"1GB", "B", 1e9},     {"1G", "B", 1073741824},	 {"2KiB", "B", 2048},
		{"700W", "W", 700},   {"0.7kW", "W", 700},   {"1.98 GHz", "Hz", 1.98e9}, {"85 C", "C", 85},
		{"1E2", "", 100},     {"+7", "", 7},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		double value = NAN;

		assert_int_equal(units_parse(&value, rows[i].text, rows[i].unit, &err), STATUS_OK);
		assert_float_equal(value / rows[i].value, 1, 1e-14);
	}
}

static void test_units__what_is_no_finite_number_is_refused(void **state)
{
	static const char *const texts[][2] = {
		{"", ""},	{"nan", ""},   {"NaN", "s"},	 {"inf", ""},	    {"-inf", "W"},
		{"0x10", ""},	{"1e999", ""}, {"1e308h", "ns"}, {"1 ", ""},	    {" 1", ""},
		{"1  ms", "s"}, {"5 kb", "B"}, {"5 s", "B"},	 {"12 apples", ""}, {"--1", ""},
		{"1e", ""},	{".", ""},     {"1,5", ""},	 {"85 F", "C"},	    {"1_000", ""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error err = {0};
		double value = 42;

		assert_int_equal(units_parse(&value, texts[i][0], texts[i][1], &err), STATUS_BAD_INPUT);
		assert_true(err.text[0]);
		assert_true(value == 42);
	}
}

static void test_units__integers_are_exact(void **state)
{
	static const struct {
		const char *text, *unit;
		uint64_t value;
	} rows[] = {
		{"18446744073709551615", "", UINT64_MAX},
		{"9007199254740993", "", 9007199254740993u},
		{"1.5GiB", "B", 1610612736},
		{"0.001kB", "B", 1},
		{"8e3", "", 8000},
		{"1000e-3", "", 1},
		{"0", "B", 0},
		{"0e99", "", 0},
		{"000012.500e1", "", 125},
		{"16777215TiB", "B", 16777215ull << 40},
		{"2min", "s", 120},
		{"3000 ns", "us", 3},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		uint64_t value = 7;

		assert_int_equal(units_parse_u64(&value, rows[i].text, rows[i].unit, &err), STATUS_OK);
		assert_true(value == rows[i].value);
	}
}

static void test_units__integers_refuse_what_they_cannot_hold(void **state)
{
	static const char *const texts[][2] = {
		{"1e30", ""},
		{"-1", ""},
		{"-0", ""},
		{"1.5", ""},
		{"0.5B", "B"},
		{"nan", ""},
		{"1e-30", ""},
		{"1ns", "us"},
		{"18446744073709551616", ""},
		{"16777216TiB", "B"},
		{"1e9223372036854775807", ""},
		{"1e99999999999999999999", ""},
		{"1e-99999999999999999999", ""},
		{"0.1e-9223372036854775808", ""},
		{"100000000000000000000001", ""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error err = {0};
		uint64_t value = 7;

		assert_int_equal(units_parse_u64(&value, texts[i][0], texts[i][1], &err), STATUS_BAD_INPUT);
		assert_true(value == 7);
	}
}

static void test_units__for_people_three_digits_and_a_prefix(void **state)
{
	static const struct {
		double value;
		const char *unit, *text;
	} rows[] = {
		{4.8123e12, "B/s", "4.81 TB/s"},
		{61e12, "FLOPS", "61.0 TFLOPS"},
		{12300, "ns", "12.3 us"},
		{999.7, "W", "1.00 kW"},
		{0, "B/s", "0 B/s"},
		{0.25, "W", "250 mW"},
		{3600, "s", "3600 s"},
		{8192, "", "8192"},
		{0.98765, "", "0.988"},
		{42, "C", "42 C"},
		{-1500, "B", "-1.50 kB"},
		{NAN, "W", "nan"},
		{-INFINITY, "W", "-inf"},
		{0.5, "ns", "0.500 ns"},
		{1.98e9, "Hz", "1.98 GHz"},
		{1e6, "1/s", "1.00 M/s"},
		{1, "s", "1.00 s"},
		{0.001, "s", "1.00 ms"},
		{999e-6, "s", "999 us"},
	};
	char text[32];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		units_format(text, sizeof(text), rows[i].value, rows[i].unit);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units__numbers_with_units_parse),
		cmocka_unit_test(test_units__what_is_no_finite_number_is_refused),
		cmocka_unit_test(test_units__integers_are_exact),
		cmocka_unit_test(test_units__integers_refuse_what_they_cannot_hold),
		cmocka_unit_test(test_units__for_people_three_digits_and_a_prefix),
	};

	return cmocka_run_group_tests_name("core_units", tests, NULL, NULL);
}
