/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "core/input/opt.h"

static const char *const types[] = {"fp32", "bf16", "fp16", NULL};
static const char *const modes[] = {"read", "write", NULL};

struct sample {
	bool zeros;
	uint32_t type, count;
	uint64_t size;
	double seconds;
	const char *mode, *file, *suite;
	struct opt_words words;
};

static const struct opt rows[] = {
	OPT_ROW(struct sample, zeros, .name = "zeros", .letter = 'z'),
	OPT_ROW(struct sample, type, .name = "type", .preset = "bf16", .choices = types),
	OPT_ROW(struct sample, count, .name = "count", .preset = "3", .min = 1, .max = 100, .letter = 'n',
		.also = "repeat max-count"),
	OPT_ROW(struct sample, size, .name = "size", .preset = "4GiB", .unit = "B", .max = 1e15),
	OPT_ROW(struct sample, seconds, .name = "seconds", .preset = "0.1", .unit = "s", .min = 0,
		.max = 3600),
	OPT_ROW(struct sample, mode, .name = "mode", .preset = "read", .choices = modes),
	OPT_ROW(struct sample, file, .name = "file", .no_key = true),
	OPT_ROW(struct sample, suite, .name = "suite", .positional = true),
	OPT_ROW(struct sample, words, .name = "words", .positional = true, .many = true),
};
static const struct opt_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct sample)};

/* argv is char **: nothing writes to the words themselves. */
static int words_of(char **argv, const char *const *words)
{
	int argc;

	for (argc = 0; words[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc];
	return argc;
}

static void test_opt__presets_go_through_the_parser(void **state)
{
	static const struct opt bad[] = {
		OPT_ROW(struct sample, count, .name = "count", .preset = "0", .min = 1, .max = 2)};
	const struct opt_table bad_table = {bad, 1, sizeof(struct sample)};
	struct error err = {0};
	struct sample v;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, &err), STATUS_OK);
	assert_int_equal(v.type, 1);
	assert_int_equal(v.size, 4ull << 30);
	assert_string_equal(v.mode, "read");
	assert_null(v.file);
	assert_int_equal(opt_defaults(&bad_table, &v, &err), STATUS_BUG);
}

static void test_opt__refusals_say_what_and_which(void **state)
{
	static const struct {
		const char *name, *text, *message;
	} cases[] = {
		{"count", "0", "here: count: \"0\" is outside 1 to 100"},
		{"count", "101", "here: count: \"101\" is outside 1 to 100"},
		{"count", "nan", "here: count: \"nan\" is not a finite decimal number"},
		{"count", "-1", "here: count: \"-1\" is negative"},
		{"count", "1e30", "here: count: \"1e30\" is too large"},
		{"size", "1e30", "here: size: \"1e30\" is too large"},
		{"size", "2PB",
		 "here: size: \"2PB\" does not end in one of the units B kB MB GB TB KiB MiB GiB TiB K M G T"},
		{"seconds", "nan", "here: seconds: \"nan\" is not a finite decimal number"},
		{"seconds", "-1", "here: seconds: \"-1\" is outside 0 to 3600 s"},
		{"seconds", "1e30", "here: seconds: \"1e30\" is outside 0 to 3600 s"},
		{"seconds", "2h", "here: seconds: \"2h\" is outside 0 to 3600 s"},
		{"type", "bf61", "here: type: \"bf61\" is not one of fp32, bf16, fp16; did you mean \"bf16\""},
		{"mode", "xyz", "here: mode: \"xyz\" is not one of read, write"},
		{"zeros", "maybe", "here: zeros: \"maybe\" is neither true nor false"},
		{"secnods", "1", "here: unknown option \"secnods\", did you mean \"seconds\""},
		{"quite_else", "1", "here: unknown option \"quite_else\""},
		{"words", "a", "here: words takes a list of words, not a value"},
	};
	struct sample v, before;
	size_t i;

	(void)state;
	assert_int_equal(opt_defaults(&table, &before, NULL), STATUS_OK);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = {0};

		v = before;
		assert_int_equal(opt_set(&table, &v, cases[i].name, cases[i].text, "here", &err),
				 STATUS_BAD_INPUT);
		assert_string_equal(err.text, cases[i].message);
		assert_memory_equal(&v, &before, sizeof(v));
	}
}

static void test_opt__canonical_text_gives_the_same_value(void **state)
{
	static const char *const sizes[] = {"0",	  "1",	    "1023", "1024",	      "64MiB",
					    "1000000000", "1.5GiB", "3TiB", "999999999999999"};
	static const char *const seconds[] = {"0.1",  "1e-9", "0.333333333333333314829616256247",
					      "3600", "17ms", "0"};
	struct sample v, back;
	char text[64];
	size_t i;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(opt_set(&table, &v, "size", sizes[i], "here", NULL), STATUS_OK);
		opt_value_text(&rows[3], &v, text, sizeof(text));
		assert_int_equal(opt_set(&table, &back, "size", text, "here", NULL), STATUS_OK);
		assert_true(back.size == v.size);
	}
	assert_string_equal(text, "999999999999999");
	for (i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		assert_int_equal(opt_set(&table, &v, "seconds", seconds[i], "here", NULL), STATUS_OK);
		opt_value_text(&rows[4], &v, text, sizeof(text));
		assert_int_equal(opt_set(&table, &back, "seconds", text, "here", NULL), STATUS_OK);
		assert_true(back.seconds == v.seconds);
	}
}

static void test_opt__a_key_is_sorted_and_whole(void **state)
{
	char key[256] = "gemm engine=own", small[20] = "gemm";
	struct error err = {0};
	struct sample v;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
	assert_int_equal(opt_set(&table, &v, "file", "/a path", "here", NULL), STATUS_OK);
	assert_int_equal(opt_set(&table, &v, "size", "67108864", "here", NULL), STATUS_OK);
	assert_int_equal(opt_canonical(&table, &v, key, sizeof(key), &err), STATUS_OK);
	assert_string_equal(key,
			    "gemm engine=own count=3 mode=read seconds=0.1 size=64MiB type=bf16 zeros=false");
	assert_int_equal(opt_canonical(&table, &v, small, sizeof(small), &err), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(opt_set(&table, &v, "suite", "two words", "here", NULL), STATUS_OK);
	key[0] = '\0';
	assert_int_equal(opt_canonical(&table, &v, key, sizeof(key), &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "suite: a value with blanks cannot be part of a key");
}

static void test_opt__a_command_line_in_any_order(void **state)
{
	static const char *const words[] = {"--size=1GiB", "quick", "-z", "--mode",    "write",
					    "a",	   "-n5",   "-5", "--seconds", "2s",
					    "-",	   "--",    "x",  "-y",	       NULL};
	char *argv[16];
	int argc = words_of(argv, words);
	struct error err = {0};
	struct opt_words rest;
	struct sample v;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
	assert_int_equal(opt_from_argv(&table, &v, argc, argv, &rest, &err), STATUS_OK);
	assert_int_equal(v.size, 1 << 30);
	assert_true(v.zeros);
	assert_string_equal(v.mode, "write");
	assert_int_equal(v.count, 5);
	assert_true(v.seconds == 2);
	assert_string_equal(v.suite, "quick");
	assert_int_equal(v.words.count, 3);
	assert_string_equal(v.words.word[0], "a");
	assert_string_equal(v.words.word[1], "-5");
	assert_string_equal(v.words.word[2], "-");
	assert_int_equal(rest.count, 2);
	assert_string_equal(rest.word[1], "-y");
}

static void test_opt__behind_two_dashes_all_are_words(void **state)
{
	static const char *const words[] = {"-n5", "quick", "--", "-z", "--", "--size=1", "a", NULL};
	char *argv[16];
	int argc = words_of(argv, words);
	struct error err = {0};
	struct sample v;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
	assert_int_equal(opt_from_argv(&table, &v, argc, argv, NULL, &err), STATUS_OK);
	assert_int_equal(v.count, 5);
	assert_false(v.zeros);
	assert_string_equal(v.suite, "quick");
	assert_int_equal(v.words.count, 4);
	assert_string_equal(v.words.word[0], "-z");
	assert_string_equal(v.words.word[1], "--");
	assert_string_equal(v.words.word[2], "--size=1");
}

static void test_opt__a_command_line_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *words[5];
		const char *message;
	} cases[] = {
		{{"--size"}, "command line: --size needs a value"},
		{{"--sizes", "1"}, "command line: unknown option \"--sizes\", did you mean \"--size\""},
		{{"--max-count", "1"}, "command line: unknown option \"--max-count\", did you mean \"--count\""},
		{{"--max_count", "1"}, "command line: unknown option \"--max_count\", did you mean \"--count\""},
		{{"--max", "1"}, "command line: unknown option \"--max\""},
		{{"--no-size"}, "command line: unknown option \"--no-size\", did you mean \"--size\""},
		{{"-q"},
		 "command line: unknown option \"-q\"; write -- before a word that begins with \"-\""},
		{{"--zeros=perhaps"}, "command line: zeros: \"perhaps\" is neither true nor false"},
		{{"--mode=read", "--mode=write"}, "command line: --mode is given twice"},
		{{"--file", "a", "--file=a"}, "command line: --file is given twice"},
		{{"-n5", "--count=6"}, "command line: --count is given twice"},
		{{"-z", "--no-zeros"}, "command line: --zeros is given twice"},
		{{"--suite=a", "b"}, "command line: --suite is given twice"},
	};
	static const struct opt_table one_word = {rows, 8, sizeof(struct sample)};
	static const struct opt_table no_word = {rows, 7, sizeof(struct sample)};
	static const char *const program[] = {"python3", "-c", "pass", NULL};
	static const char *const many[] = {"quick", "more", NULL};
	struct error err = {0};
	struct opt_words rest;
	struct sample v;
	char *argv[4];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int argc = words_of(argv, cases[i].words);

		error_clear(&err);
		assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
		assert_int_equal(opt_from_argv(&table, &v, argc, argv, NULL, &err), STATUS_BAD_INPUT);
		assert_string_equal(err.text, cases[i].message);
	}
	error_clear(&err);
	assert_int_equal(opt_from_argv(&one_word, &v, words_of(argv, many), argv, NULL, &err),
			 STATUS_BAD_INPUT);
	assert_string_equal(err.text, "command line: unexpected word \"more\"");
	error_clear(&err);
	assert_int_equal(opt_from_argv(&one_word, &v, words_of(argv, many), argv, &rest, &err),
			 STATUS_BAD_INPUT);
	assert_string_equal(err.text,
			    "command line: unexpected word \"more\"; write -- before the program to run");
	error_clear(&err);
	assert_int_equal(opt_from_argv(&no_word, &v, words_of(argv, program), argv, &rest, &err),
			 STATUS_BAD_INPUT);
	assert_string_equal(err.text, "command line: \"-c\" is not an option of this command; write -- before "
				      "the program to run: -- python3 -c");
}

static void test_opt__no_switches_a_bool_off(void **state)
{
	static const char *const words[] = {"--zeros", "--no-zeros", NULL};
	char *argv[2];
	struct sample v;

	(void)state;
	assert_int_equal(opt_defaults(&table, &v, NULL), STATUS_OK);
	words_of(argv, words);
	assert_int_equal(opt_from_argv(&table, &v, 1, argv, NULL, NULL), STATUS_OK);
	assert_true(v.zeros);
	assert_int_equal(opt_from_argv(&table, &v, 1, argv + 1, NULL, NULL), STATUS_OK);
	assert_false(v.zeros);
}

static void test_opt__nearest_word(void **state)
{
	static const char *const known[] = {"gemm", "memory", "link", "x"};
	char endless[200];

	(void)state;
	assert_string_equal(opt_nearest("gmem", known, 4), "gemm");
	assert_string_equal(opt_nearest("memroy", known, 4), "memory");
	assert_string_equal(opt_nearest("lnik", known, 4), "link");
	assert_null(opt_nearest("throughput", known, 4));
	assert_null(opt_nearest("", known, 4));
	assert_null(opt_nearest("y", known + 3, 1));
	memset(endless, 'm', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	assert_null(opt_nearest(endless, known, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opt__presets_go_through_the_parser),
		cmocka_unit_test(test_opt__refusals_say_what_and_which),
		cmocka_unit_test(test_opt__canonical_text_gives_the_same_value),
		cmocka_unit_test(test_opt__a_key_is_sorted_and_whole),
		cmocka_unit_test(test_opt__a_command_line_in_any_order),
		cmocka_unit_test(test_opt__behind_two_dashes_all_are_words),
		cmocka_unit_test(test_opt__a_command_line_is_refused_with_a_reason),
		cmocka_unit_test(test_opt__no_switches_a_bool_off),
		cmocka_unit_test(test_opt__nearest_word),
	};

	return cmocka_run_group_tests_name("core_opt", tests, NULL, NULL);
}
