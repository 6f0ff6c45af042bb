/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of attention by our kernels, which the fake driver has by hand: verified in every element, kernels
 * that err, what they refuse, the same bits on every run. */
#include "unit/attention_backward_bed.h"

#include "gpu/attention/own_backward.h"

/* False: built without kernels. */
static bool own_begin(struct bed *b, const char *words)
{
	enum status st = options(b, words);

	assert_int_equal(st, STATUS_OK);
	cpu_bench_make(&b->bench);
	b->engine = &attention_own_engine;
	b->bench.target = (struct target){.kind = TARGET_GPU, .gpu_count = 1};
	b->bench.bench.device = b->device;
	b->bench.bench.stream[0] = b->stream;
	b->bench.bench.clock = clock_monotonic();
	b->state = calloc(1, b->engine->state_size);
	assert_non_null(b->state);
	assert_int_equal(b->engine->supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err),
			 STATUS_OK);
	st = b->engine->prepare(b->state, &b->bench.bench, &b->opts, &b->err);
	if (st && st != STATUS_UNAVAILABLE)
		fail_msg("%s: %s", words, b->err.text);
	return !st;
}

static const char *const own_cases[] = {
	"batch=1 heads=2 seq=70 search=top",
	"batch=1 heads=2 kv_heads=1 seq=20 kv_seq=133 mask=causal type=bf16 head_dim=128 search=top",
	"batch=1 heads=1 seq=140 mask=window left=17 layout=bshd",
	"batch=3 heads=1 seq=66 head_dim=128 lengths=5+66+30 mask=causal",
	"batch=1 heads=1 seq=80 data=large",
};

static void test_our_kernels_ways_are_right_in_every_element(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(own_cases) / sizeof(own_cases[0]); i++) {
		const char *name;

		if (!own_begin(b, own_cases[i])) {
			end(b);
			print_message("# built without kernels\n");
			skip();
		}
		assert_int_equal(b->engine->variants(b->state), strstr(own_cases[i], "search") ? 7 : 1);
		for (unsigned v = 0; v < b->engine->variants(b->state); v++) {
			assert_int_equal(b->engine->select(b->state, v, &name, &b->err), STATUS_OK);
			assert_non_null(strstr(name, v == 6 ? "two_passes" : "sm90_"));
			verified(b, own_cases[i]);
		}
		end(b);
	}
}

/* What one kernel leaves wrong or undone is found in the gradients. */
static void test_our_kernels_that_err_are_found(void **state)
{
	static const char *const faults[] = {"flip=backward_begin_fp16_d64@2",
					     "drop=backward_sm90_once_fp16_d64@2",
					     "nan=backward_end_fp16_d64@2", "drop=backward_end_fp16_d64@2"};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct wrong wrong;

		if (!own_begin(b, "batch=1 heads=2 seq=70")) {
			end(b);
			skip();
		}
		setenv("FAKE_CUDA", faults[i], 1);
		if (attention_verify(b->state, &wrong, &b->err) != STATUS_MISMATCH)
			fail_msg("%s: %s", faults[i], b->err.text);
		unsetenv("FAKE_CUDA");
		b->err = (struct error){0};
		end(b);
	}
}

static void test_what_our_kernels_refuse(void **state)
{
	static const struct {
		enum attention_type type;
		unsigned head_dim, cc;
		const char *says;
	} refused[] = {{ATTENTION_F16, 96, 90, "head dimensions 64 and 128, not 96"},
		       {ATTENTION_BF16, 64, 75, "sm_80 or newer, this device is sm_75"},
		       {ATTENTION_E4M3, 64, 90, "support fp16 and bf16, not e4m3"},
		       {ATTENTION_F16, 7, 90, "a head dimension of 7"}};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct attention_problem p = {.type = refused[i].type,
						    .out_type = refused[i].type,
						    .batch = 1,
						    .heads = 1,
						    .kv_heads = 1,
						    .q_len = 8,
						    .kv_len = 8,
						    .head_dim = refused[i].head_dim};
		struct error err = {0};

		assert_int_not_equal(attention_own_backward_supports(&p, refused[i].cc, &err), STATUS_OK);
		if (!strstr(err.text, refused[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err.text, refused[i].says);
	}
}

/* Where bits have to be the same on every run nothing is added up in any order, and less memory is needed. */
static void test_the_ways_with_the_same_bits(void **state)
{
	const struct attention_problem p = {.type = ATTENTION_BF16,
					    .out_type = ATTENTION_BF16,
					    .batch = 2,
					    .heads = 4,
					    .kv_heads = 2,
					    .q_len = 200,
					    .kv_len = 200,
					    .head_dim = 128};
	struct attention_own_backward *any = NULL, *same = NULL;
	struct bed *b = *state;

	if (attention_own_backward_create(&any, b->device, &p, false, &b->err) == STATUS_UNAVAILABLE)
		skip();
	assert_int_equal(attention_own_backward_create(&same, b->device, &p, true, &b->err), STATUS_OK);
	assert_int_equal(attention_own_backward_count(any), 7);
	assert_int_equal(attention_own_backward_count(same), 2);
	for (unsigned i = 0; i < 2; i++)
		assert_non_null(strstr(attention_own_backward_name(same, i), "two_passes"));
	/* Two numbers a row, and dQ in FP32: rows of a sequence are padded to 256. */
	assert_int_equal(attention_own_backward_workspace(same, 0), 2 * 4 * 2 * 256 * 4);
	assert_int_equal(attention_own_backward_workspace(any, 0), (2 + 128) * 4 * 2 * 256 * 4);
	attention_own_backward_destroy(&any);
	attention_own_backward_destroy(&same);
}

static void first_is(struct bed *b, const struct attention_problem *p, bool uneven, const char *name)
{
	struct attention_own_backward *a = NULL;

	assert_int_equal(attention_own_backward_create(&a, b->device, p, false, &b->err), STATUS_OK);
	assert_int_equal(attention_own_backward_uneven(a), uneven);
	assert_string_equal(attention_own_backward_name(a, 0), name);
	attention_own_backward_destroy(&a);
}

/* A document that is much longer than the others has units that last longer than an equal share of the work.
 * Two documents of 4096 have none, though each has long units: there are enough of them. */
static void test_one_long_document_is_split(void **state)
{
	static const uint32_t one_long[] = {0, 1984, 2410, 2800, 3133, 3443, 3665, 3845, 3944, 4020, 4096};
	struct attention_problem p = {.type = ATTENTION_BF16,
				      .out_type = ATTENTION_BF16,
				      .batch = 10,
				      .heads = 28,
				      .kv_heads = 4,
				      .q_len = 1984,
				      .kv_len = 1984,
				      .head_dim = 128,
				      .mask = ATTENTION_CAUSAL,
				      .q_starts = one_long,
				      .kv_starts = one_long};
	struct attention_own_backward *any = NULL;
	struct bed *b = *state;

	if (attention_own_backward_create(&any, b->device, &p, false, &b->err) == STATUS_UNAVAILABLE)
		skip();
	attention_own_backward_destroy(&any);
	first_is(b, &p, true, "sm90_split_bf16_d128");
	p.head_dim = 64; /* there it was not measured to gain */
	first_is(b, &p, false, "sm90_once_bf16_d64");
	p.head_dim = 128;
	p.q_starts = p.kv_starts = NULL;
	p.batch = 2;
	p.q_len = p.kv_len = 4096;
	first_is(b, &p, false, "sm90_late_bf16_d128");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(our_kernels_ways_are_right_in_every_element),
		test(our_kernels_that_err_are_found),
		cmocka_unit_test(test_what_our_kernels_refuse),
		test(the_ways_with_the_same_bits),
		test(one_long_document_is_split),
	};

	return cmocka_run_group_tests_name("attention_backward_own", tests, NULL, NULL);
}
