/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the engine on the CPU: equal however a prompt is divided and whoever else runs, and how they end.
 */
#include "test.h"
#include <math.h>
#include "engine/engine.h"
#include "must.h"
#include "model/model.h"

enum { PAGE = 16, REQUESTS = 4, TOKENS_MOST = 64, PROMPT = 40 };

struct text {
	int32_t id[TOKENS_MOST];
	int count;
	bool ended;
	enum engine_end end;
	char why[256];
};

static struct engine *open_engine(int64_t positions, int64_t sequences, int64_t rows)
{
	const struct engine_options o = {.load = {.device = LOAD_CPU,
						  .model = SOURCE_DIR "/tests/data/model/qwen2",
						  .positions = positions,
						  .sequences = sequences,
						  .rows = rows,
						  .page_tokens = PAGE,
						  .pages = sequences * 4}};
	struct error err = {0};
	struct engine *e;

	must(engine_create(&e, &o, &err), &err);
	return e;
}

static const int32_t *prompt(int seed)
{
	static int32_t ids[REQUESTS][PROMPT];

	for (int i = 0; i < PROMPT; i++)
		ids[seed][i] = (7 * i + 3 * i * i + 11 * seed + 1) % 40;
	return ids[seed];
}

static struct engine_request request(int seed, size_t count, int64_t tokens)
{
	return (struct engine_request){.id = 1 + (uint64_t)seed,
				       .adapter = -1,
				       .prompt = prompt(seed),
				       .prompt_count = count,
				       .max_tokens = tokens,
				       .sampling = {.top_p = 1, .repetition = 1, .seed = 5},
				       .logprobs = -1,
				       .prompt_logprobs = -1};
}

/* Adds the new events to the texts of requests 1 .. count. */
static void collect(struct engine *e, struct text *text, int count)
{
	const struct engine_event *event;
	const size_t events = engine_events(e, &event);

	for (size_t i = 0; i < events; i++) {
		struct text *t = &text[event[i].id - 1];

		assert_in_range(event[i].id, 1, count);
		assert_false(t->ended);
		if (event[i].kind == ENGINE_EVENT_TOKEN)
			t->id[t->count++] = event[i].token;
		if (event[i].kind != ENGINE_EVENT_END)
			continue;
		t->ended = true;
		t->end = event[i].end;
		memcpy(t->why, event[i].text, sizeof(t->why));
		assert_int_equal(event[i].tokens, t->count);
	}
}

static void run(struct engine *e, const struct engine_request *r, struct text *text, int count)
{
	struct error err = {0};
	bool idle = false;

	memset(text, 0, (size_t)count * sizeof(*text));
	for (int i = 0; i < count; i++)
		must(engine_submit(e, &r[i], &err), &err);
	collect(e, text, count);
	while (!idle) {
		must(engine_step(e, &idle, &err), &err);
		collect(e, text, count);
	}
	for (int i = 0; i < count; i++)
		assert_true(text[i].ended);
}

static void same(const struct text *a, const struct text *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->end, b->end);
	assert_memory_equal(a->id, b->id, (size_t)a->count * sizeof(a->id[0]));
}

static void test_text__is_equal_in_one_piece_and_in_many(void **state)
{
	(void)state;
	for (int sampled = 0; sampled < 2; sampled++) {
		struct engine_request r = request(0, PROMPT, 20);
		struct engine *whole = open_engine(64, 1, 64), *pieces = open_engine(64, 1, 1);
		struct text one, many;

		assert_int_equal(engine_loaded(pieces)->most.rows, PAGE + 1); /* the least: three pieces */
		r.sampling.temperature = (float)sampled;
		run(whole, &r, &one, 1);
		run(pieces, &r, &many, 1);
		assert_int_equal(one.count, 20);
		same(&one, &many);
		engine_destroy(&whole);
		engine_destroy(&pieces);
	}
}

static void test_text__is_equal_alone_and_among_others(void **state)
{
	struct engine *e = open_engine(64, REQUESTS, 64);
	struct engine_request r[REQUESTS];
	struct text together[REQUESTS], alone;

	(void)state;
	for (int i = 0; i < REQUESTS; i++) {
		r[i] = request(i, 5 + 11 * (size_t)i, 6 + 4 * i);
		r[i].sampling.temperature = i % 2 ? 0.8f : 0;
		r[i].cache_salt = 1; /* pages of the first round are not found in the second */
	}
	run(e, r, together, REQUESTS);
	for (int i = 0; i < REQUESTS; i++) {
		r[i].id = 1;
		r[i].cache_salt = 2;
		run(e, &r[i], &alone, 1);
		same(&together[i], &alone);
	}
	engine_destroy(&e);
}

static void test_text__ends_by_stop_by_count_and_by_room(void **state)
{
	struct engine *e = open_engine(20, 1, 0);
	struct engine_request r = request(0, 6, 5);
	struct text first, again;
	int before = 0;

	(void)state;
	run(e, &r, &first, 1);
	assert_int_equal(first.end, ENGINE_END_LENGTH);
	assert_int_equal(first.count, 5);
	r.max_tokens = 0;
	r.stop = &first.id[3];
	r.stops = 1;
	run(e, &r, &again, 1);
	while (first.id[before] != first.id[3])
		before++;
	assert_int_equal(again.end, ENGINE_END_STOP);
	assert_int_equal(again.count, before + 1); /* with the stop id */
	assert_memory_equal(again.id, first.id, (size_t)again.count * sizeof(first.id[0]));
	r.stops = 0;
	run(e, &r, &again, 1);
	assert_int_equal(again.end, ENGINE_END_LENGTH);
	assert_int_equal(6 + again.count, 20);
	engine_destroy(&e);
}

static void test_text__ends_where_the_caller_asks_for_it(void **state)
{
	struct engine *e = open_engine(64, 1, 1);
	const struct engine_request r = request(0, PROMPT, 20);
	struct text t = {0};
	struct error err = {0};
	bool idle = false;

	(void)state;
	must(engine_submit(e, &r, &err), &err);
	must(engine_step(e, &idle, &err), &err); /* the first piece of the prompt */
	collect(e, &t, 1);
	must(engine_cancel(e, 1, &err), &err);
	while (!idle) {
		must(engine_step(e, &idle, &err), &err);
		collect(e, &t, 1);
	}
	assert_true(t.ended);
	assert_int_equal(t.end, ENGINE_END_CANCELLED);
	assert_int_equal(t.count, 0);
	engine_destroy(&e);
}

static void test_text__that_cannot_be_made_is_refused(void **state)
{
	struct engine *e = open_engine(20, 1, 0);
	struct engine_request r = request(0, 30, 5);
	struct text t;

	(void)state;
	run(e, &r, &t, 1);
	assert_int_equal(t.end, ENGINE_END_REFUSED);
	assert_non_null(strstr(t.why, "20"));
	r = request(0, 6, 5);
	r.sampling.top_p = 0;
	run(e, &r, &t, 1);
	assert_int_equal(t.end, ENGINE_END_REFUSED);
	assert_non_null(strstr(t.why, "top_p"));
	r = request(0, 6, 5);
	r.grammar = "{}";
	r.grammar_size = 2;
	run(e, &r, &t, 1);
	assert_int_equal(t.end, ENGINE_END_REFUSED);
	assert_string_equal(t.why, "this engine runs without grammars: the model's files name no token that ends a text");
	engine_destroy(&e);
}

/* As a run that diverged may leave an adapter. */
static void test_text__logits_that_are_no_numbers_end_it(void **state)
{
	struct engine *e = open_engine(20, 1, 0);
	const struct engine_request r = request(0, 6, 5);
	struct text t;

	(void)state;
	((float *)engine_loaded(e)->model->norm.w.data)[0] = NAN;
	run(e, &r, &t, 1);
	assert_int_equal(t.end, ENGINE_END_FAILED);
	assert_int_equal(t.count, 0);
	assert_non_null(strstr(t.why, "NaN"));
	engine_destroy(&e);
}

static void test_text__a_model_that_is_not_there_is_an_error(void **state)
{
	const struct engine_options o = {.load = {.device = LOAD_CPU, .model = "/nowhere"}};
	struct error err = {0};
	struct engine *e;

	(void)state;
	assert_int_not_equal(engine_create(&e, &o, &err), STATUS_OK);
	assert_null(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text__is_equal_in_one_piece_and_in_many),
		cmocka_unit_test(test_text__is_equal_alone_and_among_others),
		cmocka_unit_test(test_text__ends_by_stop_by_count_and_by_room),
		cmocka_unit_test(test_text__ends_where_the_caller_asks_for_it),
		cmocka_unit_test(test_text__that_cannot_be_made_is_refused),
		cmocka_unit_test(test_text__logits_that_are_no_numbers_end_it),
		cmocka_unit_test(test_text__a_model_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
