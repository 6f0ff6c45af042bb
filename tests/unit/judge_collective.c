/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: what the links allow, what the switch adds, bands by ranks, and where the rest went. */
#include "judge_bed.h"
#include <math.h>

static int begin_h200(void **state)
{
	(void)state;
	world_begin(&w, 8, true);
	for (unsigned i = 0; i < 8; i++) {
		world_fact(&w.gpu[i], GPU_FACT_nvlink_active, 18);
		world_fact(&w.gpu[i], GPU_FACT_nvlink_count, 18);
		world_fact(&w.gpu[i], GPU_FACT_nvlink_rate_gbps, 26.5625);
	}
	return 0;
}

/* An all-reduce of bf16 by `ranks` ranks, of which the first `gpus` GPUs are this node's; nvls below 0: not
 * told. */
static struct record_case *all_reduce_of(const char *kind, unsigned gpus, unsigned ranks, const char *size,
					 double gbs, int nvls)
{
	char target[64], options[192];
	struct record_case *c;

	snprintf(target, sizeof(target), "%s", kind);
	for (unsigned r = 0; r < gpus; r++)
		snprintf(target + strlen(target), sizeof(target) - strlen(target), " gpu%u", r);
	snprintf(options, sizeof(options),
		 "op=allreduce reduce=sum type=bf16 size=%s place=out buffers=plain launch=stream "
		 "algorithm=auto "
		 "protocol=auto ctas=0 root=0 search=first",
		 size);
	c = world_case(&w, "collective", target, "collective.allreduce", options);
	c->engine = "nccl";
	c->work_link = 1e9;
	world_set(c, "sustained", "link_rate", gbs * 1e9);
	world_set(c, "sustained", "half_width_share", 0.001);
	world_set(c, "sustained", "settled", 1);
	world_set(c, "sustained", "ranks", ranks);
	if (nvls >= 0) {
		world_text(c, "once", "algorithm", nvls ? "nvls" : "ring");
		world_text(c, "once", "protocol", "simple");
		world_set(c, "once", "nvls", nvls);
	}
	world_verified(c);
	return c;
}

/* Of one node. */
static struct record_case *all_reduce(unsigned ranks, const char *size, double gbs, int nvls)
{
	return all_reduce_of("node", ranks, ranks, size, gbs, nvls);
}

static const struct judgement *judged(struct record_case *c)
{
	world_judge(&w);
	return world_of(&w, c);
}

static void test_collective__the_links_bound_a_ring(void **state)
{
	struct record_case *c = all_reduce(4, "8GiB", 363, 0);
	const struct judgement *j = judged(c);

	(void)state;
	assert_true(fabs(j->bound.value - 450e9) < 0.1e9);
	assert_string_equal(j->bound.formula, "18 NVLinks x 26.5625 GB/s x 16/17");
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_non_null(strstr(j->reason, "363 GB/s, in 358 GB/s .. 368 GB/s"));
}

static void test_collective__the_gpu_with_the_fewest_links_bounds_all(void **state)
{
	struct record_case *c = all_reduce(4, "8GiB", 240, 0);

	(void)state;
	world_fact(&w.gpu[2], GPU_FACT_nvlink_active, 12);
	assert_true(fabs(judged(c)->bound.value - 300e9) < 0.1e9);
}

static void test_collective__more_than_the_links_is_not_trusted(void **state)
{
	struct record_case *ring = all_reduce(4, "8GiB", 470, 0), *two = all_reduce(2, "8GiB", 470, -1);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, ring, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_verdict(&w, two, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND); /* the switch gains nothing there */
}

/* Of windows, and beside a user's own profiler, NCCL tells nothing. */
static void test_collective__where_it_is_not_told_the_switch_may_add(void **state)
{
	struct record_case *good = all_reduce(4, "4GiB", 470, -1), *more = all_reduce(4, "2GiB", 560, -1);

	(void)state;
	good->require = REQUIRE_MEASURED;
	world_judge(&w);
	assert_verdict(&w, good, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_true(fabs(world_of(&w, good)->bound.value - 450e9 * 6 / 5) < 0.2e9);
	assert_non_null(strstr(world_of(&w, good)->bound.formula, "the switch may add, not told"));
	assert_verdict(&w, more, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_collective__a_switch_that_cannot_add_explains_nothing(void **state)
{
	struct record_case *c = all_reduce(4, "4GiB", 470, -1);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		world_fact(&w.gpu[i], GPU_FACT_cc, 80);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_collective__the_switch_explains_more_than_the_links(void **state)
{
	struct record_case *c = all_reduce(8, "8GiB", 475, 1), *false_one = all_reduce(8, "4GiB", 720, 1);
	const struct judgement *j = judged(c);

	(void)state;
	assert_true(fabs(j->bound.value - 450e9 * 14 / 9) < 0.2e9);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_ABOVE_LINK);
	assert_verdict(&w, false_one, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_collective__bands_tell_the_switch_from_the_ring(void **state)
{
	struct record_case *ring = all_reduce(8, "8GiB", 362, 0), *slow = all_reduce(8, "8GiB", 420, 1),
			   *lost = all_reduce(4, "8GiB", 200, 0);

	(void)state;
	lost->step = 40;
	world_judge(&w);
	assert_verdict(&w, ring, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, slow)->verdict, VERDICT_WARN);
	assert_verdict(&w, lost, VERDICT_FAIL, CAUSE_BELOW_BAND);
}

/* As many ranks and GPUs as the band asks for, but on two nodes: a network is between them. */
static void test_collective__no_band_of_a_node_judges_a_team(void **state)
{
	struct record_case *node = all_reduce(8, "8GiB", 362, 0),
			   *team = all_reduce_of("team", 4, 8, "8GiB", 190, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, node, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, team, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_false(world_of(&w, team)->has_band);
	assert_non_null(strstr(world_of(&w, team)->reason, "network"));
}

/* Which way it will go is not known yet: what is held against the figure then must not be above either's. */
static void test_collective__ahead_of_the_run_the_lower_band_counts(void **state)
{
	struct record_case *four = all_reduce(4, "8GiB", 0, -1), *eight = all_reduce(8, "8GiB", 0, -1);

	(void)state;
	w.ctx.ahead = true;
	world_judge(&w);
	assert_true(world_of(&w, four)->has_band);
	assert_float_equal(world_of(&w, four)->band.low, 358e9, 1e6);
	assert_true(world_of(&w, eight)->has_band);
	assert_float_equal(world_of(&w, eight)->band.low, 355e9, 1e6);
}

static double factor_of(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name) && j->gap[i].present)
			return j->gap[i].value;
	return 0;
}

static void test_collective__the_gap_has_protocol_latency_and_skew(void **state)
{
	static const char *const sizes[] = {"1MiB", "4MiB", "16MiB", "64MiB"};
	struct record_case *c[4];
	const struct judgement *j;

	(void)state;
	for (int i = 0; i < 4; i++) { /* 20 us and 200 GB/s of size */
		double bytes = ldexp(1, 20 + 2 * i), ns = 20e3 + bytes / 200;

		c[i] = all_reduce(4, sizes[i], 1.5 * bytes / ns, 0);
		world_set(c[i], "sustained", "time_ns_mean", ns);
		world_text(c[i], "once", "protocol", "ll128");
	}
	world_set(c[2], "sustained", "skew_ns", 2000);
	j = judged(c[2]);
	assert_true(fabs(factor_of(j, "protocol") - 120.0 / 128) < 1e-9);
	assert_true(fabs(factor_of(j, "latency") - (1 - 20e3 / (20e3 + 0x1p24 / 200))) < 1e-3);
	assert_true(fabs(factor_of(j, "skew") - (1 - 2e3 / (20e3 + 0x1p24 / 200))) < 1e-9);
	assert_true(j->has_explained_share && j->explained_share > 0 && j->explained_share < 1);
	assert_int_equal(j->verdict, VERDICT_UNKNOWN);
	assert_true(factor_of(world_of(&w, c[0]), "skew") == 0); /* not timed there */
}

static void test_collective__what_is_not_told_has_no_chain(void **state)
{
	struct record_case *c = all_reduce(4, "64MiB", 300, -1);

	(void)state;
	world_set(c, "sustained", "time_ns_mean", 3e5);
	assert_int_equal(judged(c)->gap_count, 0);
}

static void test_collective__a_short_one_is_its_latency(void **state)
{
	struct record_case *c = all_reduce(4, "8", 1, 0);
	const struct judgement *j;

	(void)state;
	c->limit = "latency";
	c->phases = "burst";
	c->require = REQUIRE_MEASURED;
	world_set(c, "sustained", "latency_ns", 8500);
	j = judged(c);
	assert_int_equal(j->bound.from, BOUND_NONE);
	assert_true(fabs(j->figure - 8500) < 1e-9);
	assert_string_equal(j->figure_unit, "ns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_collective__##name, begin_h200, end)
		T(a_short_one_is_its_latency),
		T(a_switch_that_cannot_add_explains_nothing),
		T(ahead_of_the_run_the_lower_band_counts),
		T(bands_tell_the_switch_from_the_ring),
		T(more_than_the_links_is_not_trusted),
		T(no_band_of_a_node_judges_a_team),
		T(the_gap_has_protocol_latency_and_skew),
		T(the_gpu_with_the_fewest_links_bounds_all),
		T(the_links_bound_a_ring),
		T(the_switch_explains_more_than_the_links),
		T(what_is_not_told_has_no_chain),
		T(where_it_is_not_told_the_switch_may_add),
#undef T
	};

	return cmocka_run_group_tests_name("judge_collective", tests, NULL, NULL);
}
