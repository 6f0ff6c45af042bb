/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 200 greedy requests (60 under ASan) get the same ids alone, together, in pieces, after preemptions and from
 * cached pages. The file tests/data/model/NAME/greedy.txt has a line of ids for each prompt of
 * engine_prompts.h. They come from the earlier `assay generate` (commit 606feef5), which had one contiguous
 * KV cache.
 */
#include "base_gguf.h"
#include "engine_bed.h"
#include "scratch.h"

#ifdef __SANITIZE_ADDRESS__ /* the engine's code is the same for each */
enum { USED = 60 };
static const char *const models[] = {"llama"};
#else
enum { USED = PROMPTS };
static const char *const models[] = {"llama", "qwen2", "qwen3"};
#endif
static struct prompt prompt[PROMPTS];
static int32_t due[PROMPTS][PROMPT_ANSWER];

static void read_due(const char *model)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/greedy.txt", model);
	f = fopen(path, "r");
	assert_non_null(f);
	for (int i = 0; i < USED; i++)
		for (int k = 0; k < PROMPT_ANSWER; k++)
			assert_int_equal(fscanf(f, "%d", &due[i][k]), 1);
	fclose(f);
}

static void compare(const struct heard *h, const char *model)
{
	for (int i = 0; i < USED; i++) {
		assert_int_equal(h[i].last.end, ENGINE_END_LENGTH);
		assert_int_equal(h[i].last.prompt_tokens, prompt[i].count);
		assert_int_equal(h[i].last.tokens, PROMPT_ANSWER);
		assert_int_equal(h[i].tokens, PROMPT_ANSWER);
		for (int k = 0; k < PROMPT_ANSWER; k++)
			if (h[i].token[k] != due[i][k])
				fail_msg("%s: prompt %d, token %d is %d, not %d", model, i, k, h[i].token[k],
					 due[i][k]);
	}
}

/* The ids that this model gives are due from now on. */
static void learn(const struct heard *h)
{
	for (int i = 0; i < USED; i++)
		memcpy(due[i], h[i].token, sizeof(due[i]));
}

/* All prompts at once, or each when the one before has ended. */
static struct engine_facts run_and(const struct engine_options *o, bool alone, int passes, bool learns)
{
	struct engine *e = bed_engine(o);
	struct engine_facts facts;

	for (int pass = 0; pass < passes; pass++) {
		struct heard *h = calloc(USED, sizeof(*h));

		assert_non_null(h);
		for (int i = 0; i < USED; i++) {
			const struct engine_request r = bed_request((uint64_t)i + 1, prompt[i].id,
								    (size_t)prompt[i].count, PROMPT_ANSWER);

			bed_submit(e, &r);
			while (alone && !h[i].ends)
				bed_step(e, h, USED);
		}
		bed_run(e, h, USED);
		if (learns)
			learn(h);
		compare(h, o->load.model);
		free(h);
	}
	facts = engine_facts(e);
	engine_destroy(&e);
	return facts;
}

static struct engine_facts run(const struct engine_options *o, bool alone, int passes)
{
	return run_and(o, alone, passes, false);
}

static void test_greedy__ids_do_not_depend_on_the_batch(void **state)
{
	(void)state;
	prompts_make(prompt, BED_VOCAB);
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		char path[512];
		struct engine_options o = bed_options(path, models[m]);
		struct engine_facts f;

		read_due(path);
		o.no_prefix_cache = true;
		f = run(&o, true, 1);
		assert_int_equal(f.cached_tokens, 0);
		f = run(&o, false, 1);
		assert_int_equal(f.cached_tokens, 0);
		assert_int_equal(f.preemptions, 0);
		assert_int_equal(f.ended, USED);
		assert_int_equal(f.tokens, USED * PROMPT_ANSWER);
		assert_in_range(f.steps, USED * PROMPT_ANSWER / 8, USED * PROMPT_ANSWER / 4);
	}
}

static void test_greedy__ids_do_not_depend_on_pieces_and_preemptions(void **state)
{
	char path[512];
	struct engine_options o = bed_options(path, models[0]);
	struct engine_facts f;

	(void)state;
	read_due(path);
	o.load.sequences = 2;
	o.load.rows = 18; /* a step has one page of a prompt */
	o.no_prefix_cache = true;
	f = run(&o, false, 1);
	assert_true(f.steps > 3 * USED);
	o = bed_options(path, models[0]);
	o.load.pages = 9; /* one sequence may need 7 */
	f = run(&o, false, 2);
	assert_true(f.preemptions > USED / 20);
	o.no_prefix_cache = true;
	f = run(&o, false, 1);
	assert_true(f.preemptions > USED / 20);
}

static void test_greedy__ids_do_not_depend_on_cached_pages(void **state)
{
	char path[512];
	struct engine_options o = bed_options(path, models[0]);
	struct engine_facts f;

	(void)state;
	read_due(path);
	o.load.pages = 800; /* all prompts stay in the cache */
	f = run(&o, false, 2);
	assert_true(f.cached_tokens > 25 * USED);
}

/* Weights in blocks of 8 bits, as GGUF files have them, with a cache in F32 and in E4M3. */
static void test_greedy__ids_of_quantized_models_do_not_depend_on_the_batch_either(void **state)
{
	char path[512];
	struct shape s;
	struct error err = {0};
	static int32_t first[PROMPTS][PROMPT_ANSWER];

	must(shape_by_name(&s, "tiny", &err), &err);
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		struct engine_options o = bed_options(path, models[0]);
		struct engine_facts f;

		snprintf(path, sizeof(path), "%s/base.gguf", (const char *)*state);
		base_gguf_write(path, &s, 1);
		o.load.cache_e4m3 = e4m3;
		o.no_prefix_cache = true;
		run_and(&o, true, 1, true);
		if (e4m3)
			assert_memory_not_equal(due, first, sizeof(due));
		memcpy(first, due, sizeof(due));
		f = run(&o, false, 1);
		assert_int_equal(f.preemptions, 0);
		o.load.pages = 9; /* one sequence may need 7 */
		f = run(&o, false, 1);
		assert_true(f.preemptions > USED / 20);
		o.load.pages = 800; /* all prompts stay in the cache */
		o.no_prefix_cache = false;
		f = run(&o, false, 2);
		assert_true(f.cached_tokens > 25 * USED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_greedy__ids_do_not_depend_on_the_batch),
		cmocka_unit_test(test_greedy__ids_do_not_depend_on_pieces_and_preemptions),
		cmocka_unit_test(test_greedy__ids_do_not_depend_on_cached_pages),
		scratch_test(test_greedy__ids_of_quantized_models_do_not_depend_on_the_batch_either),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
