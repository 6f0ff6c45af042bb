/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one CPU that cannot both be right. */
#include "judge_bed.h"
#include "journal/figure/contradiction.h"

static void test_contradictions__keys_are_held_against_each_other(void **state)
{
	static const char one[] = "peak engine=cpu isa=auto threads=1 type=fp32 unit=fma",
			  two[] = "peak engine=cpu isa=auto threads=2 type=fp32 unit=fma",
			  all[] = "peak engine=cpu isa=auto threads=0 type=fp32 unit=fma",
			  other[] = "peak engine=cpu isa=auto threads=0 type=fp64 unit=fma",
			  small[] = "memory engine=cpu op=read search=top size=1MiB store=auto threads=1",
			  large[] = "memory engine=cpu op=read search=top size=32MiB store=auto threads=1",
			  tiny[] = "memory engine=cpu op=read search=top size=16KiB store=auto threads=1",
			  whole[] = "memory engine=cpu op=read search=first size=0 store=auto threads=0",
			  copy[] = "memory engine=cpu op=copy search=top size=32MiB store=auto threads=1";

	(void)state;
	assert_int_equal(contradiction_of(one, 200e9, all, 170e9), CONTRADICTION_THREADS);
	assert_int_equal(contradiction_of(one, 200e9, two, 170e9), CONTRADICTION_THREADS);
	assert_int_equal(contradiction_of(two, 200e9, all, 170e9), CONTRADICTION_THREADS);
	assert_int_equal(contradiction_of(one, 200e9, all, 195e9), CONTRADICTION_NONE); /* within 5 % */
	assert_int_equal(contradiction_of(all, 400e9, one, 200e9), CONTRADICTION_NONE);
	assert_int_equal(contradiction_of(one, 200e9, other, 100e9), CONTRADICTION_NONE);
	assert_int_equal(contradiction_of(one, 200e9, one, 100e9), CONTRADICTION_NONE); /* rounds */
	assert_int_equal(contradiction_of(large, 71.7e9, small, 51.3e9), CONTRADICTION_SIZE);
	assert_int_equal(contradiction_of(large, 60e9, small, 51.3e9), CONTRADICTION_NONE);
	assert_int_equal(contradiction_of(small, 71.7e9, large, 51.3e9), CONTRADICTION_NONE); /* a cache */
	assert_int_equal(contradiction_of(large, 71.7e9, tiny, 10e9),
			 CONTRADICTION_NONE); /* its loop costs */
	assert_int_equal(contradiction_of(large, 71.7e9, copy, 10e9), CONTRADICTION_NONE);
	/* Inside the cache a thread may do more than all do beyond it; beyond it no thread does. */
	assert_int_equal(contradiction_of(large, 71.7e9, whole, 51.3e9), CONTRADICTION_NONE);
	assert_int_equal(contradiction_of("memory engine=cpu op=read search=top size=0 store=auto threads=1",
					  71.7e9, whole, 51.3e9),
			 CONTRADICTION_THREADS);
	assert_int_equal(contradiction_of("peak engine=cpu threads=1 unit=add", 3,
					  "peak engine=cpu threads=0 unit=add", 2),
			 CONTRADICTION_NONE); /* a clock */
	assert_int_equal(contradiction_of(one, 0, all, 1), CONTRADICTION_NONE);
	assert_int_equal(
		contradiction_of("gemm engine=openblas threads=1", 2, "gemm engine=openblas threads=0", 1),
		CONTRADICTION_NONE);
	assert_int_equal(contradiction_of("peak engine=cpu threads=", 2, "peak engine=cpu size=", 1),
			 CONTRADICTION_NONE);
}

static struct record_case *measured(const char *key, const char *probe, const char *limit, const char *field,
				    double value)
{
	struct record_case *c = world_case(&w, probe, "cpu", limit, "");

	json_object_set_new((json_t *)c->plan, "key", json_string(key));
	c->key = json_string_value(json_object_get(c->plan, "key"));
	c->engine = "cpu";
	c->require = REQUIRE_MEASURED;
	c->phases = "burst";
	world_set(c, "burst", field, value);
	world_verified(c);
	return c;
}

static struct record_case *ceiling(unsigned threads, double gflops)
{
	char key[96];

	snprintf(key, sizeof(key), "peak engine=cpu isa=auto threads=%u type=fp32 unit=fma", threads);
	return measured(key, "peak", "compute.fp32", "flop_rate", gflops * 1e9);
}

static struct record_case *chase(const char *size, double ns)
{
	char key[96];

	snprintf(key, sizeof(key), "memory engine=cpu op=chase search=top size=%s store=auto threads=1",
		 size);
	return measured(key, "memory", "latency", "latency_ns", ns);
}

static void test_contradictions__two_threads_below_one_are_both_untrusted(void **state)
{
	struct record_case *one = ceiling(1, 194), *two = ceiling(0, 172);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, one, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
	assert_verdict(&w, two, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
	assert_non_null(strstr(world_of(&w, one)->reason, "more threads reached less"));
	assert_non_null(strstr(world_of(&w, two)->reason, "fewer threads reached more"));
	assert_int_equal(w.out.exit_code, 2);
	/* A quota explains it. */
	w.cpu.usable = 2;
	w.cpu.quota = 1;
	world_judge(&w);
	assert_int_equal(world_of(&w, one)->verdict, VERDICT_MEASURED);
	w.cpu.quota = 0;
	world_set(two, "burst", "flop_rate", 380e9);
	world_judge(&w);
	assert_int_equal(world_of(&w, one)->verdict, VERDICT_MEASURED);
	assert_int_equal(world_of(&w, two)->verdict, VERDICT_MEASURED);
}

/* Measured again, they agree: the second round counts, and nothing is open. */
static void test_contradictions__a_round_that_agrees_settles_it(void **state)
{
	struct record_case *one = ceiling(1, 194), *two = ceiling(0, 172), *again = ceiling(0, 385);

	(void)state;
	again->id = 2;
	json_object_set_new((json_t *)again->plan, "again", json_integer(1));
	world_judge(&w);
	assert_int_equal(world_of(&w, one)->verdict, VERDICT_MEASURED);
	assert_true(world_of(&w, two)->superseded);
	assert_false(world_of(&w, again)->superseded);
	assert_int_equal(world_of(&w, again)->verdict, VERDICT_WARN); /* its rounds differ */
	world_set(again, "burst", "flop_rate", 175e9);		      /* and again it is less */
	world_judge(&w);
	assert_verdict(&w, one, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
	assert_verdict(&w, again, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
}

/* A cache that is slower than the one behind it: sound hosts show such points, so a curve only tells. */
static void test_contradictions__a_larger_size_is_not_faster(void **state)
{
	struct record_case *small = chase("3MiB", 153), *large = chase("12MiB", 60),
			   *next = chase("24MiB", 170);

	(void)state;
	world_judge(&w);
	assert_int_equal(world_of(&w, small)->verdict, VERDICT_MEASURED);
	assert_int_equal(world_of(&w, large)->verdict, VERDICT_MEASURED);
	assert_non_null(strstr(world_of(&w, small)->reason, "a larger size was faster"));
	assert_non_null(strstr(world_of(&w, large)->reason, "a smaller size was slower"));
	assert_null(strstr(world_of(&w, next)->reason, "size"));
	world_set(large, "burst", "latency_ns", 150);
	world_judge(&w);
	assert_null(strstr(world_of(&w, small)->reason, "a larger size"));
}

/* 40 % apart: more than the tolerance, and no more than the tolerance and both half-widths. */
static void test_contradictions__half_widths_count(void **state)
{
	struct record_case *small = chase("3MiB", 140), *large = chase("12MiB", 100);

	(void)state;
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, small)->reason, "a larger size was faster"));
	world_set(small, "burst", "half_width_share", 0.08);
	world_set(large, "burst", "half_width_share", 0.08);
	world_judge(&w);
	assert_null(strstr(world_of(&w, small)->reason, "a larger size"));
}

static struct record_case *reads(const char *size, unsigned threads, double gb)
{
	char key[96];

	snprintf(key, sizeof(key), "memory engine=cpu op=read search=top size=%s store=auto threads=%u", size,
		 threads);
	return measured(key, "memory", "memory", "byte_rate", gb * 1e9);
}

/* One thread in a cache beside all threads: of the same level they contradict each other, else not. */
static void test_contradictions__one_thread_in_a_cache_beside_all(void **state)
{
	struct record_case *one, *all, *beyond, *inner;

	(void)state;
	w.cpu.l1d_bytes = 32768;
	w.cpu.l2_bytes = 1 << 20;
	w.cpu.l3_bytes = 32 << 20;
	one = reads("8MiB", 1, 71.7);
	beyond = reads("0", 0, 51.3);
	inner = reads("512KiB", 0, 51.3);
	world_judge(&w);
	assert_int_equal(world_of(&w, one)->verdict, VERDICT_MEASURED);
	assert_int_equal(world_of(&w, beyond)->verdict, VERDICT_MEASURED);
	assert_int_equal(world_of(&w, inner)->verdict, VERDICT_MEASURED);
	all = reads("8MiB", 0, 51.3);
	world_judge(&w);
	assert_verdict(&w, one, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
	assert_verdict(&w, all, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
	assert_int_equal(world_of(&w, beyond)->verdict, VERDICT_MEASURED);
}

/* The same loop by itself and in turns with a case. */
static void test_contradictions__a_ceiling_at_two_moments_is_told(void **state)
{
	struct record_case *peak = measured("peak engine=cpu isa=auto threads=0 type=fp32 unit=read", "peak",
					    "memory", "byte_rate", 51.3e9);
	struct record_case *c = world_case(&w, "memory", "cpu", "memory", "op=read threads=0");

	(void)state;
	world_set(c, "sustained", "byte_rate", 71.7e9);
	world_set(c, "sustained", "ceiling_ratio", 1.0);
	world_text(c, "ceiling", "ceiling_by", peak->key);
	world_set(c, "ceiling", "byte_rate", 72e9);
	world_verified(c);
	world_judge(&w);
	assert_int_equal(world_of(&w, peak)->verdict, VERDICT_MEASURED); /* nobody asked to judge it */
	assert_non_null(strstr(world_of(&w, peak)->reason, "was not in a steady state"));
	world_set(c, "ceiling", "byte_rate", 55e9);
	world_judge(&w);
	assert_null(strstr(world_of(&w, peak)->reason, "was not in a steady state"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_contradictions__##name, begin_cpu, end)
		T(keys_are_held_against_each_other), T(two_threads_below_one_are_both_untrusted),
		T(a_round_that_agrees_settles_it),   T(a_larger_size_is_not_faster),
		T(a_ceiling_at_two_moments_is_told), T(half_widths_count),
		T(one_thread_in_a_cache_beside_all),
#undef T
	};

	return cmocka_run_group_tests_name("judge_contradictions", tests, NULL, NULL);
}
