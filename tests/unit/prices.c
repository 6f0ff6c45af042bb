/* SPDX-License-Identifier: Apache-2.0 */
/* The file of prices: what it gives, and every mistake with its line. */
#include "price/prices.h"
#include <math.h>
#include "scratch.h"

#define SOURCES                                                                                              \
	"sources:\n  a: {title: \"a list\", date: 2026-05}\n  web: {title: \"a page\", date: 2026-06-30}\n"

static struct prices *parsed(const char *text)
{
	struct prices *p = NULL;
	struct error err = {0};

	if (prices_parse(&p, "p.yaml", text, strlen(text), &err))
		fail_msg("%s", err.text);
	return p;
}

static void test_prices__the_built_in_file_is_valid(void **state)
{
	struct prices *p;
	struct error err = {0};
	size_t count;
	const struct price_gpu *g;

	(void)state;
	assert_int_equal(prices_load(&p, NULL, &err), STATUS_OK);
	assert_string_equal(prices_file(p), "prices/prices.yaml");
	assert_int_equal(strlen(prices_hash(p)), 64);
	assert_non_null(prices_electricity(p, &count));
	assert_true(count >= 3);
	assert_non_null(prices_apis(p, &count));
	assert_true(count >= 3);
	g = prices_gpu_hour(p, "h200-sxm-141");
	assert_true(g && g->low < g->high && *g->origin.source && strlen(g->origin.date) >= 7);
	g = prices_capital(p, "h200-sxm-141");
	assert_true(g && g->years >= 1);
	assert_null(prices_gpu_hour(p, "h200-nvl-141"));
	assert_null(prices_gpu_hour(p, ""));
	prices_free(p);
}

static void test_prices__rows_have_the_date_of_their_source_or_their_own(void **state)
{
	struct prices *p =
		parsed(SOURCES "gpu_hours:\n"
			       "  - {sku: b200, low: 5, high: 6, source: a}\n"
			       "  - {sku: b200-sxm, low: 7, high: 7, source: web, date: 2026-07-01}\n"
			       "apis:\n"
			       "  - {model: m, input: 1, output: 2, source: web}\n"
			       "  - {model: n, input: 1, output: 2, cached_input: 0.1, source: web}\n");
	const struct price_gpu *g = prices_gpu_hour(p, "b200-sxm-180");
	const struct price_api *a;
	size_t count;

	(void)state;
	assert_true(g && g->low > 6.9); /* the longest name wins */
	assert_string_equal(g->origin.date, "2026-07-01");
	assert_string_equal(g->origin.source, "a page");
	assert_int_equal(g->origin.line, 6);
	g = prices_gpu_hour(p, "b200-pcie");
	assert_string_equal(g->origin.date, "2026-05");
	assert_null(prices_gpu_hour(p, "b2000")); /* a name ends at '-' */
	assert_null(prices_capital(p, "b200"));
	a = prices_apis(p, &count);
	assert_int_equal(count, 2);
	assert_true(!a[0].cached_given && fabs(a[0].cached_input - 1) < 1e-12);
	assert_true(a[1].cached_given && fabs(a[1].cached_input - 0.1) < 1e-12);
	prices_free(p);
}

static void test_prices__ages_count_in_days(void **state)
{
	static const struct {
		const char *from, *to;
		int days;
	} ages[] = {
		{"2026-08-30", "2026-11-28", 90}, {"2026-08-29", "2026-11-28T15:00:00Z", 91},
		{"2024-02-28", "2024-03-01", 2},  {"2026-05", "2026-05-01", 0},
		{"2026-12-01", "2026-11-28", -3}, {"1999-12-31", "2000-12-31", 366},
	};
	int days;

	(void)state;
	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		struct price_origin o = {.date = ages[i].from};

		assert_true(price_age_days(ages[i].from, ages[i].to, &days));
		assert_int_equal(days, ages[i].days);
		assert_int_equal(price_is_old(&o, ages[i].to), ages[i].days > 90);
	}
	assert_false(price_age_days("2026", "2026-11-28", &days));
	assert_false(price_age_days("2026-13-01", "2026-11-28", &days));
	assert_false(price_age_days("2026-02-30", "2026-11-28", &days));
	assert_false(price_age_days("2026-02-29", "2026-11-28", &days));
	assert_false(price_age_days("2100-02-29", "2026-11-28", &days));
	assert_true(price_age_days("2028-02-29", "2026-11-28", &days));
	assert_false(price_age_days("2026-04-31", "2026-11-28", &days));
	assert_false(price_age_days(NULL, "2026-11-28", &days));
	assert_false(
		price_is_old(&(struct price_origin){.date = "2020-01"}, "")); /* a journal without a date */
}

static void test_prices__a_mistake_is_named_with_its_line(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{"- a\n", "p.yaml:1: a file of prices must be a map"},
		{"gpu_hour: []\n", "p.yaml:1: unknown key \"gpu_hour\", did you mean \"gpu_hours\""},
		{"sources: 3\n", "p.yaml:1: sources must be a map"},
		{"sources:\n  a: {date: 2026-05}\n", "p.yaml:2: source a has no title"},
		{"sources:\n  a: {title: x, date: May}\n", "p.yaml:2: date May is not YYYY-MM-DD or YYYY-MM"},
		{"sources:\n  a: {title: x}\n", "p.yaml:2: date is missing and is not"},
		{"sources:\n  a: {titel: x}\n", "p.yaml:2: unknown key \"titel\", did you mean \"title\""},
		{SOURCES "gpu_hours: 4\n", "p.yaml:4: gpu_hours must be a list"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: 1, high: 2}\n", "p.yaml:5: source is missing"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: 1, high: 2, source: wed}\n",
		 "p.yaml:5: source wed is not in the sources of this file; did you mean web"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: 1, high: 2, source: a, date: 2026-5}\n",
		 "p.yaml:5: date 2026-5 is not"},
		{SOURCES "gpu_hours:\n  - {low: 1, high: 2, source: a}\n", "p.yaml:5: sku is missing"},
		{SOURCES "gpu_hours:\n  - {sku: x, high: 2, source: a}\n", "p.yaml:5: low is missing"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: 3, high: 2, source: a}\n",
		 "p.yaml:5: low is above high"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: -1, high: 2, source: a}\n",
		 "p.yaml:5: low of -1 is not from"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: cheap, high: 2, source: a}\n", "p.yaml:5: low: "},
		{SOURCES
		 "gpu_hours:\n  - {sku: x, low: 1, high: 2, source: a}\n  - {sku: x, low: 1, high: 2, source: a}\n",
		 "p.yaml:6: x is already on line 5"},
		{SOURCES "gpu_hours:\n  - {sku: x, low: 1, hihg: 2, source: a}\n",
		 "p.yaml:5: unknown key \"hihg\", did you mean \"high\""},
		{SOURCES "electricity:\n  - {name: n, dollars_per_kwh: 0.1, pue: 0.9, source: a}\n",
		 "p.yaml:5: pue of 0.9 is not from 1 to 5"},
		{SOURCES "electricity:\n  - {name: n, dollars_per_kwh: 0.1, pue: 1, source: a}\n"
			 "  - {name: n, dollars_per_kwh: 0.1, pue: 1, source: a}\n",
		 "p.yaml:6: electricity n is already on line 5"},
		{SOURCES "capital:\n  - {sku: x, low: 1, high: 2, source: a}\n",
		 "p.yaml:5: years is missing"},
		{SOURCES "apis:\n  - {model: m, input: 1, output: 2, cached_input: 3, source: a}\n",
		 "p.yaml:5: cached_input of 3 is not from 0 to 1"},
		{SOURCES
		 "apis:\n  - {model: m, input: 1, output: 2, source: a}\n  - {model: m, input: 1, output: 2, source: a}\n",
		 "p.yaml:6: model m is already on line 5"},
		{SOURCES "apis:\n  - 7\n", "p.yaml:5: expected a map"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct prices *p = NULL;
		struct error err = {0};

		assert_int_equal(prices_parse(&p, "p.yaml", wrong[i].text, strlen(wrong[i].text), &err),
				 STATUS_BAD_INPUT);
		assert_null(p);
		if (strncmp(err.text, wrong[i].message, strlen(wrong[i].message)) != 0)
			fail_msg("\"%s\" does not begin with \"%s\"", err.text, wrong[i].message);
	}
}

static void test_prices__a_file_that_is_not_there_is_bad_input(void **state)
{
	struct prices *p;
	struct error err = {0};

	(void)state;
	assert_int_equal(prices_load(&p, "/nowhere/prices.yaml", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "/nowhere/prices.yaml"));
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prices__the_built_in_file_is_valid),
		cmocka_unit_test(test_prices__rows_have_the_date_of_their_source_or_their_own),
		cmocka_unit_test(test_prices__ages_count_in_days),
		cmocka_unit_test(test_prices__a_mistake_is_named_with_its_line),
		cmocka_unit_test(test_prices__a_file_that_is_not_there_is_bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
