/* SPDX-License-Identifier: Apache-2.0 */
/* A cache gives what the whole document gives; choices follow the distribution asked for. */
#include "unit/test.h"
#include <math.h>
#include "model/generation/generator.h"
#include "unit/model_bed.h"
#include "unit/must.h"

enum { ALL = (1 << PEFT_TARGET_COUNT) - 1, LENGTH = 40 };

/* Logits of the last row of the first `rows` tokens, without a cache. */
static void whole(struct bed *b, int32_t rows, float *out)
{
	const struct arena_mark mark = arena_mark(&b->arena);
	const int32_t start[2] = {0, rows}, last = rows - 1;
	const struct batch batch = {.token = b->token,
				    .position = b->position,
				    .target = b->target,
				    .doc_start = start,
				    .tokens = rows,
				    .docs = 1,
				    .doc_len_max = rows};
	const struct pass pass = {.model = b->model, .back = &b->back, .batch = &batch, .saved = &b->saved};
	struct mat logits = {.rows = 1, .cols = b->shape.vocab, .dtype = DTYPE_F32};
	struct error err = {0};

	must(arena_mat(&b->arena, MEM_LOGITS, &logits, "logits", &err), &err);
	must(model_forward(&pass, &err), &err);
	must(model_logits(&pass, &last, 1, logits, &err), &err);
	memcpy(out, logits.data, (size_t)b->shape.vocab * sizeof(*out));
	arena_reset(&b->arena, &mark);
}

static void near(const float *a, const float *b, int64_t n)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)a[i]));
	for (int64_t i = 0; i < n; i++)
		assert_true(fabs((double)a[i] - (double)b[i]) <= 1e-5 * most);
}

static void test_generate__a_cache_gives_the_logits_of_the_whole(void **state)
{
	static const int docs[] = {LENGTH, 0};
	static const int32_t ends[] = {7, 8, 9, 12, 40};

	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++) {
		const struct bed_options o = {
			.family = family, .targets = ALL, .docs = docs, .mode = RECOMPUTE_FULL};
		struct generator *g;
		struct error err = {0};
		const float *logits;
		float expected[64];
		struct bed b;
		int32_t at = 0;

		bed_open(&b, &o);
		must(generator_create(&g, b.model, &b.back, LENGTH, &err), &err);
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); at = ends[i], i++) {
			whole(&b, ends[i], expected);
			must(generator_feed(g, b.token + at, (size_t)(ends[i] - at), &logits, &err), &err);
			near(expected, logits, b.shape.vocab);
		}
		generator_rewind(g, 8);
		whole(&b, 9, expected);
		must(generator_feed(g, b.token + 8, 1, &logits, &err), &err);
		near(expected, logits, b.shape.vocab);
		generator_release(&g);
		bed_close(&b);
	}
}

static void test_generate__a_full_cache_is_refused(void **state)
{
	static const int docs[] = {LENGTH, 0};
	struct generator *g;
	struct error err = {0};
	const float *logits;
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_LLAMA, .targets = ALL, .docs = docs});
	must(generator_create(&g, b.model, &b.back, 10, &err), &err);
	assert_int_equal(generator_feed(g, b.token, 11, &logits, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "0 rows and 11 more do not fit into the KV cache of 10 rows");
	error_clear(&err);
	assert_int_equal(generator_feed(g, b.token, 0, &logits, &err), STATUS_BAD_INPUT);
	generator_release(&g);
	error_clear(&err);
	assert_int_equal(generator_create(&g, b.model, &b.back, 129, &err), STATUS_BAD_INPUT);
	bed_close(&b);
}

static bool none_is_made(void *arg, int32_t id, const float *logits)
{
	(void)arg;
	(void)logits;
	fail_msg("token %d", (int)id);
	return false;
}

static void test_generate__a_prompt_hears_a_request_to_stop(void **state)
{
	static const int docs[] = {LENGTH, 0};
	volatile sig_atomic_t asked = 1;
	struct generate_options o = {.sampling = {.top_p = 1}, .tokens = 4, .cancel = &asked};
	enum generate_end end;
	struct generator *g;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_LLAMA, .targets = ALL, .docs = docs});
	must(generator_create(&g, b.model, &b.back, LENGTH, &err), &err);
	o.vocab = b.shape.vocab;
	assert_int_equal(generate(g, b.token, 11, &o, none_is_made, NULL, &end, &err), STATUS_CANCELLED);
	assert_string_equal(err.text, "stopped on request after 0 of 11 tokens of the prompt");
	generator_release(&g);
	bed_close(&b);
}

struct taken {
	int32_t id[64];
	int count, most;
};

static bool take(void *arg, int32_t id, const float *logits)
{
	struct taken *t = arg;

	(void)logits;
	t->id[t->count++] = id;
	return t->count < t->most;
}

static void test_generate__ends_by_stop_by_count_by_room_and_by_the_caller(void **state)
{
	static const int docs[] = {LENGTH, 0};
	struct generate_options o = {.sampling = {.top_p = 1}, .tokens = 5, .vocab = 56};
	struct taken first = {.most = 64}, again = {.most = 64};
	enum generate_end end;
	struct generator *g;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL, .docs = docs});
	must(generator_create(&g, b.model, &b.back, 20, &err), &err);
	must(generate(g, b.token, 6, &o, take, &first, &end, &err), &err);
	assert_int_equal(end, GENERATE_FULL);
	assert_int_equal(first.count, 5);
	generator_rewind(g, 0);
	o.tokens = 1000;
	o.stop = &first.id[3];
	o.stops = 1;
	must(generate(g, b.token, 6, &o, take, &again, &end, &err), &err);
	assert_int_equal(end, GENERATE_STOPPED);
	assert_in_range(again.count, 0, 3);
	assert_memory_equal(again.id, first.id, (size_t)again.count * sizeof(int32_t));
	generator_rewind(g, 0);
	again = (struct taken){.most = 2};
	o.stops = 0;
	must(generate(g, b.token, 6, &o, take, &again, &end, &err), &err);
	assert_int_equal(end, GENERATE_ENDED_BY_CALLER);
	generator_rewind(g, 0);
	again = (struct taken){.most = 64};
	must(generate(g, b.token, 6, &o, take, &again, &end, &err), &err);
	assert_int_equal(end, GENERATE_FULL);
	assert_int_equal(again.count, 15); /* 20 rows: a token that is not fed needs none */
	o.sampling.top_p = 0;
	assert_int_equal(generate(g, b.token, 6, &o, take, &again, &end, &err), STATUS_BAD_INPUT);
	generator_release(&g);
	bed_close(&b);
}

/* As a run that diverged may leave an adapter: each number is finite, what comes of them is not. */
static void test_generate__logits_that_are_no_numbers_end_it(void **state)
{
	static const int docs[] = {LENGTH, 0};
	const struct generate_options o = {.sampling = {.top_p = 1}, .tokens = 5, .vocab = 56};
	struct taken taken = {.most = 64};
	enum generate_end end;
	struct generator *g;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL, .docs = docs});
	for (size_t i = 0; i < b.model->params.length; i++)
		bed_set(&b.model->params.master, i, 3.4e38);
	must(model_refresh(b.model, &b.back, &err), &err);
	must(generator_create(&g, b.model, &b.back, 20, &err), &err);
	assert_int_equal(generate(g, b.token, 6, &o, take, &taken, &end, &err), STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "the logits of token 1 have NaN or infinity"));
	assert_int_equal(taken.count, 0);
	generator_release(&g);
	bed_close(&b);
}

/* Shares 0.5, 0.25, 0.125, .. of 8 ids, in another order. */
static void test_sampling__choices_follow_the_distribution(void **state)
{
	enum { DRAWS = 4096 };
	static const int order[8] = {3, 0, 7, 1, 2, 6, 5, 4};
	static const struct {
		struct sampling s;
		double share[8]; /* by rank */
	} cases[] = {
		{{.temperature = 1, .top_p = 1},
		 {0.502, 0.251, 0.1255, 0.0627, 0.0314, 0.0157, 0.0078, 0.0039}},
		{{.temperature = 1, .top_k = 2, .top_p = 1}, {2. / 3, 1. / 3}},
		{{.temperature = 1, .top_p = 0.6}, {2. / 3, 1. / 3}},
		{{.temperature = 0.5, .top_k = 2, .top_p = 1}, {0.8, 0.2}},
		{{.temperature = 0, .top_p = 1}, {1}},
	};
	struct sampler_room *room;
	struct error err = {0};
	float logits[8];

	(void)state;
	must(sampler_room_create(&room, 8, &err), &err);
	for (int i = 0; i < 8; i++)
		logits[order[i]] = 5 - (float)i * logf(2);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		int count[8] = {0};

		for (uint64_t i = 0; i < DRAWS; i++)
			count[sampling_choose(&cases[c].s, room, logits, 8, i)]++;
		for (int i = 0; i < 8; i++) {
			double p = cases[c].share[i], spread = 5 * sqrt(p * (1 - p) / DRAWS);

			assert_true(fabs(count[order[i]] / (double)DRAWS - p) <= spread + 1e-3);
			if (p == 0)
				assert_int_equal(count[order[i]], 0);
		}
	}
	for (int i = 0; i < 8; i++)
		assert_true(fabs(exp(sampling_logprob(logits, 8, order[i])) - ldexp(128. / 255, -i)) < 1e-6);
	assert_in_range(sampling_choose(&cases[0].s, room, logits, 2, 1), 0, 1);
	sampler_room_destroy(&room);
}

static void test_sampling__settings_are_held_to_their_range(void **state)
{
	static const struct sampling bad[] = {{.temperature = -1, .top_p = 1},
					      {.temperature = (double)NAN, .top_p = 1},
					      {.top_k = -1, .top_p = 1},
					      {.top_p = 1.5}};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error_clear(&err);
		assert_int_equal(sampling_check(&bad[i], &err), STATUS_BAD_INPUT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generate__a_cache_gives_the_logits_of_the_whole),
		cmocka_unit_test(test_generate__a_full_cache_is_refused),
		cmocka_unit_test(test_generate__a_prompt_hears_a_request_to_stop),
		cmocka_unit_test(test_generate__ends_by_stop_by_count_by_room_and_by_the_caller),
		cmocka_unit_test(test_generate__logits_that_are_no_numbers_end_it),
		cmocka_unit_test(test_sampling__choices_follow_the_distribution),
		cmocka_unit_test(test_sampling__settings_are_held_to_their_range),
	};

	return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}
