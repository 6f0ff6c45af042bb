/* SPDX-License-Identifier: Apache-2.0 */
/* 10,000 requests of clients that cancel, leave and stop at any time, with whole steps and with steps in
 * slices: each ends exactly once, and nothing is lost. */
#include "engine_bed.h"
#include "core/clock.h"

#ifdef __SANITIZE_ADDRESS__ /* the same code, which takes many times as long */
enum { MANY = 1500 };
#else
enum { MANY = 5000 }; /* of each kind */
#endif
enum { OPEN_MOST = 64, SOURCES = 8 };

static const char source[] = "{\"type\": \"choice\", \"choices\": [\"abc\", \"ab\", \"ba\"]}";

struct many {
	struct engine *e;
	struct heard *h; /* [MANY] */
	uint64_t random;
	size_t submitted, open;
	uint64_t id[OPEN_MOST]; /* of requests that have not ended */
	int32_t prompt[SOURCES][PROMPT_MOST];
	size_t ends[ENGINE_END_FAILED + 1];
};

static uint64_t draw(struct many *m, uint64_t below)
{
	return prompt_random(&m->random) % below;
}

/* A request of a random kind: some cannot run, some have a deadline, a grammar, or ids that stop them. */
static void submit(struct many *m)
{
	static const int32_t stop[] = {3, 16};
	static const struct engine_bias bias[] = {{5, 2}, {7, -INFINITY}};
	const uint64_t id = ++m->submitted;
	struct engine_request r =
		bed_request(id, m->prompt[draw(m, SOURCES)], 1 + draw(m, 40), 1 + (int64_t)draw(m, 12));

	r.client = draw(m, 5);
	r.priority = (int32_t)draw(m, 5) - 2;
	r.cache_salt = draw(m, 2);
	if (draw(m, 3) == 0)
		r.sampling.temperature = 1, r.sampling.seed = id, r.sampling.top_k = (int32_t)draw(m, 9);
	if (draw(m, 4) == 0)
		r.stop = stop, r.stops = 2, r.min_tokens = (int64_t)draw(m, 3);
	if (draw(m, 8) == 0)
		r.bias = bias, r.biases = 2;
	if (draw(m, 8) == 0)
		r.sampling.presence = 0.5f, r.logprobs = 3;
	if (draw(m, 8) == 0)
		r.prompt_logprobs = 1;
	if (draw(m, 16) == 0)
		r.grammar = source, r.grammar_size = draw(m, 8) ? sizeof(source) - 1 : 3;
	if (draw(m, 16) == 0)
		r.deadline_ns = clock_now_ns(clock_monotonic()) + draw(m, 2000000);
	if (draw(m, 32) == 0)
		r.max_tokens = 1000; /* refused: longer than the context */
	if (draw(m, 32) == 0)
		r.max_tokens = -1;
	bed_submit(m->e, &r);
	m->id[m->open++] = id;
}

/* Something that a client does. */
static void act(struct many *m)
{
	const uint64_t kind = draw(m, 8);
	const uint64_t id = m->open ? m->id[draw(m, m->open)] : 1;

	if (kind < 5 && m->open < OPEN_MOST && m->submitted < MANY)
		submit(m);
	else if (kind == 5)
		bed_cancel(m->e, id);
	else if (kind == 6 && m->h[id - 1].tokens > 0)
		engine_finish(m->e, id, 1 + (int64_t)draw(m, (uint64_t)m->h[id - 1].tokens));
	else if (kind == 7)
		bed_cancel(m->e, 1 + draw(m, MANY)); /* ended long ago, or not begun */
}

static void forget_ended(struct many *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->open; i++)
		if (m->h[m->id[i] - 1].ends)
			m->ends[m->h[m->id[i] - 1].last.end]++;
		else
			m->id[kept++] = m->id[i];
	m->open = kept;
}

static void run(double slice_ms)
{
	struct many m = {.random = 5, .h = calloc(MANY, sizeof(*m.h))};
	struct grammar_vocab *vocab = bed_vocab();
	char path[512];
	struct engine_options o = bed_options(path, "llama");
	struct error err = {0};

	assert_non_null(m.h);
	o.slice_ms = slice_ms;
	o.load.positions = 56;
	o.load.pages = 12; /* three sequences of the greatest length */
	o.vocab = vocab;
	m.e = bed_engine(&o);
	for (int i = 0; i < SOURCES; i++)
		for (int k = 0; k < PROMPT_MOST; k++)
			m.prompt[i][k] = (int32_t)draw(&m, BED_VOCAB);
	for (uint64_t step = 0; m.submitted < MANY || m.open; step++) {
		for (uint64_t n = draw(&m, 12); n; n--)
			act(&m);
		bed_step(m.e, m.h, MANY);
		forget_ended(&m);
		if (step % 64 == 0)
			must(engine_check(m.e, &err), &err);
	}
	while (!bed_step(m.e, m.h, MANY))
		;
	bed_is_clean(m.e);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(m.h[i].ends, 1);
	for (int end = ENGINE_END_STOP; end < ENGINE_END_FAILED; end++)
		assert_in_range(m.ends[end], MANY / 500, MANY);
	assert_int_equal(m.ends[ENGINE_END_FAILED], 0);
	assert_true(engine_facts(m.e).preemptions > MANY / 100);
	engine_destroy(&m.e);
	grammar_vocab_destroy(&vocab);
	free(m.h);
}

static void test_many__every_request_ends_once_and_nothing_is_lost(void **state)
{
	(void)state;
	run(0);
}

static void test_many__the_same_with_steps_in_slices(void **state)
{
	(void)state;
	run(1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many__every_request_ends_once_and_nothing_is_lost),
		cmocka_unit_test(test_many__the_same_with_steps_in_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
