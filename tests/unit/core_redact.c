/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in words of other programs. */
#include "test.h"
#include "core/text/redact.h"
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
		/* An unescaped '#', '/', '?' or '@' does not end a password. */
		{"ftp://u:p#x@h", "ftp://u:" R "@h"},
		{"ftp://u:p/x?y@h/z", "ftp://u:" R "@h/z"},
		{"smtp://joe@example.org:pw@mail", "smtp://joe@example.org:" R "@mail"},
		{"redis://:pw@h", "redis://:" R "@h"},
		{"sh -c 'curl ftp://u:p#x@h a@b'", "sh -c 'curl ftp://u:" R "@h a@b'"},
		{"http://host:80/a@b", "http://host:" R "@b"}, /* looks the same */
		{"--secret_0123456789012345678901234567890123456789012345678901234567890123456789=val",
		 "--secret_0123456789012345678901234567890123456789012345678901234567890123456789=" R},
		{"01234567890123456789012345678901234567890123456789012345678secret_0123456789012345678901234"
		 "567890123456789012345678901234567890123456789=val",
		 "01234567890123456789012345678901234567890123456789012345678secret_0123456789012345678901234"
		 "567890123456789012345678901234567890123456789=" R},
		{"key=\"abc\"", "key=" R},
		{"--key=abc", "--key=" R},
		{"sh -c 'x --key hunter2 --token -abc1secret'", "sh -c 'x --key " R " --token " R "'"},
		{"sh -c 'mysql -u joe -phunter2 -P3306 db'", "sh -c 'mysql -u joe -p" R " -P3306 db'"},
		{"sshpass -p hunter2 ssh -p22 h", "sshpass -p " R " ssh -p22 h"},
		{"path/AKIAIOSFODNN7EXAMPL9", "path/" R},
		/* A word of a shell may be quoted in part and may hide its blanks and quotes. */
		{"sh -c 'export DB_PASSWORD=\"ab\\\"c\"; X_SECRET=a\\ b run'",
		 "sh -c 'export DB_PASSWORD=\"" R "\"; X_SECRET=" R " run'"},
		{"sh -c \"Y_TOKEN='a'\\''b' true\"", "sh -c \"Y_TOKEN='" R "' true\""},
		{"sh -c 'Z_KEY=a\"b\" true; run --password=p)c MYSQL_PWD=x,y'",
		 "sh -c 'Z_KEY=" R " true; run --password=" R " MYSQL_PWD=" R "'"},
		{"--apitoken=x", "--apitoken=" R},
		{"--privatekey=x", "--privatekey=" R},
		{"GITHUBTOKEN=x", "GITHUBTOKEN=" R},
		{"sh -c 'run --pat x --path y'", "sh -c 'run --pat " R " --path y'"},
		/* What has no secret stays, byte by byte. */
		{"--tokens", "--tokens"},
		{"--tokens=5", "--tokens=5"},
		{"--max-tokens=5", "--max-tokens=5"},
		{"--tokenizer=path", "--tokenizer=path"},
		{"--monkey=1", "--monkey=1"},
		{"TOKENIZERS_PARALLELISM=false", "TOKENIZERS_PARALLELISM=false"},
		{"--compass=1", "--compass=1"},
		{"ssh://git@host/x", "ssh://git@host/x"},
		{"http://host:80/a", "http://host:80/a"},
		{"http://host:80/a b@c", "http://host:80/a b@c"},
		{"--keys=5", "--keys=5"},
		{"--key-value-heads=8", "--key-value-heads=8"},
		{"--num-key-value-heads 8", "--num-key-value-heads 8"},
		{"sort -k2 key", "sort -k2 key"},
		{"ssh -p22 mysql.example.org", "ssh -p22 mysql.example.org"},
		{"/var/lib/mysql-files -p22", "/var/lib/mysql-files -p22"},
		{"mysql -p db", "mysql -p db"}, /* asks for it */
		{"0000:1b:00.0", "0000:1b:00.0"},
		{"/opt/hf_transformers_cache", "/opt/hf_transformers_cache"},
		{"--password=", "--password="},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct redact r = {0};
		char out[300];

		assert_int_equal(redact_word(&r, out, sizeof(out), rows[i].word), strlen(rows[i].shown));
		assert_string_equal(out, rows[i].shown);
	}
}

static void shows(const char *const *words, const char *const *shown)
{
	struct redact r = {0};
	char out[300];

	for (size_t i = 0; words[i]; i++) {
		redact_word(&r, out, sizeof(out), words[i]);
		assert_string_equal(out, shown[i]);
	}
}

/* A token may begin with "-": only "--" says that the option before it has no value. */
static void test_redact__a_value_that_looks_like_an_option(void **state)
{
	(void)state;
	shows((const char *const[]){"--token", "-abc1secret", "--key", "hunter2", "--keys", "5", "--key", "--fast",
				    "--max-tokens", "7", "--key-value-heads", "8", NULL},
	      (const char *const[]){"--token", R, "--key", R, "--keys", "5", "--key", "--fast", "--max-tokens",
				    "7", "--key-value-heads", "8"});
}

static void test_redact__a_password_directly_behind_an_option(void **state)
{
	(void)state;
	shows((const char *const[]){"/usr/bin/mysqldump", "-ujoe", "-psecret word", "-P3306", "db", NULL},
	      (const char *const[]){"/usr/bin/mysqldump", "-ujoe", "-p" R, "-P3306", "db"});
	shows((const char *const[]){"mysql", "-p", "db", NULL}, (const char *const[]){"mysql", "-p", "db"});
	shows((const char *const[]){"sshpass", "-p", "-secret", "ssh", "-p22", "h", NULL},
	      (const char *const[]){"sshpass", "-p", R, "ssh", "-p22", "h"});
	shows((const char *const[]){"sshpass", "-psecret", "ssh", "-p", "22", "h", NULL},
	      (const char *const[]){"sshpass", "-p" R, "ssh", "-p", "22", "h"});
	shows((const char *const[]){"python", "-pvalue", NULL}, (const char *const[]){"python", "-pvalue"});
}

/* The value is the next word; "--" behind an option says that there is none. */
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
	char out[300];

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
		cmocka_unit_test(test_redact__a_value_that_looks_like_an_option),
		cmocka_unit_test(test_redact__a_password_directly_behind_an_option),
		cmocka_unit_test(test_redact__words_that_follow_each_other),
		cmocka_unit_test(test_redact__a_variable_by_its_name_and_by_its_value),
		cmocka_unit_test(test_redact__a_buffer_that_is_too_small_is_ended),
		cmocka_unit_test(test_redact__own_words_stay_in_the_record),
	};

	return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
