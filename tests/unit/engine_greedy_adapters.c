/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 200 greedy requests with three adapters in turns, and without one: each gets the same ids alone, together,
 * in pieces, after preemptions and from cached pages.
 */
#include "engine_bed.h"
#include "adapter_base.h"
#include "scratch.h"

#ifdef __SANITIZE_ADDRESS__ /* the engine's code is the same for each */
enum { USED = 40 };
#else
enum { USED = PROMPTS };
#endif

struct world {
	char model[PATH_MAX], dir[BASE_ADAPTERS][PATH_MAX];
	struct engine_options o;
	struct prompt prompt[PROMPTS];
	struct heard *due; /* [USED] of the requests that were alone */
};

/* Options of an engine with the adapters. */
static struct engine_options options_of(const struct world *w)
{
	struct engine_options o = w->o;

	for (int i = 0; i < BASE_ADAPTERS; i++)
		o.load.adapter[i] = w->dir[i];
	return o;
}

static struct heard *new_heard(void)
{
	struct heard *h = calloc(USED, sizeof(*h));

	assert_non_null(h);
	return h;
}

/* All requests at once, or each when the one before has ended. */
static void ask_all(struct engine *e, const struct world *w, struct heard *h, bool adapters, bool alone)
{
	for (int i = 0; i < USED; i++) {
		struct engine_request r = bed_request((uint64_t)i + 1, w->prompt[i].id,
						      (size_t)w->prompt[i].count, PROMPT_ANSWER);

		r.adapter = adapters ? i % (BASE_ADAPTERS + 1) - 1 : -1;
		bed_submit(e, &r);
		while (alone && !h[i].ends)
			bed_step(e, h, USED);
	}
	bed_run(e, h, USED);
}

static bool same_ids(const struct heard *a, const struct heard *b)
{
	assert_int_equal(a->tokens, PROMPT_ANSWER);
	assert_int_equal(b->tokens, PROMPT_ANSWER);
	return !memcmp(a->token, b->token, PROMPT_ANSWER * sizeof(*a->token));
}

/* Each adapter must change most answers: otherwise the tests below would show little. */
static void check_that_adapters_matter(const struct world *w, struct engine *e)
{
	struct heard *base = new_heard();
	int changed[BASE_ADAPTERS] = {0};

	ask_all(e, w, base, false, false);
	for (int i = 0; i < USED; i++) {
		const int adapter = i % (BASE_ADAPTERS + 1) - 1;
		const bool same = same_ids(&base[i], &w->due[i]);

		if (adapter < 0)
			assert_true(same);
		else
			changed[adapter] += !same;
	}
	for (int i = 0; i < BASE_ADAPTERS; i++)
		assert_in_range(changed[i], USED / (BASE_ADAPTERS + 1) / 2, USED);
	free(base);
}

static void open_world(struct world *w, const char *scratch)
{
	struct engine_options o;
	struct engine *e;
	struct shape s;

	*w = (struct world){0};
	base_make(w->model, scratch, &s);
	for (int i = 0; i < BASE_ADAPTERS; i++)
		base_adapter(w->dir[i], base_adapters[i]);
	prompts_make(w->prompt, (int32_t)s.vocab);
	w->o = (struct engine_options){.load = {.device = LOAD_CPU,
						.model = w->model,
						.positions = PROMPT_MOST + PROMPT_ANSWER,
						.sequences = 8,
						.page_tokens = BED_PAGE},
				       .no_prefix_cache = true};
	o = options_of(w);
	e = bed_engine(&o);
	w->due = new_heard();
	ask_all(e, w, w->due, true, true);
	check_that_adapters_matter(w, e);
	engine_destroy(&e);
}

static struct engine_facts compare(const struct world *w, const struct engine_options *o, int passes)
{
	struct engine *e = bed_engine(o);
	struct engine_facts facts;

	for (int pass = 0; pass < passes; pass++) {
		struct heard *h = new_heard();

		ask_all(e, w, h, true, false);
		for (int i = 0; i < USED; i++)
			if (!same_ids(&h[i], &w->due[i]))
				fail_msg("pass %d: prompt %d has other ids than alone", pass, i);
		free(h);
	}
	facts = engine_facts(e);
	engine_destroy(&e);
	return facts;
}

static void test_greedy_adapters__ids_do_not_depend_on_how_requests_run(void **state)
{
	struct engine_options o;
	struct engine_facts f;
	struct world *w = malloc(sizeof(*w));

	assert_non_null(w);
	open_world(w, *state);
	o = options_of(w);
	f = compare(w, &o, 1);
	assert_int_equal(f.preemptions, 0);
	assert_in_range(f.steps, USED * PROMPT_ANSWER / 8, USED * PROMPT_ANSWER / 4);
	o.load.sequences = 2;
	o.load.rows = 18; /* a step has one page of a prompt */
	f = compare(w, &o, 1);
	assert_true(f.steps > 3 * USED);
	o = options_of(w);
	o.load.pages = 9; /* one sequence may need 7 */
	f = compare(w, &o, 1);
	assert_true(f.preemptions > USED / 20);
	o = options_of(w);
	o.no_prefix_cache = false;
	o.load.pages = 1600; /* all prompts stay in the cache */
	f = compare(w, &o, 2);
	assert_true(f.cached_tokens > 25 * USED);
	free(w->due);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_greedy_adapters__ids_do_not_depend_on_how_requests_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
