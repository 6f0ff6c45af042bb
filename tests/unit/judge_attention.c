/* SPDX-License-Identifier: Apache-2.0 */
/* Attention judged: which of three bounds binds, what is explained, and the pass mark of the published table.
 */
#include "judge_bed.h"

/* One head's work: pairs of 512 x 512, all in FLOP and bytes. */
static struct record_case *attention(const char *type, unsigned heads, unsigned head_dim, const char *more,
				     double us)
{
	char options[256], limit[32];
	double pairs = 16.0 * heads * 512 * 512, bytes = !strcmp(type, "e4m3") ? 1 : 2;
	struct record_case *c;

	snprintf(
		options, sizeof(options),
		"type=%s batch=16 heads=%u kv_heads=0 seq=512 kv_seq=0 head_dim=%u mask=none pattern=none %s",
		type, heads, head_dim, more);
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

/* H100: 3.35 TB/s hold the published shape; in FP8 at D 64 the exponentials would, were it not for the bytes;
 * at long sequences the products do. */
static void test_judge_attention__the_lowest_of_three_bounds_holds(void **state)
{
	struct record_case *c = attention("fp16", 96, 64, "", 250),
			   *wide = attention("fp16", 1, 64, "x=1", 2.0);
	struct record_case *fp8 = attention("e4m3", 96, 64, "", 250);
	const struct judgement *j;

	(void)state;
	wide->work_read = wide->work_write = 1; /* as of a sequence without end */
	fp8->work_read = fp8->work_write = 1;
	j = judged(c);
	assert_float_equal(j->bound.value, 3.35232e12 * c->work_flop / (c->work_read + c->work_write), 1e7);
	assert_non_null(strstr(j->bound.formula, "FLOP per byte"));
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

/* What an H100 counted of cuDNN 9.19's B16 H96 S512 D64 FP16, one iteration
 * (results/2026-11-22-h100-sxm/counters.log). */
#define COUNTED_US 258.086
static struct record_case *counted(const char *type, unsigned head_dim, double cycles)
{
	struct record_case *c = attention(type, 96, head_dim, "", COUNTED_US);

	c->work_flop = 1.03079e11;
	world_set(c, "once", "pairs_kept", 402653184);
	world_set(c, "sustained", "flop_rate", c->work_flop / (COUNTED_US * 1e-6));
	world_set(c, "sustained", "clock_hz", 1.79546e9);
	world_set(c, "sustained", "memory_clock_hz", 2619e6);
	world_set(c, "sustained", "counter_sm_cycles", cycles);
	world_set(c, "sustained", "counter_sm_active_share", 0.955188);
	world_set(c, "sustained", "counter_tensor_active_share", 0.411417);
	world_set(c, "sustained", "counter_xu_active_share", 0.429309);
	world_set(c, "sustained", "counter_occupancy_share", 0.140631);
	world_set(c, "sustained", "counter_dram_share", 0.465437);
	world_set(c, "sustained", "counter_dram_read_bytes", 3.01996e8);
	world_set(c, "sustained", "counter_dram_write_bytes", 1.00693e8);
	world_set(c, "sustained", "counter_tensor_flop", 1.03079e11);
	return c;
}
#define CYCLES 464828

/* As of a sequence without end. */
static struct record_case *endless(struct record_case *c)
{
	c->work_read = c->work_write = 1;
	return c;
}

static const struct factor *factor(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	fail_msg("no factor %s", name);
	return NULL;
}

static void test_judge_attention__counters_close_the_chain_of_what_binds(void **state)
{
	struct record_case *memory = counted("fp16", 64, CYCLES),
			   *matrix = endless(counted("fp16", 64, CYCLES));
	struct record_case *exps = endless(counted("e4m3", 64, CYCLES));
	const struct judgement *j;

	(void)state;
	j = judged(memory);
	assert_float_equal(factor(j, "busy")->value, 0.464, 0.001);
	assert_float_equal(factor(j, "traffic")->value, 1.0077,
			   0.0005); /* log-sum-exp, which the library left out */
	assert_non_null(strstr(factor(j, "traffic")->signal, "L2"));
	assert_true(factor(j, "tensor pipe")->shown_only && factor(j, "residency")->shown_only);
	assert_true(j->explained);
	assert_float_equal(j->unexplained, 1, 0.005);
	j = world_of(&w, matrix);
	assert_float_equal(factor(j, "pipe")->value, 0.411417, 1e-9);
	assert_float_equal(factor(j, "useful")->value, 1, 1e-5);
	assert_float_equal(factor(j, "residency")->value, 0.955188, 1e-9);
	assert_true(j->explained);
	assert_float_equal(j->unexplained, 1, 0.003);
	j = world_of(&w, exps);
	assert_float_equal(factor(j, "exponentials")->value, 0.429309, 1e-9);
	assert_float_equal(factor(j, "useful")->value, 0.955, 0.001); /* the rest rescales and divides */
	assert_true(j->explained);
	assert_float_equal(j->unexplained, 1, 0.005);
}

/* A tenth too much declared is neither padding nor a library's skill. */
static void test_judge_attention__counters_hide_no_miscounted_work(void **state)
{
	struct record_case *c[] = {counted("fp16", 64, CYCLES), endless(counted("fp16", 64, CYCLES)),
				   endless(counted("e4m3", 64, CYCLES))};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		c[i]->work_flop *= 1.1;
		world_set(c[i], "sustained", "flop_rate", c[i]->work_flop / (COUNTED_US * 1e-6));
	}
	(void)judged(c[0]);
	assert_true(absent(world_of(&w, c[0]), "useful") && !world_of(&w, c[0])->explained);
	for (size_t i = 1; i < sizeof(c) / sizeof(c[0]); i++) {
		assert_false(world_of(&w, c[i])->explained);
		assert_true(world_of(&w, c[i])->unexplained > 1.09);
	}
}

static void test_judge_attention__counters_of_other_work_are_not_used(void **state)
{
	const struct judgement *j = judged(counted("fp16", 64, 1.05 * CYCLES));

	(void)state;
	assert_true(absent(j, "busy"));
	for (int i = 0; i < UNIT_USE_COUNT; i++)
		assert_null(j->metric[i].from);
}

static void test_judge_attention__metrics_are_told_beside_their_targets(void **state)
{
	const struct judgement *j = judged(counted("fp16", 64, CYCLES));

	(void)state;
	assert_float_equal(j->metric[UNIT_USE_SM].value, 0.955188, 1e-9);
	assert_true(j->metric[UNIT_USE_SM].value > unit_use_rows[UNIT_USE_SM].target);
	assert_true(j->metric[UNIT_USE_TENSOR].value < unit_use_rows[UNIT_USE_TENSOR].target);
	assert_true(j->metric[UNIT_USE_OCCUPANCY].value < unit_use_rows[UNIT_USE_OCCUPANCY].target);
	assert_float_equal(j->metric[UNIT_USE_MEMORY].value, 1.5554e12, 1e9);
	assert_string_equal(j->metric[UNIT_USE_MEMORY].from, "CUPTI");
}

static const struct advice *advice(const struct judgement *j, const char *words)
{
	for (size_t i = 0; i < j->advice_count; i++)
		if (strstr(j->advice[i].knob, words))
			return &j->advice[i];
	return NULL;
}

static void test_judge_attention__advice_has_its_numbers(void **state)
{
	struct record_case *library = counted("fp16", 64, CYCLES), *own = attention("fp16", 96, 64, "", 270);
	struct record_case *busy = counted("fp16", 64, CYCLES), *issues = counted("fp16", 64, CYCLES);
	const struct judgement *j;

	(void)state;
	own->engine = "own";
	world_set(issues, "sustained", "counter_issue_active_share", 0.87);
	world_set(busy, "sustained", "counter_xu_active_share", 0.9);
	j = judged(library);
	assert_non_null(advice(j, "no unit is the limit"));
	assert_string_equal(advice(j, "no unit is the limit")->evidence,
			    "tensor pipe 41.1 %, exponentials 42.9 %, DRAM 46.5 %; 14.1 % of the warps that an SM can "
			    "hold (CUPTI)");
	assert_string_equal(advice(j, "no unit is the limit")->gain, "at most x 2.15");
	assert_null(advice(j, "engine")); /* the other one is slower */
	j = world_of(&w, own);
	assert_non_null(advice(j, "engine"));
	assert_non_null(strstr(advice(j, "engine")->gain, "x 1.046"));
	assert_null(advice(j, "no unit is the limit")); /* nothing was counted */
	assert_non_null(advice(world_of(&w, busy), "exponentials are the limit"));
	j = world_of(&w, issues);
	assert_non_null(advice(j, "issue slots are the limit"));
	assert_non_null(
		strstr(advice(j, "issue slots are the limit")->evidence, "DRAM 46.5 %, issue slots 87.0 %; 14.1 %"));
}

static void test_judge_attention__an_error_beyond_the_librarys_is_a_finding(void **state)
{
	struct record_case *library = attention("fp16", 96, 64, "", 250),
			   *close = attention("fp16", 96, 64, "", 250);
	struct record_case *worse = attention("fp16", 96, 64, "", 250),
			   *alone = attention("fp16", 96, 64, "x=1", 250);

	(void)state;
	close->engine = worse->engine = alone->engine = "own";
	world_set(library, "once", "error_rms", 2.0e-5);
	world_set(close, "once", "error_rms", 2.1e-5);
	world_set(worse, "once", "error_rms", 2.5e-5);
	world_set(alone, "once", "error_rms", 1e-3);
	assert_float_equal(judged(close)->error_over_library, 1.05, 1e-9);
	assert_int_equal(world_of(&w, close)->verdict, VERDICT_PASS);
	assert_int_equal(world_of(&w, worse)->verdict, VERDICT_WARN);
	assert_int_equal(world_of(&w, worse)->cause, CAUSE_INACCURATE);
	assert_non_null(strstr(world_of(&w, worse)->reason, "1.25 times cuDNN's"));
	assert_true(world_of(&w, alone)->error_over_library == 0 &&
		    world_of(&w, library)->error_over_library == 0);
}

static void test_judge_attention__five_microseconds_a_head_are_the_pass_mark(void **state)
{
	struct record_case *fast = attention("fp16", 96, 64, "", 251),
			   *slow = attention("fp16", 32, 64, "", 161);
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
		test(counters_close_the_chain_of_what_binds),
		test(counters_hide_no_miscounted_work),
		test(counters_of_other_work_are_not_used),
		test(metrics_are_told_beside_their_targets),
		test(advice_has_its_numbers),
		test(an_error_beyond_the_librarys_is_a_finding),
		test(five_microseconds_a_head_are_the_pass_mark),
		test(above_its_bound_nothing_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
