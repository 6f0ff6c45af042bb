/* SPDX-License-Identifier: Apache-2.0 */
/* The probe's engines of a GPU, on the fake driver: over the fake cuDNN, which runs the graphs it is given,
 * and over our kernels, which the fake has by hand. */
#include "attention_bed.h"
#include "gpu/attention/own_forward.h"

static int set_up_cudnn(void **state)
{
	int failed = set_up(state);

	if (!failed)
		((struct bed *)*state)->engine = &attention_cudnn_engine;
	return failed;
}

static void choose(struct bed *b, const char *words)
{
	assert_int_equal(attention_words(&b->opts, words, &b->err), STATUS_OK);
	cpu_bench_make(&b->bench);
	on_device(b);
}

static enum status begin(struct bed *b)
{
	b->state = calloc(1, b->engine->state_size);
	b->out = result_create();
	assert_true(b->state && b->out);
	b->bench.bench.out = b->out;
	return b->engine->prepare(b->state, &b->bench.bench, &b->opts, &b->err);
}

static void end(struct bed *b)
{
	b->engine->release(b->state);
	free(b->state);
	result_destroy(b->out);
}

/* Verified, run over the sets, verified again: and the fields say by what. */
static void test_cudnn(void **state)
{
	static const char *const cases[] = {
		"batch=2 heads=2 seq=24 head_dim=32",
		"batch=1 heads=4 kv_heads=2 seq=20 kv_seq=33 head_dim=32 mask=causal type=bf16",
		"batch=1 heads=2 seq=30 head_dim=32 mask=window left=7 layout=bshd",
		"batch=3 heads=2 seq=16 head_dim=32 lengths=5+16+9 mask=causal",
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name;
		struct wrong wrong;
		json_t *fields;

		choose(b, cases[i]);
		if (begin(b) || attention_verify(b->state, &wrong, &b->err))
			fail_msg("%s: %s", cases[i], b->err.text);
		assert_true(b->state->sets >= 3);
		for (uint64_t n = 0; n < b->state->sets; n++)
			assert_int_equal(b->engine->enqueue(b->state, n, &b->err), STATUS_OK);
		assert_int_equal(attention_verify(b->state, &wrong, &b->err), STATUS_OK);
		assert_true(wrong.checked == wrong.total && wrong.total > 0);
		assert_int_equal(b->engine->variants(b->state), 1);
		assert_int_equal(b->engine->select(b->state, 0, &name, &b->err), STATUS_OK);
		assert_false(b->state->exact_done); /* to be verified whole */
		assert_int_equal(probe_attention.finish(b->state, b->out, &b->err), STATUS_OK);
		fields = result_json(b->out);
		assert_non_null(strstr(json_string_value(json_object_get(fields, "library")), "cuDNN "));
		assert_string_equal(json_string_value(json_object_get(fields, "kernel")), name);
		assert_true(json_real_value(json_object_get(fields, "error_rms")) > 0);
		assert_true(json_real_value(json_object_get(fields, "error_max")) < 0.01);
		json_decref(fields);
		end(b);
	}
}

static void test_own(void **state)
{
	static const char *const cases[] = {
		"batch=2 heads=2 seq=100",
		"batch=1 heads=4 kv_heads=2 seq=70 kv_seq=133 mask=causal type=bf16",
		"batch=1 heads=2 seq=150 head_dim=128 mask=window left=17 layout=bshd",
		"batch=3 heads=2 seq=66 lengths=5+66+30 mask=causal",
		"batch=1 heads=2 seq=128 data=large search=top",
		"batch=2 heads=2 seq=128 search=top",
		"batch=1 heads=2 seq=90 type=e4m3 mask=causal",
		"batch=1 heads=2 seq=128 head_dim=128 type=e4m3 search=top",
		"batch=1 heads=2 seq=200 kv_seq=512 type=bf16 search=top",
		"batch=1 heads=2 seq=90 head_dim=256 type=bf16 search=top",
	};
	struct bed *b = *state;

	b->engine = &attention_own_engine;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wrong wrong;
		const char *name;
		enum status st;

		choose(b, cases[i]);
		assert_int_equal(b->engine->supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err),
				 STATUS_OK);
		st = begin(b);
		if (st == STATUS_UNAVAILABLE) {
			end(b);
			print_message("# built without kernels\n");
			skip();
		}
		for (unsigned v = 0; !st && v < b->engine->variants(b->state); v++) {
			assert_int_equal(b->engine->select(b->state, v, &name, &b->err), STATUS_OK);
			st = attention_verify(b->state, &wrong, &b->err);
		}
		if (st)
			fail_msg("%s: %s", cases[i], b->err.text);
		for (uint64_t n = 0; n < b->state->sets; n++)
			assert_int_equal(b->engine->enqueue(b->state, n, &b->err), STATUS_OK);
		assert_int_equal(attention_verify(b->state, &wrong, &b->err), STATUS_OK);
		assert_true(wrong.checked == wrong.total && b->state->exact_done);
		end(b);
	}
	choose(b, "pattern=mask");
	assert_int_equal(b->engine->supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err), STATUS_UNSUPPORTED);
}

/* FP8 is of sm_90 alone, with 16-bit output and head dims that a tile holds. */
static void test_own_fp8(void **state)
{
	struct attention_problem p = {.type = ATTENTION_E4M3,
				      .out_type = ATTENTION_BF16,
				      .batch = 1,
				      .heads = 1,
				      .kv_heads = 1,
				      .q_len = 64,
				      .kv_len = 64,
				      .head_dim = 128};
	struct error err = {0};

	(void)state;
	assert_int_equal(attention_own_supports(&p, 90, &err), STATUS_OK);
	assert_int_equal(attention_own_supports(&p, 80, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "sm_80, 128 and bf16"));
	p.out_type = ATTENTION_E4M3;
	assert_int_equal(attention_own_supports(&p, 90, &err), STATUS_UNSUPPORTED);
	p.out_type = ATTENTION_F16;
	p.head_dim = 256;
	assert_int_equal(attention_own_supports(&p, 90, &err), STATUS_UNSUPPORTED);
}

/* Which kernel is expected to be the fastest. */
static void test_choice(void **state)
{
	static const uint32_t starts[] = {0, 512, 1024};
	static const struct {
		enum attention_type type, out;
		uint32_t q_len, kv_len, head_dim;
		enum attention_mask mask;
		const char *name;
		bool packed;
	} cases[] = {
#define CASE(type, out, q, kv, d, mask, name) {ATTENTION_##type, ATTENTION_##out, q, kv, d, ATTENTION_##mask, name, false}
		CASE(F16, F16, 512, 512, 64, FULL, "sm90_fp16_d64_head, resident"),
		CASE(BF16, BF16, 130, 512, 40, FULL, "sm90_bf16_d64_head, resident"),
		CASE(E4M3, BF16, 512, 512, 64, FULL, "sm90_e4m3_bf16_d64_head, resident"),
		CASE(E4M3, F16, 512, 512, 128, FULL, "sm90_e4m3_fp16_d128_head, resident"),
		CASE(F16, F16, 512, 512, 64, CAUSAL, "sm90_fp16_d64_down, resident"),
		CASE(BF16, BF16, 512, 512, 64, CAUSAL, "sm90_bf16_d64_down, resident"),
		CASE(E4M3, F16, 512, 512, 64, CAUSAL, "sm90_e4m3_fp16_d64_head_causal, resident"),
		/* a warpgroup without a tile; a block more or less; a corner elsewhere; another mask; too wide */
		CASE(F16, F16, 128, 512, 64, FULL, "sm90_fp16_d64"),
		CASE(F16, F16, 512, 448, 64, FULL, "sm90_fp16_d64, resident"),
		CASE(F16, F16, 512, 576, 64, FULL, "sm90_fp16_d64"),
		CASE(F16, F16, 256, 512, 64, CAUSAL, "sm90_fp16_d64, resident"),
		CASE(F16, F16, 512, 512, 64, WINDOW, "sm90_fp16_d64, resident"),
		CASE(F16, F16, 512, 512, 128, CAUSAL, "sm90_fp16_d128"),
		/* streaming by, an even number of blocks of 128, and not too many */
		CASE(F16, F16, 512, 512, 128, FULL, "sm90_fp16_d128_stream"),
		CASE(BF16, BF16, 512, 512, 128, FULL, "sm90_bf16_d128_stream"),
		CASE(BF16, BF16, 512, 1024, 128, FULL, "sm90_bf16_d128"),
		CASE(F16, F16, 512, 1024, 128, FULL, "sm90_fp16_d128_stream"),
		CASE(F16, F16, 512, 2048, 128, FULL, "sm90_fp16_d128"),
		CASE(BF16, BF16, 512, 8192, 64, FULL, "sm90_bf16_d64_stream"),
		CASE(BF16, BF16, 512, 1024, 64, FULL, "sm90_bf16_d64_stream"),
		CASE(BF16, BF16, 512, 768, 64, FULL, "sm90_bf16_d64"),
		CASE(BF16, BF16, 512, 8128, 64, FULL, "sm90_bf16_d64"),
		CASE(F16, F16, 512, 768, 64, FULL, "sm90_fp16_d64_lean"),
		CASE(F16, F16, 512, 1024, 64, FULL, "sm90_fp16_d64_stream"),
		CASE(F16, F16, 512, 896, 64, FULL, "sm90_fp16_d64"),
		CASE(F16, F16, 512, 2048, 64, FULL, "sm90_fp16_d64_stream"),
		/* two tiles in turns where a mask is causal alone */
		CASE(F16, F16, 256, 256, 64, CAUSAL, "sm90_fp16_d64_pair, resident"),
		CASE(F16, F16, 256, 256, 64, FULL, "sm90_fp16_d64, resident"),
		{ATTENTION_F16, ATTENTION_F16, 512, 512, 64, ATTENTION_FULL, "sm90_fp16_d64, resident", true},
#undef CASE
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct attention_problem p = {.type = cases[i].type,
						    .out_type = cases[i].out,
						    .batch = 2,
						    .heads = 96,
						    .kv_heads = 48,
						    .q_len = cases[i].q_len,
						    .kv_len = cases[i].kv_len,
						    .head_dim = cases[i].head_dim,
						    .mask = cases[i].mask,
						    .window_left = 64,
						    .window_right = 64,
						    .q_starts = cases[i].packed ? starts : NULL,
						    .kv_starts = cases[i].packed ? starts : NULL};
		struct attention_own *a = NULL;

		if (attention_own_create(&a, b->device, &p, &b->err) == STATUS_UNAVAILABLE)
			skip();
		assert_non_null(a);
		assert_string_equal(attention_own_name(a, 0), cases[i].name);
		attention_own_destroy(&a);
	}
}

static void test_search(void **state)
{
	struct bed *b = *state;
	struct wrong wrong;
	const char *name;

	choose(b, "batch=1 heads=1 seq=16 head_dim=32 search=exhaustive");
	assert_int_equal(begin(b), STATUS_OK);
	assert_true(b->engine->variants(b->state) > 1);
	for (unsigned i = 0; i < b->engine->variants(b->state) && i < 3; i++) {
		assert_int_equal(b->engine->select(b->state, i, &name, &b->err), STATUS_OK);
		assert_int_equal(attention_verify(b->state, &wrong, &b->err), STATUS_OK);
	}
	end(b);
}

/* A library that errs at once, and one that begins to after it was verified. */
static void test_faults(void **state)
{
	static const struct {
		const char *stage;
		enum cause cause;
		const char *says;
	} faults[] = {
		{"flip=1", CAUSE_WRONG_RESULT, "exact pass with means of V"},
		{"nan=1", CAUSE_NAN, "exact pass with means of V"},
		{"drop=1", CAUSE_NAN, "exact pass with means of V"},
		{"flip=3", CAUSE_WRONG_RESULT, "random data"},
		{"nan=4", CAUSE_NAN, "after timing"},
		{"drop=4", CAUSE_NAN, "after timing"},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct wrong wrong;
		enum status st;

		setenv("FAKE_CUDNN", faults[i].stage, 1);
		choose(b, "batch=1 heads=2 seq=24 head_dim=32");
		assert_int_equal(begin(b), STATUS_OK);
		st = attention_verify(b->state, &wrong, &b->err);
		for (uint64_t n = 0; !st && n < b->state->sets; n++)
			assert_int_equal(b->engine->enqueue(b->state, n, &b->err), STATUS_OK);
		st = st ? st : attention_verify(b->state, &wrong, &b->err);
		assert_int_equal(st, STATUS_MISMATCH);
		if (b->err.cause != faults[i].cause || !strstr(b->err.text, faults[i].says))
			fail_msg("%s: %s", faults[i].stage, b->err.text);
		assert_true(wrong.count > 0);
		end(b);
	}
	unsetenv("FAKE_CUDNN");
}

/* What it does not do is said before anything is opened. */
static void test_refused(void **state)
{
	static const struct {
		const char *words, *says;
	} bad[] = {
		{"threads=2", "threads is an option of the CPU engine"},
		{"pattern=mask", "does not support block lists on GPUs before sm_100"},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		choose(b, bad[i].words);
		assert_int_equal(b->engine->supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err),
				 STATUS_UNSUPPORTED);
		assert_non_null(strstr(b->err.text, bad[i].says));
	}
	choose(b, "");
	b->bench.machine.lib =
		(struct lib_found){.status = STATUS_UNAVAILABLE, .cause = CAUSE_LIBRARY_MISSING};
	snprintf(b->bench.machine.lib.name, sizeof(b->bench.machine.lib.name), "cudnn");
	snprintf(b->bench.machine.lib.missing, sizeof(b->bench.machine.lib.missing), "libcudnn.so.9");
	assert_int_equal(b->engine->supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err),
			 STATUS_UNAVAILABLE);
	assert_int_equal(b->err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(b->err.text, "libcudnn.so.9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cudnn, set_up_cudnn, tear_down),
		cmocka_unit_test_setup_teardown(test_own, set_up_cudnn, tear_down),
		cmocka_unit_test(test_own_fp8),
		cmocka_unit_test_setup_teardown(test_choice, set_up_cudnn, tear_down),
		cmocka_unit_test_setup_teardown(test_search, set_up_cudnn, tear_down),
		cmocka_unit_test_setup_teardown(test_faults, set_up_cudnn, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up_cudnn, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
