/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens become parts of an answer: the result does not depend on how the text is cut into tokens. */
#include "serve_bed.h"

#include "core/text/characters.h"
#include "serve/stream/words.h"

static struct serve_bed qwen25, qwen3, llama;

static int open_beds(void **state)
{
	(void)state;
	serve_bed_open(&qwen25, "qwen2.5");
	serve_bed_open(&qwen3, "qwen3");
	serve_bed_open(&llama, "llama3.1");
	return 0;
}

static int close_beds(void **state)
{
	(void)state;
	serve_bed_close(&qwen25);
	serve_bed_close(&qwen3);
	serve_bed_close(&llama);
	return 0;
}

/* Parts as a text: "kind:text|..". Neighbours of one kind are joined. */
struct parts {
	struct text all;
	int last;
};

static void note(void *arg, enum part_kind kind, const char *text, size_t size)
{
	static const char *const names[] = {"say:", "think:", "call:", "args:"};
	struct parts *p = arg;

	if (p->last != (int)kind || kind == PART_CALL) {
		text_add(&p->all, p->all.size ? "|" : "");
		text_add(&p->all, names[kind]);
	}
	p->last = (int)kind;
	text_add_bytes(&p->all, text, size);
}

static void expect_pieces(struct call_stream s, const char *text, size_t piece, const char *want)
{
	struct parts got = {.last = -1};

	for (size_t at = 0; at < strlen(text); at += piece)
		call_stream_add(&s, text + at, strlen(text + at) < piece ? strlen(text + at) : piece, note, &got);
	call_stream_end(&s, note, &got);
	if (strcmp(text_str(&got.all), want))
		fail_msg("pieces of %zu of %s:\n%s\ninstead of\n%s", piece, text, text_str(&got.all), want);
	text_release(&got.all);
}

static void expect_calls(const struct serve_bed *bed, bool parts, const char *text, const char *want)
{
	for (size_t piece = 1; piece <= strlen(text); piece++)
		expect_pieces((struct call_stream){.prompter = bed->prompter,
						   .form = prompter_calls(bed->prompter),
						   .parts = parts},
			      text, piece, want);
}

static void test_stream__calls_in_any_pieces(void **state)
{
	(void)state;
	for (int parts = 0; parts < 2; parts++) {
		expect_calls(&qwen25, parts, "only words, 2 < 3", "say:only words, 2 < 3");
		expect_calls(&qwen25, parts, "  words with space \n", "say:  words with space \n");
		expect_calls(&qwen25, parts, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
			     "call:f|args:{\"a\": 1}");
		expect_calls(&qwen25, parts,
			     "Look:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": {\"b\": [1, \"}\"]}}}\n</tool_call>\n"
			     "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
			     "say:Look:|call:f|args:{\"a\": {\"b\": [1, \"}\"]}}|call:g|args:{}");
		/* no closing mark at the end */
		expect_calls(&qwen25, parts, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "call:f|args:{\"a\": 1}");
		/* another order of members, and none: they come whole */
		expect_calls(&qwen25, parts, "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>",
			     "call:f|args:{\"a\": 1}");
		expect_calls(&qwen25, parts, "<tool_call>{\"name\": \"f\"}</tool_call> and more", "call:f|args:{}|say:and more");
		/* no call at all: it stays text */
		expect_calls(&qwen25, parts, "a <tool_call>nonsense</tool_call>", "say:a<tool_call>nonsense</tool_call>");
		expect_calls(&llama, parts, "{\"name\": \"f\", \"parameters\": {\"a\": \"x\"}}", "call:f|args:{\"a\": \"x\"}");
		expect_calls(&llama, parts, "It is {5}.", "say:It is {5}.");
		expect_calls(&llama, parts, "{\"answer\": 5}", "say:{\"answer\": 5}");
		expect_calls(&qwen25, parts,
			     "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x</tool_call>\\\"<tool_call>{}\"}}</tool_call>y",
			     "call:f|args:{\"a\": \"x</tool_call>\\\"<tool_call>{}\"}|say:y");
		expect_calls(&qwen25, parts,
			     "<tool_call>{\"arguments\": {\"a\": \"</tool_call>\"}, \"name\": \"f\"}<tool_call>{\"name\": \"g\"}",
			     "call:f|args:{\"a\": \"</tool_call>\"}|call:g|args:{}");
		/* a string that does not end */
		expect_calls(&qwen25, parts,
			     "<tool_call>{\"name: f</tool_call> so \"what\" <tool_call>{\"name\": \"g\"}</tool_call>",
			     "say:<tool_call>{\"name: f</tool_call> so \"what\"|call:g|args:{}");
		expect_calls(&qwen25, parts, "<tool_call>it is \"so</tool_call>z", "say:<tool_call>it is \"so</tool_call>z");
	}
	/* arguments that were cut are delivered as far as they came */
	expect_calls(&qwen25, true, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "call:f|args:{\"a\": ");
	expect_calls(&qwen25, true, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": </tool_call>b", "call:f|args:{\"a\": |say:b");
	expect_calls(&qwen25, true, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\\\"\"}}</tool_call>",
		     "call:f|args:{\"a\": \"</tool_call>\\\"\"}");
}

static void test_stream__one_call_only(void **state)
{
	(void)state;
	for (int parts = 0; parts < 2; parts++)
		expect_pieces((struct call_stream){.prompter = qwen25.prompter,
						   .form = CALL_FORM_MARKED,
						   .parts = parts,
						   .one_call = true},
			      "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"g\", \"arguments\": "
			      "{\"a\": 1}}</tool_call>",
			      5, "call:f|args:{}");
}

/* Runs a request's stream over the tokens of `text`. */
static void expect_stream(struct serve_bed *bed, const char *body, const char *text, const char *want, bool stopped)
{
	struct request *r = serve_bed_good(bed, PROTOCOL_CHAT, body);
	struct prompt_ids ids = {0};
	struct parts got = {.last = -1};
	struct error err = {0};
	struct stream s;
	bool more = true;

	assert_int_equal(prompter_text(bed->worker, text, strlen(text), false, &ids, &err), STATUS_OK);
	assert_int_equal(stream_begin(&s, bed->prompter, r, note, &got, &err), STATUS_OK);
	for (size_t i = 0; more && i < ids.count; i++)
		more = stream_token(&s, ids.ids[i]);
	stream_end(&s);
	if (strcmp(text_str(&got.all), want))
		fail_msg("%s: \"%s\" instead of \"%s\"", text, text_str(&got.all), want);
	assert_int_equal(s.stopped, stopped);
	text_release(&got.all);
	stream_release(&s);
	free(ids.ids);
	request_destroy(&r);
}

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void test_stream__stop_strings_across_tokens(void **state)
{
	(void)state;
	expect_stream(&qwen25, "{" HI "}", "Hello wörld \xf0\x9f\x98\x80!", "say:Hello wörld \xf0\x9f\x98\x80!", false);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"o w\"}", "Hello wörld", "say:Hell", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"ö\"}", "Hello wörld", "say:Hello w", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":[\"zz\",\"ld\",\"ör\"]}", "Hello wörld", "say:Hello w", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":[\"lo wx\",\"rld!\"]}", "Hello wörld", "say:Hello wörld", false);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"Hello\"}", "Hello wörld", "", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"Hello\",\"include_stop_str_in_output\":true}", "Hello wörld", "say:Hello",
		      true);
	/* special tokens are shown only on demand */
	expect_stream(&qwen25, "{" HI "}", "a<|im_end|>", "say:a", false);
	expect_stream(&qwen25, "{" HI ",\"skip_special_tokens\":false}", "a<|im_end|>", "say:a<|im_end|>", false);
}

/* Each letter is a token here. */
static void test_stream__stop_strings_count_beyond_min_tokens(void **state)
{
	(void)state;
	expect_stream(&qwen25, "{" HI ",\"stop\":\"z\",\"min_tokens\":3}", "qzqzqz", "say:qzq", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"z\",\"min_tokens\":4}", "qzqzqz", "say:qzqzq", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"z\",\"min_tokens\":6}", "qzqzqz", "say:qzqzqz", false);
	/* a stop string that begins before and ends beyond */
	expect_stream(&qwen25, "{" HI ",\"stop\":\"zqz\",\"min_tokens\":4}", "qzqzqz", "say:qzq", true);
	expect_stream(&qwen25, "{" HI ",\"stop\":\"zq\",\"min_tokens\":5,\"include_stop_str_in_output\":true}", "qzqzqzq",
		      "say:qzqzqzq", true);
}

static void test_stream__thoughts(void **state)
{
	(void)state;
	expect_stream(&qwen3, "{" HI "}", "<think>\nWell.\n\nHm.\n</think>\n\nYes.", "think:Well.\n\nHm.|say:Yes.", false);
	expect_stream(&qwen3, "{" HI "}", "<think>\n\n</think>\n\nYes.", "say:Yes.", false);
	expect_stream(&qwen3, "{" HI "}", "<think>cut", "think:cut", false);
	expect_stream(&qwen3, "{" HI "}", "No <think> here", "say:No <think> here", false);
	expect_stream(&qwen3, "{" HI "}", "<thi", "say:<thi", false);
	expect_stream(&qwen25, "{" HI "}", "<thin> air", "say:<thin> air", false);
	expect_stream(&qwen3, "{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}",
		      "<think>Hm</think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
		      "think:Hm|call:f|args:{\"a\": 1}", false);
	expect_stream(&qwen3, "{" HI ",\"stop\":\"Hm\"}", "<think>Well Hm</think>", "think:Well ", true);
}

static void test_stream__characters(void **state)
{
	static const struct {
		const char *bytes, *want;
	} cases[] = {
		{"a\xc3\xb6z", "a\xc3\xb6z"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xff", "\xef\xbf\xbd"},
		{"\xc3z", "\xef\xbf\xbdz"},
		{"\xe2\x82", "\xef\xbf\xbd"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},		   /* an overlong form */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text out = {0};
		char partial[4];
		size_t held = 0;

		for (size_t k = 0; k < strlen(cases[i].bytes); k++)
			characters_add(partial, &held, cases[i].bytes + k, 1, &out);
		characters_end(&held, &out);
		assert_string_equal(text_str(&out), cases[i].want);
		text_release(&out);
	}
}

static void test_stream__words(void **state)
{
	static const char *const words[] = {"abc", "bc", "xx"};
	size_t at, word;

	(void)state;
	assert_true(words_find("zabc", 4, words, 3, &at, &word));
	assert_true(at == 1 && word == 0);
	assert_true(words_find("zbcabc", 6, words, 3, &at, &word));
	assert_true(at == 1 && word == 1);
	assert_false(words_find("zab", 3, words, 3, &at, &word));
	assert_int_equal(words_held("zab", 3, words, 3), 2);
	assert_int_equal(words_held("zx", 2, words, 3), 1);
	assert_int_equal(words_held("z", 1, words, 3), 0);
	assert_int_equal(words_held("", 0, words, 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream__calls_in_any_pieces), cmocka_unit_test(test_stream__one_call_only),
		cmocka_unit_test(test_stream__stop_strings_across_tokens), cmocka_unit_test(test_stream__thoughts),
		cmocka_unit_test(test_stream__stop_strings_count_beyond_min_tokens),
		cmocka_unit_test(test_stream__characters),	    cmocka_unit_test(test_stream__words),
	};

	return cmocka_run_group_tests(tests, open_beds, close_beds);
}
