/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of real cards: what their own signals explain stays explained. `check full` on an H200 as committed;
 * and the first `check quick` on an H100, cut down to ceilings, GEMM and memory, whose CPU was disturbed.
 */
#include <math.h>
#include "judge/case/context.h"
#include "judge/gap/gap.h"
#include "judge/judge.h"
#include "scratch.h"

struct real {
	struct record r;
	struct expectations *e;
	struct judgements j;
};

static int begin(void **state, const char *run)
{
	struct real *real = calloc(1, sizeof(*real));
	struct error err = {0};

	*state = real;
	if (record_read(&real->r, run, &err) || expectations_load(&real->e, NULL, &err) ||
	    judge_record(&real->j, &real->r, real->e, NULL, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int begin_h200(void **state)
{
	return begin(state, SOURCE_DIR "/results/2026-11-21-h200-sxm/full");
}

static int begin_h100(void **state)
{
	return begin(state, SOURCE_DIR "/tests/data/judge/h100-quick");
}

static int end(void **state)
{
	struct real *real = *state;

	judgements_release(&real->j);
	expectations_free(real->e);
	record_release(&real->r);
	free(real);
	return 0;
}

static bool has(const struct record_case *c, const char *option, const char *value)
{
	const char *text = record_option(c, option);

	return text && !strcmp(text, value);
}

/* The case of a probe and engine with these options ("" any). */
static size_t find(const struct real *real, const char *probe, const char *engine, const char *type,
		   const char *option, const char *value)
{
	size_t i;

	for (i = 0; i < real->r.case_count; i++) {
		const struct record_case *c = &real->r.cases[i];

		if (!strcmp(c->probe, probe) && !strcmp(c->engine, engine) &&
		    (!*type || has(c, "type", type)) && has(c, option, value))
			return i;
	}
	fail_msg("the record has no %s of %s %s %s=%s", probe, engine, type, option, value);
	return 0;
}

static const struct factor *factor(const struct judgement *j, const char *name)
{
	size_t i;

	for (i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	fail_msg("no factor %s", name);
	return NULL;
}

static void test_real__gemm_and_memory_close_within_half_a_percent(void **state)
{
	static const char *const types[] = {"bf16", "e4m3", "fp16", "tf32", "fp64", "fp32", "int8"};
	static const char *const ops[] = {"read", "write", "copy", "triad"};
	const struct real *real = *state;
	size_t i, closed = 0;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct judgement *j =
			&real->j.of_case[find(real, "gemm", "cublaslt", types[i], "m", "8192")];

		if (!j->explained || fabs(j->unexplained - 1) > 0.005)
			fail_msg("%s: residual %.4f", types[i], j->unexplained);
		closed++;
	}
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const struct judgement *j = &real->j.of_case[find(real, "memory", "own", "", "op", ops[i])];

		if (!j->explained || fabs(j->unexplained - 1) > 0.005)
			fail_msg("%s: residual %.4f", ops[i], j->unexplained);
		closed++;
	}
	assert_int_equal(closed, 11);
}

/* FP64 runs on the matrix units there: GPM 11 reads nothing, GPM 5 all of it. */
static void test_real__fp64_is_read_from_the_pipe_that_calibrates(void **state)
{
	const struct real *real = *state;
	const struct judgement *j = &real->j.of_case[find(real, "gemm", "cublaslt", "fp64", "m", "8192")];
	const struct judgement *peak = &real->j.of_case[find(real, "peak", "own", "fp64", "unit", "mma")];

	assert_non_null(strstr(factor(j, "pipe")->signal, "GPM 5"));
	assert_true(factor(j, "pipe")->value > 0.95 && factor(j, "pipe")->value < 1);
	assert_int_equal(peak->verdict,
			 VERDICT_MEASURED); /* 1998 MHz held: above the bound at 1980, not above_bound */
	assert_true(peak->share_of_bound > 1.005);
	assert_int_equal(peak->advice_count, 0);
}

/* cuBLASLt chose tiles of 320 x 128: 26 of them cover 8192 rows and 128 rows more. */
static void test_real__padding_of_the_chosen_tile_is_counted(void **state)
{
	const struct real *real = *state;
	const struct judgement *j = &real->j.of_case[find(real, "gemm", "cublaslt", "bf16", "m", "8192")];

	assert_float_equal(factor(j, "useful")->value, 8192.0 / 8320, 1e-9);
}

static void test_real__a_disturbed_ceiling_judges_nothing(void **state)
{
	const struct real *real = *state;
	const struct judgement *j = &real->j.of_case[find(real, "gemm", "openblas", "fp32", "m", "2048")];

	assert_int_equal(j->verdict, VERDICT_UNKNOWN);
	assert_int_equal(j->cause, CAUSE_NO_REFERENCE);
	assert_int_equal(j->bound.from, BOUND_NONE);
	assert_non_null(strstr(j->reason, "disturbed"));
}

/* Its FP64 window had not settled; a tenth less and the band is what is said of it. */
static void test_real__the_band_is_named_before_how_it_was_taken(void **state)
{
	struct real *real = *state;
	size_t at = find(real, "gemm", "cublaslt", "fp64", "m", "8192");
	const struct record_phase *window = record_phase(&real->r.cases[at], "sustained");
	const struct judgement *j = &real->j.of_case[at];
	struct judgements after;
	struct error err = {0};

	assert_int_not_equal(j->cause, CAUSE_BELOW_BAND);
	json_object_set_new(window->values, "flop_rate", json_real(0.9 * j->figure));
	assert_int_equal(judge_record(&after, &real->r, real->e, NULL, &err), STATUS_OK);
	assert_int_equal(after.of_case[at].verdict, VERDICT_WARN);
	assert_int_equal(after.of_case[at].cause, CAUSE_BELOW_BAND);
	assert_non_null(strstr(after.of_case[at].reason, "held clock of 1770 MHz"));
	assert_non_null(strstr(after.of_case[at].reason, "more than 5 % off fails"));
	judgements_release(&after);
}

static void test_real__whole_numbers_are_no_floating_point(void **state)
{
	const struct real *real = *state;

	assert_string_equal(real->j.of_case[find(real, "gemm", "cublaslt", "int8", "m", "8192")].figure_unit,
			    "OP/s");
}

/* A factor of the target, and what is shown beside it of the same signal. */
static bool is_of(const char *name, const char *factor_name)
{
	if (!strcmp(factor_name, "pipe")) /* issue is the part of the pipe beside residency */
		return !strcmp(name, "pipe") || !strcmp(name, "issue");
	return !strcmp(name, factor_name);
}

/*
 * After the target's signal was altered to 0.95 of itself: that factor and its residual moved by it, and
 * nothing of any other case, but (calibrated) of those memory cases that are read by what the target showed.
 */
static void holds_after(const struct real *real, size_t target, const char *name, bool calibrates)
{
	struct judgements after;
	struct error err = {0};
	size_t i, k, own = 0;

	assert_int_equal(judge_record(&after, &real->r, real->e, NULL, &err), STATUS_OK);
	assert_int_equal(after.count, real->j.count);
	for (i = 0; i < after.count; i++) {
		const struct judgement *was = &real->j.of_case[i], *is = &after.of_case[i];
		double by = i == target ? 0.95 : 1;

		if (calibrates && i != target && !strcmp(real->r.cases[i].probe, "memory"))
			continue;
		assert_int_equal(is->gap_count, was->gap_count);
		assert_float_equal(is->unexplained, was->unexplained / by, 1e-9);
		for (k = 0; k < is->gap_count; k++) {
			bool its = i == target && is_of(is->gap[k].name, name);

			own += its;
			assert_float_equal(is->gap[k].value, was->gap[k].value * (its ? by : 1), 1e-9);
		}
	}
	assert_true(own > 0 && real->j.of_case[target].explained);
	assert_false(after.of_case[target].explained); /* 5 % are more than the 3 % that are claimed */
	judgements_release(&after);
}

/* Readings of a signal inside the target's window, 5 % lower. */
static void lower_series(struct real *real, size_t target, const char *signal)
{
	const struct record_phase *window = record_phase(&real->r.cases[target], "sustained");
	size_t i, k, altered = 0;

	assert_non_null(window);
	for (i = 0; i < real->r.series_count; i++) {
		struct series *s = &real->r.series[i];

		for (k = 0; !strcmp(s->signal, signal) && k < s->count; k++)
			if (s->t_ns[k] >= window->t0_ns && s->t_ns[k] <= window->t1_ns) {
				s->value[k] *= 0.95;
				altered++;
			}
	}
	assert_true(altered > 0);
}

/* A field of the target's window, 5 % lower. */
static void lower_field(struct real *real, size_t target, const char *field)
{
	const struct record_phase *window = record_phase(&real->r.cases[target], "sustained");
	double value;

	assert_true(window && record_number(window, field, &value));
	json_object_set_new(window->values, field, json_real(0.95 * value));
}

static void test_real__a_tensor_signal_off_by_five_percent_moves_pipe_and_residual(void **state)
{
	size_t target = find(*state, "gemm", "cublaslt", "e4m3", "m", "8192");

	lower_series(*state, target, "gpm_tensor_share");
	holds_after(*state, target, "pipe", false);
}

static void test_real__stamps_off_by_five_percent_move_clock_and_residual(void **state)
{
	size_t target = find(*state, "gemm", "cublaslt", "tf32", "m", "8192");

	lower_field(*state, target, "clock_hz");
	holds_after(*state, target, "clock", false);
}

static void test_real__a_dram_signal_off_by_five_percent_moves_busy_and_residual(void **state)
{
	size_t target = find(*state, "memory", "own", "", "op", "copy");

	lower_series(*state, target, "gpm_dram_share");
	holds_after(*state, target, "busy", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define H200(name) cmocka_unit_test_setup_teardown(test_real__##name, begin_h200, end)
#define H100(name) cmocka_unit_test_setup_teardown(test_real__##name, begin_h100, end)
		H200(gemm_and_memory_close_within_half_a_percent),
		H100(fp64_is_read_from_the_pipe_that_calibrates),
		H200(padding_of_the_chosen_tile_is_counted),
		H100(a_disturbed_ceiling_judges_nothing),
		H100(the_band_is_named_before_how_it_was_taken),
		H200(whole_numbers_are_no_floating_point),
		H200(a_tensor_signal_off_by_five_percent_moves_pipe_and_residual),
		H200(stamps_off_by_five_percent_move_clock_and_residual),
		H200(a_dram_signal_off_by_five_percent_moves_busy_and_residual),
#undef H200
#undef H100
	};

	return cmocka_run_group_tests_name("judge_real", tests, NULL, NULL);
}
