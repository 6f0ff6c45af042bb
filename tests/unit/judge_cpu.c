/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU against its own ceilings: turns, stolen time, rounds. */
#include "judge_bed.h"

/* Two threads, FMA ceilings of one and both, dependent-add clock, read stream: as a small machine leaves
 * them. */
static void ceilings(void)
{
	struct record_case *c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=0");

	world_set(c, "sustained", "flop_rate", 200e9);
	world_set(c, "sustained", "threads", 2);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=1");
	world_set(c, "sustained", "flop_rate", 110e9);
	world_set(c, "sustained", "threads", 1);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "memory", "unit=read threads=0");
	world_set(c, "sustained", "byte_rate", 20e9);
	world_verified(c);
}

static struct record_case *sgemm(double gflops, double cpu_share)
{
	struct record_case *c =
		world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32 m=2048 n=2048 k=2048 data=random");

	c->engine = "openblas";
	world_set(c, "sustained", "flop_rate", gflops * 1e9);
	world_set(c, "sustained", "cpu_share", cpu_share);
	world_set(c, "sustained", "threads", 2);
	world_set(c, "sustained", "half_width_share", 0.003);
	world_verified(c);
	return c;
}

static void test_cpu__a_cpu_is_held_against_its_own_ceilings(void **state)
{
	static const struct {
		double gflops;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{184, VERDICT_PASS, CAUSE_NONE},
		{150, VERDICT_WARN, CAUSE_BELOW_CEILING},
		{90, VERDICT_FAIL, CAUSE_BELOW_CEILING},
		{230, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;
		char key[8];

		if (!i)
			ceilings();
		c = sgemm(rows[i].gflops, 0.999);
		snprintf(key, sizeof(key), "k%zu", i); /* not a round of the one before */
		json_object_set_new((json_t *)c->plan, "key", json_string(key));
		c->key = json_string_value(json_object_get(c->plan, "key"));
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_int_equal(world_of(&w, c)->bound.from, BOUND_CEILING);
		assert_int_equal(world_of(&w, c)->judged_by, JUDGED_CEILING);
	}
	assert_verdict(&w, &w.cases[0], VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
}

/* Takes the last case out of the world again. */
static void forget(struct record_case *c)
{
	for (size_t p = 0; p < c->phase_count; p++)
		json_decref(c->phase[p].values);
	free(c->phase);
	json_decref((json_t *)c->plan);
	w.r.case_count--;
}

/* A sound product reaches as little of the FMA loop where memory, caches or its start bounds it. */
static void test_cpu__only_a_large_product_is_held_against_multiply_adds(void **state)
{
	static const struct {
		const char *options;
		bool judged;
	} rows[] = {
		{"type=fp32 m=1 n=4096 k=4096", false},	    {"type=fp32 m=16 n=2048 k=2048", false},
		{"type=fp32 m=4096 n=4096 k=1", false},	    {"type=fp32 m=1 n=1 k=1", false},
		{"type=fp32 m=128 n=128 k=128", false},	    {"type=fp32 m=2048 n=1023 k=2048", false},
		{"type=bf16 m=1 n=4096 k=4096", false},	    {"type=int8 m=4096 n=4096 k=64", false},
		{"type=fp32 m=1024 n=1024 k=1024", true},   {"type=bf16 m=1024 n=8192 k=1024", true},
		{"type=int8 m=8192 n=4096 k=100000", true},
	};
	size_t i;

	(void)state;
	ceilings();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, "gemm", "cpu", "compute.fp32", rows[i].options);

		c->require = REQUIRE_KNOWN;
		world_set(c, "sustained", "flop_rate", 4e9);
		world_set(c, "sustained", "threads", 2);
		world_set(c, "sustained", "half_width_share", 0.003);
		world_verified(c);
		world_judge(&w);
		if (rows[i].judged) {
			assert_verdict(&w, c, VERDICT_FAIL, CAUSE_BELOW_CEILING);
		} else {
			assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
			assert_non_null(strstr(world_of(&w, c)->reason, "m, n or k is under 1024"));
		}
		forget(c);
	}
}

/* A copy that was timed in turns with a loop of probe peak, reached `ratio` of it. */
static struct record_case *copy_beside(const char *unit, const char *store, double ratio)
{
	struct record_case *c = world_case(&w, "memory", "cpu", "memory", "op=copy store=auto size=0");
	char by[64];

	snprintf(by, sizeof(by), "peak engine=cpu isa=auto threads=0 type=fp32 unit=%s", unit);
	world_set(c, "sustained", "byte_rate", 24e9);
	world_set(c, "sustained", "ceiling_ratio", ratio);
	world_set(c, "sustained", "ceiling_ratio_low", ratio - 0.02);
	world_set(c, "sustained", "ceiling_ratio_high", ratio + 0.02);
	world_text(c, "once", "store", store);
	world_text(c, "ceiling", "ceiling_by", by);
	world_verified(c);
	return c;
}

static void test_cpu__a_cpu_memory_case_is_held_against_its_own_traffic(void **state)
{
	static const struct {
		const char *unit, *store;
		double ratio;
		enum verdict v;
		enum cause cause;
		enum bound_from from;
		const char *why;
	} rows[] = {
		{"read_write_nt", "nontemporal", 0.95, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, BOUND_CEILING,
		 "own ceiling"},
		{"read_write_nt", "nontemporal", 0.70, VERDICT_WARN, CAUSE_BELOW_CEILING, BOUND_CEILING,
		 "under 0.80"},
		{"read_write_nt", "nontemporal", 0.40, VERDICT_FAIL, CAUSE_BELOW_CEILING, BOUND_CEILING,
		 "under 0.50"},
		/* another loop of this traffic may be paced better; 4 streams counted for 3 are not that */
		{"read_write_nt", "nontemporal", 1.20, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, BOUND_CEILING, ""},
		{"read_write_nt", "nontemporal", 1.33, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND, BOUND_CEILING,
		 "1.33 (1.31 .. 1.35) of this machine's own ceiling"},
		{"read_write", "regular", 0.95, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, BOUND_CEILING, ""},
		/* reading, which a copy may exceed and a regular store cannot reach */
		{"read", "nontemporal", 1.20, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, BOUND_NONE,
		 "of reading alone, which bounds no other traffic"},
		{"read", "regular", 0.40, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, BOUND_NONE, "0.60"},
		{"read", "nontemporal", 0.40, VERDICT_WARN, CAUSE_BELOW_CEILING, BOUND_NONE, "0.40"},
		{"read_write", "nontemporal", 1.20, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE, BOUND_NONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = copy_beside(rows[i].unit, rows[i].store, rows[i].ratio);

		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_int_equal(world_of(&w, c)->bound.from, rows[i].from);
		assert_non_null(strstr(world_of(&w, c)->reason, rows[i].why));
		forget(c);
	}
}

/* Not in turns: the read stream of the run stands for reading, and for nothing else. */
static void test_cpu__the_read_stream_bounds_no_copy(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = world_case(&w, "memory", "cpu", "memory", "op=read size=0");
	world_set(c, "sustained", "byte_rate", 19e9);
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	forget(c);
	c = world_case(&w, "memory", "cpu", "memory", "op=copy size=0");
	world_set(c, "sustained", "byte_rate", 19e9);
	world_text(c, "once", "store", "nontemporal");
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, c)->bound.from, BOUND_NONE);
}

static void test_cpu__stolen_cpu_time_is_contention_and_a_quota_is_not(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = sgemm(184, 0.93);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
	w.cpu.quota = 1;
	world_set(c, "sustained", "cpu_share", 0.499);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_CPU_QUOTA);
}

static void test_cpu__ranks_that_take_turns_are_told(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = sgemm(184, 0.93);
	w.cpu.quota = 1;
	world_set(c, "sustained", "cpu_share", 0.93);
	world_set(c, "once", "oversubscribed", 1);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_CPU_CROWDED);
}

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
		/* A neighbour that takes a tenth of both, a host that takes half of both, other work that
		   takes half. */
		{0.90, 0.86, 0.93, 0.900, 0, VERDICT_PASS, CAUSE_CPU_CONTENDED, "other work here took"},
		{0.90, 0.80, 0.95, 0.500, 0.48, VERDICT_PASS, CAUSE_CPU_CONTENDED, "the host gave to others"},
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
	assert_non_null(strstr(j->advice[1].knob, "one thread a core"));
	assert_non_null(strstr(j->advice[1].gain, "x 1.10: one thread gave that here"));
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
		assert_int_equal(strstr(factor_of(j, "clock")->signal, "is not the one in it") == NULL,
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

static void test_cpu__a_point_of_a_curve_may_scatter(void **state)
{
	struct record_case *c = world_case(&w, "memory", "cpu", "latency", "op=chase size=65536");

	(void)state;
	c->phases = "burst";
	c->require = REQUIRE_MEASURED;
	world_set(c, "burst", "latency_ns", 5);
	world_set(c, "burst", "half_width_share", 0.049);
	world_set(c, "burst", "cpu_share", 0.9);
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	world_set(c, "burst", "half_width_share", 0.09);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_WIDE_SPREAD);
	world_set(c, "burst", "cpu_share", 0.5);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
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

static void test_cpu__a_ceiling_that_others_slowed_judges_nothing(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = sgemm(184, 0.999);
	world_set(&w.cases[0], "sustained", "cpu_share", 0.80);
	w.cases[0].key = "peak of two threads";
	world_set(&w.cases[1], "sustained", "cpu_share", 0.70);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, c)->bound.from, BOUND_NONE);
	assert_verdict(&w, &w.cases[0], VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
}

static void test_cpu__a_healthy_cpu_machine_ends_with_zero_and_says_what_that_means(void **state)
{
	struct record_case *log;
	size_t i;

	(void)state;
	ceilings();
	for (i = 0; i < w.r.case_count; i++)
		w.cases[i].require = REQUIRE_MEASURED;
	sgemm(184, 0.999);
	log = world_reading(&w, "host_state", "cpu", "kernel_log_readable=0");
	world_judge(&w);
	assert_verdict(&w, log, VERDICT_UNKNOWN, CAUSE_NO_LOG);
	assert_int_equal(w.out.exit_code, 0);
	assert_int_equal(w.out.verdict, VERDICT_PASS);
	assert_non_null(strstr(w.out.headline, "own ceilings: no reference for this CPU model"));
	assert_int_equal(w.out.could_not_look_count, 1);
	assert_true(w.out.operator_input_count >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_cpu__##name, setup, end)
		T(begin_cpu, a_cpu_is_held_against_its_own_ceilings),
		T(begin_cpu, only_a_large_product_is_held_against_multiply_adds),
		T(begin_cpu, a_cpu_memory_case_is_held_against_its_own_traffic),
		T(begin_cpu, the_read_stream_bounds_no_copy),
		T(begin_cpu, stolen_cpu_time_is_contention_and_a_quota_is_not),
		T(begin_cpu, ranks_that_take_turns_are_told),
		T(begin_cpu, a_case_in_turns_is_judged_by_their_interval),
		T(begin_cpu, a_cpu_s_gap_has_signals_of_its_own),
		T(begin_cpu, a_clock_above_the_ceiling_s_explains_nothing),
		T(begin_cpu, int8_names_what_signs_cost),
		T(begin_cpu, a_point_of_a_curve_may_scatter),
		T(begin_cpu, the_better_round_counts),
		T(begin_cpu, rounds_in_turns_are_compared_by_their_shares),
		T(begin_cpu, a_ceiling_that_others_slowed_judges_nothing),
		T(begin_cpu, a_healthy_cpu_machine_ends_with_zero_and_says_what_that_means),
#undef T
	};

	return cmocka_run_group_tests_name("judge_cpu", tests, NULL, NULL);
}
