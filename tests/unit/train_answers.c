/* SPDX-License-Identifier: Apache-2.0 */
/* Calls held against what rows accept: the verdicts of bfcl-eval's checker (tests/oracles/answers.py), and rows of one's own. */
#include "test.h"

#include <math.h>
#include "core/file/file.h"
#include "data/function_calls/answers.h"

static const struct template *template(void)
{
	const struct template *t = NULL;
	struct error err = {0};

	assert_int_equal(template_find(&t, "qwen2.5", "chat_template", NULL, &err), STATUS_OK);
	return t;
}

static struct answer_verdict judge(const char *row, const char *text)
{
	struct answer_verdict v;
	struct answer_task task;
	struct tool_calls calls;
	struct error err = {0};
	struct rows rows;

	assert_int_equal(rows_scan(&rows, "rows", row, strlen(row), &err), STATUS_OK);
	if (answer_task_read(&task, &rows, 0, ROWS_AUTO, &err))
		fail_msg("%s", err.text);
	assert_int_equal(tool_calls_read(&calls, template(), text, &err), STATUS_OK);
	answer_judge(&v, &task, &calls);
	tool_calls_release(&calls);
	answer_task_release(&task);
	rows_release(&rows);
	return v;
}

static void test_answers__are_judged_as_the_data_sets_checker_does(void **state)
{
	size_t size, count = 0, accepted = 0;
	struct error err = {0};
	char *text, *save = NULL;

	(void)state;
	assert_int_equal(file_read(&text, &size, SOURCE_DIR "/tests/data/train/answers.jsonl", 1 << 24, &err), STATUS_OK);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *one = json_loads(line, 0, NULL);
		struct answer_verdict v;
		bool exact = json_is_true(json_object_get(one, "exact"));
		char *row;

		assert_non_null(one);
		json_object_set_new(one, "messages", json_pack("[{ss ss}]", "role", "user", "content", "q"));
		row = json_dumps(one, JSON_COMPACT);
		v = judge(row, json_string_value(json_object_get(one, "text")));
		if (v.exact != exact)
			fail_msg("%s: accepted: %d (%s)", line, v.exact, v.why);
		assert_true(v.exact ? v.valid && v.names && !*v.why : *v.why != 0);
		count++;
		accepted += exact;
		free(row);
		json_decref(one);
	}
	free(text);
	assert_true(count > 200 && accepted > 50 && count - accepted > 50);
}

#define CALL(arguments) "<tool_call>\n{\"name\": \"f\", \"arguments\": " arguments "}\n</tool_call>"
#define ROW(calls) "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"\"" calls "}]}"
#define OWN ROW(",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":{\"b\":{\"c\":[1]}},\"d\":\"X y\"}}]")

static void test_answers__a_row_without_ground_truth_accepts_its_own_calls(void **state)
{
	struct answer_verdict v = judge(OWN, CALL("{\"d\":\"x-Y\",\"a\":{\"b\":{\"c\":[1.0]}}}"));

	(void)state;
	assert_true(v.valid && v.names && v.exact);
	v = judge(OWN, CALL("{\"d\":\"x y\",\"a\":{\"b\":{\"c\":[2]}}}"));
	assert_true(v.valid && v.names && !v.exact);
	assert_string_equal(v.why, "f: a: {\"b\": {\"c\": [2]}} is not accepted");
	v = judge(OWN, CALL("{\"d\":\"x y\"}"));
	assert_string_equal(v.why, "f: a is missing");
	v = judge(OWN, CALL("{\"d\":\"x y\",\"e\":1}"));
	assert_string_equal(v.why, "f: e is not a parameter");
	/* arguments as a text, as some files have them */
	v = judge(ROW(",\"tool_calls\":[{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}]"), CALL("{\"a\":1}"));
	assert_true(v.exact);
}

static void test_answers__what_cannot_be_read_and_what_was_not_asked(void **state)
{
	struct answer_verdict v = judge(OWN, "Sure.");

	(void)state;
	assert_true(!v.valid && !v.names && !v.exact);
	assert_string_equal(v.why, "0 calls instead of 1");
	v = judge(OWN, "<tool_call>{\"name\": </tool_call>");
	assert_true(!v.valid && !v.names && !v.exact);
	assert_string_equal(v.why, "a call cannot be parsed");
	v = judge(OWN, "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>");
	assert_true(v.valid && !v.names && !v.exact);
	assert_string_equal(v.why, "f is not called");
	v = judge(ROW(""), "No.");
	assert_true(v.valid && v.names && v.exact);
	v = judge(ROW(""), CALL("{}"));
	assert_true(!v.valid && !v.names && !v.exact);
}

static void test_answers__the_prompt_ends_before_the_last_answer(void **state)
{
	static const char row[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},"
		"{\"role\":\"user\",\"content\":\"c\"},{\"role\":\"assistant\",\"content\":\"d\"}]}\n"
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"ground_truth\":[{\"f\":{\"x\":[1]}}]}";
	struct answer_task task;
	struct error err = {0};
	struct rows rows;

	(void)state;
	assert_int_equal(rows_scan(&rows, "rows", row, strlen(row), &err), STATUS_OK);
	assert_int_equal(answer_task_read(&task, &rows, 0, ROWS_AUTO, &err), STATUS_OK);
	assert_int_equal(task.prompt.count, 3);
	assert_string_equal(task.prompt.messages[2].content, "c");
	assert_int_equal(json_array_size(task.accepted), 0);
	answer_task_release(&task);
	assert_int_equal(answer_task_read(&task, &rows, 1, ROWS_AUTO, &err), STATUS_OK);
	assert_int_equal(task.prompt.count, 1);
	assert_int_equal(json_array_size(task.accepted), 1);
	answer_task_release(&task);
	rows_release(&rows);
}

static void refused(const char *row, const char *why)
{
	struct answer_task task;
	struct error err = {0};
	struct rows rows;

	assert_int_equal(rows_scan(&rows, "rows", row, strlen(row), &err), STATUS_OK);
	assert_int_equal(answer_task_read(&task, &rows, 0, ROWS_AUTO, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	error_clear(&err);
	rows_release(&rows);
}

static void test_answers__rows_that_say_nothing_to_hold_an_answer_against_are_refused(void **state)
{
	(void)state;
	refused("\n{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", "rows:2: there is no ground_truth, and the last message is not the assistant's");
	refused("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"ground_truth\":[{\"f\":[]}]}",
		"rows:1: ground_truth is not a list of");
	refused("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"ground_truth\":{}}", "rows:1: ground_truth is not a list of");
	refused(ROW(",\"tool_calls\":[{\"name\":\"f\",\"arguments\":\"{\"}]"), "arguments");
	refused("{\"messages\":3}", "rows:1: messages");
}

static void test_answers__totals_are_counts_and_shares(void **state)
{
	struct answer_verdict v = {.valid = true, .names = true};
	struct answer_totals totals = {0};
	json_t *j;

	(void)state;
	answer_count(&totals, &v, ANSWER_CUT);
	answer_count(&totals, &(struct answer_verdict){0}, ANSWER_REFUSED);
	v.exact = true;
	answer_count(&totals, &v, ANSWER_ENDED);
	j = answer_totals_json(&totals);
	answer_totals_ended_json(&totals, j);
	assert_int_equal(json_integer_value(json_object_get(j, "rows")), 3);
	assert_int_equal(json_integer_value(json_object_get(j, "valid")), 2);
	assert_true(fabs(json_real_value(json_object_get(j, "exact_share")) - 1. / 3) < 1e-9);
	assert_int_equal(json_integer_value(json_object_get(j, "refused")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "cut")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "ended")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "ended_valid")), 1);
	assert_true(json_real_value(json_object_get(j, "ended_valid_share")) == 1);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers__are_judged_as_the_data_sets_checker_does),
		cmocka_unit_test(test_answers__a_row_without_ground_truth_accepts_its_own_calls),
		cmocka_unit_test(test_answers__what_cannot_be_read_and_what_was_not_asked),
		cmocka_unit_test(test_answers__the_prompt_ends_before_the_last_answer),
		cmocka_unit_test(test_answers__rows_that_say_nothing_to_hold_an_answer_against_are_refused),
		cmocka_unit_test(test_answers__totals_are_counts_and_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
