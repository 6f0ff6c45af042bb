/* SPDX-License-Identifier: Apache-2.0 */
/* The best of the ways in which one collective was run, on records built by hand. */
#include "judge_bed.h"
#include <math.h>

#define ALL_REDUCE "op=allreduce reduce=sum type=bf16 place=out root=0 "
#define OWN "buffers=plain launch=stream algorithm=auto protocol=auto ctas=0 search=first"

static int begin_four(void **state)
{
	(void)state;
	world_begin(&w, 4, true);
	return 0;
}

/* 8 us is a latency; what NCCL told is "ring ll". */
static struct record_case *run_as(const char *size, const char *how, double us, double half)
{
	char options[256];
	struct record_case *c;

	snprintf(options, sizeof(options), ALL_REDUCE "size=%s %s", size, how);
	c = world_case(&w, "collective", "node gpu0 gpu1 gpu2 gpu3", "latency", options);
	c->engine = "nccl";
	c->phases = "burst";
	c->require = REQUIRE_MEASURED;
	c->work_messages = 1;
	world_set(c, "burst", "latency_ns", 1e3 * us);
	world_set(c, "burst", "time_ns_mean", 1e3 * us);
	if (half > 0)
		world_set(c, "burst", "half_width_share", half);
	world_text(c, "once", "algorithm", "ring");
	world_text(c, "once", "protocol", "ll");
	world_verified(c);
	return c;
}

static void found(struct record_case *c, const char *variant, double us, double ratio, double low, double high)
{
	world_text(c, "best", "variant", variant);
	world_set(c, "best", "latency_ns", 1e3 * us);
	world_set(c, "best", "variants_tried", 9);
	world_set(c, "best", "best_ratio", ratio);
	world_set(c, "best", "best_ratio_low", low);
	world_set(c, "best", "best_ratio_high", high);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_ways__the_shortest_of_three_and_what_it_gains(void **state)
{
	struct record_case *stream = run_as("8", OWN, 8.5, 0.003);
	struct record_case *windows =
		run_as("8", "buffers=window launch=graph algorithm=auto protocol=auto ctas=0 search=first", 3.4, 0.004);
	const struct judge_way *b;

	(void)state;
	run_as("8", "buffers=plain launch=graph algorithm=auto protocol=auto ctas=0 search=first", 7.5, 0.003);
	world_text(windows, "once", "algorithm", "symmetric");
	json_object_del(record_phase(windows, "once")->values, "protocol");
	world_judge(&w);
	assert_int_equal(w.out.way_count, 1);
	b = w.out.way;
	assert_ptr_equal(&w.cases[b->best], windows);
	assert_true(b->has_plain);
	assert_ptr_equal(&w.cases[b->plain], stream);
	assert_false(b->searched);
	assert_int_equal(b->ways, 3);
	assert_true(near(b->ratio, 2.5));
	assert_true(near(b->low, 2.5 * (1 - 0.01)));
	assert_true(near(b->high, 2.5 * (1 + 0.01)));
	assert_true(near(b->figure, 3400));
	assert_string_equal(b->unit, "ns");
	assert_string_equal(b->algorithm, "symmetric");
	assert_null(b->protocol);
}

/* Windows that scatter little lie apart all the same; those that scatter more say so themselves. */
static void test_ways__what_lies_apart_is_known_to_a_hundredth(void **state)
{
	static const char graph[] = "buffers=plain launch=graph algorithm=auto protocol=auto ctas=0 search=first";

	(void)state;
	run_as("8", OWN, 8.04, 0.001);
	run_as("8", graph, 8, 0.001);
	run_as("512", OWN, 8.4, 0.03);
	run_as("512", graph, 8, 0.04);
	world_judge(&w);
	assert_int_equal(w.out.way_count, 2);
	assert_true(near(w.out.way[0].ratio, 1.005));
	assert_true(near(w.out.way[0].low, 1.005 * 0.99)); /* not told apart */
	assert_true(near(w.out.way[1].low, 1.05 * 0.95));
	assert_true(near(w.out.way[1].high, 1.05 * 1.05));
}

static void test_ways__one_way_alone_is_none(void **state)
{
	(void)state;
	run_as("8", OWN, 8.5, 0);
	run_as("512", "buffers=plain launch=graph algorithm=auto protocol=auto ctas=0 search=first", 7.5, 0);
	world_judge(&w);
	assert_int_equal(w.out.way_count, 0);
}

static void test_ways__other_work_is_another_row_by_size(void **state)
{
	static const char graph[] = "buffers=plain launch=graph algorithm=auto protocol=auto ctas=0 search=first";

	(void)state;
	run_as("32KiB", OWN, 12, 0);
	run_as("8", graph, 7.5, 0);
	run_as("32KiB", graph, 11, 0);
	run_as("8", OWN, 7, 0);
	run_as("512", graph, 7.6, 0);
	run_as("512", OWN, 9, 0)->round = 1; /* another round is another time */
	world_judge(&w);
	assert_int_equal(w.out.way_count, 2);
	assert_string_equal(record_option(&w.cases[w.out.way[0].best], "size"), "8");
	assert_int_equal(w.out.way[0].best, w.out.way[0].plain); /* NCCL's own is the best here */
	assert_true(near(w.out.way[0].ratio, 1));
	assert_string_equal(record_option(&w.cases[w.out.way[1].best], "size"), "32KiB");
	assert_true(near(w.out.way[1].ratio, 12.0 / 11));
	assert_true(w.out.way[1].low == 0); /* of no window is the spread known */
}

static void test_ways__what_cannot_be_trusted_is_no_best(void **state)
{
	struct record_case *wrong =
		run_as("8", "buffers=window launch=graph algorithm=auto protocol=auto ctas=0 search=first", 1, 0);
	struct record_case *plain = run_as("8", OWN, 8, 0);

	(void)state;
	run_as("8", "buffers=plain launch=graph algorithm=auto protocol=auto ctas=0 search=first", 9, 0);
	world_set(wrong, "verify", "wrong_count", 3);
	wrong->status = STATUS_MISMATCH;
	world_judge(&w);
	assert_verdict(&w, wrong, VERDICT_FAIL, CAUSE_WRONG_RESULT);
	assert_int_equal(w.out.way_count, 1);
	assert_ptr_equal(&w.cases[w.out.way[0].best], plain);
	assert_int_equal(w.out.way[0].ways, 2);
}

static void test_ways__a_search_says_by_its_pairs(void **state)
{
	struct record_case *c =
		run_as("8", "buffers=plain launch=stream algorithm=auto protocol=auto ctas=0 search=top", 8, 0.003);
	const struct judge_way *b;

	(void)state;
	found(c, "ring simple", 7.6, 1.06, 1.04, 1.08);
	world_text(c, "once", "best_algorithm", "ring");
	world_text(c, "once", "best_protocol", "simple");
	world_judge(&w);
	assert_int_equal(w.out.way_count, 1);
	b = w.out.way;
	assert_true(b->searched);
	assert_int_equal(b->best, b->plain);
	assert_int_equal(b->ways, 1);
	assert_int_equal(b->tried, 9);
	assert_string_equal(b->variant, "ring simple");
	assert_true(near(b->ratio, 1.06));
	assert_true(near(b->low, 1.04));
	assert_true(near(b->high, 1.08));
	assert_true(near(b->figure, 7600)); /* its own window's */
	assert_string_equal(b->protocol, "simple");
}

static void test_ways__a_search_that_proves_nothing_leaves_nccls_own(void **state)
{
	struct record_case *c =
		run_as("8", "buffers=plain launch=stream algorithm=auto protocol=auto ctas=0 search=top", 8, 0.003);
	const struct judge_way *b;

	(void)state;
	found(c, "ring simple", 7.9, 1.004, 0.997, 1.01);
	world_judge(&w);
	assert_int_equal(w.out.way_count, 1);
	b = w.out.way;
	assert_false(b->searched);
	assert_true(near(b->ratio, 1));
	assert_true(near(b->figure, 8000));
	assert_int_equal(b->tried, 9);
	assert_string_equal(b->protocol, "ll");
}

static void test_ways__without_nccls_own_there_is_no_ratio(void **state)
{
	(void)state;
	run_as("8", "buffers=window launch=stream algorithm=auto protocol=auto ctas=0 search=first", 5, 0.003);
	run_as("8", "buffers=registered launch=stream algorithm=auto protocol=auto ctas=0 search=first", 6, 0.003);
	world_judge(&w);
	assert_int_equal(w.out.way_count, 1);
	assert_false(w.out.way[0].has_plain);
	assert_true(w.out.way[0].ratio == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_ways__##name, begin_four, end)
		T(a_search_says_by_its_pairs),
		T(a_search_that_proves_nothing_leaves_nccls_own),
		T(one_way_alone_is_none),
		T(what_lies_apart_is_known_to_a_hundredth),
		T(other_work_is_another_row_by_size),
		T(the_shortest_of_three_and_what_it_gains),
		T(what_cannot_be_trusted_is_no_best),
		T(without_nccls_own_there_is_no_ratio),
#undef T
	};

	return cmocka_run_group_tests_name("judge_ways", tests, NULL, NULL);
}
