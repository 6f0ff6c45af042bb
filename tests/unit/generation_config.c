/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults for sampling in generation_config.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/file/file.h"
#include "core/text/text.h"
#include "text/generation_config.h"

static char folder[] = "/tmp/assay_generation_XXXXXX";

static enum status read(const char *json, struct generation_config *c, struct error *err)
{
	char path[128];

	*err = (struct error){0};
	snprintf(path, sizeof(path), "%s/generation_config.json", folder);
	assert_int_equal(file_write(path, json, strlen(json), err), STATUS_OK);
	return generation_config_read(c, folder, err);
}

static void test_generation_config__what_models_give(void **state)
{
	struct generation_config c;
	struct error err;

	(void)state;
	assert_int_equal(
		read("{\"bos_token_id\": 151643, \"pad_token_id\": 151643, \"do_sample\": true, \"eos_token_id\": "
		     "[151645, 151643], \"repetition_penalty\": 1.05, \"temperature\": 0.7, \"top_p\": 0.8, \"top_k\": "
		     "20, \"transformers_version\": \"4.37.0\"}",
		     &c, &err),
		STATUS_OK);
	assert_int_equal(c.eos_count, 2);
	assert_int_equal(c.eos[0], 151645);
	assert_int_equal(c.eos[1], 151643);
	assert_int_equal(c.bos, 151643);
	assert_int_equal(c.pad, 151643);
	assert_true(c.temperature == 0.7 && c.top_p == 0.8 && c.repetition_penalty == 1.05 && isnan(c.min_p));
	assert_int_equal(c.top_k, 20);
	assert_int_equal(c.max_new_tokens, -1);
	assert_false(c.greedy);
	assert_int_equal(read("{\"eos_token_id\": 2, \"do_sample\": false, \"top_p\": null, \"min_p\": 0, "
			      "\"max_new_tokens\": 2048}",
			      &c, &err),
			 STATUS_OK);
	assert_int_equal(c.eos_count, 1);
	assert_int_equal(c.eos[0], 2);
	assert_true(c.greedy && isnan(c.top_p) && c.min_p == 0);
	assert_int_equal(c.max_new_tokens, 2048);
}

static void test_generation_config__nothing_is_given_without_a_file(void **state)
{
	struct generation_config c;
	struct error err = {0};

	(void)state;
	assert_int_equal(generation_config_read(&c, "/nowhere/model.gguf", &err), STATUS_OK);
	assert_int_equal(c.eos_count, 0);
	assert_int_equal(c.bos, -1);
	assert_int_equal(c.top_k, -1);
	assert_true(isnan(c.temperature) && isnan(c.repetition_penalty));
}

static void test_generation_config__bad_values_are_named(void **state)
{
	static const struct {
		const char *json, *why;
	} cases[] = {
		{"[]", "is not a JSON object"},
		{"{\"eos_token_id\": \"x\"}", "eos_token_id is not a token id"},
		{"{\"eos_token_id\": [1, -1]}", "eos_token_id is not a token id"},
		{"{\"eos_token_id\": 3000000000}", "eos_token_id is not a token id"},
		{"{\"bos_token_id\": 1.5}", "bos_token_id is not a token id"},
		{"{\"pad_token_id\": []}", "pad_token_id is not a token id"},
		{"{\"temperature\": -1}", "temperature is -1; it must be at least 0"},
		{"{\"temperature\": \"hot\"}", "temperature is not a number"},
		{"{\"top_p\": 0}", "top_p is 0; it must be above 0"},
		{"{\"top_p\": 1.5}", "top_p is 1.5; it must be at most 1"},
		{"{\"min_p\": 2}", "min_p is 2; it must be at most 1"},
		{"{\"temperature\": 1e300}", "temperature is 1e+300; it must be at most 3.40282e+38"},
		{"{\"repetition_penalty\": 1e300}", "repetition_penalty is 1e+300; it must be at most"},
		{"{\"repetition_penalty\": 0}", "repetition_penalty is 0; it must be above 0"},
		{"{\"top_k\": 1.5}", "top_k is not a count"},
		{"{\"max_new_tokens\": -5}", "max_new_tokens is not a count"},
		{"{\"do_sample\": 1}", "do_sample is neither true nor false"},
		{"{\"top_k\": ", "generation_config.json:1: "},
	};
	struct generation_config c;
	struct error err;
	struct text many = {0};
	char path[4200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read(cases[i].json, &c, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, cases[i].why) || !strstr(err.text, "generation_config.json"))
			fail_msg("%s: %s", cases[i].json, err.text);
	}
	text_add(&many, "{\"eos_token_id\": [0");
	for (int i = 0; i < GENERATION_EOS_MAX; i++)
		text_add(&many, ",0");
	text_add(&many, "]}");
	assert_int_equal(read(text_str(&many), &c, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "eos_token_id has 65 ids; at most 64 are supported"));
	text_release(&many);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	err = (struct error){0};
	assert_int_equal(generation_config_read(&c, path, &err), STATUS_BAD_INPUT);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	file_remove_tree(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generation_config__what_models_give),
		cmocka_unit_test(test_generation_config__nothing_is_given_without_a_file),
		cmocka_unit_test(test_generation_config__bad_values_are_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
