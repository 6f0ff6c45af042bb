/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF with the vocabulary of a tokenizer.json is the same tokenizer, which the reference has judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "core/file/file.h"
#include "gguf_bed.h"
#include "text/tokenizer/tokenizer.h"
#include "random_text.h"

enum { TOKENS_MAX = 2048, CONTROL = 3, USER = 4, NORMAL = 1 };

static void add_tokens(struct gguf_bed *b, json_t *root)
{
	const char *texts[TOKENS_MAX] = {NULL}, *key;
	uint32_t types[TOKENS_MAX];
	json_t *value;
	size_t i, count = 0;

	json_object_foreach(json_object_get(json_object_get(root, "model"), "vocab"), key, value)
	{
		assert_true(json_integer_value(value) < TOKENS_MAX);
		texts[json_integer_value(value)] = key;
		types[json_integer_value(value)] = NORMAL;
		count++;
	}
	json_array_foreach(json_object_get(root, "added_tokens"), i, value)
	{
		size_t id = (size_t)json_integer_value(json_object_get(value, "id"));

		count += !texts[id];
		texts[id] = json_string_value(json_object_get(value, "content"));
		types[id] = json_is_true(json_object_get(value, "special")) ? CONTROL : USER;
	}
	bed_array(b, "tokenizer.ggml.tokens", GGUF_TEXT, count);
	for (i = 0; i < count; i++)
		bed_text(b, texts[i]);
	bed_array(b, "tokenizer.ggml.token_type", GGUF_I32, count);
	for (i = 0; i < count; i++)
		bed_bytes(b, types[i], 4);
}

static void add_merges(struct gguf_bed *b, json_t *root)
{
	json_t *merges = json_object_get(json_object_get(root, "model"), "merges"), *merge;
	size_t i;

	bed_array(b, "tokenizer.ggml.merges", GGUF_TEXT, json_array_size(merges));
	json_array_foreach(merges, i, merge)
	{
		char text[256];

		if (!json_is_string(merge)) /* older files have "a b" */
			snprintf(text, sizeof(text), "%s %s", json_string_value(json_array_get(merge, 0)),
				 json_string_value(json_array_get(merge, 1)));
		bed_text(b, json_is_string(merge) ? json_string_value(merge) : text);
	}
}

/* The vocabulary of a tokenizer.json as a GGUF file; `pre` and the kind of model as told. */
static struct tokenizer *as_gguf(const char *json, const char *model, const char *pre, struct error *err)
{
	char path[] = "/tmp/tokenizer-XXXXXX";
	json_t *root = json_load_file(json, 0, NULL);
	struct tokenizer *t = NULL;
	struct gguf_bed bed;
	uint8_t *file;
	size_t size;
	int fd = mkstemp(path);

	assert_true(root && fd >= 0);
	close(fd);
	bed_begin(&bed, 3, 0, 8);
	bed_string(&bed, "tokenizer.ggml.model", model);
	bed_string(&bed, "tokenizer.ggml.pre", pre);
	bed_string(&bed, "tokenizer.chat_template", "<|im_start|> <|im_end|>");
	bed_u32(&bed, "tokenizer.ggml.bos_token_id", 901);
	bed_u32(&bed, "tokenizer.ggml.eos_token_id", 902);
	add_tokens(&bed, root);
	add_merges(&bed, root);
	file = bed_end(&bed, &size);
	assert_int_equal(file_write(path, file, size, err), STATUS_OK);
	tokenizer_open(&t, path, err);
	unlink(path);
	free(file);
	json_decref(root);
	return t;
}

static void data_path(char path[512], const char *name)
{
	snprintf(path, 512, "%s/tests/data/tokenizer/%s.json", SOURCE_DIR, name);
}

static void check_same(const char *name, const char *pre)
{
	struct tokenizer *t[2] = {NULL, NULL};
	struct tokenizer_worker *w[2] = {NULL, NULL};
	struct token_list ids[2] = {{0}, {0}};
	struct text text = {0};
	struct error err = {0};
	char path[512];

	data_path(path, name);
	t[0] = as_gguf(path, "gpt2", pre, &err);
	if (!t[0] || tokenizer_open(&t[1], path, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < 2; i++)
		assert_int_equal(tokenizer_worker_create(&w[i], t[i], &err), STATUS_OK);
	for (uint64_t n = 0; n < 3000; n++) {
		random_text(n, &text);
		/* Blanks around a token, which smollm.json's last one takes with it, cannot be said in a
		 * GGUF. */
		if (!strcmp(name, "smollm") && strstr(text_str(&text), "</tool_call>"))
			continue;
		for (int i = 0; i < 2; i++) {
			ids[i].count = 0;
			assert_int_equal(
				tokenizer_encode(w[i], text_str(&text), text.size, ADDED_ALL, &ids[i], &err),
				STATUS_OK);
		}
		assert_int_equal(ids[0].count, ids[1].count);
		if (ids[0].count)
			assert_memory_equal(ids[0].id, ids[1].id, ids[0].count * sizeof(*ids[0].id));
	}
	assert_int_equal(tokenizer_size(t[0]), tokenizer_size(t[1]));
	assert_int_equal(tokenizer_eos(t[0]), 902);
	assert_string_equal(tokenizer_chat_template(t[0]), "<|im_start|> <|im_end|>");
	assert_string_equal(tokenizer_tool_template(t[0]), "");
	assert_int_equal(tokenizer_added(t[0], tokenizer_special(t[0], SPECIAL_EOS)), 902);
	for (int i = 0; i < 2; i++) {
		tokenizer_worker_destroy(&w[i]);
		tokenizer_close(&t[i]);
		token_list_release(&ids[i]);
	}
	text_release(&text);
}

static void test_tokenizer_gguf__qwen2_is_the_same(void **state)
{
	(void)state;
	check_same("qwen", "qwen2");
}

static void test_tokenizer_gguf__llama_bpe_is_the_same(void **state)
{
	(void)state;
	check_same("llama", "llama-bpe");
}

static void test_tokenizer_gguf__smollm_is_the_same(void **state)
{
	(void)state;
	check_same("smollm", "smollm");
}

static void test_tokenizer_gguf__llama_puts_its_begin_before_a_text(void **state)
{
	struct error err = {0};
	struct tokenizer *t;
	char path[512];

	(void)state;
	data_path(path, "llama");
	t = as_gguf(path, "gpt2", "llama-bpe", &err);
	assert_int_equal(tokenizer_bos(t), 901);
	tokenizer_close(&t);
	t = as_gguf(path, "gpt2", "qwen2", &err);
	assert_int_equal(tokenizer_bos(t), -1);
	tokenizer_close(&t);
}

static void test_tokenizer_gguf__other_kinds_are_refused_by_name(void **state)
{
	struct error err = {0};
	char path[512];

	(void)state;
	data_path(path, "llama");
	assert_null(as_gguf(path, "llama", "default", &err));
	assert_int_equal(err.status, STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "\"llama\""));
	error_clear(&err);
	assert_null(as_gguf(path, "gpt2", "tekken", &err));
	assert_int_equal(err.status, STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "\"tekken\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokenizer_gguf__qwen2_is_the_same),
		cmocka_unit_test(test_tokenizer_gguf__llama_bpe_is_the_same),
		cmocka_unit_test(test_tokenizer_gguf__smollm_is_the_same),
		cmocka_unit_test(test_tokenizer_gguf__llama_puts_its_begin_before_a_text),
		cmocka_unit_test(test_tokenizer_gguf__other_kinds_are_refused_by_name),
	};

	return cmocka_run_group_tests_name("tokenizer_gguf", tests, NULL, NULL);
}
