/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_bed.h"
#include <math.h>

static const struct factor *factor(const struct judgement *j, const char *name)
{
	size_t i;

	for (i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	fail_msg("no factor %s", name);
	return NULL;
}

static bool has_factor(const struct judgement *j, const char *name)
{
	size_t i;

	for (i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return true;
	return false;
}

/* One card each, cuBLAS, 5 s windows: rate, stamped clock, watts and GPM tensor share as they were measured.
 */
static const struct measured {
	bool h200;
	const char *type;
	unsigned n;
	double tflops, mhz, watts, pipe;
} cards[] = {
	{false, "bf16", 8192, 689, 1395, 695, 0.918},  {false, "bf16", 8192, 820, 1659, 460, 0.919},
	{false, "bf16", 16384, 707, 1367, 699, 0.970}, {false, "bf16", 16384, 855, 1659, 467, 0.966},
	{false, "fp16", 8192, 655, 1322, 692, 0.925},  {false, "fp32", 8192, 50.7, 1960, 696, 0.760},
	{true, "bf16", 8192, 671, 1357, 687, 0.922},   {true, "bf16", 8192, 783, 1580, 413, 0.919},
	{true, "bf16", 16384, 688, 1335, 692, 0.966},  {true, "bf16", 16384, 820, 1590, 428, 0.964},
	{true, "fp16", 8192, 642, 1299, 686, 0.919},
};

static void test_gap__the_factors_reproduce_what_both_cards_measured(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		const struct measured *m = &cards[i];
		struct world card;
		struct record_case *c;
		const struct judgement *j;

		world_begin(&card, 1, m->h200);
		c = world_gemm(&card, "gpu0", m->type, m->n, m->tflops, m->mhz, m->watts, m->pipe);
		world_judge(&card);
		j = world_of(&card, c);
		if (!j->explained || j->unexplained < 0.97 || j->unexplained > 1.03)
			fail_msg("%s: residual %.4f", c->key, j->unexplained);
		assert_float_equal(j->bound.value * factor(j, "clock")->value * factor(j, "pipe")->value *
					   j->unexplained / 1e12,
				   m->tflops, 0.01);
		world_end(&card);
	}
}

/* What phase counted tells beside the window; `cycles` of an iteration as a share of the window's own. */
static void count(struct record_case *c, double tensor, double sm, double executed, double cycles)
{
	double hz = 0, ns = 0;

	assert_true(record_number(record_phase(c, "sustained"), "clock_hz", &hz));
	assert_true(record_number(record_phase(c, "sustained"), "time_ns_mean", &ns));
	world_set(c, "sustained", "counter_sm_cycles", cycles * hz * ns * 1e-9);
	world_set(c, "sustained", "counter_tensor_active_share", tensor);
	world_set(c, "sustained", "counter_sm_active_share", sm);
	world_set(c, "sustained", "counter_tensor_flop", executed);
}

/* An H100's BF16 8192: tiles of 320 pad it to 65/64, which GPM alone leaves in the residual. */
static void test_gap__counters_tell_the_pipe_and_the_padding(void **state)
{
	struct record_case *by_gpm = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct record_case *counted = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	const struct judgement *j;

	(void)state;
	world_set(counted, "sustained", "time_ns_mean", counted->work_flop / 689e12 * 1e9);
	count(counted, 0.9293, 0.957, counted->work_flop * 65 / 64, 1.004);
	world_judge(&w);
	j = world_of(&w, counted);
	assert_float_equal(factor(j, "pipe")->value, 0.9293, 1e-9);
	assert_non_null(strstr(factor(j, "pipe")->signal, "CUPTI"));
	assert_float_equal(factor(j, "useful")->value, 64.0 / 65, 1e-9);
	assert_true(j->explained);
	assert_true(fabs(j->unexplained - 1) < 0.003);
	assert_true(fabs(j->unexplained - 1) < fabs(world_of(&w, by_gpm)->unexplained - 1));
	assert_null(strstr(factor(world_of(&w, by_gpm), "pipe")->signal, "CUPTI"));
}

static void test_gap__counters_of_other_work_are_not_used(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);

	(void)state;
	world_set(c, "sustained", "time_ns_mean", c->work_flop / 689e12 * 1e9);
	count(c, 0.5, 0.6, c->work_flop, 1.2);
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, c), "pipe")->value, 0.918, 0.02);
	assert_non_null(strstr(factor(world_of(&w, c), "pipe")->signal, "GPM"));
}

/* A tenth too much declared is no padding: it stays where it is seen. */
static void test_gap__counted_flop_hide_no_miscounted_work(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 758, 1395, 695, 0.918);

	(void)state;
	world_set(c, "sustained", "time_ns_mean", c->work_flop / 758e12 * 1e9);
	count(c, 0.918, 0.957, c->work_flop / 1.1, 1);
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, c), "useful")->value, 1, 1e-9);
	assert_true(world_of(&w, c)->unexplained > 1.05);
}

static void test_gap__where_no_counter_told_the_note_stands_with_the_pipe(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0);

	(void)state;
	world_text(c, "sustained", "counter_note", "run as root");
	world_judge(&w);
	assert_non_null(strstr(factor(world_of(&w, c), "pipe")->signal, "no counters: run as root"));
}

static void test_gap__the_power_limit_is_told_from_a_current_limit(void **state)
{
	struct record_case *random = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct record_case *zeros = world_gemm(&w, "gpu0", "bf16", 8192, 820, 1659, 460, 0.919);

	(void)state;
	world_set(random, "sustained", "violation_power_share", 0.98);
	world_judge(&w);
	assert_non_null(
		strstr(factor(world_of(&w, random), "clock")->signal, "power limit: 695 of 700 W, 98 %"));
	assert_non_null(strstr(factor(world_of(&w, zeros), "clock")->signal, "current or voltage limit"));
}

/* Factors of `is` over those of `was`: `factor` moved by that share, the residual against it, nothing else.
 */
static void moved(const struct judgement *was, const struct judgement *is, const char *name, double by)
{
	size_t k, seen = 0;

	for (k = 0; k < is->gap_count && k < was->gap_count; k++) {
		bool own = !strcmp(is->gap[k].name, name);

		assert_string_equal(is->gap[k].name, was->gap[k].name);
		if (is->gap[k].shown_only)
			continue;
		seen += own;
		assert_float_equal(is->gap[k].value / was->gap[k].value, own ? by : 1, 1e-9);
	}
	assert_int_equal(is->gap_count, was->gap_count);
	assert_int_equal(seen, 1);
	assert_float_equal(is->unexplained / was->unexplained, 1 / by, 1e-9);
	assert_true(was->explained && !is->explained);
	assert_float_equal(is->bound.value, was->bound.value, 0);
	assert_float_equal(is->figure, was->figure, 0);
}

/* Each signal of both chains altered by 5 %: its factor and the residual move, nothing else does. */
static void test_gap__a_signal_moves_its_own_factor_and_the_residual(void **state)
{
	static const struct {
		bool memory;
		const char *field, *factor;
	} rows[] = {
		{false, "clock_hz", "clock"},
		{false, "tensor_active_share", "pipe"},
		{true, "memory_clock_hz", "memory clock"},
		{true, "dram_active_share", "busy"},
	};
	struct record_case *gemm = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct record_case *read = world_memory(&w, "gpu0", "read", 3.352 * 0.96, 0.925);
	struct judgement before;
	size_t i;

	(void)state;
	world_memory(&w, "gpu0", "copy", 3.352 * 0.88, 0.848);
	world_memory(&w, "gpu0", "add", 3.352 * 0.90, 0.867);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = rows[i].memory ? read : gemm;
		double value;

		assert_true(record_number(world_phase(c, "sustained"), rows[i].field, &value));
		world_judge(&w);
		before = *world_of(&w, c);
		world_set(c, "sustained", rows[i].field, value * 0.95);
		world_judge(&w);
		moved(&before, world_of(&w, c), rows[i].factor, 0.95);
		world_set(c, "sustained", rows[i].field, value);
	}
}

/* The tile is the signal of `useful`: seven rows of 1232 cover 8192 and 432 more, 5.0 % of them padding. */
static void test_gap__a_tile_moves_useful_and_the_residual(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct judgement before;

	(void)state;
	world_text(c, "once", "tile", "128x256");
	world_judge(&w);
	before = *world_of(&w, c);
	world_text(c, "once", "tile", "1232x256");
	world_judge(&w);
	moved(&before, world_of(&w, c), "useful", 8192.0 / 8624);
}

static struct record_case *mma(const char *type, double share_of_rate, double signal)
{
	char options[64], limit[32];
	struct record_case *c;

	snprintf(options, sizeof(options), "unit=mma type=%s", type);
	snprintf(limit, sizeof(limit), "compute.%s", type);
	c = world_case(&w, "peak", "gpu0", limit, options);
	world_set(c, "sustained", "flop_rate", share_of_rate * 540672e9 * 1.7);
	world_set(c, "sustained", "clock_hz", 1.7e9);
	world_set(c, "sustained", "tensor_active_share", signal);
	world_verified(c);
	return c;
}

static void test_gap__kappa_comes_from_the_mma_only_kernel_of_this_run(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.900);
	struct record_case *f = world_gemm(&w, "gpu0", "fp16", 16384, 700, 1395, 695, 0.91);
	const struct factor *pipe;

	(void)state;
	mma("bf16", 0.995, 0.975);
	world_judge(&w);
	pipe = factor(world_of(&w, c), "pipe");
	assert_float_equal(pipe->value, 0.900 / (0.975 / 0.995), 1e-6);
	assert_non_null(strstr(pipe->signal, "this run's bf16 MMA-only kernel)"));
	/* another type of the same pipe serves where its own did not run */
	pipe = factor(world_of(&w, f), "pipe");
	assert_float_equal(pipe->value, 0.91 / (0.975 / 0.995), 1e-6);
	assert_non_null(strstr(pipe->signal, "bf16 MMA-only kernel, since no fp16 kernel ran at full rate"));
}

static void test_gap__a_calibration_that_did_not_run_at_full_rate_is_not_used(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct record_case *p = mma("bf16", 0.70, 0.70);

	(void)state;
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, c), "pipe")->value, 0.918, 1e-9);
	/* and the calibration never calibrates itself */
	assert_float_equal(factor(world_of(&w, p), "pipe")->value, 0.70, 1e-9);
}

/* The disturbed quick run of an H100: the window of its BF16 kernel held idle time, and 16384 read more than
 * it.
 */
static void test_gap__a_calibration_that_held_idle_time_is_refused_and_named(void **state)
{
	struct record_case *small = world_gemm(&w, "gpu0", "bf16", 8192, 686.3, 1376.9, 695, 0.9365);
	struct record_case *large = world_gemm(&w, "gpu0", "bf16", 16384, 703.7, 1362.4, 695, 0.9707);
	struct record_case *idle = mma("bf16", 0.9871, 0.9457), *fp16;
	const struct judgement *j;

	(void)state;
	idle->require = 1;
	world_judge(&w);
	j = world_of(&w, small);
	assert_false(factor(j, "pipe")->present); /* never assumed where a kernel ran that is doubted */
	assert_non_null(strstr(factor(j, "pipe")->signal, "bf16 calibration kernel held idle time: its pipe "
							  "read 0.958"));
	assert_false(j->explained);

	fp16 = mma("fp16", 0.9883, 0.9887);
	world_judge(&w);
	for (size_t i = 0; i < 2; i++) {
		j = world_of(&w, i ? large : small);
		assert_float_equal(factor(j, "pipe")->value, (i ? 0.9707 : 0.9365) / (0.9887 / 0.9883), 1e-6);
		assert_non_null(
			strstr(factor(j, "pipe")->signal,
			       "this run's fp16 MMA-only kernel; the bf16 kernel held idle time: 0.958)"));
		assert_true(j->explained);
		assert_int_not_equal(j->cause, CAUSE_UNEXPLAINED);
	}
	/* The kernel itself is held against the other, and its figure contradicts its signal. */
	j = world_of(&w, idle);
	assert_non_null(strstr(factor(j, "pipe")->signal, "the bf16 kernel held idle time"));
	assert_int_equal(j->cause, CAUSE_UNEXPLAINED);
	/* What the refused one would have calibrated for want of another finds none. */
	assert_non_null(
		strstr(factor(world_of(&w, fp16), "pipe")->signal, "bf16 calibration kernel held idle"));
}

/* More than a pipe that never idles: a reading to doubt, not a factor that gives. */
static void test_gap__no_pipe_is_busier_than_always(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 1.02);
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	j = world_of(&w, c);
	assert_false(factor(j, "pipe")->present);
	assert_non_null(strstr(factor(j, "pipe")->signal, "102.0 % of elapsed cycles, above the 1.000 of a pipe"));
	assert_false(j->explained);
}

/* Signals of one type at another scale say nothing against a kernel. */
static void test_gap__types_may_have_a_kappa_each(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	struct record_case *e = world_gemm(&w, "gpu0", "e4m3", 8192, 1312, 1395, 695, 0.45);

	(void)state;
	mma("bf16", 0.99, 0.99);
	mma("e4m3", 2 * 0.99, 0.495);
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, c), "pipe")->value, 0.918, 1e-9);
	assert_float_equal(factor(world_of(&w, e), "pipe")->value, 0.90, 1e-9);
}

static void test_gap__without_a_signal_the_factor_stays_in_the_residual(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "fp32", 8192, 50.5, 1952, 698, 0);
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	j = world_of(&w, c);
	assert_false(factor(j, "pipe")->present);
	assert_false(j->explained);
	assert_float_equal(j->unexplained, 0.766, 0.01);
	assert_int_not_equal(j->cause, CAUSE_UNEXPLAINED); /* nothing was claimed */
}

static void test_gap__nvml_s_clock_is_no_proof(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 671, 1357, 687, 0.922);
	const struct judgement *j;

	(void)state;
	json_object_del(world_phase(c, "sustained")->values, "clock_hz");
	world_set(c, "sustained", "clock_nvml_hz", 1490e6);
	world_judge(&w);
	j = world_of(&w, c);
	assert_false(j->explained);
	assert_float_equal(factor(j, "clock")->error, 0.10, 1e-9);
	assert_float_equal(j->efficiency_held, 0, 0);
}

static void test_gap__boost_above_the_maximum_is_named(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "fp64", 8192, 62, 1994.7, 500, 0);

	(void)state;
	world_judge(&w);
	assert_true(factor(world_of(&w, c), "clock")->value > 1.005);
	assert_non_null(strstr(factor(world_of(&w, c), "clock")->signal, "boost above"));
}

static void test_gap__waves_residency_and_issue_are_shown_never_multiplied(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	const struct judgement *j;
	double before;

	(void)state;
	world_judge(&w);
	before = world_of(&w, c)->unexplained;
	world_text(c, "once", "tile", "128x256");
	world_set(c, "sustained", "sm_active_share", 0.96);
	world_judge(&w);
	j = world_of(&w, c);
	assert_true(factor(j, "waves")->shown_only && factor(j, "residency")->shown_only &&
		    factor(j, "issue")->shown_only);
	assert_float_equal(factor(j, "waves")->value, 2048.0 / (132 * 16), 1e-9);
	assert_float_equal(j->unexplained, before, 1e-12);
	world_set(c, "once", "split_k", 4);
	world_judge(&w);
	assert_false(has_factor(world_of(&w, c), "waves"));
}

static void test_gap__padding_is_arithmetic_of_the_tile(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 5000, 600, 1395, 695, 0.9);

	(void)state;
	world_judge(&w);
	assert_false(factor(world_of(&w, c), "useful")->present);
	world_text(c, "once", "tile", "128x256");
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, c), "useful")->value, 5000.0 * 5000 / (5120.0 * 5120), 1e-9);
}

static void test_gap__memory_closes_with_dram_activity_calibrated_by_the_other_cases(void **state)
{
	struct record_case *read = world_memory(&w, "gpu0", "read", 3.352 * 0.96, 0.925);
	struct record_case *copy = world_memory(&w, "gpu0", "copy", 3.352 * 0.88, 0.848);
	struct record_case *add = world_memory(&w, "gpu0", "add", 3.352 * 0.90, 0.867);
	const struct judgement *j;
	double own;

	(void)state;
	world_judge(&w);
	j = world_of(&w, read);
	assert_true(j->explained);
	own = factor(j, "busy")->value;
	/* its own rate does not enter its own factor */
	world_set(read, "sustained", "byte_rate", 3.352e12 * 0.96 * 1.10);
	world_judge(&w);
	assert_float_equal(factor(world_of(&w, read), "busy")->value, own, 1e-12);
	assert_float_equal(world_of(&w, read)->unexplained, 1.10, 0.02);
	assert_true(world_of(&w, copy)->gap_count >= 3 && world_of(&w, add)->gap_count >= 3);
}

static void test_gap__memory_without_others_or_signal_claims_nothing(void **state)
{
	struct record_case *alone = world_memory(&w, "gpu0", "read", 3.1, 0.925);
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	assert_false(world_of(&w, alone)->explained);
	json_object_del(world_phase(alone, "sustained")->values, "dram_active_share");
	world_judge(&w);
	j = world_of(&w, alone);
	assert_false(factor(j, "busy")->present);
	assert_non_null(strstr(factor(j, "busy")->signal, "cannot be split off"));
	assert_float_equal(j->unexplained, 3.1 / 3.352, 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_gap__##name, begin_one, end)
		T(the_factors_reproduce_what_both_cards_measured),
		T(counters_tell_the_pipe_and_the_padding),
		T(counters_of_other_work_are_not_used),
		T(counted_flop_hide_no_miscounted_work),
		T(where_no_counter_told_the_note_stands_with_the_pipe),
		T(the_power_limit_is_told_from_a_current_limit),
		T(a_signal_moves_its_own_factor_and_the_residual),
		T(a_tile_moves_useful_and_the_residual),
		T(kappa_comes_from_the_mma_only_kernel_of_this_run),
		T(a_calibration_that_did_not_run_at_full_rate_is_not_used),
		T(a_calibration_that_held_idle_time_is_refused_and_named),
		T(no_pipe_is_busier_than_always),
		T(types_may_have_a_kappa_each),
		T(without_a_signal_the_factor_stays_in_the_residual),
		T(nvml_s_clock_is_no_proof),
		T(boost_above_the_maximum_is_named),
		T(waves_residency_and_issue_are_shown_never_multiplied),
		T(padding_is_arithmetic_of_the_tile),
		T(memory_closes_with_dram_activity_calibrated_by_the_other_cases),
		T(memory_without_others_or_signal_claims_nothing),
#undef T
	};

	return cmocka_run_group_tests_name("judge_gap", tests, NULL, NULL);
}
