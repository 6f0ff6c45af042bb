/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU case that takes turns with its ceiling: what their ratios judge, and what explains them. */
#include "judge_cpu_bed.h"

static const struct factor *factor_of(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	fail_msg("no factor %s", name);
	return NULL;
}

/* 150 GFLOPS that were timed in turns with the ceiling; each turn between low and high. */
static struct record_case *in_turns(double ratio, double low, double high, double cpu_share, double steal)
{
	struct record_case *c = sgemm(150, cpu_share);

	world_set(c, "sustained", "ceiling_ratio", ratio);
	world_set(c, "sustained", "ceiling_ratio_low", low);
	world_set(c, "sustained", "ceiling_ratio_high", high);
	world_set(c, "sustained", "half_width_share", 0.2); /* of the rate: the ratio is what is judged */
	world_set(c, "sustained", "clock_hz", 2.7e9);
	if (steal > 0)
		world_set(c, "sustained", "steal_share", steal);
	world_text(c, "ceiling", "ceiling_by", "peak engine=cpu threads=0 type=fp32 unit=fma");
	world_set(c, "ceiling", "cpu_share", 0.99);
	world_set(c, "ceiling", "clock_hz", 3e9);
	return c;
}

/* ratio, low, high, CPU share, steal: what is judged is the interval, and who took the CPU time. */
static void test_cpu__a_case_in_turns_is_judged_by_their_interval(void **state)
{
	static const struct {
		double ratio, low, high, cpu_share, steal;
		enum verdict v;
		enum cause cause;
		const char *words;
	} rows[] = {
		{0.90, 0.88, 0.92, 0.999, 0, VERDICT_PASS, CAUSE_NONE,
		 "0.90 (0.88 .. 0.92) of this machine's own"},
		{0.64, 0.62, 0.66, 0.999, 0, VERDICT_WARN, CAUSE_BELOW_CEILING, "0.64 (0.62 .. 0.66)"},
		{0.82, 0.70, 0.95, 0.999, 0, VERDICT_PASS, CAUSE_NONE, "(0.70 .. 0.95)"},
		{0.45, 0.43, 0.47, 0.999, 0, VERDICT_FAIL, CAUSE_BELOW_CEILING, "under 0.50"},
		{0.45, 0.35, 0.66, 0.999, 0, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD, "both sides of 0.50"},
		{1.04, 0.90, 1.30, 0.999, 0, VERDICT_PASS, CAUSE_NONE, ""},
		{1.20, 1.10, 1.30, 0.999, 0, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND, "one of the two"},
		/* Other work took a quarter of the case's CPU time and nothing of the ceiling's. */
		{0.66, 0.55, 0.89, 0.754, 0, VERDICT_WARN, CAUSE_CPU_CONTENDED, "of the ceiling's CPU time"},
		{0.45, 0.43, 0.47, 0.754, 0, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED, "of the ceiling's CPU time"},
		{0.30, 0.28, 0.32, 0.754, 0, VERDICT_FAIL, CAUSE_BELOW_CEILING, "under 0.50"},
		/* A neighbour that takes a tenth of both, a host that takes half of both, other work that
		   takes half. */
		{0.90, 0.86, 0.93, 0.900, 0, VERDICT_PASS, CAUSE_CPU_CONTENDED, "other work on this machine took it"},
		{0.90, 0.80, 0.95, 0.500, 0.48, VERDICT_PASS, CAUSE_CPU_CONTENDED, "the host gave it to others"},
		{0.90, 0.86, 0.93, 0.500, 0.01, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED,
		 "other work on this machine"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;

		w.r.case_count = 0;
		c = in_turns(rows[i].ratio, rows[i].low, rows[i].high, rows[i].cpu_share, rows[i].steal);
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_non_null(strstr(world_of(&w, c)->reason, rows[i].words));
		assert_float_equal(world_of(&w, c)->share_of_bound, rows[i].ratio, 1e-9);
		assert_float_equal(world_of(&w, c)->bound.value, 150e9 / rows[i].ratio, 1);
		forget(c);
	}
}

/* Clock, CPU time and the one-thread case explain; the residual is what sharing costs, and the knob was
 * tried. */
static void test_cpu__a_cpu_s_gap_has_signals_of_its_own(void **state)
{
	struct record_case *one, *both;
	const struct judgement *j;

	(void)state;
	ceilings();
	one = in_turns(0.88, 0.87, 0.89, 0.999, 0);
	json_object_set_new(json_object_get((json_t *)one->plan, "options"), "threads", json_string("1"));
	world_set(one, "sustained", "threads", 1);
	world_set(one, "sustained", "flop_rate", 165e9);
	both = in_turns(0.64, 0.62, 0.66, 0.98, 0);
	json_object_set_new(json_object_get((json_t *)both->plan, "options"), "threads", json_string("0"));
	world_judge(&w);
	j = world_of(&w, both);
	assert_float_equal(factor_of(j, "clock")->value, 0.9, 1e-9);
	assert_float_equal(factor_of(j, "cpu time")->value, 0.98 / 0.99, 1e-9);
	assert_float_equal(factor_of(j, "kernel")->value, 0.88, 1e-9);
	assert_true(factor_of(j, "threads")->shown_only);
	assert_float_equal(factor_of(j, "threads")->value, 200.0 / 220, 1e-9);
	assert_float_equal(j->unexplained, 0.64 / (0.9 * 0.98 / 0.99 * 0.88), 1e-6);
	assert_int_equal(j->cause, CAUSE_BELOW_CEILING); /* a residual on a CPU is no finding of its own */
	assert_int_equal(j->advice_count, 2);
	assert_non_null(strstr(j->advice[0].knob, "clock"));
	assert_non_null(strstr(j->advice[1].knob, "one thread per core"));
	assert_non_null(strstr(j->advice[1].gain, "x 1.10: one thread reached that"));
	/* The one-thread case itself has no such factor: it stays in the residual. */
	assert_false(factor_of(world_of(&w, one), "kernel")->present);
}

/* The adds tell the clock after the window: above the ceiling's a core has left the one it had. Noise is
 * none.
 */
static void test_cpu__a_clock_above_the_ceiling_s_explains_nothing(void **state)
{
	static const struct {
		double hz;
		bool present;
	} rows[] = {{3.012e9, true}, {3.876e9, false}};
	const struct judgement *j;
	struct record_case *c;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		c = in_turns(0.84, 0.83, 0.85, 0.99, 0);
		world_set(c, "sustained", "clock_hz", rows[i].hz);
		world_judge(&w);
		j = world_of(&w, c);
		assert_int_equal(factor_of(j, "clock")->present, rows[i].present);
		assert_int_equal(j->clock_recovered, !rows[i].present);
		assert_int_equal(strstr(factor_of(j, "clock")->signal, "differs from the clock in it") == NULL,
				 rows[i].present);
		assert_float_equal(j->unexplained, 0.84 / (rows[i].present ? 1.004 : 1), 1e-6);
		forget(c);
	}
}

/* oneDNN's VNNI kernel of signed bytes: the gap says what it does beside multiplying; no other kernel's does.
 */
static void test_cpu__int8_names_what_signs_cost(void **state)
{
	static const struct {
		const char *kernel;
		bool named;
	} rows[] = {{"brg:avx512_core_vnni", true}, {"brg:avx512_core_amx_int8", false}, {"gemm:jit", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = in_turns(0.61, 0.60, 0.62, 0.98, 0);
		const struct factor *f;

		c->engine = "onednn";
		c->limit = "compute.int8";
		world_text(c, "once", "instruction_set", rows[i].kernel);
		world_judge(&w);
		f = factor_of(world_of(&w, c), "kernel");
		assert_false(f->present);
		assert_int_equal(strstr(f->signal, "signed bytes on unsigned x signed instructions") != NULL,
				 rows[i].named);
		assert_true(strlen(f->signal) < sizeof(f->signal) - 1); /* not cut */
		forget(c);
	}
}

/* The second round counts where it is better, the first where that is; a failure is never repeated away. */
static void test_cpu__the_better_round_counts(void **state)
{
	static const struct {
		double share[2];
		int exit_code;
	} rows[] = {{{0.5, 0.999}, 0}, {{0.999, 0.5}, 0}, {{0.5, 0.5}, 2}};
	struct record_case *a, *b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		w.r.case_count = 0;
		a = in_turns(0.90, 0.89, 0.91, rows[i].share[0], 0);
		b = in_turns(0.90, 0.89, 0.91, rows[i].share[1], 0);
		json_object_set_new((json_t *)b->plan, "again", json_integer(0));
		world_judge(&w);
		assert_int_equal(w.out.exit_code, rows[i].exit_code);
		assert_int_equal(world_of(&w, a)->superseded + world_of(&w, b)->superseded, 1);
		forget(b);
		forget(a);
	}
	a = in_turns(0.30, 0.29, 0.31, 0.999, 0);
	b = in_turns(0.90, 0.89, 0.91, 0.999, 0);
	json_object_set_new((json_t *)b->plan, "again", json_integer(0));
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	/* two failures of one case are one */
	forget(b);
	b = in_turns(0.31, 0.30, 0.32, 0.999, 0);
	json_object_set_new((json_t *)b->plan, "again", json_integer(0));
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	assert_non_null(strstr(w.out.headline, "1 of 1 cases failed"));
}

static void test_cpu__rounds_in_turns_are_compared_by_their_shares(void **state)
{
	struct record_case *b;

	(void)state;
	in_turns(0.90, 0.89, 0.91, 0.999, 0);
	b = in_turns(0.91, 0.90, 0.92, 0.999, 0);
	world_set(b, "sustained", "flop_rate", 120e9); /* slower by its clock, and so was the ceiling */
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_NONE);
	world_set(b, "sustained", "ceiling_ratio", 0.82);
	world_set(b, "sustained", "ceiling_ratio_low", 0.81);
	world_set(b, "sustained", "ceiling_ratio_high", 0.83);
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_WARN, CAUSE_WIDE_SPREAD);
}

/* The case `first` done again by other kernels. */
static struct record_case *tried(unsigned first, const char *tries, double ratio, double low, double high)
{
	struct record_case *c = in_turns(ratio, low, high, 0.999, 0);

	json_object_set_new((json_t *)c->plan, "follows",
			    json_pack("{s:i, s:i, s:s, s:s}", "case", (int)first, "round", 1, "why",
				      "other kernels", "tries", tries));
	world_text(c, "once", "kernels", strchr(tries, '=') ? strchr(tries, '=') + 1 : "");
	return c;
}

/* A low figure and what other kernels reach: which of it turns a failure into a warning. */
static void test_cpu__other_kernels_that_reach_the_mark_make_it_a_warning(void **state)
{
	static const struct {
		double own[3], other[3]; /* ratio, low, high */
		enum verdict v;
		enum cause cause;
		int exit_code;
	} rows[] = {
		{{0.46, 0.45, 0.47}, {0.92, 0.91, 0.93}, VERDICT_WARN, CAUSE_BLAS_KERNEL, 0},
		{{0.60, 0.58, 0.62}, {0.92, 0.91, 0.93}, VERDICT_WARN, CAUSE_BLAS_KERNEL, 0},
		{{0.46, 0.40, 0.55}, {0.92, 0.91, 0.93}, VERDICT_WARN, CAUSE_BLAS_KERNEL, 0}, /* both sides of 0.50 */
		{{0.18, 0.15, 0.19}, {0.74, 0.72, 0.76}, VERDICT_WARN, CAUSE_BLAS_KERNEL, 0}, /* as a busy host gives */
		{{0.30, 0.29, 0.31}, {0.49, 0.48, 0.50}, VERDICT_FAIL, CAUSE_BELOW_CEILING, 1}, /* below the fail mark */
		{{0.46, 0.45, 0.47}, {0.92, 0.30, 0.93}, VERDICT_FAIL, CAUSE_BELOW_CEILING, 1}, /* a lucky turn */
		{{0.46, 0.45, 0.47}, {1.30, 1.20, 1.40}, VERDICT_FAIL, CAUSE_BELOW_CEILING, 1}, /* beyond the ceiling */
		{{0.90, 0.89, 0.91}, {0.99, 0.98, 1.00}, VERDICT_PASS, CAUSE_NONE, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c, *t;

		w.r.case_count = 0;
		c = in_turns(rows[i].own[0], rows[i].own[1], rows[i].own[2], 0.999, 0);
		world_text(c, "once", "kernels", "Haswell");
		t = tried(0, "OPENBLAS_CORETYPE=SkylakeX", rows[i].other[0], rows[i].other[1],
			  rows[i].other[2]);
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_int_equal(w.out.exit_code, rows[i].exit_code);
		assert_true(world_of(&w, t)->superseded);
		assert_int_equal(world_of(&w, t)->verdict, VERDICT_MEASURED);
		assert_false(world_of(&w, t)->has_figure); /* nobody compares it as if it were the case */
		if (rows[i].cause == CAUSE_BELOW_CEILING)
			assert_int_equal(strstr(world_of(&w, c)->reason, "also tried: OPENBLAS_CORETYPE=SkylakeX") != NULL,
					 rows[i].other[1] < 1.05);
		forget(t);
		forget(c);
	}
}

/* The best of several counts, whoever is wrong, crashed, or of another case; the command has the run's own words. */
static void test_cpu__what_to_type_is_the_runs_own_command(void **state)
{
	static const char *const words[] = {"/opt/assay/build/src/assay", "check", "my suite", "--out", "there", "--out=x", "--seed", "7"};
	json_t *open = json_object(), *command = json_array();
	struct record_case *c, *t[4];
	const struct judgement *j;

	(void)state;
	w.r.case_count = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		json_array_append_new(command, json_string(words[i]));
	json_object_set_new(open, "command", command);
	w.r.open = open;
	c = in_turns(0.46, 0.45, 0.47, 0.999, 0);
	world_text(c, "once", "kernels", "Haswell");
	t[0] = tried(0, "OPENBLAS_CORETYPE=Zen", 0.85, 0.84, 0.86);
	t[1] = tried(0, "OPENBLAS_CORETYPE=SkylakeX", 0.92, 0.91, 0.93);
	t[2] = tried(0, "OPENBLAS_CORETYPE=Cooperlake", 0.99, 0.98, 1.00);
	t[2]->status = STATUS_MISMATCH;
	t[3] = tried(7, "OPENBLAS_CORETYPE=Nehalem", 0.99, 0.98, 1.00);
	world_judge(&w);
	j = world_of(&w, c);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BLAS_KERNEL);
	assert_non_null(strstr(j->reason, "kernels Haswell; with OPENBLAS_CORETYPE=SkylakeX it reaches 0.92, x 2.0"));
	assert_true(j->advice_count >= 1);
	assert_string_equal(j->advice[0].knob, "OPENBLAS_CORETYPE=SkylakeX assay check 'my suite' --seed 7");
	assert_string_equal(j->advice[0].gain, "x 2.0");
	assert_non_null(strstr(world_of(&w, t[2])->reason, "no usable result"));
	for (int i = 3; i >= 0; i--)
		forget(t[i]);
	forget(c);
	w.r.open = NULL;
	json_decref(open);
}

/* Another library that has no setting is called by the probe. */
static void test_cpu__another_engine_is_named_by_its_probe(void **state)
{
	struct record_case *c, *t;

	(void)state;
	w.r.case_count = 0;
	c = in_turns(0.46, 0.45, 0.47, 0.999, 0);
	t = tried(0, "onednn", 0.92, 0.91, 0.93);
	t->engine = "onednn";
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BLAS_KERNEL);
	assert_string_equal(world_of(&w, c)->advice[0].knob,
			    "assay probe gemm --engine onednn type=fp32 m=2048 n=2048 k=2048");
	forget(t);
	forget(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_cpu__##name, setup, end)
		T(begin_cpu, a_case_in_turns_is_judged_by_their_interval),
		T(begin_cpu, a_cpu_s_gap_has_signals_of_its_own),
		T(begin_cpu, a_clock_above_the_ceiling_s_explains_nothing),
		T(begin_cpu, int8_names_what_signs_cost),
		T(begin_cpu, the_better_round_counts),
		T(begin_cpu, other_kernels_that_reach_the_mark_make_it_a_warning),
		T(begin_cpu, what_to_type_is_the_runs_own_command),
		T(begin_cpu, another_engine_is_named_by_its_probe),
		T(begin_cpu, rounds_in_turns_are_compared_by_their_shares),
#undef T
	};

	return cmocka_run_group_tests_name("judge_cpu_turns", tests, NULL, NULL);
}
