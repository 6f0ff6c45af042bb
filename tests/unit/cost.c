/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of a made-up run against values computed by hand. */
#include "cmd/cost/cost.h"
#include <math.h>
#include "scratch.h"

static const char file[] = "sources:\n  s: {title: \"a list\", date: 2026-10-01}\n"
			   "  old: {title: \"an old list\", date: 2026-05}\n"
			   "electricity:\n  - {name: us, dollars_per_kwh: 0.16, pue: 1.5, source: s}\n"
			   "  - {name: eu, dollars_per_kwh: 0.25, pue: 1.2, source: s}\n"
			   "gpu_hours:\n  - {sku: h200-sxm, low: 2.5, high: 7, source: old}\n"
			   "capital:\n  - {sku: h200-sxm, low: 28000, high: 42000, years: 3, source: s}\n"
			   "apis:\n  - {model: big, input: 2, output: 10, cached_input: 0.2, source: s}\n"
			   "  - {model: cheap, input: 0.0001, output: 0.0001, source: s}\n";

struct bed {
	struct prices *prices;
	struct cost_opts o;
	struct cost_subject s;
	struct cost_ways w;
	struct cost_report r;
};

/* 6 M input (10 % cached) and 3 M output tokens in 60 s on two GPUs with 60 kJ, idle at 200 W. */
static int open_bed(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	if (!b || prices_parse(&b->prices, "p.yaml", file, sizeof(file) - 1, NULL))
		return -1;
	b->o.date = "2026-11-28";
	b->s = (struct cost_subject){
		.run = "run",
		.kind = COST_LOAD,
		.device = "NVIDIA H200",
		.sku = "h200-sxm-141",
		.gpus = 2,
		.input = 6e6,
		.cached = 0.6e6,
		.output = 3e6,
		.seconds = 60,
		.energy = {.known = true, .joules = 60000, .error_j = 100, .parts = "GPUs"},
		.idle_w = 200};
	b->s.gpu = (struct energy){.devices = 2, .known = true, .joules = 60000, .error_j = 100};
	*state = b;
	return 0;
}

static int close_bed(void **state)
{
	struct bed *b = *state;

	cost_report_release(&b->r);
	prices_free(b->prices);
	free(b);
	return 0;
}

static void make(struct bed *b)
{
	struct error err = {0};

	if (cost_ways_make(&b->w, &b->s, b->prices, &b->o, &err))
		fail_msg("%s", err.text);
	cost_report_release(&b->r);
	cost_report_make(&b->r, &b->s, &b->w, b->prices, &b->o);
	assert_false(b->r.failed);
}

static const struct cost_row *row_of(const struct bed *b, const char *table, const char *label)
{
	for (size_t i = 0; i < b->r.tables; i++)
		for (size_t k = 0; k < b->r.table[i].rows; k++)
			if (!strcmp(b->r.table[i].name, table) &&
			    !strncmp(b->r.table[i].row[k].label, label, strlen(label)))
				return &b->r.table[i].row[k];
	fail_msg("no row %s in table %s", label, table);
	return NULL;
}

static double value_of(const struct bed *b, const char *table, const char *label, const char *column)
{
	const struct cost_row *row = row_of(b, table, label);

	for (size_t i = 0; i < b->r.tables; i++)
		for (size_t c = 0; c < b->r.table[i].columns; c++)
			if (!strcmp(b->r.table[i].name, table) &&
			    !strcmp(b->r.table[i].column[c].name, column))
				return row->value[c];
	fail_msg("table %s has no column %s", table, column);
	return NAN;
}

#define NEAR(b, table, label, column, expected)                                                              \
	do {                                                                                                 \
		double found_ = value_of(b, table, label, column);                                           \
		if (!(fabs(found_ / (expected)-1) < 1e-4))                                                   \
			fail_msg("%s, %s, %s: %.8g, expected %.8g", table, label, column, found_,            \
				 (double)(expected));                                                        \
	} while (0)

static void test_cost__energy_per_token(void **state)
{
	struct bed *b = *state;

	make(b);
	NEAR(b, "energy_per_token", "per token, input and output", "joules", 60000 / 9e6);
	NEAR(b, "energy_per_token", "per token, input and output", "tokens_per_joule", 150);
	NEAR(b, "energy_per_token", "per output token", "joules", 0.02);
	assert_true(isnan(value_of(b, "energy_per_token", "prefill", "joules")));
	NEAR(b, "energy", "counted", "watts", 1000);
	NEAR(b, "energy", "idle", "watts", 200);
}

static void test_cost__every_way_to_pay(void **state)
{
	struct bed *b = *state;

	make(b);
	/* 60 kJ are 1/60 kWh: x 0.16 x 1.5 = $0.004 for 9 M tokens */
	NEAR(b, "price", "electricity us", "blended", 0.004 / 9);
	NEAR(b, "price", "electricity us", "output_only", 0.004 / 3);
	NEAR(b, "price", "electricity us", "tokens_per_dollar", 9e6 / 0.004);
	NEAR(b, "price", "electricity eu", "blended", 0.005 / 9);
	/* two GPUs for a minute: $5/60 */
	NEAR(b, "price", "GPU-hours, h200-sxm low", "blended", 0.0833333 / 9);
	NEAR(b, "price", "GPU-hours, h200-sxm high", "blended", 0.2333333 / 9);
	/* $56,000 over 3 x 365 x 24 x 60 minutes */
	NEAR(b, "price", "capital low $56000 over 3 years, 100 %", "blended", 56000 / 1576800.0 / 9);
	NEAR(b, "price", "capital low $56000 over 3 years, 25 %", "blended", 4 * 56000 / 1576800.0 / 9);
	NEAR(b, "price", "capital high $84000 over 3 years, 10 %", "output_only", 10 * 84000 / 1576800.0 / 3);
	assert_true(row_of(b, "price", "GPU-hours")->old);
	assert_string_equal(row_of(b, "price", "GPU-hours")->date, "2026-05");
	assert_false(row_of(b, "price", "capital")->old);
	assert_string_equal(row_of(b, "price", "capital")->source, "a list");
}

static void test_cost__options_take_the_place_of_list_prices(void **state)
{
	struct bed *b = *state;

	b->o.capital = 100000;
	b->o.years = 4;
	b->o.idle_share = 0.5;
	b->s.price_per_hour = 12;
	make(b);
	NEAR(b, "price", "machine-hours, stated $12", "blended", 0.2 / 9);
	NEAR(b, "price", "capital, stated $100000 over 4 years, 50 %", "blended", 2 * 100000 / 2102400.0 / 9);
	/* as much idle time as load: 200 W x 60 s more */
	NEAR(b, "price", "electricity us", "blended", 0.004 * 72000 / 60000 / 9);
	NEAR(b, "break_even", "big", "rent_low", 0.2 / 40.92); /* the stated hour is the price of renting */
}

static void test_cost__break_even_at_the_runs_own_mix(void **state)
{
	struct bed *b = *state;
	double api = 5.4 * 2 + 0.6 * 0.2 + 3 * 10; /* dollars for the run's tokens */

	make(b);
	NEAR(b, "break_even", "big", "api", api / 9);
	NEAR(b, "break_even", "big", "rent_low", 0.0833333 / api);
	NEAR(b, "break_even", "big", "rent_high", 0.2333333 / api);
	NEAR(b, "break_even", "big", "buy_low", 56000 / ((api - 0.004) / 9)); /* M tokens */
	NEAR(b, "break_even", "big", "buy_high", 84000 / ((api - 0.004) / 9));
	NEAR(b, "break_even", "big", "buy_days", 84000 / ((api - 0.004) / 9) / 0.15 / 86400);
	/* $0.0009 for 9 M tokens, below the electricity */
	assert_true(isnan(value_of(b, "break_even", "cheap", "buy_low")));
	assert_string_equal(row_of(b, "break_even", "cheap")->why,
			    "no volume: the API costs less than the electricity alone");
	assert_true(value_of(b, "break_even", "cheap", "rent_low") > 1);
}

static void test_cost__cached_input(void **state)
{
	struct bed *b = *state;

	make(b);
	NEAR(b, "cache", "big", "hit_0", (6 * 2 + 30) / 9.0);
	NEAR(b, "cache", "big", "hit_run", 40.92 / 9);
	NEAR(b, "cache", "big", "hit_50", (3 * 2 + 3 * 0.2 + 30) / 9);
	NEAR(b, "cache", "big", "hit_90", (0.6 * 2 + 5.4 * 0.2 + 30) / 9);
	NEAR(b, "cache", "GPU-hours, h200-sxm low", "hit_run", 0.0833333 / 9);
	assert_true(isnan(value_of(b, "cache", "GPU-hours, h200-sxm low", "hit_50")));
	/* 2 mJ per input token that is not cached and 10 mJ per output token: 40.8 J at the run's 10 % */
	b->s.split = (struct split){.known = true, .input_j = 0.002, .output_j = 0.01};
	make(b);
	NEAR(b, "cache", "GPU-hours, h200-sxm low", "hit_run", 0.0833333 / 9);
	NEAR(b, "cache", "GPU-hours, h200-sxm low", "hit_50", 0.0833333 / 9 * 36 / 40.8);
	NEAR(b, "cache", "GPU-hours, h200-sxm low", "hit_90", 0.0833333 / 9 * 31.2 / 40.8);
	NEAR(b, "cache", "electricity us", "hit_0", 0.004 / 9 * 42 / 40.8);
}

static void test_cost__the_split_divides_a_joint_cost(void **state)
{
	struct bed *b = *state;

	b->s.split = (struct split){.known = true, .input_j = 0.002, .output_j = 0.01};
	make(b);
	/* 10.8 of 40.8 parts belong to the input: 5.4 M x 2 mJ of 10.8 + 30 kJ */
	NEAR(b, "price", "GPU-hours, h200-sxm low", "input", 0.0833333 * 10.8 / 40.8 / 6);
	NEAR(b, "price", "GPU-hours, h200-sxm low", "output", 0.0833333 * 30 / 40.8 / 3);
	NEAR(b, "price", "GPU-hours, h200-sxm low", "blended", 0.0833333 / 9);
	NEAR(b, "energy_per_token", "prefill", "joules", 0.002);
	NEAR(b, "energy_per_token", "decode", "tokens_per_joule", 100);
}

static void test_cost__unknown_energy_leaves_the_prices_of_time(void **state)
{
	struct bed *b = *state;

	b->s.energy =
		(struct cost_energy){.joules = NAN, .error_j = NAN, .why = "GPUs: the counter stood still"};
	make(b);
	assert_true(isnan(value_of(b, "price", "electricity us", "blended")));
	assert_string_equal(row_of(b, "price", "electricity us")->why, "GPUs: the counter stood still");
	NEAR(b, "price", "GPU-hours, h200-sxm low", "blended", 0.0833333 / 9);
	assert_true(isnan(value_of(b, "break_even", "big", "buy_low")));
	assert_string_equal(row_of(b, "break_even", "big")->why, "no volume: the electricity is not known");
	NEAR(b, "sensitivity", "rented: price of the hour", "base", 0.5 * (0.0833333 + 0.2333333) / 9);
}

static void test_cost__a_run_on_the_cpu_needs_its_price(void **state)
{
	struct bed *b = *state;

	b->s.gpus = 0;
	snprintf(b->s.gpus_why, sizeof(b->s.gpus_why), "the run used no GPU: give --price-per-hour");
	b->s.energy = (struct cost_energy){.joules = NAN, .why = "no RAPL"};
	make(b);
	assert_true(isnan(value_of(b, "price", "GPU-hours", "blended")));
	assert_string_equal(row_of(b, "price", "GPU-hours")->why,
			    "the run used no GPU: give --price-per-hour");
	b->s.price_per_hour = 0.6;
	b->o.capital = 3000;
	make(b);
	NEAR(b, "price", "machine-hours", "blended", 0.01 / 9);
	NEAR(b, "price", "capital, stated $3000 over 3 years, 100 %", "blended", 3000 / 1576800.0 / 9);
}

static void test_cost__a_gpu_without_a_price_says_so(void **state)
{
	struct bed *b = *state;

	snprintf(b->s.sku, sizeof(b->s.sku), "l40s-48");
	make(b);
	assert_string_equal(row_of(b, "price", "GPU-hours")->why,
			    "the prices have no GPU-hours of l40s-48: give --price-per-hour");
	assert_string_equal(row_of(b, "price", "capital")->why,
			    "the prices have no capital of l40s-48: give --capital");
}

static void test_cost__which_input_matters(void **state)
{
	struct bed *b = *state;
	double hour = 0.5 * (0.0833333 + 0.2333333) / 9;
	/* 70,000 over 3 years at 50 %, for a minute, and the electricity */
	double capital = 2 * 70000 / 1576800.0 / 9, power = 0.004 / 9;

	make(b);
	NEAR(b, "sensitivity", "rented: price of the hour", "low", 0.8 * hour);
	NEAR(b, "sensitivity", "rented: price of the hour", "spread", 0.4);
	NEAR(b, "sensitivity", "rented: tokens per second", "high", hour / 1.2);
	NEAR(b, "sensitivity", "bought: price of the purchase", "base", capital + power);
	NEAR(b, "sensitivity", "bought: price of the purchase", "high", 1.2 * capital + power);
	NEAR(b, "sensitivity", "bought: utilization", "low", capital / 0.8 + power);
	NEAR(b, "sensitivity", "bought: PUE", "low", capital + 0.8 * power);
	NEAR(b, "sensitivity", "bought: tokens per second", "high", capital / 1.2 + power);
	/* the widest spread comes first */
	for (size_t i = 0; i < b->r.tables; i++)
		for (size_t k = 1; k < b->r.table[i].rows && !strcmp(b->r.table[i].name, "sensitivity"); k++)
			assert_true(b->r.table[i].row[k].label[0] != b->r.table[i].row[k - 1].label[0] ||
				    b->r.table[i].row[k].value[3] <= b->r.table[i].row[k - 1].value[3]);
}

static void test_cost__training(void **state)
{
	struct bed *b = *state;

	b->s.kind = COST_TRAIN;
	b->s.input = b->s.cached = NAN;
	b->s.run_seconds = 120;
	b->s.run_tokens = 4e6;
	b->s.run_energy = (struct cost_energy){.known = true, .joules = 90000};
	make(b);
	NEAR(b, "energy_per_token", "per trained token", "joules", 0.02);
	NEAR(b, "price", "electricity us", "blended", 0.004 / 3);
	NEAR(b, "price", "GPU-hours, h200-sxm low", "blended", 0.0833333 / 3);
	NEAR(b, "run", "GPU-hours, h200-sxm low", "dollars", 0.1666667);
	NEAR(b, "run", "electricity us", "dollars", 0.006);
	for (size_t i = 0; i < b->r.tables; i++)
		assert_true(strcmp(b->r.table[i].name, "break_even") != 0);
}

static void refused(struct bed *b, const char *message)
{
	struct error err = {0};

	assert_int_equal(cost_ways_make(&b->w, &b->s, b->prices, &b->o, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, message);
}

static void test_cost__unknown_names_are_refused(void **state)
{
	struct bed *b = *state;

	b->o.electricity = "uk";
	refused(b, "--electricity uk: p.yaml has no electricity of this name; did you mean us");
	b->o.electricity = NULL;
	b->o.sku = "h100-sxm";
	refused(b, "--sku h100-sxm: p.yaml has no price of this GPU; did you mean h200-sxm");
	b->o.electricity = "eu";
	b->o.sku = "h200-sxm";
	make(b);
	NEAR(b, "break_even", "big", "buy_low", 56000 / ((40.92 - 0.005) / 9));
}

static void test_split__is_exact_without_noise(void **state)
{
	const struct split_stage stage[] = {{4e6, 0.8e6, 16000}, {1e6, 1.8e6, 20000}, {6e6, 1.2e6, 24000}};
	struct split s;

	(void)state;
	split_fit(&s, stage, 3);
	assert_true(s.known);
	assert_true(fabs(s.input_j - 0.002) < 1e-9 && fabs(s.output_j - 0.01) < 1e-9);
	assert_true(s.input_error_j < 1e-9 && s.condition > 2 && s.condition < 3);
}

static void test_split__noise_gives_an_error(void **state)
{
	const struct split_stage stage[] = {
		{4e6, 0.8e6, 16160}, {1e6, 1.8e6, 19800}, {2e6, 1.2e6, 16160}, {8e6, 1e6, 25740}};
	struct split s;

	(void)state;
	split_fit(&s, stage, 4);
	assert_true(s.known);
	assert_true(fabs(s.input_j - 0.002) < 3 * s.input_error_j && s.input_error_j < 0.1 * s.input_j);
	assert_true(fabs(s.output_j - 0.01) < 3 * s.output_error_j && s.output_error_j < 0.1 * s.output_j);
}

static void test_split__is_absent_with_a_reason(void **state)
{
	static const struct {
		struct split_stage stage[3];
		size_t count;
		const char *why;
	} bad[] = {
		{{{0}},
		 0,
		 "a split needs at least 3 stages with different ratios of input to output, and there are 0"},
		{{{1, 1, 1}},
		 1,
		 "a split needs at least 3 stages with different ratios of input to output, and there is 1"},
		{{{1e6, 1e5, 100}, {2e6, 2.1e5, 201}, {3e6, 3e5, 300}},
		 3,
		 "the stages have almost the same ratio of input to output (condition number "},
		{{{1e6, 0, 100}, {2e6, 0, 200}, {3e6, 0, 300}},
		 3,
		 "the stages have almost the same ratio of input to output (condition number inf)"},
		{{{1e6, 1e6, 100}, {1e6, 3e6, 90}, {1e6, 9e6, 80}}, 3, "the fit gives a negative energy"},
		{{{1e6, 1e6, 100}, {1e6, 3e6, 0}, {1e6, 9e6, 80}}, 3, "stage 2 has no energy"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct split s;

		split_fit(&s, bad[i].stage, bad[i].count);
		assert_false(s.known);
		if (strncmp(s.why, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("\"%s\" does not begin with \"%s\"", s.why, bad[i].why);
	}
}

int main(void)
{
#define BED(name) cmocka_unit_test_setup_teardown(name, open_bed, close_bed)
	const struct CMUnitTest tests[] = {
		BED(test_cost__energy_per_token),
		BED(test_cost__every_way_to_pay),
		BED(test_cost__options_take_the_place_of_list_prices),
		BED(test_cost__break_even_at_the_runs_own_mix),
		BED(test_cost__cached_input),
		BED(test_cost__the_split_divides_a_joint_cost),
		BED(test_cost__unknown_energy_leaves_the_prices_of_time),
		BED(test_cost__a_run_on_the_cpu_needs_its_price),
		BED(test_cost__a_gpu_without_a_price_says_so),
		BED(test_cost__which_input_matters),
		BED(test_cost__training),
		BED(test_cost__unknown_names_are_refused),
		cmocka_unit_test(test_split__is_exact_without_noise),
		cmocka_unit_test(test_split__noise_gives_an_error),
		cmocka_unit_test(test_split__is_absent_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
