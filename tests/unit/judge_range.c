/* SPDX-License-Identifier: Apache-2.0 */
/* Where a headline case fails: margins, marks, intervals, and what the site states of clock and power. */
#include <unistd.h>
#include "judge_bed.h"
#include "judge/case/range.h"

static void site_is(const char *text)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	struct judge_site site = {.file = path};
	FILE *f = fdopen(mkstemp(path), "w");
	struct error err = {0};

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	judgements_release(&w.out);
	if (judge_run(&w.out, &w.ctx, &site, &err))
		fail_msg("%s", err.text);
	unlink(path);
}

/* A product at the efficiency that healthy cards have, so that its clock alone tells. */
static struct record_case *product(const char *type, double tflops, double flop_a_clock)
{
	return world_gemm(&w, "gpu0", type, 8192, tflops, tflops * 1e6 / (132 * flop_a_clock) / 0.92, 690, 0);
}

static void bf16_is(double tflops, enum verdict v)
{
	struct record_case *c = product("bf16", tflops, 4096);

	world_judge(&w);
	assert_verdict(&w, c, v, CAUSE_BELOW_BAND);
	assert_true(world_of(&w, c)->below_range == (v == VERDICT_FAIL));
}

/* 644 TFLOPS, three cards 0.8 % apart: 5 %, which is 612, and the half-width of 0.4 % beyond it. */
static void test_range__two_cards_fail_by_five_percent(void **state)
{
	(void)state;
	bf16_is(613, VERDICT_WARN);
}

static void test_range__beyond_five_percent_it_fails(void **state)
{
	(void)state;
	bf16_is(608, VERDICT_FAIL);
	assert_int_equal(w.out.exit_code, 1);
	assert_non_null(strstr(w.out.of_case[0].reason, "more than 5 % off fails"));
}

/* The favourable end of the interval counts: 605 to 2 % may be 617. */
static void test_range__what_the_interval_leaves_open_does_not_fail(void **state)
{
	struct record_case *c = product("bf16", 605, 4096);

	(void)state;
	world_set(c, "sustained", "half_width_share", 0.019);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_BAND);
}

/* FP8 16384 rests on one card: 1280 TFLOPS, 10 %. 12 % below what that card reached is a warning, 25 % is none. */
static void test_range__one_card_fails_by_ten_percent(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "e4m3", 16384, 0.88 * 1344, 1200, 690, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_BAND);
	assert_non_null(strstr(world_of(&w, c)->reason, "more than 10 % off fails; range from one card"));
	world_set(c, "sustained", "flop_rate", 0.75 * 1344e12);
	world_set(c, "sustained", "clock_hz", 1000e6);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
}

static struct record_case *a100(double tflops, const char *type)
{
	struct record_case *c = world_gemm(&w, "gpu0", type, 8192, tflops, 1300, 390, 0);

	w.gpu[0].pci_device = 0x20b2u << 16 | 0x10de;
	world_fact(&w.gpu[0], GPU_FACT_sm_count, 108);
	world_fact(&w.gpu[0], GPU_FACT_cc, 80);
	world_fact(&w.gpu[0], GPU_FACT_sm_clock_max_mhz, 1410);
	world_fact(&w.gpu[0], GPU_FACT_power_limit_w, 400);
	world_fact(&w.gpu[0], GPU_FACT_power_limit_default_w, 400);
	return c;
}

/* 245 TFLOPS by publications: a warning down to 0.75 of it. */
static void test_range__publications_alone_warn_down_to_three_quarters(void **state)
{
	struct record_case *c = a100(190, "bf16");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_BAND);
	assert_non_null(strstr(world_of(&w, c)->reason, "published figures only"));
	world_set(c, "sustained", "flop_rate", 180e12);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
}

/* FP16 8192: an A100 under 200 and an H100 under 600 TFLOPS fail, whatever the margin says. */
static void test_range__fail_marks_stay_fails(void **state)
{
	struct record_case *c = a100(205, "fp16");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_BAND);
	world_set(c, "sustained", "flop_rate", 199e12);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
	if (!strstr(world_of(&w, c)->reason, "200 TFLOP/s or worse fails"))
		fail_msg("%s", world_of(&w, c)->reason);
}

static void test_range__the_mark_of_an_h100(void **state)
{
	struct record_case *c = product("fp16", 599, 4096);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
	world_set(c, "sustained", "flop_rate", 603e12);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_BAND);
}

/* What is not to be trusted stays so: it is neither passed nor failed by a margin. */
static void test_range__a_window_that_is_not_to_be_trusted_does_not_fail(void **state)
{
	struct record_case *c = product("bf16", 590, 4096);

	(void)state;
	world_set(c, "sustained", "settled", 0);
	world_set(c, "sustained", "half_width_share", 0.03);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_UNSETTLED);
	assert_int_equal(w.out.exit_code, 2);
}

/* Locked to 1200 MHz a card reaches 0.887 to 0.951 of 132 x 4096 x 1.2 GHz: 575 to 617 TFLOPS. */
static void test_range__a_stated_clock_scales_compute_and_not_memory(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 596, 1200, 560, 0),
			   *memory = world_memory(&w, "gpu0", "copy", 2.70, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
	site_is("sm_clock: 1200 MHz\n");
	assert_int_equal(world_of(&w, c)->verdict, VERDICT_PASS);
	assert_float_equal(world_of(&w, c)->band.low, 0.887 * 132 * 4096 * 1.2e9, 1e9);
	assert_verdict(&w, memory, VERDICT_FAIL, CAUSE_BELOW_BAND);
	world_set(c, "sustained", "flop_rate", 530e12);
	world_set(c, "sustained", "clock_hz", 1067e6);
	site_is("sm_clock: 1200 MHz\n");
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND); /* 8 % below what that clock gives */
}

/* Below half of the maximum nobody measured what memory loses: it warns. */
static void test_range__at_a_very_low_stated_clock_memory_only_warns(void **state)
{
	struct record_case *memory = world_memory(&w, "gpu0", "copy", 1.9, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, memory, VERDICT_FAIL, CAUSE_BELOW_BAND);
	site_is("sm_clock: 900 MHz\n");
	assert_verdict(&w, memory, VERDICT_WARN, CAUSE_BELOW_BAND);
}

static void test_range__a_gpu_faster_than_its_stated_clock_is_not_locked(void **state)
{
	(void)state;
	healthy();
	site_is("sm_clock: 1200 MHz\n");
	assert_int_equal(w.out.stated.verdict, VERDICT_FAIL);
	assert_int_equal(w.out.stated.cause, CAUSE_CONFIG_MISMATCH);
	assert_non_null(strstr(w.out.stated.reason, "ran at 1395 MHz; the stated clock is 1200 MHz"));
	site_is("sm_clock: 1410 MHz\n");
	assert_int_equal(w.out.stated.verdict, VERDICT_PASS);
}

/* 600 of 700 W: at least (6/7 - 0.3)/0.7 of the range, 0.796 x 644 = 513 TFLOPS. */
static void test_range__a_stated_power_limit_scales_compute_and_is_no_fault(void **state)
{
	struct record_case *c = product("bf16", 560, 4096), *state_of;

	(void)state;
	world_fact(&w.gpu[0], GPU_FACT_power_limit_w, 600);
	state_of = world_reading(&w, "clock_state", "gpu0", "power_limit_w=600 power_limit_default_w=700");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_verdict(&w, state_of, VERDICT_FAIL, CAUSE_POWER_LIMIT_LOWERED);
	site_is("power_limit: 600 W\n");
	assert_int_equal(w.out.stated.verdict, VERDICT_PASS);
	assert_int_equal(world_of(&w, c)->verdict, VERDICT_PASS);
	assert_float_equal(world_of(&w, c)->band.low, 644e12 * (600.0 / 700 - 0.3) / 0.7, 1e9);
	assert_int_not_equal(world_of(&w, state_of)->verdict, VERDICT_FAIL);
	world_set(c, "sustained", "flop_rate", 480e12);
	world_set(c, "sustained", "clock_hz", 965e6);
	site_is("power_limit: 600 W\n");
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_BAND);
	site_is("power_limit: 650 W\n"); /* another one than what is set */
	assert_verdict(&w, state_of, VERDICT_FAIL, CAUSE_POWER_LIMIT_LOWERED);
	assert_int_equal(w.out.stated.cause, CAUSE_CONFIG_MISMATCH);
}

static void test_range__margins_follow_the_cards(void **state)
{
	(void)state;
	assert_float_equal(range_margin(&(struct basis){.cards = 0}), 0, 0);
	assert_float_equal(range_margin(&(struct basis){.cards = 1}), 0.10, 1e-12);
	assert_float_equal(range_margin(&(struct basis){.cards = 2, .scatter = 0.01}), 0.05, 1e-12);
	assert_float_equal(range_margin(&(struct basis){.cards = 2, .scatter = 0.094}), 0.094, 1e-12);
}

/* A CPU's case and a GPU's ceiling are no headline: their limits are their own. */
static void test_range__what_is_no_headline_has_no_class(void **state)
{
	struct record_case *peak = world_case(&w, "peak", "gpu0", "compute.bf16", "unit=mma type=bf16"),
			   *cpu = world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32"),
			   *copy = world_case(&w, "p2p", "gpu0", "link.p2p", "");
	struct subject s;

	(void)state;
	subject_of(&s, &w.ctx, peak);
	assert_int_equal(range_class_of(&s), RANGE_NO_CLASS);
	subject_of(&s, &w.ctx, cpu);
	assert_int_equal(range_class_of(&s), RANGE_NO_CLASS);
	subject_of(&s, &w.ctx, copy);
	assert_int_equal(range_class_of(&s), RANGE_LINK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_range__##name, begin_one, end)
		T(two_cards_fail_by_five_percent),
		T(beyond_five_percent_it_fails),
		T(what_the_interval_leaves_open_does_not_fail),
		T(one_card_fails_by_ten_percent),
		T(publications_alone_warn_down_to_three_quarters),
		T(fail_marks_stay_fails),
		T(the_mark_of_an_h100),
		T(a_window_that_is_not_to_be_trusted_does_not_fail),
		T(a_stated_clock_scales_compute_and_not_memory),
		T(at_a_very_low_stated_clock_memory_only_warns),
		T(a_gpu_faster_than_its_stated_clock_is_not_locked),
		T(a_stated_power_limit_scales_compute_and_is_no_fault),
		T(margins_follow_the_cards),
		T(what_is_no_headline_has_no_class),
#undef T
	};

	return cmocka_run_group_tests_name("judge_range", tests, NULL, NULL);
}
