/* SPDX-License-Identifier: Apache-2.0 */
/* What was chosen by time, as a checkpoint's JSON has it: written by one run, taken by the next. */
#include "model_gpu_bed.h"

#include "fake_gpu.h"
#include "train/tuning/tuning_choices.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";

/* What the run of these documents chose, through text and back. Owner: caller. */
static json_t *chosen_by(struct work *w, const int *docs)
{
	json_t *chosen, *read;
	char *text;

	free((void *)(uintptr_t)run(w, docs));
	chosen = tuning_choices_json(&w->s.back);
	text = json_dumps(chosen, 0);
	read = json_loads(text, 0, NULL);
	assert_true(json_equal(chosen, read));
	json_decref(chosen);
	free(text);
	return read;
}

static json_t *chosen_first(void)
{
	struct work w;
	json_t *chosen;

	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	chosen = chosen_by(&w, equal);
	close_work(&w);
	return chosen;
}

/* Of the documents' own way of the backward pass; NULL: none. */
static json_t *way_of(const json_t *chosen, json_int_t docs)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(chosen, "attention"), i, one)
	{
		if (json_integer_value(json_object_get(one, "docs")) == docs)
			return one;
	}
	return NULL;
}

static size_t recalled_of(const json_t *chosen)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach(json_object_get(chosen, "products"), i, one)
	{
		count += json_is_true(json_object_get(one, "recalled"));
	}
	return count;
}

/* A run that goes on, with `before`: what it has chosen then. Owner: caller. */
static json_t *chosen_after(const json_t *before, struct text *note)
{
	struct error err = {0};
	struct work w;
	json_t *chosen;

	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	must(tuning_choices_recall(&w.s.back, before, NULL, note, &err), &err);
	chosen = chosen_by(&w, equal);
	close_work(&w);
	return chosen;
}

/* Products and the ways of attention: what is taken is what it says, not what is faster. */
static void what_a_checkpoint_has_is_taken(void **state)
{
	struct text note = {0};
	json_t *first, *again, *way;
	bool by_own;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	first = chosen_first();
	assert_int_equal(recalled_of(first), 0);
	assert_int_equal(json_array_size(json_object_get(first, "attention")), 2);
	assert_true(strlen(json_string_value(json_object_get(way_of(first, 0), "candidate"))) > 0);
	way = way_of(first, 2);
	assert_int_equal(json_integer_value(json_object_get(way, "length")), 32);
	by_own = !json_is_true(json_object_get(way, "by_own"));
	json_object_set_new(way, "by_own", json_boolean(by_own));

	again = chosen_after(first, &note);
	assert_string_equal(text_str(&note), "");
	assert_true(recalled_of(again) > 0);
	assert_int_equal(json_is_true(json_object_get(way_of(again, 2), "by_own")), by_own);
	assert_true(json_equal(json_object_get(way_of(again, 0), "candidate"),
			       json_object_get(way_of(first, 0), "candidate")));
	json_decref(again);
	json_decref(first);
	head_dim = 8;
}

static size_t cached_of(const json_t *chosen, const char *list)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach(json_object_get(chosen, list), i, one)
	{
		count += json_is_true(json_object_get(one, "cached"));
	}
	return count;
}

/* A new run, or one that goes on with `before`: what it has chosen then. Owner: caller. */
static json_t *chosen_with(const json_t *before, const json_t *cached)
{
	struct error err = {0};
	struct text note = {0};
	struct work w;
	json_t *chosen;

	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	must(tuning_choices_recall(&w.s.back, before, cached, &note, &err), &err);
	chosen = chosen_by(&w, equal);
	assert_string_equal(text_str(&note), "");
	close_work(&w);
	return chosen;
}

/* Taken without timing, and said to be others' choices; what the run itself chose before comes first. */
static void what_other_runs_chose_is_taken(void **state)
{
	json_t *first, *cached, *again, *way;
	size_t known = 0, i;
	const json_t *one;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	first = chosen_first();
	json_array_foreach(json_object_get(first, "products"), i, one)
	{
		known += json_number_value(json_object_get(one, "seconds")) > 0;
	}
	cached = json_deep_copy(first);
	again = chosen_with(NULL, cached);
	assert_int_equal(recalled_of(again), known);
	assert_int_equal(cached_of(again, "products"), known);
	assert_int_equal(cached_of(again, "attention"), 2);
	json_decref(again);

	way = way_of(cached, 2);
	json_object_set_new(way, "by_own", json_boolean(!json_is_true(json_object_get(way, "by_own"))));
	json_array_remove(json_object_get(first, "products"), 0);
	again = chosen_with(first, cached);
	assert_int_equal(recalled_of(again), known);
	assert_int_equal(cached_of(again, "products"), 1); /* the one that the run does not know */
	assert_int_equal(cached_of(again, "attention"), 0);
	assert_true(json_equal(json_object_get(way_of(again, 2), "by_own"),
			       json_object_get(way_of(first, 2), "by_own")));
	json_decref(again);
	json_decref(cached);
	json_decref(first);
	head_dim = 8;
}

/* Tiles of 128 x 64 with swizzle: the library has none. Timed anew, and no longer another run's. */
static void what_the_library_refuses_is_timed_anew(void **state)
{
	json_t *first, *again, *one;
	size_t i;

	(void)state;
	skip_without_kernels();
	first = chosen_first();
	json_array_foreach(json_object_get(first, "products"), i, one)
	{
		char words[MATMUL_ALGORITHM_WORDS * 16 + 1];

		snprintf(words, sizeof(words), "%s", json_string_value(json_object_get(one, "words")));
		memcpy(words + 16, "0000000000000012", 16);
		memcpy(words + 64, "0000000000000001", 16);
		json_object_set_new(one, "words", json_string(words));
	}
	again = chosen_with(NULL, first);
	assert_int_equal(recalled_of(again), 0);
	assert_int_equal(cached_of(again, "products"), 0);
	json_decref(again);
	json_decref(first);
}

/* Words that are none of an algorithm are passed over, and their product is chosen anew; what is missing is nothing. */
static void what_cannot_be_read_is_chosen_anew(void **state)
{
	static const char *const words[] = {"", "00", "no number"};
	struct text note = {0};
	json_t *first, *again, *one;
	size_t i, timed = 0;

	(void)state;
	skip_without_kernels();
	first = chosen_first();
	json_array_foreach(json_object_get(first, "products"), i, one)
	{
		timed += json_number_value(json_object_get(one, "seconds")) > 0;
		if (i % 4 == 3)
			json_object_del(one, "words");
		else
			json_object_set_new(one, "words", json_string(words[i % 4]));
	}
	assert_true(timed > 0);
	json_object_del(first, "attention");
	again = chosen_after(first, &note);
	assert_string_equal(text_str(&note), "");
	assert_int_equal(recalled_of(again), 0);
	json_decref(again);
	json_decref(first);
}

/* A run on another kind of card, or on a CPU, and one that kept nothing. */
static void what_was_chosen_elsewhere_is_not_taken(void **state)
{
	struct error err = {0};
	struct text note = {0};
	struct work w;
	json_t *first, *again;

	(void)state;
	skip_without_kernels();
	first = chosen_first();
	json_object_set_new(first, "device", json_string("NVIDIA A100-SXM4-80GB (0000:1B:00.0)"));
	again = chosen_after(first, &note);
	assert_non_null(strstr(text_str(&note), "the run was started on NVIDIA A100-SXM4-80GB (0000:1B:00.0) and continues on NVIDIA H100"));
	assert_non_null(strstr(text_str(&note), ": kernel candidates are timed again\n"));
	assert_int_equal(recalled_of(again), 0);
	json_decref(again);
	text_release(&note);

	again = chosen_after(NULL, &note);
	assert_int_equal(recalled_of(again), 0);
	json_decref(again);
	open_work(&w, false, FAMILY_QWEN2, adapter, "seed: 1");
	must(tuning_choices_recall(&w.s.back, first, NULL, &note, &err), &err);
	close_work(&w);
	assert_string_equal(text_str(&note), "");
	json_decref(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_checkpoint_has_is_taken),
		cmocka_unit_test(what_other_runs_chose_is_taken),
		cmocka_unit_test(what_the_library_refuses_is_timed_anew),
		cmocka_unit_test(what_cannot_be_read_is_chosen_anew),
		cmocka_unit_test(what_was_chosen_elsewhere_is_not_taken),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
