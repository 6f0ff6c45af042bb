/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a model's answer: whole, several, beside words, broken, unfinished. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/chat/tool_call.h"

static void expect(const char *template, const char *text, const char *want, size_t broken)
{
	const struct template *t = NULL;
	struct tool_calls calls;
	struct error err = {0};
	json_t *root;
	char *got;

	assert_int_equal(template_find(&t, template, "chat_template", NULL, &err), STATUS_OK);
	assert_int_equal(tool_calls_read(&calls, t, text, &err), STATUS_OK);
	root = tool_calls_json(&calls);
	got = json_dumps(root, JSON_COMPACT);
	assert_string_equal(got, want);
	assert_int_equal(calls.broken, broken);
	free(got);
	json_decref(root);
	tool_calls_release(&calls);
}

static void test_tool_call__one_and_several(void **state)
{
	(void)state;
	expect("qwen2.5", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
	       "{\"content\":\"\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}]}", 0);
	expect("qwen3",
	       "Let me look.\n<tool_call>\n{\"name\": \"f\"}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", "
	       "\"arguments\": {\"x\": \"</b>\"}}\n</tool_call>\nthere",
	       "{\"content\":\"Let me look.\\nthere\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{}},"
	       "{\"name\":\"g\",\"arguments\":{\"x\":\"</b>\"}}]}",
	       0);
}

static void test_tool_call__words_alone_are_no_call(void **state)
{
	(void)state;
	expect("qwen2.5", "It is 5 {\"name\": \"f\"}.",
	       "{\"content\":\"It is 5 {\\\"name\\\": \\\"f\\\"}.\",\"tool_calls\":[]}", 0);
	expect("llama3.1", "It is {5}.", "{\"content\":\"It is {5}.\",\"tool_calls\":[]}", 0);
}

static void test_tool_call__llama_has_parameters_and_no_marks(void **state)
{
	(void)state;
	expect("llama3.1", "{\"name\": \"f\", \"parameters\": {\"a\": [1, 2]}}",
	       "{\"content\":\"\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":[1,2]}}]}", 0);
	expect("llama3.1", "{\"name\": \"f\", \"parameters\":",
	       "{\"content\":\"{\\\"name\\\": \\\"f\\\", \\\"parameters\\\":\",\"tool_calls\":[]}", 1);
}

static void test_tool_call__a_broken_one_stays_text_and_is_counted(void **state)
{
	(void)state;
	expect("qwen2.5",
	       "<tool_call>{\"name\": \"f\", \"arguments\": {</tool_call>\n<tool_call>{\"name\": "
	       "\"g\"}</tool_call>",
	       "{\"content\":\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {</tool_call>\","
	       "\"tool_calls\":[{\"name\":\"g\",\"arguments\":{}}]}",
	       1);
	expect("qwen2.5", "<tool_call>{\"arguments\": {}}</tool_call>",
	       "{\"content\":\"<tool_call>{\\\"arguments\\\": {}}</tool_call>\",\"tool_calls\":[]}", 1);
	expect("qwen2.5", "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
	       "{\"content\":\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": "
	       "\\\"x\\\"}</tool_call>\","
	       "\"tool_calls\":[]}",
	       1);
}

static void test_tool_call__an_unclosed_one_is_read_where_it_is_whole(void **state)
{
	(void)state;
	expect("qwen2.5", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}",
	       "{\"content\":\"\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{}}]}", 0);
	expect("qwen2.5", "<tool_call>\n{\"name\": \"f\"}\n<tool_call>\n{\"na",
	       "{\"content\":\"<tool_call>\\n{\\\"na\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{}}]}",
	       1);
}

static void test_tool_call__a_mark_in_a_string_is_part_of_it(void **state)
{
	(void)state;
	expect("qwen2.5",
	       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x</tool_call>\\\"<tool_call>{}\"}}</tool_call> y "
	       "<tool_call>{\"name\": \"g\"}",
	       "{\"content\":\"y\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":\"x</tool_call>\\\"<tool_call>{}\"}},"
	       "{\"name\":\"g\",\"arguments\":{}}]}",
	       0);
	/* a string that does not end */
	expect("qwen2.5",
	       "<tool_call>{\"name\": \"f</tool_call> so \"what\" <tool_call>{\"name\": \"g\"}</tool_call>",
	       "{\"content\":\"<tool_call>{\\\"name\\\": \\\"f</tool_call>\\nso \\\"what\\\"\",\"tool_calls\":[{\"name\":"
	       "\"g\",\"arguments\":{}}]}",
	       1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tool_call__one_and_several),
		cmocka_unit_test(test_tool_call__words_alone_are_no_call),
		cmocka_unit_test(test_tool_call__llama_has_parameters_and_no_marks),
		cmocka_unit_test(test_tool_call__a_broken_one_stays_text_and_is_counted),
		cmocka_unit_test(test_tool_call__an_unclosed_one_is_read_where_it_is_whole),
		cmocka_unit_test(test_tool_call__a_mark_in_a_string_is_part_of_it),
	};

	return cmocka_run_group_tests_name("tool_call", tests, NULL, NULL);
}
