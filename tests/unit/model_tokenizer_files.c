/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF's vocabulary as tokenizer.json: the same tokens for the same text as from the GGUF itself. */
#include "scratch.h"
#include "test.h"

#include "core/file/file.h"
#include "gguf_bed.h"
#include "text/tokenizer/tokenizer.h"
#include "text/files/tokenizer_files.h"

struct vocabulary {
	const char *model, *pre;
	const char *tokens[12];
	int types[12], type_count;
	const char *merges[4];
};

/* "\xc4\xa0" is the blank. */
static const struct vocabulary good = {
	.model = "gpt2",
	.pre = "qwen2",
	.tokens = {"a", "b", "\xc4\xa0", "ab",
		   "\xc4\xa0"
		   "a",
		   "\xc4\xa0"
		   "ab",
		   "1", "<|im_end|>", "<tool_call>", "[PAD9]"},
	.types = {1, 1, 1, 1, 1, 1, 1, 3, 4, 5},
	.type_count = 10,
	.merges = {"a b", "\xc4\xa0 a",
		   "\xc4\xa0"
		   "a b"},
};

static uint64_t count_of(const char *const *texts)
{
	uint64_t n = 0;

	while (texts[n])
		n++;
	return n;
}

static uint8_t *file_of(const struct vocabulary *v, size_t *size)
{
	struct gguf_bed b;

	bed_begin(&b, 3, 0, 9);
	bed_string(&b, "general.architecture", "qwen2");
	bed_string(&b, "tokenizer.ggml.model", v->model);
	bed_string(&b, "tokenizer.ggml.pre", v->pre);
	bed_string(&b, "tokenizer.chat_template", "{{ messages }}");
	bed_u32(&b, "tokenizer.ggml.eos_token_id", 7);
	bed_u32(&b, "tokenizer.ggml.padding_token_id", 7);
	bed_array(&b, "tokenizer.ggml.tokens", GGUF_TEXT, count_of(v->tokens));
	for (uint64_t i = 0; i < count_of(v->tokens); i++)
		bed_text(&b, v->tokens[i]);
	bed_array(&b, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)v->type_count);
	for (int i = 0; i < v->type_count; i++)
		bed_bytes(&b, (uint64_t)v->types[i], 4);
	bed_array(&b, "tokenizer.ggml.merges", GGUF_TEXT, count_of(v->merges));
	for (uint64_t i = 0; i < count_of(v->merges); i++)
		bed_text(&b, v->merges[i]);
	return bed_end(&b, size);
}

static void encode(struct token_list *out, const char *path, bool *none)
{
	static const char text[] = "ab ab<|im_end|>1 a<tool_call>b";
	struct tokenizer_worker *worker = NULL;
	struct tokenizer *t = NULL;
	struct error err = {0};
	enum status st = tokenizer_open(&t, path, &err);

	*none = st == STATUS_UNAVAILABLE && err.cause == CAUSE_LIBRARY_MISSING;
	if (*none)
		return;
	if (st || tokenizer_worker_create(&worker, t, &err) ||
	    tokenizer_encode(worker, text, sizeof(text) - 1, ADDED_ALL, out, &err))
		fail_msg("%s", err.text);
	assert_int_equal(tokenizer_eos(t), 7);
	assert_string_equal(tokenizer_chat_template(t), "{{ messages }}");
	tokenizer_worker_destroy(&worker);
	tokenizer_close(&t);
}

static void test_tokenizer_files__a_gguf_s_are_its_vocabulary(void **state)
{
	static const int32_t due[] = {3, 2, 3, 7, 6, 4, 8, 1}; /* "a b" merges before what has the blank */
	struct token_list list = {0};
	struct error err = {0};
	struct gguf g;
	bool none;
	size_t size;
	uint8_t *file = file_of(&good, &size);

	assert_int_equal(gguf_parse(&g, "x.gguf", file, size, &err), STATUS_OK);
	if (tokenizer_files_of_gguf(*state, &g.metadata, &err))
		fail_msg("%s", err.text);
	gguf_release(&g);
	free(file);
	encode(&list, *state, &none);
	if (none)
		skip();
	assert_int_equal(list.count, sizeof(due) / sizeof(due[0]));
	assert_memory_equal(list.id, due, sizeof(due));
	token_list_release(&list);
}

static void test_tokenizer_files__a_vocabulary_that_is_not_done_is_refused(void **state)
{
	struct vocabulary cases[5];
	static const char *const why[] = {"tokenizer.ggml.model is \"llama\"; only gpt2",
					  "pre-tokenizer \"gpt-9\" is not supported", "10 tokens have 9 types",
					  "token 4 occurs twice",
					  "token 2 occurs twice or is not UTF-8"};

	for (int i = 0; i < 5; i++)
		cases[i] = good;
	cases[0].model = "llama";
	cases[1].pre = "gpt-9";
	cases[2].type_count = 9;
	cases[3].tokens[4] = "a";
	cases[4].tokens[2] = "\xff";
	for (int i = 0; i < 5; i++) {
		struct error err = {0};
		struct gguf g;
		size_t size;
		uint8_t *file = file_of(&cases[i], &size);

		assert_int_equal(gguf_parse(&g, "x.gguf", file, size, &err), STATUS_OK);
		if (!tokenizer_files_of_gguf(*state, &g.metadata, &err) || !strstr(err.text, why[i]))
			fail_msg("\"%s\" lacks \"%s\"", err.text, why[i]);
		gguf_release(&g);
		free(file);
	}
	assert_int_equal(rmdir(*state), 0); /* nothing was written */
	assert_int_equal(mkdir(*state, 0700), 0);
}

/* Bytes, and markers that are one token each. */
static void test_tokenizer_files__a_vocabulary_of_bytes_is_one_that_is_read(void **state)
{
	static const char text[] = "<|im_start|>a\xc3\xa9\n<|im_end|>";
	static const int32_t due[] = {257, 'a', 0xc3, 0xa9, '\n', 258};
	struct tokenizer_worker *worker = NULL;
	struct tokenizer *t = NULL;
	struct token_list list = {0};
	struct error err = {0};
	enum status st;

	assert_int_equal(tokenizer_files_of_bytes(*state, &err), STATUS_OK);
	st = tokenizer_open(&t, *state, &err);
	if (st == STATUS_UNAVAILABLE || st == STATUS_UNSUPPORTED) {
		print_message("no tokenizers in this program: %s\n", err.text);
		skip();
	}
	assert_int_equal(st, STATUS_OK);
	assert_int_equal(tokenizer_size(t), 271);
	assert_int_equal(tokenizer_eos(t), 258);
	assert_int_equal(tokenizer_worker_create(&worker, t, &err), STATUS_OK);
	assert_int_equal(tokenizer_encode(worker, text, sizeof(text) - 1, ADDED_ALL, &list, &err), STATUS_OK);
	assert_int_equal(list.count, 6);
	assert_memory_equal(list.id, due, sizeof(due));
	token_list_release(&list);
	tokenizer_worker_destroy(&worker);
	tokenizer_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_tokenizer_files__a_gguf_s_are_its_vocabulary),
		scratch_test(test_tokenizer_files__a_vocabulary_that_is_not_done_is_refused),
		scratch_test(test_tokenizer_files__a_vocabulary_of_bytes_is_one_that_is_read),
	};

	return cmocka_run_group_tests_name("model_tokenizer_files", tests, NULL, NULL);
}
