/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU against its own ceilings: stolen time, traffic, points of a curve. */
#include "judge_cpu_bed.h"

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
			assert_non_null(strstr(world_of(&w, c)->reason, "m, n or k is below 1024"));
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
		 "of the rate of reading alone, which is no bound for other traffic"},
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
	assert_non_null(strstr(w.out.headline, "own ceilings, since there is no reference for this CPU model"));
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
		T(begin_cpu, a_point_of_a_curve_may_scatter),
		T(begin_cpu, a_ceiling_that_others_slowed_judges_nothing),
		T(begin_cpu, a_healthy_cpu_machine_ends_with_zero_and_says_what_that_means),
#undef T
	};

	return cmocka_run_group_tests_name("judge_cpu", tests, NULL, NULL);
}
