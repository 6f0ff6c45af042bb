/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of every format as the same conversations; what is wrong with one is named with its file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file/file.h"
#include "data/rows/rows.h"

/* What a row's text becomes: {"messages", "tools"} as compact JSON, or the message. */
static void expect(const char *row, const char *want)
{
	struct error err = {0};
	json_t *root = NULL;
	char *text = NULL;

	if (!rows_parse(&root, row, strlen(row), ROWS_AUTO, &err)) {
		struct chat c;

		text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
		if (chat_read(&c, root, &err))
			fail_msg("%s", err.text);
		chat_release(&c);
	}
	assert_string_equal(text ? text : err.text, want);
	free(text);
}

static void test_rows__glaive_becomes_messages_and_tools(void **state)
{
	(void)state;
	expect("{\"system\":\"SYSTEM: You are a helpful assistant with access to the following functions. "
	       "Use them "
	       "if required -\\n{\\n    \\\"name\\\": \\\"f\\\"\\n}\\n\\n{\\\"name\\\": \\\"g\\\"}\\n\","
	       "\"chat\":\"USER: Hi, it's me\\n\\n\\nASSISTANT: <functioncall> {\\\"name\\\": \\\"f\\\", "
	       "\\\"arguments\\\": '{\\\"a\\\": \\\"it's\\\", \\\"b\\\": [1]}'} <|endoftext|>\\n\\n\\n"
	       "FUNCTION RESPONSE: {\\\"x\\\": 1}\\n\\n\\nASSISTANT: Done.\\n\\nASSISTANT-like: no "
	       "<|endoftext|>\\n\\n\\n\"}",
	       "{\"messages\":[{\"content\":\"Hi, it's "
	       "me\",\"role\":\"user\"},{\"content\":\"\",\"role\":\"assistant\","
	       "\"tool_calls\":[{\"arguments\":{\"a\":\"it's\",\"b\":[1]},\"name\":\"f\"}]},"
	       "{\"content\":\"{\\\"x\\\": 1}\",\"role\":\"tool\"},{\"content\":\"Done.\\n\\nASSISTANT-like: "
	       "no\","
	       "\"role\":\"assistant\"}],\"tools\":[{\"function\":{\"name\":\"f\"},\"type\":\"function\"},"
	       "{\"function\":{\"name\":\"g\"},\"type\":\"function\"}]}");
}

static void test_rows__glaive_without_functions_keeps_its_system_text(void **state)
{
	(void)state;
	expect("{\"system\":\"SYSTEM: You are a helpful assistant, with no access to external functions.\","
	       "\"chat\":\"USER: A\\nUSER: still A\\n\\n\\nASSISTANT: B <|endoftext|>\"}",
	       "{\"messages\":[{\"content\":\"You are a helpful assistant, with no access to external "
	       "functions.\","
	       "\"role\":\"system\"},{\"content\":\"A\\nUSER: still "
	       "A\",\"role\":\"user\"},{\"content\":\"B\","
	       "\"role\":\"assistant\"}],\"tools\":[]}");
}

static void test_rows__glaive_calls_in_every_form(void **state)
{
	(void)state;
	expect("{\"chat\":\"ASSISTANT: Sure. <functioncall> {\\\"name\\\": \\\"f\\\", \\\"arguments\\\": "
	       "{\\\"a\\\": 1}}"
	       "</functioncall> "
	       "<functioncall>{\\\"name\\\":\\\"g\\\",\\\"arguments\\\":'{}'}<|endoftext|><|endoftext|>\"}",
	       "{\"messages\":[{\"content\":\"Sure.\",\"role\":\"assistant\",\"tool_calls\":[{\"arguments\":{"
	       "\"a\":1},"
	       "\"name\":\"f\"},{\"arguments\":{},\"name\":\"g\"}]}],\"tools\":[]}");
	expect("{\"chat\":\"ASSISTANT: <functioncall> {\\\"name\\\": \\\"f\\\", \\\"arguments\\\": "
	       "'{\\\"q\\\": \\\"the cat\\\\'s\\\"}'}\"}",
	       "{\"messages\":[{\"content\":\"\",\"role\":\"assistant\",\"tool_calls\":[{\"arguments\":"
	       "{\"q\":\"the cat's\"},\"name\":\"f\"}]}],\"tools\":[]}");
}

static void test_rows__sharegpt_becomes_messages_and_tools(void **state)
{
	(void)state;
	expect("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":\"function_call\","
	       "\"value\":"
	       "\"{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": "
	       "{}}\"},{\"from\":\"observation\",\"value\":\"1\"},"
	       "{\"from\":\"gpt\",\"value\":\"a\"}],\"system\":\"s\",\"tools\":\"[{\\\"name\\\":\\\"f\\\"}]"
	       "\"}",
	       "{\"messages\":[{\"content\":\"s\",\"role\":\"system\"},{\"content\":\"q\",\"role\":\"human\"}"
	       ","
	       "{\"content\":\"\",\"role\":\"assistant\",\"tool_calls\":[{\"arguments\":{},\"name\":\"f\"}]},"
	       "{\"content\":\"1\",\"role\":\"observation\"},{\"content\":\"a\",\"role\":\"gpt\"}],"
	       "\"tools\":\"[{\\\"name\\\":\\\"f\\\"}]\"}");
	expect("{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"},{\"from\":\"function_call\","
	       "\"value\":"
	       "\"[{\\\"name\\\": \\\"f\\\"}, {\\\"name\\\": \\\"g\\\"}]\"}]}",
	       "{\"messages\":[{\"content\":\"s\",\"role\":\"system\"},{\"content\":\"\",\"role\":"
	       "\"assistant\","
	       "\"tool_calls\":[{\"name\":\"f\"},{\"name\":\"g\"}]}]}");
}

static void test_rows__what_is_wrong_is_said(void **state)
{
	(void)state;
	expect("{\"a\":1}", "the row has none of \"messages\", \"conversations\" and \"chat\"");
	expect("[1]", "the row has none of \"messages\", \"conversations\" and \"chat\"");
	expect("{\"chat\":1}", "\"chat\" is not a text");
	expect("{\"chat\":\"hello\"}", "chat does not begin with USER:, ASSISTANT: or FUNCTION RESPONSE:");
	expect("{\"chat\":\"USER: a\\n\\n\\nASSISTANT: <functioncall> {\\\"name\\\": \\\"f\\\", "
	       "\\\"arguments\\\": '{a}'}\"}",
	       "turn 1: the call <functioncall> {\"name\": \"f\", \"arguments\": '{a}'} cannot be read");
	expect("{\"system\":\"access to the following functions -\",\"chat\":\"USER: a\"}",
	       "system: it announces functions, but has none");
	expect("{\"system\":\"access to the following functions - {\\\"a\\\": 1} x\",\"chat\":\"USER: a\"}",
	       "system: a function is not a JSON object: '[' or '{' expected near 'x'");
	expect("{\"conversations\":1}", "\"conversations\" is not an array");
	expect("{\"conversations\":[{\"from\":\"gpt\"}]}",
	       "conversations[0] has no \"from\", or its \"value\" is not a text");
	expect("{\"conversations\":[{\"from\":\"function_call\",\"value\":\"f()\"}]}",
	       "conversations[0]: the call is not JSON: '[' or '{' expected near 'f'");
	expect("{\"messages\":[", "it ends too early (column 13)");
	expect("{\"messages\":[], \"messages\":[]}",
	       "a key occurs twice, near '\"messages\"' (column 26)");
	expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}",
	       "a text contains \\u0000, which is not supported, near '\"a\\u0000b\"' (column 48)");
	expect("{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"n\":"
	       "18446744073709551616}}]}]}",
	       "a number does not fit into 64 bits; as a quoted text it is preserved, near "
	       "'18446744073709551616' (column "
	       "96)");
	expect("{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":"
	       "\"{\\\"n\\\":18446744073709551616}\"}]}]}",
	       "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"arguments\":"
	       "\"{\\\"n\\\":18446744073709551616}\",\"name\":\"f\"}]}]}");
}

static void test_rows__a_byte_order_mark_is_no_part_of_a_row(void **state)
{
	static const char *const texts[] = {
		"\xef\xbb\xbf{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
		"\xef\xbb\xbf[{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}]"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct error err = {0};
		struct rows rows;
		struct chat chat;

		assert_int_equal(rows_scan(&rows, "r", texts[i], strlen(texts[i]), &err), STATUS_OK);
		if (rows_read(&rows, 0, ROWS_AUTO, &chat, &err))
			fail_msg("%s", err.text);
		assert_string_equal(chat.messages[0].content, "a");
		chat_release(&chat);
		rows_release(&rows);
	}
}

static void write_file(char path[], const char *text)
{
	struct error err = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
}

static void check_lines(const char *text, const size_t *line, size_t count)
{
	char path[] = "/tmp/rows-XXXXXX", place[64];
	struct error err = {0};
	struct rows r;

	write_file(path, text);
	assert_int_equal(rows_open(&r, path, &err), STATUS_OK);
	assert_int_equal(r.count, count);
	for (size_t i = 0; i < count; i++) {
		struct chat c;

		assert_int_equal(r.place[i].line, line[i]);
		error_clear(&err);
		if (!rows_read(&r, i, ROWS_AUTO, &c, &err)) {
			chat_release(&c);
			continue;
		}
		snprintf(place, sizeof(place), "%s:%zu: ", path, line[i]);
		assert_memory_equal(err.text, place, strlen(place));
	}
	assert_int_equal(err.status, STATUS_BAD_INPUT); /* the last of each is wrong */
	rows_release(&r);
	unlink(path);
}

static void test_rows__lines_and_arrays_are_told_apart_and_counted(void **state)
{
	(void)state;
	check_lines("{\"messages\":[{\"role\":\"user\"}]}\n\n  "
		    "\r\n{\"messages\":[{\"role\":\"user\"}]}\r\n{\"x\":\"\\n\"}",
		    (const size_t[]){1, 4, 5}, 3);
	check_lines(" [\n{\"messages\":\n[{\"role\":\"user\",\"content\":\"]},{\\\"\"}]}\n,\n{\"messages\":[{"
		    "\"role\":\"user\"}]},"
		    "\n5]\n",
		    (const size_t[]){2, 5, 6}, 3);
}

static void test_rows__a_file_without_rows_or_end_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {{"", "no rows"},
		     {"\n \n", "no rows"},
		     {"[]", "no rows"},
		     {"[{\"a\":1},\n{\"b\"", ":2: the array of rows is not closed"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[] = "/tmp/rows-XXXXXX";
		struct error err = {0};
		struct rows r;

		write_file(path, cases[i].text);
		assert_int_equal(rows_open(&r, path, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_memory_equal(err.text, path, strlen(path));
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows__glaive_becomes_messages_and_tools),
		cmocka_unit_test(test_rows__glaive_without_functions_keeps_its_system_text),
		cmocka_unit_test(test_rows__glaive_calls_in_every_form),
		cmocka_unit_test(test_rows__sharegpt_becomes_messages_and_tools),
		cmocka_unit_test(test_rows__what_is_wrong_is_said),
		cmocka_unit_test(test_rows__a_byte_order_mark_is_no_part_of_a_row),
		cmocka_unit_test(test_rows__lines_and_arrays_are_told_apart_and_counted),
		cmocka_unit_test(test_rows__a_file_without_rows_or_end_is_refused),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
