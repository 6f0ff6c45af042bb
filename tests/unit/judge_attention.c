/* SPDX-License-Identifier: Apache-2.0 */
/* Attention judged: which of three bounds binds, what is explained, and the pass mark of the published table. */
#include "judge_bed.h"

/* One head's work: pairs of 512 x 512, all in FLOP and bytes. */
static struct record_case *attention(const char *type, unsigned heads, unsigned head_dim, const char *more, double us)
{
	char options[256], limit[32];
	double pairs = 16.0 * heads * 512 * 512, bytes = !strcmp(type, "e4m3") ? 1 : 2;
	struct record_case *c;

	snprintf(options, sizeof(options),
		 "type=%s batch=16 heads=%u kv_heads=0 seq=512 kv_seq=0 head_dim=%u mask=none pattern=none %s", type,
		 heads, head_dim, more);
	snprintf(limit, sizeof(limit), "compute.%s", type);
	c = world_case(&w, "attention", "gpu0", limit, options);
	c->engine = "cudnn";
	c->work_flop = 4 * head_dim * pairs;
	c->work_read = 16.0 * heads * 512 * 3 * head_dim * bytes;
	c->work_write = 16.0 * heads * 512 * (head_dim * 2 + 4);
	world_set(c, "sustained", "flop_rate", c->work_flop / (us * 1e-6));
	world_set(c, "sustained", "time_ns_mean", us * 1e3);
	world_set(c, "sustained", "clock_hz", 1782e6);
	world_set(c, "sustained", "settled", 1);
	world_set(c, "sustained", "half_width_share", 0.004);
	world_verified(c);
	return c;
}

static const struct judgement *judged(struct record_case *c)
{
	world_judge(&w);
	return world_of(&w, c);
}

static bool absent(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return !j->gap[i].present;
	return false;
}

/* H100: 3.35 TB/s hold the published shape; in FP8 at D 64 the exponentials would, were it not for the bytes; at long
 * sequences the products do. */
static void test_judge_attention__the_lowest_of_three_bounds_holds(void **state)
{
	struct record_case *c = attention("fp16", 96, 64, "", 250), *wide = attention("fp16", 1, 64, "x=1", 2.0);
	struct record_case *fp8 = attention("e4m3", 96, 64, "", 250);
	const struct judgement *j;

	(void)state;
	wide->work_read = wide->work_write = 1; /* as of a sequence without end */
	fp8->work_read = fp8->work_write = 1;
	j = judged(c);
	assert_float_equal(j->bound.value, 3.35232e12 * c->work_flop / (c->work_read + c->work_write), 1e7);
	assert_non_null(strstr(j->bound.formula, "FLOP a byte"));
	assert_true(absent(j, "busy") && !j->explained && j->unexplained < 1);
	j = world_of(&w, wide);
	assert_float_equal(j->bound.value, 132.0 * 4096 * 1.98e9, 1);
	assert_true(absent(j, "pipe") && absent(j, "useful"));
	assert_float_equal(j->gap[0].value, 0.9, 1e-9); /* the clock */
	assert_float_equal(j->unexplained, j->figure / (j->bound.value * 0.9), 1e-9);
	j = world_of(&w, fp8);
	assert_float_equal(j->bound.value, 132.0 * 16 * 1.98e9 * 256, 1); /* half of FP8's products */
	assert_non_null(strstr(j->bound.formula, "16 exp"));
	assert_true(absent(j, "exponentials"));
}

static void test_judge_attention__five_microseconds_a_head_are_the_pass_mark(void **state)
{
	struct record_case *fast = attention("fp16", 96, 64, "", 251), *slow = attention("fp16", 32, 64, "", 161);
	struct record_case *other = attention("fp16", 96, 128, "", 700);

	(void)state;
	assert_int_equal(judged(fast)->verdict, VERDICT_PASS);
	assert_int_equal(world_of(&w, fast)->judged_by, JUDGED_RULE);
	assert_int_equal(world_of(&w, slow)->verdict, VERDICT_FAIL);
	assert_int_equal(world_of(&w, slow)->cause, CAUSE_BELOW_BAND);
	assert_int_not_equal(world_of(&w, other)->verdict, VERDICT_PASS); /* the table says nothing of it */
	assert_int_not_equal(world_of(&w, other)->verdict, VERDICT_FAIL);
}

static void test_judge_attention__above_its_bound_nothing_is_believed(void **state)
{
	(void)state;
	assert_int_equal(judged(attention("fp16", 96, 64, "", 100))->verdict, VERDICT_UNTRUSTED);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_judge_attention__##name, begin_one, end)
	const struct CMUnitTest tests[] = {
		test(the_lowest_of_three_bounds_holds),
		test(five_microseconds_a_head_are_the_pass_mark),
		test(above_its_bound_nothing_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
