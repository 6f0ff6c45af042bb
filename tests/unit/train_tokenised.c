/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as tokens: what is left out and why, what is kept in a file, and rows made of bfcl-eval and divided.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file/file.h"
#include "data/function_calls/bfcl.h"
#include "data/function_calls/holdout.h"
#include "train/data/tokenised.h"

struct bed {
	char folder[32], rows[64], cache[64];
	const char *word;
	struct tokenizer *tokenizer;
	char tokenizer_path[512];
	struct tokenised_ask ask;
	struct tokenised t;
	struct error err;
};

static void write_in(const char *path, const char *text)
{
	struct error err = {0};

	if (file_write(path, text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static void bed_open(struct bed *b, const char *rows)
{
	*b = (struct bed){.folder = "/tmp/tokenised-XXXXXX"};
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->rows, sizeof(b->rows), "%s/rows.jsonl", b->folder);
	snprintf(b->cache, sizeof(b->cache), "%s/kept", b->folder);
	snprintf(b->tokenizer_path, sizeof(b->tokenizer_path), "%s/tests/data/tokenizer/qwen.json",
		 SOURCE_DIR);
	write_in(b->rows, rows);
	b->word = b->rows;
	assert_int_equal(tokenizer_open(&b->tokenizer, b->tokenizer_path, &b->err), STATUS_OK);
	b->ask = (struct tokenised_ask){.files = {.word = &b->word, .count = 1},
					.tokenizer = b->tokenizer,
					.tokenizer_path = b->tokenizer_path,
					.template_setting = "model: chat_template",
					.length_setting = "data: max_seq_length",
					.length_max = 1000};
	assert_int_equal(template_find(&b->ask.template, "chatml", "chat_template", NULL, &b->err),
			 STATUS_OK);
}

static void bed_close(struct bed *b)
{
	tokenised_release(&b->t);
	tokenizer_close(&b->tokenizer);
	file_remove_tree(b->folder);
}

#define ROW(question, answer)                                                                                \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"" question                                          \
	"\"},{\"role\":\"assistant\",\"content\":\"" answer "\"}]}\n"
static const char good[] = ROW("hello", "world") ROW("the", "cat");

static void test_tokenised__ids_and_targets_of_a_row(void **state)
{
	struct bed b;
	struct text text = {0};

	(void)state;
	bed_open(&b, good);
	if (tokenised_read(&b.t, &b.ask, &b.err))
		fail_msg("%s", b.err.text);
	assert_int_equal(b.t.rows, 2);
	assert_int_equal(b.t.begin[2], b.t.tokens);
	for (uint64_t i = 0; i < b.t.begin[1]; i++) {
		int32_t id = b.t.token[i] & ~TOKENISED_TRAINED;

		if (b.t.token[i] & TOKENISED_TRAINED)
			tokenizer_decode(b.tokenizer, &id, 1, true, &text);
	}
	assert_string_equal(text_str(&text), "world<|im_end|>");
	text_release(&text);
	bed_close(&b);
}

static void test_tokenised__a_bad_row_is_named_and_ends_it_unless_allowed(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, ROW("a", "b") "{\"messages\":[{\"role\":\"robot\"}]}\n" ROW("c", "d") "5\n");
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "rows.jsonl:2: messages[0].role: \"robot\""));
	error_clear(&b.err);
	b.ask.bad_max = 1;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "rows.jsonl:4: "));
	assert_non_null(strstr(b.err.text, "max_bad_rows"));
	error_clear(&b.err);
	b.ask.bad_max = 2;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.rows, 2);
	assert_int_equal(b.t.bad, 2);
	bed_close(&b);
}

static void test_tokenised__rows_with_tools_need_a_template_with_a_place_for_them(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{\"name\":\"f\"}]}\n");
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "rows.jsonl:1: the chat template chatml"));
	bed_close(&b);
}

static void test_tokenised__long_rows_are_dropped_or_cut_and_counted(void **state)
{
	uint64_t whole;
	struct bed b;

	(void)state;
	bed_open(&b, good);
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	whole = b.t.begin[1];
	tokenised_release(&b.t);
	b.ask.length_max = whole - 1;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.rows + b.t.dropped, 2);
	assert_true(b.t.dropped >= 1);
	tokenised_release(&b.t);
	b.ask.truncate = true;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.dropped, 0);
	assert_true(b.t.truncated >= 1);
	assert_int_equal(b.t.begin[1], whole - 1);
	bed_close(&b);
}

/* Where row `i` of a sample stands among all, from `from` on. */
static uint64_t place_of(const struct tokenised *all, const struct tokenised *sample, uint64_t i,
			 uint64_t from)
{
	uint64_t count = sample->begin[i + 1] - sample->begin[i];

	for (uint64_t at = from; at < all->rows; at++)
		if (all->begin[at + 1] - all->begin[at] == count &&
		    !memcmp(all->token + all->begin[at], sample->token + sample->begin[i],
			    count * sizeof(*all->token)))
			return at;
	fail_msg("row %d of the sample is none of the rows behind that before it", (int)i);
	return 0;
}

/* Of 60 rows, ten of which are too long, eight: all fit, none stands twice, not the first ones alone. */
static void test_tokenised__a_sample_is_of_all_rows_that_fit(void **state)
{
	enum { ALL = 60, LONG = 10, WANTED = 8 };
	struct text rows = {0};
	struct tokenised all;
	uint64_t from = 0, targets = 0;
	struct bed b;

	(void)state;
	for (int i = 0; i < ALL; i++)
		text_addf(&rows,
			  "{\"messages\":[{\"role\":\"user\",\"content\":\"%d%s\"},"
			  "{\"role\":\"assistant\",\"content\":\"%d\"}]}\n",
			  i, i < LONG ? " and more than there is room for in this test, again and again" : "",
			  i);
	bed_open(&b, text_str(&rows));
	b.ask.length_max = 40;
	assert_int_equal(tokenised_read(&all, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(all.rows, ALL - LONG);
	b.ask.rows_max = WANTED;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.rows, WANTED);
	assert_int_equal(b.t.dropped, LONG);
	for (uint64_t i = 0; i < WANTED; i++) {
		from = place_of(&all, &b.t, i, from) + 1;
		for (uint64_t j = b.t.begin[i] + 1; j < b.t.begin[i + 1]; j++)
			targets += (b.t.token[j] & TOKENISED_TRAINED) != 0;
	}
	assert_true(from > all.rows / 2);
	assert_int_equal(b.t.tokens, b.t.begin[WANTED]);
	assert_int_equal(b.t.targets, targets);
	tokenised_release(&all);
	text_release(&rows);
	bed_close(&b);
}

static void test_tokenised__nothing_to_train_on_is_refused_with_the_counts(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n" ROW("a", "b"));
	b.ask.length_max = 3;
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "no usable row: 2 longer than 3 tokens (data: max_seq_length), with"));
	bed_close(&b);
	bed_open(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n");
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "no usable row: 1 without an assistant message, with"));
	bed_close(&b);
}

/* Overwrites one byte of the only file in a folder. */
static void damage(const char *folder)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "f=$(echo %s/*.tokens); printf x | dd of=\"$f\" bs=1 seek=40 conv=notrunc 2>/dev/null",
		 folder);
	assert_int_equal(system(command), 0);
}

static void test_tokenised__what_was_kept_is_taken_and_what_is_broken_is_made_again(void **state)
{
	struct tokenised first;
	struct bed b;

	(void)state;
	bed_open(&b, good);
	b.ask.cache_dir = b.cache;
	assert_int_equal(tokenised_read(&first, &b.ask, &b.err), STATUS_OK);
	assert_true(first.bytes > 0);
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.bytes, 0); /* nothing was tokenised */
	assert_int_equal(b.t.tokens, first.tokens);
	assert_memory_equal(b.t.token, first.token, first.tokens * sizeof(*first.token));
	tokenised_release(&b.t);
	damage(b.cache);
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_int_equal(b.t.bytes, first.bytes);
	assert_memory_equal(b.t.token, first.token, first.tokens * sizeof(*first.token));
	tokenised_release(&b.t);
	assert_int_equal(template_find(&b.ask.template, "qwen2", "chat_template", NULL, &b.err), STATUS_OK);
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_OK);
	assert_true(b.t.bytes > 0 && b.t.tokens > first.tokens);
	tokenised_release(&first);
	bed_close(&b);
}

/* What somebody could lay where a kept file is looked for: the head, offsets, ids and the right sum. */
struct forged {
	uint64_t begin[4], tokens;
	int32_t token[600];
};

static void forge(const struct bed *b, const struct forged *f, mode_t mode)
{
	struct {
		char magic[8];
		uint64_t version, rows, tokens;
	} head = {"ASSAYTO", 1, 3, f->tokens};
	char path[256], sum[65];
	struct text all = {0};
	struct error err = {0};

	head.magic[7] = 'K';
	assert_int_equal(tokenised_cache_path(path, sizeof(path), &b->ask, b->rows, &err), STATUS_OK);
	text_add_bytes(&all, (const char *)&head, sizeof(head));
	text_add_bytes(&all, (const char *)f->begin, sizeof(f->begin));
	text_add_bytes(&all, (const char *)f->token, f->tokens * sizeof(*f->token));
	file_sha256(sum, text_str(&all), all.size);
	text_add(&all, sum);
	assert_int_equal(file_write(path, text_str(&all), all.size, &err), STATUS_OK);
	assert_int_equal(chmod(path, mode), 0);
	text_release(&all);
}

/* Three rows of some tokens each, all of them trained on. */
static struct forged forged_sound(void)
{
	struct forged f = {.begin = {0, 200, 400, 600}, .tokens = 600};

	for (size_t i = 0; i < 600; i++)
		f.token[i] = 1 | TOKENISED_TRAINED;
	return f;
}

/* Whether the file was taken: nothing is made into tokens then. */
static bool is_taken(struct bed *b)
{
	bool taken;

	assert_int_equal(tokenised_read(&b->t, &b->ask, &b->err), STATUS_OK);
	taken = !b->t.bytes;
	tokenised_release(&b->t);
	return taken;
}

static bool is_kept(const struct bed *b)
{
	struct stat about;
	char path[256];

	assert_int_equal(tokenised_cache_path(path, sizeof(path), &b->ask, b->rows, NULL), STATUS_OK);
	return !stat(path, &about) && (about.st_mode & 07777) == 0600 && about.st_uid == geteuid();
}

/* The sum has no key: what an attacker wrote has the right one. Falling offsets made 301 tokens of room and
 * copied 300 for each row. */
static void test_tokenised__a_kept_file_is_believed_only_as_far_as_it_holds(void **state)
{
	struct forged f = forged_sound();
	struct bed b;

	(void)state;
	bed_open(&b, good);
	b.ask.cache_dir = b.cache;
	forge(&b, &f, 0600);
	assert_true(is_taken(&b));
	f.begin[1] = 500; /* falls to 400 */
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	assert_true(is_kept(&b)); /* made again */
	f = forged_sound();
	f.begin[0] = 10;
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	f = forged_sound();
	f.begin[2] = 1u << 20; /* far outside */
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	f = forged_sound();
	f.token[7] = tokenizer_size(b.tokenizer) | TOKENISED_TRAINED;
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	f.token[7] = tokenizer_size(b.tokenizer) - 1;
	forge(&b, &f, 0600);
	assert_true(is_taken(&b));
	f.token[7] = -5;
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	bed_close(&b);
}

/* As the finding has it: the sum of all rows is the last offset, and each row is 300 tokens long. */
static void test_tokenised__falling_offsets_write_past_no_array(void **state)
{
	struct forged f = forged_sound();
	struct bed b;

	(void)state;
	bed_open(&b, good);
	b.ask.cache_dir = b.cache;
	f.begin[1] = 600; /* 600, then 300 back and 300 on: 900 tokens where 600 have room */
	f.begin[2] = 300;
	forge(&b, &f, 0600);
	assert_false(is_taken(&b));
	bed_close(&b);
}

static void test_tokenised__a_kept_file_that_others_can_write_is_not_read(void **state)
{
	struct forged f = forged_sound();
	char path[256], away[300];
	struct bed b;

	(void)state;
	bed_open(&b, good);
	b.ask.cache_dir = b.cache;
	forge(&b, &f, 0644);
	assert_true(is_taken(&b));
	forge(&b, &f, 0664);
	assert_false(is_taken(&b));
	assert_true(is_kept(&b));
	forge(&b, &f, 0602);
	assert_false(is_taken(&b));
	assert_int_equal(tokenised_cache_path(path, sizeof(path), &b.ask, b.rows, &b.err), STATUS_OK);
	if (!geteuid()) {
		forge(&b, &f, 0600);
		assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
		assert_false(is_taken(&b));
		assert_true(is_kept(&b));
	}
	forge(&b, &f, 0600);
	snprintf(away, sizeof(away), "%s/elsewhere", b.folder);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(symlink(away, path), 0);
	assert_int_equal(tokenised_read(&b.t, &b.ask, &b.err), STATUS_BAD_INPUT); /* nor replaced */
	assert_non_null(strstr(b.err.text, "it is not a regular file"));
	bed_close(&b);
}

static void test_bfcl__answers_become_calls(void **state)
{
	static const char *const categories[] = {"simple_python",     "multiple",    "parallel",
						 "parallel_multiple", "live_simple", "live_multiple"};
	char folder[] = "/tmp/bfcl-XXXXXX", path[128];
	struct error err = {0};
	json_t *rows = NULL;
	char *text;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/possible_answer", folder);
	assert_int_equal(file_make_dir(path, &err), STATUS_OK);
	for (size_t i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/BFCL_v4_%s.json", folder, categories[i]);
		write_in(path, "{\"id\":\"a\",\"question\":[[{\"role\":\"user\",\"content\":\"q\"}]],"
			       "\"function\":[{\"name\":"
			       "\"m.f\",\"parameters\":{\"type\":\"dict\",\"properties\":{\"type\":{\"type\":"
			       "\"float\"}}}}]}\n");
		snprintf(path, sizeof(path), "%s/possible_answer/BFCL_v4_%s.json", folder, categories[i]);
		write_in(path, "{\"id\":\"a\",\"ground_truth\":[{\"m.f\":{\"x\":[1,2],\"y\":[\"\",3],\"z\":[{"
			       "\"k\":[true],"
			       "\"o\":[\"\"],\"bare\":5}],\"l\":[[{\"k\":[1]}]]}}]}\n");
	}
	if (bfcl_read(&rows, folder, &err))
		fail_msg("%s", err.text);
	assert_int_equal(json_array_size(rows), 6);
	text = json_dumps(json_array_get(rows, 0), JSON_COMPACT);
	assert_string_equal(
		text,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
		"\"\","
		"\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"m.f\",\"arguments\":{\"x\":"
		"1,"
		"\"z\":{\"k\":true,\"bare\":5},\"l\":[{\"k\":1}]}}}]}],\"tools\":[{\"type\":\"function\","
		"\"function\":{\"name\":\"m.f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"type\":"
		"{\"type\":\"number\"}}}}}],\"ground_truth\":[{\"m.f\":{\"x\":[1,2],\"y\":[\"\",3],\"z\":[{\"k\":[true],"
		"\"o\":[\"\"],\"bare\":5}],\"l\":[[{\"k\":[1]}]]}}]}");
	free(text);
	json_decref(rows);
	write_in(path, "{\"id\":\"b\",\"ground_truth\":[]}\n");
	assert_int_equal(bfcl_read(&rows, folder, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "a has no question, functions or answer"));
	error_clear(&err);
	write_in(path, "{}\n");
	assert_int_equal(bfcl_read(&rows, folder, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "BFCL_v4_live_multiple.json:1: a row without an id"));
	file_remove_tree(folder);
}

static void test_halves__no_function_is_in_both(void **state)
{
	bool held[200], in[2][100] = {{false}};
	json_t *rows = json_array();
	struct error err = {0};
	size_t count = 0;

	(void)state;
	for (int i = 0; i < 200; i++) { /* functions 0 to 99; row i has two of them */
		char one[8], other[8];

		snprintf(one, sizeof(one), "f%d", i / 4 * 2);
		snprintf(other, sizeof(other), "f%d", i / 4 * 2 + i % 2);
		json_array_append_new(
			rows, json_pack("{s[{s{ss}}{ss}]}", "tools", "function", "name", one, "name", other));
	}
	assert_int_equal(holdout_split(held, rows, 0.25, 1, &err), STATUS_OK);
	for (int i = 0; i < 200; i++) {
		in[held[i]][i / 4 * 2] = in[held[i]][i / 4 * 2 + i % 2] = true;
		count += held[i];
	}
	assert_int_equal(count, 48); /* twelve groups of four: fifty would be a quarter */
	for (int f = 0; f < 100; f++)
		assert_false(in[0][f] && in[1][f]);
	json_decref(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokenised__ids_and_targets_of_a_row),
		cmocka_unit_test(test_tokenised__a_bad_row_is_named_and_ends_it_unless_allowed),
		cmocka_unit_test(test_tokenised__rows_with_tools_need_a_template_with_a_place_for_them),
		cmocka_unit_test(test_tokenised__long_rows_are_dropped_or_cut_and_counted),
		cmocka_unit_test(test_tokenised__a_sample_is_of_all_rows_that_fit),
		cmocka_unit_test(test_tokenised__nothing_to_train_on_is_refused_with_the_counts),
		cmocka_unit_test(test_tokenised__what_was_kept_is_taken_and_what_is_broken_is_made_again),
		cmocka_unit_test(test_tokenised__falling_offsets_write_past_no_array),
		cmocka_unit_test(test_tokenised__a_kept_file_is_believed_only_as_far_as_it_holds),
		cmocka_unit_test(test_tokenised__a_kept_file_that_others_can_write_is_not_read),
		cmocka_unit_test(test_bfcl__answers_become_calls),
		cmocka_unit_test(test_halves__no_function_is_in_both),
	};

	return cmocka_run_group_tests_name("tokenised", tests, NULL, NULL);
}
