/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in slices of one layer: the same texts, and a step stops when all of its requests have ended. Some tests
 * enqueue a step before the results of the step before are fetched, as with a GPU. */
#include "engine_bed.h"
#include "core/clock.h"
#include "engine/internal.h"

enum { PROMPT = 40, ANSWER = 12, REQUESTS = 3 };

/* With slices of one of the model's two layers, or with whole steps. */
static struct engine *open_engine(bool slices)
{
	char path[512];
	struct engine_options o = bed_options(path, "qwen3");

	o.slice_ms = slices ? 1e-12 : 0;
	return bed_engine(&o);
}

static struct engine_request request(uint64_t id, int32_t prompt[PROMPT])
{
	struct engine_request r = bed_request(id, prompt, PROMPT, ANSWER);

	for (int32_t i = 0; i < PROMPT; i++)
		prompt[i] = (int32_t)((7 * i + 3 * i * i + 11 * (int)id) % BED_VOCAB);
	return r;
}

static struct engine_request submit(struct engine *e, uint64_t id, int32_t prompt[PROMPT])
{
	const struct engine_request r = request(id, prompt);

	bed_submit(e, &r);
	return r;
}

static void finish(struct engine *e, struct heard *h)
{
	while (!bed_step(e, h, REQUESTS))
		;
	bed_is_clean(e);
}

static void expect_same(const struct heard *a, const struct heard *b)
{
	assert_int_equal(a->ends, 1);
	assert_int_equal(a->last.end, b->last.end);
	assert_int_equal(a->tokens, b->tokens);
	assert_memory_equal(a->token, b->token, (size_t)a->tokens * sizeof(a->token[0]));
}

static void run_all(bool slices, bool overlaps, struct heard h[REQUESTS])
{
	int32_t prompt[REQUESTS][PROMPT];
	struct engine *e = open_engine(slices);

	e->overlaps = overlaps;
	memset(h, 0, REQUESTS * sizeof(*h));
	for (uint64_t i = 0; i < REQUESTS; i++) {
		submit(e, i + 1, prompt[i]);
		bed_step(e, h, REQUESTS); /* with slices, the first step is open now */
	}
	finish(e, h);
	engine_destroy(&e);
}

static void test_slices__give_the_same_texts(void **state)
{
	struct heard whole[REQUESTS], other[REQUESTS];

	(void)state;
	run_all(false, false, whole);
	for (int way = 1; way < 4; way++) {
		run_all(way & 1, way & 2, other);
		for (int i = 0; i < REQUESTS; i++) {
			assert_int_equal(whole[i].tokens, ANSWER);
			expect_same(&other[i], &whole[i]);
		}
	}
}

/* The first logit of the last step. */
static float *logit(struct engine *e)
{
	return paged_step_logits(engine_loaded(e)->step).data;
}

static void cancel_in_a_step(bool overlaps)
{
	int32_t prompt[PROMPT];
	struct heard h[REQUESTS] = {0}, whole[REQUESTS];
	struct engine *e = open_engine(true);
	struct engine_request again;
	struct step_cost cost;
	double busy_s;

	run_all(false, false, whole);
	e->overlaps = overlaps;
	submit(e, 1, prompt);
	assert_false(bed_step(e, h, REQUESTS));
	assert_int_equal(engine_facts(e).prompt_tokens, 0);
	assert_true(overlaps ? engine_hold(e) > 0 : !engine_hold(e));
	bed_cancel(e, 1);
	bed_listen(e, h, REQUESTS); /* without another step */
	assert_int_equal(h[0].ends, 1);
	assert_int_equal(h[0].last.end, ENGINE_END_CANCELLED);
	assert_int_equal(engine_facts(e).running, 0);
	*logit(e) = 12345;
	cost = e->cost;
	busy_s = engine_facts(e).busy_s;
	assert_false(bed_step(e, h, REQUESTS));
	assert_true(*logit(e) == 12345); /* no layer and no head has followed */
	assert_memory_equal(&cost, &e->cost, sizeof(cost));
	assert_true(engine_facts(e).busy_s > busy_s);
	assert_int_equal(engine_facts(e).steps, 1);
	assert_true(bed_step(e, h, REQUESTS));
	assert_int_equal(engine_facts(e).prompt_tokens, 0);
	assert_int_equal(engine_facts(e).pages_cached, 0);
	bed_is_clean(e);
	h[0] = (struct heard){0};
	again = request(1, prompt);
	bed_submit(e, &again);
	finish(e, h);
	assert_int_equal(h[0].first.cached_tokens, 0);
	expect_same(&h[0], &whole[0]);
	engine_destroy(&e);
}

/* The same prompt finds nothing of the stopped step in the cache. */
static void test_slices__a_step_whose_request_is_cancelled_stops(void **state)
{
	(void)state;
	cancel_in_a_step(false);
	cancel_in_a_step(true);
}

static void test_slices__the_head_follows_the_last_layer_only(void **state)
{
	int32_t prompt[2][PROMPT];
	struct heard h[REQUESTS] = {0};
	struct engine *e = open_engine(true);

	(void)state;
	submit(e, 1, prompt[0]);
	finish(e, h);
	*logit(e) = 12345;
	submit(e, 2, prompt[1]);
	assert_false(bed_step(e, h, REQUESTS));
	assert_true(*logit(e) == 12345);
	assert_false(bed_step(e, h, REQUESTS));
	assert_true(*logit(e) != 12345);
	finish(e, h);
	engine_destroy(&e);
}

static void test_slices__a_step_goes_on_for_the_other_request(void **state)
{
	int32_t prompt[2][PROMPT];
	struct heard h[REQUESTS] = {0}, whole[REQUESTS];
	struct engine *e = open_engine(true);

	(void)state;
	run_all(false, false, whole);
	submit(e, 1, prompt[0]);
	submit(e, 2, prompt[1]);
	assert_false(bed_step(e, h, REQUESTS));
	bed_cancel(e, 1);
	finish(e, h);
	assert_int_equal(h[0].last.end, ENGINE_END_CANCELLED);
	assert_int_equal(h[0].tokens, 0);
	expect_same(&h[1], &whole[1]);
	engine_destroy(&e);
}

/* A deadline that is over ends its request between two slices, although the step goes on for another one. */
static void test_slices__a_deadline_is_over_during_a_step(void **state)
{
	int32_t prompt[2][PROMPT];
	struct heard h[REQUESTS] = {0};
	struct engine *e = open_engine(true);
	struct engine_request r = request(1, prompt[0]);

	(void)state;
	e->overlaps = true; /* so that no result of the step makes the events */
	r.deadline_ns = clock_now_ns(clock_monotonic()) + 1000000000;
	bed_submit(e, &r);
	submit(e, 2, prompt[1]);
	assert_false(bed_step(e, h, REQUESTS));
	while (clock_now_ns(clock_monotonic()) <= r.deadline_ns)
		;
	assert_false(bed_step(e, h, REQUESTS));
	assert_int_equal(h[0].ends, 1);
	assert_int_equal(h[0].last.end, ENGINE_END_DEADLINE);
	finish(e, h);
	assert_int_equal(h[1].tokens, ANSWER);
	engine_destroy(&e);
}

/* Alone, its step stops. */
static void test_slices__a_step_stops_at_the_deadline(void **state)
{
	int32_t prompt[PROMPT];
	struct heard h[REQUESTS] = {0};
	struct engine *e = open_engine(true);
	struct engine_request r = request(1, prompt);

	(void)state;
	r.deadline_ns = clock_now_ns(clock_monotonic()) + 1000000000;
	bed_submit(e, &r);
	assert_false(bed_step(e, h, REQUESTS));
	assert_int_equal(engine_facts(e).running, 1);
	while (clock_now_ns(clock_monotonic()) <= r.deadline_ns)
		;
	*logit(e) = 12345;
	assert_false(bed_step(e, h, REQUESTS));
	assert_true(*logit(e) == 12345);
	assert_int_equal(h[0].ends, 1);
	assert_int_equal(h[0].last.end, ENGINE_END_DEADLINE);
	assert_int_equal(engine_facts(e).prompt_tokens, 0);
	assert_true(bed_step(e, h, REQUESTS));
	bed_is_clean(e);
	engine_destroy(&e);
}

static int told, replayed;
static int slices_left; /* before the device is lost */

static void on_planned(void *arg, double seconds)
{
	(void)arg;
	told += seconds > 0;
}

static enum status counting_replay(struct backend *back, const struct replay *work, struct error *err)
{
	(void)back;
	replayed += !work->key;
	return work->run(work->arg, err);
}

/* A long step is told before each slice, and the back end runs each slice as a whole. */
static void test_slices__each_one_is_told_and_runs_as_a_whole(void **state)
{
	int32_t prompt[PROMPT];
	struct heard h[REQUESTS] = {0};
	struct engine *e = open_engine(true);
	struct ops ops = *e->loaded.back.ops;

	(void)state;
	told = replayed = 0;
	ops.replay = counting_replay;
	e->loaded.back.ops = &ops;
	engine_tell(e, on_planned, NULL);
	submit(e, 1, prompt);
	for (int i = 1; i <= 2; i++) {
		assert_false(bed_step(e, h, REQUESTS));
		assert_int_equal(told, i);
		assert_int_equal(replayed, i);
	}
	assert_int_equal(h[0].tokens, 1);
	engine_destroy(&e);
}

static enum status losing_replay(struct backend *back, const struct replay *work, struct error *err)
{
	(void)back;
	return slices_left-- ? work->run(work->arg, err) : error_set(err, STATUS_LOST, "the device is lost");
}

static enum status losing_fetch(struct backend *back, struct mat from, int turn, struct error *err)
{
	(void)back, (void)from, (void)turn;
	return error_set(err, STATUS_LOST, "the device is lost");
}

static void loses(struct engine *e)
{
	struct error err = {0};
	bool idle;

	assert_int_equal(engine_step(e, &idle, &err), STATUS_LOST);
	assert_string_equal(err.text, "the device is lost");
	engine_destroy(&e);
}

/* In the first or the second slice, and when a step is stopped. */
static void test_slices__a_lost_device_is_an_error(void **state)
{
	(void)state;
	for (int slice = 0; slice < 3; slice++) {
		int32_t prompt[PROMPT];
		struct heard h[REQUESTS] = {0};
		struct engine *e = open_engine(true);
		struct ops ops = *e->loaded.back.ops;

		slices_left = slice;
		ops.replay = losing_replay;
		ops.fetch_begin = losing_fetch;
		e->loaded.back.ops = &ops;
		submit(e, 1, prompt);
		if (slice)
			assert_false(bed_step(e, h, REQUESTS));
		if (slice == 2)
			bed_cancel(e, 1);
		loses(e);
	}
}

/* An engine may be destroyed while a step is open. */
static void test_slices__an_open_step_can_be_left(void **state)
{
	int32_t prompt[PROMPT];
	struct heard h[REQUESTS] = {0};
	struct engine *e = open_engine(true);

	(void)state;
	submit(e, 1, prompt);
	assert_false(bed_step(e, h, REQUESTS));
	engine_destroy(&e);
	assert_null(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices__give_the_same_texts),
		cmocka_unit_test(test_slices__a_step_whose_request_is_cancelled_stops),
		cmocka_unit_test(test_slices__the_head_follows_the_last_layer_only),
		cmocka_unit_test(test_slices__a_step_goes_on_for_the_other_request),
		cmocka_unit_test(test_slices__a_deadline_is_over_during_a_step),
		cmocka_unit_test(test_slices__a_step_stops_at_the_deadline),
		cmocka_unit_test(test_slices__each_one_is_told_and_runs_as_a_whole),
		cmocka_unit_test(test_slices__a_lost_device_is_an_error),
		cmocka_unit_test(test_slices__an_open_step_can_be_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
