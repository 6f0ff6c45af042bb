/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may ask for: sampling, stop ids, bias, penalties, log probabilities, grammars. */
#include "cmd/model/one_text.h"
#include "engine_bed.h"

enum { TEXT = 20 };
static const int32_t text[TEXT] = {7, 23, 16, 36, 5, 30, 21, 13, 37, 2, 9, 11, 20, 8, 3, 1, 22, 14, 29, 31};

/* Ids of each request alone, then together: the seed alone decides. */
static void test_requests__sampled_ids_depend_on_the_seed_only(void **state)
{
	struct heard *alone = calloc(FEW, sizeof(*alone));
	struct engine_request r[FEW];
	bool differ = false;
	struct bed b;

	(void)state;
	assert_non_null(alone);
	bed_open(&b, 0);
	for (int i = 0; i < FEW; i++) {
		r[i] = bed_request((uint64_t)i + 1, text, TEXT, 30);
		r[i].sampling.temperature = 0.5f + 0.05f * (float)i;
		r[i].sampling.seed = (uint64_t)(i / 2);
		r[i].sampling.top_k = i % 3 ? 0 : 12;
		r[i].sampling.top_p = i % 4 ? 1 : 0.9f;
		r[i].sampling.min_p = i % 5 ? 0 : 0.02f;
		r[i].sampling.presence = i % 7 ? 0 : 0.5f;
		alone[i] = *answer(&b, &r[i]);
		assert_int_equal(alone[i].tokens, 30);
	}
	for (int i = 0; i < FEW; i++)
		ask(&b, &r[i]);
	bed_run(b.e, b.h, FEW);
	for (int i = 0; i < FEW; i++)
		assert_memory_equal(b.h[i].token, alone[i].token, 30 * sizeof(int32_t));
	r[1] = r[0], r[1].id = 2, r[1].sampling.seed = 99;
	differ = memcmp(answer(&b, &r[1])->token, alone[0].token, 30 * sizeof(int32_t));
	assert_true(differ);
	bed_close(&b);
	free(alone);
}

/* --max-rows may be below the rows that a device shares between prompts and decoding requests. */
static void test_requests__mixed_rows_beyond_those_of_a_step_are_cut(void **state)
{
	struct heard *h = calloc(2, sizeof(*h));
	struct engine_request r[2];
	struct engine_options o;
	struct engine *e;
	char path[512];

	(void)state;
	assert_non_null(h);
	o = bed_options(path, "qwen2");
	o.load.rows = 32;
	o.mixed_rows = 1024;
	e = bed_engine(&o);
	for (int i = 0; i < 2; i++) {
		r[i] = bed_request((uint64_t)i + 1, text, TEXT, 10);
		bed_submit(e, &r[i]);
	}
	bed_run(e, h, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(h[i].tokens, 10);
	engine_destroy(&e);
	free(h);
}

static void test_requests__stop_ids_end_the_text_but_not_before_min_tokens(void **state)
{
	struct engine_request r = bed_request(1, text, TEXT, 40);
	struct heard plain, *h;
	int32_t first = 0;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	plain = *answer(&b, &r);
	r.stop = &plain.token[5];
	r.stops = 1;
	while (plain.token[first] != plain.token[5])
		first++;
	h = answer(&b, &r);
	assert_int_equal(h->last.end, ENGINE_END_STOP);
	assert_int_equal(h->tokens, first + 1); /* the stop id is reported */
	assert_int_equal(h->last.tokens, first + 1);
	assert_memory_equal(h->token, plain.token, ((size_t)first + 1) * sizeof(int32_t));
	r.min_tokens = 20;
	h = answer(&b, &r);
	assert_true(h->tokens >= 20);
	for (int32_t i = 0; i < 19; i++)
		assert_int_not_equal(h->token[i], plain.token[5]);
	bed_close(&b);
}

static void test_requests__a_bias_forces_or_forbids_an_id(void **state)
{
	struct engine_bias bias = {33, 1000};
	struct engine_request r = bed_request(1, text, TEXT, 8);
	struct heard *h;
	int32_t id;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	id = answer(&b, &r)->token[0];
	r.bias = &bias;
	r.biases = 1;
	h = answer(&b, &r);
	for (int i = 0; i < 8; i++)
		assert_int_equal(h->token[i], 33);
	bias = (struct engine_bias){id, -INFINITY};
	h = answer(&b, &r);
	for (int i = 0; i < 8; i++)
		assert_int_not_equal(h->token[i], id);
	bed_close(&b);
}

/* A presence penalty that exceeds every difference of logits: no id comes twice while another is left. */
static void test_requests__penalties_count_the_text_also_after_a_preemption(void **state)
{
	struct engine_request r[8];
	struct bed b = {0};

	(void)state;
	b.o = bed_options(b.path, "llama");
	b.o.load.pages = 8;
	b.e = bed_engine(&b.o);
	for (int i = 0; i < 8; i++) {
		r[i] = bed_request((uint64_t)i + 1, text, TEXT, BED_VOCAB);
		r[i].sampling.presence = 1000;
		r[i].cache_salt = (uint64_t)i;
		ask(&b, &r[i]);
	}
	bed_run(b.e, b.h, 8);
	assert_true(engine_facts(b.e).preemptions > 0);
	for (int i = 0; i < 8; i++) {
		bool seen[BED_VOCAB] = {false};

		assert_int_equal(b.h[i].tokens, BED_VOCAB);
		for (int k = 0; k < BED_VOCAB; k++) {
			assert_false(seen[b.h[i].token[k]]);
			seen[b.h[i].token[k]] = true;
		}
	}
	bed_close(&b);
}

static void in_order(const struct engine_event *e)
{
	double sum = 0;

	for (int32_t k = 0; k < e->tops; k++) {
		sum += exp((double)e->top[k].logprob);
		if (k)
			assert_true(e->top[k].logprob <= e->top[k - 1].logprob);
		if (e->top[k].id == e->token)
			assert_float_equal(e->top[k].logprob, e->logprob, 0);
	}
	assert_true(sum <= 1 + 1e-5);
}

static void test_requests__log_probabilities_are_those_of_the_logits(void **state)
{
	struct engine_request r = bed_request(1, text, TEXT, 6);
	struct heard *h, plain;
	double sum = 0;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	r.logprobs = 20;
	plain = *answer(&b, &r);
	assert_int_equal(plain.first.tops, 20);
	assert_int_equal(plain.first.top[0].id, plain.first.token);
	in_order(&plain.first);
	/* a bias makes each id the sampled one; log probabilities come from the logits before it */
	for (int32_t id = 0; id < BED_VOCAB; id++) {
		const struct engine_bias bias = {id, 1e4f};

		r.bias = &bias;
		r.biases = 1;
		r.logprobs = 0;
		r.max_tokens = 1;
		h = answer(&b, &r);
		assert_int_equal(h->first.token, id);
		assert_int_equal(h->first.tops, 0);
		sum += exp((double)h->first.logprob);
		for (int k = 0; k < 20; k++)
			if (plain.first.top[k].id == id)
				assert_float_equal(plain.first.top[k].logprob, h->first.logprob, 1e-6);
	}
	assert_true(fabs(sum - 1) < 1e-5);
	bed_close(&b);
}

/* Scores of a document's tokens against the logits of transformers. */
static void compare_scores(const struct heard *h, const struct tensor *logits, int64_t row, int32_t count)
{
	const int64_t vocab = logits->dim[1];

	assert_int_equal(h->scored, count - 1);
	for (int32_t i = 0; i + 1 < count; i++) {
		float x[BED_VOCAB];
		double sum = 0;

		memcpy(x, logits->data + 4 * (row + i) * vocab, sizeof(x));
		for (int64_t k = 0; k < vocab; k++)
			sum += exp((double)x[k]);
		if (fabs((double)h->prompt_logprob[i] - (x[h->prompt[i]] - log(sum))) > 1e-4)
			fail_msg("row %d token %d of %d: %g, not %g", (int)row, i + 1, count,
				 (double)h->prompt_logprob[i], (double)x[h->prompt[i]] - log(sum));
		assert_int_equal(h->score[i].tops, 5);
		in_order(&h->score[i]);
		for (int32_t k = 0; k < 5; k++)
			assert_true(fabs((double)h->score[i].top[k].logprob -
					 (x[h->score[i].top[k].id] - log(sum))) < 1e-4);
	}
}

static void test_requests__prompts_are_scored_as_transformers_does(void **state)
{
	struct safetensors expected;
	const struct tensor *logits, *documents;
	const int32_t *token;
	char path[600];
	struct error err = {0};
	int64_t row = 0;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	snprintf(path, sizeof(path), "%s/expected.safetensors", b.path);
	must(safetensors_open(&expected, path, &err), &err);
	logits = tensor_of(&expected, "full.logits");
	documents = tensor_of(&expected, "documents");
	token = (const int32_t *)(const void *)tensor_of(&expected, "token")->data;
	assert_int_equal(logits->dim[1], BED_VOCAB);
	b.h[0].score = calloc(BED_TOKENS, sizeof(*b.h[0].score));
	assert_non_null(b.h[0].score);
	for (int pass = 0; pass < 2; pass++, row = 0)
		for (int64_t d = 0; d < documents->dim[0]; d++) {
			struct engine_request r;
			struct heard *h;
			int32_t count;

			memcpy(&count, documents->data + 4 * d, 4);
			r = bed_request(1, token + row, (size_t)count, pass ? 3 : -1);
			r.prompt_logprobs = 5;
			h = answer(&b, &r);
			assert_int_equal(h->last.end, ENGINE_END_LENGTH);
			assert_int_equal(h->tokens, pass ? 3 : 0);
			for (int32_t i = 1; i < count; i++)
				assert_int_equal(h->prompt[i - 1], token[row + i]);
			compare_scores(h, logits, row, count);
			row += count;
		}
	free(b.h[0].score);
	safetensors_release(&expected);
	bed_close(&b);
}

/* In pieces of one page, and with other requests in the step. */
static void test_requests__scores_do_not_depend_on_the_batch(void **state)
{
	static struct prompt prompt[PROMPTS];
	struct heard *alone = calloc(FEW, sizeof(*alone));
	struct engine_request r[FEW];
	struct bed b;

	(void)state;
	assert_non_null(alone);
	prompts_make(prompt, BED_VOCAB);
	bed_open(&b, 0);
	for (int i = 0; i < FEW; i++) {
		r[i] = bed_request((uint64_t)i + 1, prompt[i].id, (size_t)prompt[i].count, i % 3 ? 4 : -1);
		r[i].prompt_logprobs = 0;
		alone[i] = *answer(&b, &r[i]);
		assert_int_equal(alone[i].scored, prompt[i].count - 1);
	}
	engine_destroy(&b.e);
	b.o.load.sequences = 3;
	b.o.load.rows = 19;
	b.o.load.pages = 8;
	b.e = bed_engine(&b.o);
	for (int i = 0; i < FEW; i++)
		ask(&b, &r[i]);
	bed_run(b.e, b.h, FEW);
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(b.h[i].scored, alone[i].scored);
		assert_memory_equal(b.h[i].prompt_logprob, alone[i].prompt_logprob,
				    (size_t)alone[i].scored * sizeof(float));
	}
	bed_close(&b);
	free(alone);
}

static void test_requests__a_grammar_ends_complete(void **state)
{
	static const char source[] = "{\"type\": \"choice\", \"choices\": [\"cab\", \"dab\", \"dabble\"]}";
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	for (int i = 0; i < FEW; i++) {
		struct engine_request r = bed_request((uint64_t)i + 1, text, (size_t)(1 + i % TEXT), 20);

		r.grammar = source;
		r.grammar_size = sizeof(source) - 1;
		r.sampling.temperature = i ? 2 : 0;
		r.sampling.seed = (uint64_t)i;
		ask(&b, &r);
	}
	assert_int_equal(engine_facts(b.e).waiting, FEW);
	bed_run(b.e, b.h, FEW);
	for (int i = 0; i < FEW; i++) {
		char word[BED_TOKENS] = "";

		assert_int_equal(b.h[i].last.end, ENGINE_END_STOP);
		assert_int_equal(b.h[i].token[b.h[i].tokens - 1], 0);
		for (int k = 0; k + 1 < b.h[i].tokens; k++)
			word[k] = (char)('a' + b.h[i].token[k] - 1);
		if (strcmp(word, "cab") && strcmp(word, "dab") && strcmp(word, "dabble"))
			fail_msg("the text is \"%s\"", word);
	}
	bed_close(&b);
}

/* A request with the grammar `source`, which id 0 ends. */
static struct engine_request with_grammar(const char *source, int64_t min_tokens)
{
	static const int32_t end = 0;
	struct engine_request r = bed_request(1, text, TEXT, 20);

	r.grammar = source;
	r.grammar_size = strlen(source);
	r.stop = &end;
	r.stops = 1;
	r.min_tokens = min_tokens;
	return r;
}

static void says(const struct heard *h, const char *word)
{
	char said[BED_TOKENS] = "";

	assert_int_equal(h->last.end, ENGINE_END_STOP);
	assert_int_equal(h->token[h->tokens - 1], 0);
	for (int k = 0; k + 1 < h->tokens; k++)
		said[k] = (char)('a' + h->token[k] - 1);
	assert_string_equal(said, word);
}

static void test_requests__a_complete_grammar_ends_before_min_tokens(void **state)
{
	static const struct engine_bias no_b = {2, -INFINITY};
	static const int32_t letter_b = 2;
	struct engine_request r;
	struct heard *h;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	r = with_grammar("{\"type\": \"choice\", \"choices\": [\"cab\"]}", 10);
	says(answer(&b, &r), "cab");
	/* the end waits while another token is allowed */
	r = with_grammar("{\"type\": \"choice\", \"choices\": [\"dab\", \"dabble\"]}", 10);
	says(answer(&b, &r), "dabble");
	r = with_grammar("{\"type\": \"regex\", \"pattern\": \"a+\"}", 8);
	h = answer(&b, &r);
	assert_true(h->tokens >= 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(h->token[i], 1);
	/* an id that the bias forbids is not another token */
	r = with_grammar("{\"type\": \"choice\", \"choices\": [\"da\", \"dab\"]}", 10);
	r.bias = &no_b, r.biases = 1;
	says(answer(&b, &r), "da");
	/* a stop id that is a letter */
	r = with_grammar("{\"type\": \"choice\", \"choices\": [\"abc\"]}", 10);
	r.stop = &letter_b;
	says(answer(&b, &r), "abc");
	bed_close(&b);
}

static void test_requests__a_bias_that_leaves_no_token_is_refused(void **state)
{
	static const struct engine_bias no_a = {1, -INFINITY}, no_end = {0, -INFINITY};
	const struct engine_bias *const forbids[] = {&no_a, &no_end};
	struct engine_bias all[BED_VOCAB];
	struct engine_request r = with_grammar("{\"type\": \"choice\", \"choices\": [\"cab\"]}", 0);
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	for (int i = 0; i < 2; i++) {
		r.bias = forbids[i], r.biases = 1;
		assert_int_equal(answer(&b, &r)->last.end, ENGINE_END_REFUSED);
		assert_int_equal(b.h[0].tokens, i ? 3 : 1);
		assert_int_equal(strncmp(b.h[0].last.text, "logit_bias", 10), 0);
	}
	for (int i = 0; i < BED_VOCAB; i++)
		all[i] = (struct engine_bias){i, -INFINITY};
	r = bed_request(1, text, TEXT, 4);
	r.bias = all, r.biases = BED_VOCAB;
	assert_int_equal(answer(&b, &r)->last.end, ENGINE_END_REFUSED);
	assert_int_equal(strncmp(b.h[0].last.text, "logit_bias", 10), 0);
	/* no fault of the bias: no token has a digit */
	r = with_grammar("{\"type\": \"choice\", \"choices\": [\"17\"]}", 0);
	r.bias = &no_a, r.biases = 1;
	assert_int_equal(answer(&b, &r)->last.end, ENGINE_END_FAILED);
	bed_close(&b);
}

/* A request with this grammar ends so, for this reason; one beside it ends as usual. */
static void ends_alone(const char *grammar, enum engine_end end, const char *why)
{
	struct engine_request r = bed_request(1, text, TEXT, 60), other = r;
	struct bed b;

	bed_open(&b, 0);
	r.grammar = grammar;
	r.grammar_size = strlen(grammar);
	other.id = 2;
	ask(&b, &r);
	ask(&b, &other);
	bed_run(b.e, b.h, 2);
	assert_int_equal(b.h[0].last.end, end);
	assert_non_null(strstr(b.h[0].last.text, why));
	assert_int_equal(b.h[1].last.end, ENGINE_END_LENGTH);
	bed_close(&b);
}

/* No token of the vocabulary has a digit, so no text can follow the grammar. */
static void test_requests__a_grammar_that_allows_no_token_fails_its_request_only(void **state)
{
	(void)state;
	ends_alone("{\"type\": \"choice\", \"choices\": [\"17\"]}", ENGINE_END_FAILED, "no token can follow");
}

/* Each letter may end a repetition, so the states grow with the text until they exceed the limit. */
static void test_requests__a_grammar_that_exceeds_a_limit_is_the_requests_own_fault(void **state)
{
	(void)state;
	ends_alone("{\"type\": \"regex\", \"pattern\": \"([a-z]{0,200}){1,400}\"}", ENGINE_END_REFUSED,
		   "the grammar is too ambiguous");
}

/* Only the refusal of the first one is about the grammar itself. For a command the two others are errors. */
static void test_requests__a_bad_grammar_is_told_from_a_bad_request(void **state)
{
	static const char
		fits[] = "{\"type\": \"choice\", \"choices\": [\"cab\"]}",
		contradicts[] =
			"{\"type\": \"json_schema\", \"schema\": {\"type\": \"integer\", \"enum\": [\"a\"]}}";
	struct engine_request r[] = {bed_request(1, text, TEXT, 4), bed_request(2, text, TEXT, 4),
				     bed_request(3, text, 0, 4)};
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	for (int i = 0; i < 3; i++) {
		r[i].grammar = i == 0 ? contradicts : fits;
		r[i].grammar_size = strlen(r[i].grammar);
	}
	r[1].adapter = 7;
	for (int i = 0; i < 3; i++)
		ask(&b, &r[i]);
	bed_run(b.e, b.h, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b.h[i].last.end, ENGINE_END_REFUSED);
		assert_int_equal(b.h[i].last.bad_grammar, i == 0);
		assert_int_equal(one_text_end(&b.h[i].last) == ANSWER_REFUSED, i == 0);
		assert_int_equal(one_text_error(&b.h[i].last, NULL), STATUS_BAD_INPUT);
	}
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests__sampled_ids_depend_on_the_seed_only),
		cmocka_unit_test(test_requests__mixed_rows_beyond_those_of_a_step_are_cut),
		cmocka_unit_test(test_requests__stop_ids_end_the_text_but_not_before_min_tokens),
		cmocka_unit_test(test_requests__a_bias_forces_or_forbids_an_id),
		cmocka_unit_test(test_requests__penalties_count_the_text_also_after_a_preemption),
		cmocka_unit_test(test_requests__log_probabilities_are_those_of_the_logits),
		cmocka_unit_test(test_requests__prompts_are_scored_as_transformers_does),
		cmocka_unit_test(test_requests__scores_do_not_depend_on_the_batch),
		cmocka_unit_test(test_requests__a_grammar_ends_complete),
		cmocka_unit_test(test_requests__a_complete_grammar_ends_before_min_tokens),
		cmocka_unit_test(test_requests__a_bias_that_leaves_no_token_is_refused),
		cmocka_unit_test(test_requests__a_grammar_that_exceeds_a_limit_is_the_requests_own_fault),
		cmocka_unit_test(test_requests__a_bad_grammar_is_told_from_a_bad_request),
		cmocka_unit_test(test_requests__a_grammar_that_allows_no_token_fails_its_request_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
