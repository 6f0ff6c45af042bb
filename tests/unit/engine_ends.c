/* SPDX-License-Identifier: Apache-2.0 */
/* How requests end: refused, cancelled, late, failed; what one request does to the others. */
#include "engine_bed.h"
#include "core/clock.h"
#include "model/model.h"
#include "model/tensor/dtype.h"

enum { TEXT = 20 };
static const int32_t text[TEXT] = {7, 23, 16, 36, 5, 30, 21, 13, 37, 2, 9, 11, 20, 8, 3, 1, 22, 14, 29, 31};

static void is_refused(struct bed *b, const struct engine_request *r, const char *why)
{
	const struct heard *h = answer(b, r);

	assert_int_equal(h->last.end, ENGINE_END_REFUSED);
	assert_int_equal(h->begun, 0);
	if (!strstr(h->last.text, why))
		fail_msg("\"%s\" has no \"%s\"", h->last.text, why);
}

static void test_ends__what_cannot_run_is_refused_with_its_reason(void **state)
{
	static const int32_t high[] = {1, BED_VOCAB};
	static const struct engine_bias bias = {-1, 1};
	struct engine_request good, r;
	struct bed b;

	(void)state;
	bed_open(&b, 0);
	good = r = bed_request(1, text, TEXT, 1000);
	is_refused(&b, &r, "has room for 112 tokens");
	r = bed_request(1, text, 0, 4);
	is_refused(&b, &r, "the prompt has no token");
	r = bed_request(1, high, 2, 4);
	is_refused(&b, &r, "token 2 of the prompt is 40; ids are 0 to 39");
	good.max_tokens = 4;
	r = good, r.bias = &bias, r.biases = 1;
	is_refused(&b, &r, "logit_bias names the id -1");
	r = good, r.stops = ENGINE_STOPS_MOST + 1;
	is_refused(&b, &r, "65 stop ids are given");
	r = good, r.biases = ENGINE_BIAS_MOST + 1;
	is_refused(&b, &r, "logit_bias has 1025 entries");
	r = good, r.logprobs = ENGINE_TOP_MOST + 1;
	is_refused(&b, &r, "21 alternatives");
	r = good, r.sampling.temperature = NAN;
	is_refused(&b, &r, "temperature is nan");
	r = good, r.sampling.top_p = 0;
	is_refused(&b, &r, "top_p is 0");
	r = good, r.sampling.min_p = 1.5f;
	is_refused(&b, &r, "min_p is 1.5");
	r = good, r.sampling.repetition = 0;
	is_refused(&b, &r, "repetition_penalty is 0");
	r = good, r.sampling.top_k = -1;
	is_refused(&b, &r, "top_k is -1");
	r = good, r.priority = 100;
	is_refused(&b, &r, "priority");
	r = good, r.grammar = "{\"type\": \"none\"}", r.grammar_size = 16;
	is_refused(&b, &r, "\"type\" is not json_object");
	assert_int_equal(answer(&b, &good)->last.end, ENGINE_END_LENGTH);
	bed_close(&b);
}

static void test_ends__an_engine_without_grammars_or_penalties_says_so(void **state)
{
	struct bed b = {0};
	struct engine_request r = bed_request(1, text, TEXT, 4);

	(void)state;
	b.o = bed_options(b.path, "llama");
	b.o.load.penalties = false;
	b.e = bed_engine(&b.o);
	assert_int_equal(engine_fd(b.e), -1);
	r.grammar = "{\"type\": \"json_object\"}", r.grammar_size = 23;
	is_refused(&b, &r, "without grammars");
	r = bed_request(1, text, TEXT, 4);
	r.sampling.frequency = 1;
	is_refused(&b, &r, "without memory for penalties");
	bed_close(&b);
}

static void test_ends__deadlines_end_requests_in_every_state(void **state)
{
	const uint64_t now = clock_now_ns(clock_monotonic());
	struct engine_request r = bed_request(1, text, TEXT, 90);
	struct bed b;

	(void)state;
	bed_open(&b, 1);
	assert_true(engine_wake(b.e) == UINT64_MAX);
	r.deadline_ns = 1; /* long ago */
	assert_int_equal(answer(&b, &r)->last.end, ENGINE_END_DEADLINE);
	assert_int_equal(b.h[0].begun, 0);
	r.deadline_ns = now + 3600000000000u;
	assert_int_equal(answer(&b, &r)->last.end, ENGINE_END_LENGTH);
	r.deadline_ns = clock_now_ns(clock_monotonic()) + 300000000;
	ask(&b, &r); /* it runs */
	r.id = 2;
	r.deadline_ns = clock_now_ns(clock_monotonic()) + 300000000;
	ask(&b, &r); /* it waits */
	step(&b);
	assert_int_equal(b.h[0].begun, 1);
	assert_int_equal(b.h[1].begun, 0);
	assert_true(engine_wake(b.e) != UINT64_MAX);
	while (clock_now_ns(clock_monotonic()) < r.deadline_ns)
		;
	bed_run(b.e, b.h, 2);
	assert_int_equal(b.h[0].last.end, ENGINE_END_DEADLINE);
	assert_int_equal(b.h[1].last.end, ENGINE_END_DEADLINE);
	bed_close(&b);
}

static void test_ends__a_cancel_ends_a_request_in_every_state(void **state)
{
	struct engine_request r = bed_request(1, text, TEXT, 90), waits = r, compiles = r;
	struct bed b;

	(void)state;
	bed_open(&b, 1);
	bed_cancel(b.e, 1); /* unknown */
	waits.id = 2;
	compiles.id = 3;
	compiles.grammar = "{\"type\": \"json_object\"}", compiles.grammar_size = 23;
	/* before the first step */
	ask(&b, &r);
	bed_cancel(b.e, 1);
	bed_run(b.e, b.h, 1);
	assert_int_equal(b.h[0].last.end, ENGINE_END_CANCELLED);
	assert_int_equal(b.h[0].begun, 0);
	/* running, waiting and compiling */
	ask(&b, &r);
	step(&b);
	ask(&b, &waits);
	ask(&b, &compiles);
	bed_cancel(b.e, 3);
	bed_cancel(b.e, 3); /* twice */
	for (int i = 0; i < 5; i++)
		step(&b);
	bed_cancel(b.e, 1);
	bed_cancel(b.e, 2);
	bed_run(b.e, b.h, 3);
	assert_in_range(b.h[0].tokens, 1, 8);
	for (int i = 0; i < 3; i++)
		assert_int_equal(b.h[i].last.end, ENGINE_END_CANCELLED);
	bed_cancel(b.e, 1); /* after the end */
	step(&b);
	/* a stop string */
	ask(&b, &r);
	while (b.h[0].tokens < 4)
		step(&b);
	engine_finish(b.e, 1, 2);
	bed_run(b.e, b.h, 1);
	assert_int_equal(b.h[0].last.end, ENGINE_END_STOP);
	assert_int_equal(b.h[0].last.tokens, 2);
	engine_finish(b.e, 1, 2);
	bed_close(&b);
}

static void test_ends__a_lower_priority_number_comes_first(void **state)
{
	struct engine_request r[4];
	int begun = 0, order[4] = {0};
	struct bed b;

	(void)state;
	bed_open(&b, 1);
	for (int i = 0; i < 4; i++) {
		r[i] = bed_request((uint64_t)i + 1, text, TEXT, 4);
		r[i].priority = (int32_t[]){0, 5, -5, 0}[i];
	}
	for (int i = 0; i < 4; i++)
		ask(&b, &r[i]);
	while (begun < 4) {
		step(&b);
		for (int i = 0; i < 4; i++)
			if (b.h[i].begun && !order[i])
				order[i] = ++begun;
	}
	bed_run(b.e, b.h, 4);
	assert_int_equal(order[2], 1);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[3], 3);
	assert_int_equal(order[1], 4);
	bed_close(&b);
}

/* The embedding of one id is NaN: requests with this id fail, also by its page in the cache, and others go
 * on. */
static void test_ends__nan_fails_the_request_and_the_engine_lives(void **state)
{
	static const int32_t bad[] = {1, 2, 3, 38, 5, 6};
	static const struct engine_bias never = {38, -INFINITY};
	struct engine_request r[FEW];
	struct heard *plain = calloc(FEW, sizeof(*plain));
	struct mat *embed;
	struct bed b;

	(void)state;
	assert_non_null(plain);
	bed_open(&b, 0);
	embed = &engine_loaded(b.e)->model->embed.w;
	for (int i = 0; i < FEW; i++) {
		r[i] = bed_request((uint64_t)i + 1, text, (size_t)(1 + i % TEXT), 20);
		r[i].bias = &never, r[i].biases = 1;
		if (i % 3 == 1)
			r[i].prompt = bad, r[i].prompt_count = 6;
		ask(&b, &r[i]);
	}
	bed_run(b.e, b.h, FEW);
	memcpy(plain, b.h, sizeof(b.h));
	engine_destroy(&b.e);
	b.e = bed_engine(&b.o);
	embed = &engine_loaded(b.e)->model->embed.w;
	assert_int_equal(embed->rows, BED_VOCAB);
	memset((char *)embed->data + dtype_bytes(embed->dtype, 38 * (uint64_t)embed->ld), 0xff,
	       dtype_bytes(embed->dtype, (uint64_t)embed->cols));
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < FEW; i++)
			ask(&b, &r[i]);
		bed_run(b.e, b.h, FEW);
		for (int i = 0; i < FEW; i++) {
			if (i % 3 == 1) {
				assert_int_equal(b.h[i].last.end, ENGINE_END_FAILED);
				assert_non_null(strstr(b.h[i].last.text, "NaN"));
				assert_int_equal(b.h[i].tokens, 0);
				continue;
			}
			assert_int_equal(b.h[i].last.end, ENGINE_END_LENGTH);
			assert_memory_equal(b.h[i].token, plain[i].token, 20 * sizeof(int32_t));
		}
	}
	bed_close(&b);
	free(plain);
}

/* One sequence fills all pages: the others wait, and each ends. */
static void test_ends__no_free_page_delays_requests_only(void **state)
{
	struct bed b = {0};

	(void)state;
	b.o = bed_options(b.path, "llama");
	b.o.load.positions = 112;
	b.o.load.pages = 7;
	b.e = bed_engine(&b.o);
	for (int i = 0; i < FEW; i++) {
		struct engine_request r = bed_request((uint64_t)i + 1, text, TEXT, 112 - TEXT);

		r.cache_salt = (uint64_t)i;
		ask(&b, &r);
	}
	bed_run(b.e, b.h, FEW);
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(b.h[i].last.end, ENGINE_END_LENGTH);
		assert_int_equal(b.h[i].tokens, 112 - TEXT);
		assert_memory_equal(b.h[i].token, b.h[0].token, (112 - TEXT) * sizeof(int32_t));
	}
	bed_close(&b);
}

static void test_ends__a_full_queue_refuses(void **state)
{
	struct bed b = {0};
	int refused = 0;

	(void)state;
	b.o = bed_options(b.path, "llama");
	b.o.load.sequences = 2;
	b.o.queue = 3;
	b.e = bed_engine(&b.o);
	for (int i = 0; i < 8; i++) {
		const struct engine_request r = bed_request((uint64_t)i + 1, text, TEXT, 4);

		ask(&b, &r);
	}
	bed_run(b.e, b.h, 8);
	for (int i = 0; i < 8; i++)
		refused += b.h[i].last.end == ENGINE_END_REFUSED;
	assert_int_equal(refused, 3);
	bed_close(&b);
}

static void test_ends__a_model_that_does_not_load_leaves_nothing(void **state)
{
	char path[512];
	struct engine_options o = bed_options(path, "nowhere");
	struct error err = {0};
	struct engine *e;

	(void)state;
	assert_int_not_equal(engine_create(&e, &o, &err), STATUS_OK);
	assert_null(e);
	assert_non_null(strstr(err.text, "nowhere"));
	o = bed_options(path, "llama");
	o.load.pages = 2;
	error_clear(&err);
	assert_int_equal(engine_create(&e, &o, &err), STATUS_NO_RESOURCE);
	assert_null(e);
	o.load.pages = 0;
	o.load.memory = 20000;
	error_clear(&err);
	assert_int_equal(engine_create(&e, &o, &err), STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "--memory is 2e-05 GB"));
	assert_non_null(strstr(err.text, "raise --memory or reduce --context"));
	engine_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends__what_cannot_run_is_refused_with_its_reason),
		cmocka_unit_test(test_ends__an_engine_without_grammars_or_penalties_says_so),
		cmocka_unit_test(test_ends__deadlines_end_requests_in_every_state),
		cmocka_unit_test(test_ends__a_cancel_ends_a_request_in_every_state),
		cmocka_unit_test(test_ends__a_lower_priority_number_comes_first),
		cmocka_unit_test(test_ends__nan_fails_the_request_and_the_engine_lives),
		cmocka_unit_test(test_ends__no_free_page_delays_requests_only),
		cmocka_unit_test(test_ends__a_full_queue_refuses),
		cmocka_unit_test(test_ends__a_model_that_does_not_load_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
