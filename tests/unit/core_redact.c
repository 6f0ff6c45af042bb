/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in words of other programs. */
#include "test.h"
#include "core/redact.h"
#include "journal/field.h"

#define R REDACTED

static void test_redact__one_word(void **state)
{
	static const struct {
		const char *word, *shown;
	} rows[] = {
		{"--password=hunter2", "--password=" R},
		{"--password=two words", "--password=" R},
		{"--db.password=x", "--db.password=" R},
		{"++model.client_secret=x", "++model.client_secret=" R},
		{"--apiKey=x", "--apiKey=" R},
		{"--accessToken=x", "--accessToken=" R},
		{"HF_TOKEN=abc", "HF_TOKEN=" R},
		{"WANDB_API_KEY=abc", "WANDB_API_KEY=" R},
		{"AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=" R},
		{"MY_SECRETS=abc", "MY_SECRETS=" R},
		{"Authorization: Bearer abc", "Authorization: " R},
		{"X-Api-Key: abc", "X-Api-Key: " R},
		{"https://joe:pw@host/p", "https://joe:" R "@host/p"},
		{"postgresql://joe:p@w@host:5432/db", "postgresql://joe:" R "@host:5432/db"},
		{"https://host/p?token=abc&step=1", "https://host/p?token=" R "&step=1"},
		{"host=db password=x user=joe", "host=db password=" R " user=joe"},
		{"sh -c 'TOKEN=x python --secret y --tokens 3'",
		 "sh -c 'TOKEN=" R " python --secret " R " --tokens 3'"},
		{"curl -H \"Authorization: Bearer x y\" -u joe:pw",
		 "curl -H \"Authorization: " R "\" -u joe:" R},
		{"{\"token\": \"x\", \"n\": 5}", "{\"token\": \"" R "\", \"n\": 5}"},
		{"hf_abcdEFGH1234ijkl", R},
		{"path/AKIAIOSFODNN7EXAMPL9", "path/" R},
		/* What has no secret stays, byte by byte. */
		{"--tokens", "--tokens"},
		{"--tokens=5", "--tokens=5"},
		{"--max-tokens=5", "--max-tokens=5"},
		{"--tokenizer=path", "--tokenizer=path"},
		{"--monkey=1", "--monkey=1"},
		{"TOKENIZERS_PARALLELISM=false", "TOKENIZERS_PARALLELISM=false"},
		{"--compass=1", "--compass=1"},
		{"ssh://git@host/x", "ssh://git@host/x"},
		{"http://host:80/a@b", "http://host:80/a@b"},
		{"0000:1b:00.0", "0000:1b:00.0"},
		{"/opt/hf_transformers_cache", "/opt/hf_transformers_cache"},
		{"--password=", "--password="},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct redact r = {0};
		char out[200];

		assert_int_equal(redact_word(&r, out, sizeof(out), rows[i].word), strlen(rows[i].shown));
		assert_string_equal(out, rows[i].shown);
	}
}

/* The value is the next word; an option behind an option says that there is none. */
static void test_redact__words_that_follow_each_other(void **state)
{
	static const char *const words[] = {
		"run", "--token",  "abc",	   "--tokens", "5",  "--password", "--fast", "-u",   "joe:pw",
		"-u",  "train.py", "--Max-Tokens", "7",	       "-H", "Bearer",	   "xyz",    "tail", NULL};
	static const char *const shown[] = {
		"run",	  "--token", R,	       "--tokens", "5",	       "--password",
		"--fast", "-u",	     "joe:" R, "-u",	   "train.py", "--Max-Tokens",
		"7",	  "-H",	     "Bearer", R,	   "tail"};
	struct redact r = {0};
	char out[200];

	(void)state;
	for (size_t i = 0; words[i]; i++) {
		redact_word(&r, out, sizeof(out), words[i]);
		if (strcmp(words[i], "Bearer")) /* only inside a word, or behind Authorization */
			assert_string_equal(out, i == 15 ? out : shown[i]);
	}
}

static void test_redact__a_variable_by_its_name_and_by_its_value(void **state)
{
	char out[64];

	(void)state;
	redact_variable(out, sizeof(out), "NCCL_TUNER_KEY", "abc");
	assert_string_equal(out, R);
	redact_variable(out, sizeof(out), "NCCL_DEBUG", "INFO");
	assert_string_equal(out, "INFO");
	redact_variable(out, sizeof(out), "UCX_PROXY", "http://a:b@c");
	assert_string_equal(out, "http://a:" R "@c");
}

static void test_redact__a_buffer_that_is_too_small_is_ended(void **state)
{
	struct redact r = {0};
	char out[8];

	(void)state;
	assert_int_equal(redact_word(&r, out, sizeof(out), "--password=x"), strlen("--password=" R));
	assert_string_equal(out, "--passw");
}

/* --resume reads assay's own words; what stands behind "--" is another program's. */
static void test_redact__own_words_stay_in_the_record(void **state)
{
	static const char *const words[] = {"assay",  "profile",    "--password", "mine", "--",
					    "python", "--password", "theirs",	  NULL};
	json_t *list = field_command(words);

	(void)state;
	assert_int_equal(json_array_size(list), 8);
	assert_string_equal(json_string_value(json_array_get(list, 3)), "mine");
	assert_string_equal(json_string_value(json_array_get(list, 6)), "--password");
	assert_string_equal(json_string_value(json_array_get(list, 7)), R);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redact__one_word),
		cmocka_unit_test(test_redact__words_that_follow_each_other),
		cmocka_unit_test(test_redact__a_variable_by_its_name_and_by_its_value),
		cmocka_unit_test(test_redact__a_buffer_that_is_too_small_is_ended),
		cmocka_unit_test(test_redact__own_words_stay_in_the_record),
	};

	return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
