/* SPDX-License-Identifier: Apache-2.0 */
/* What was chosen by time, as a checkpoint's JSON has it: written by one run, taken by the next. */
#include "model_gpu_bed.h"

#include "fake_gpu.h"
#include "train/chosen.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";

/* What the run of these documents chose, through text and back. Owner: caller. */
static json_t *chosen_by(struct work *w, const int *docs)
{
	json_t *chosen, *read;
	char *text;

	free((void *)(uintptr_t)run(w, docs));
	chosen = chosen_json(&w->s.back);
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
	must(chosen_recall(&w.s.back, before, note, &err), &err);
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
	assert_true(json_equal(way_of(again, 0), way_of(first, 0)));
	json_decref(again);
	json_decref(first);
	head_dim = 8;
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
	assert_non_null(strstr(text_str(&note), "the run was begun on NVIDIA A100-SXM4-80GB (0000:1B:00.0) and goes on on NVIDIA H100"));
	assert_non_null(strstr(text_str(&note), ": what was chosen by time is chosen anew\n"));
	assert_int_equal(recalled_of(again), 0);
	json_decref(again);
	text_release(&note);

	again = chosen_after(NULL, &note);
	assert_int_equal(recalled_of(again), 0);
	json_decref(again);
	open_work(&w, false, FAMILY_QWEN2, adapter, "seed: 1");
	must(chosen_recall(&w.s.back, first, &note, &err), &err);
	close_work(&w);
	assert_string_equal(text_str(&note), "");
	json_decref(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_checkpoint_has_is_taken),
		cmocka_unit_test(what_cannot_be_read_is_chosen_anew),
		cmocka_unit_test(what_was_chosen_elsewhere_is_not_taken),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
