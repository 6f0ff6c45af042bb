/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files of three formats, and what is wrong with one, with its file and line. */
#include "test.h"

#include "load/plan/trace.h"

static const struct trace_limits all = {.until_ns = UINT64_MAX, .rows_most = 1000};

static struct trace good(const char *text)
{
	struct error err = {0};
	struct trace t;

	if (trace_scan(&t, "t", text, strlen(text), &all, &err))
		fail_msg("%s", err.text);
	return t;
}

static void expect_row(const struct trace *t, size_t i, uint64_t at_ns, uint32_t prompt, uint32_t output)
{
	assert_int_equal(t->row[i].at_ns, at_ns);
	assert_int_equal(t->row[i].prompt_tokens, prompt);
	assert_int_equal(t->row[i].output_tokens, output);
}

static void test_load_trace__mooncake(void **state)
{
	struct trace t =
		good("\xef\xbb\xbf\n {\"timestamp\": 27482, \"input_length\": 1025, \"output_length\": 52, "
		     "\"hash_ids\": [46, 47, 4294967295], \"session\": \"x\"} \r\n\n"
		     "{\"timestamp\":27482.25,\"input_length\":5,\"output_length\":1,\"hash_ids\":null}");

	(void)state;
	assert_int_equal(t.count, 2);
	expect_row(&t, 0, 0, 1025, 52);
	expect_row(&t, 1, 250000, 5, 1);
	assert_int_equal(t.row[0].block_count, 3);
	assert_int_equal(t.block[t.row[0].block + 2], 4294967295u);
	assert_int_equal(t.row[1].block_count, 0);
	trace_release(&t);
}

static void test_load_trace__azure(void **state)
{
	struct trace t = good("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
			      "2023-11-16 18:15:46.6805900,374,44\r\n"
			      "2023-11-16 18:15:50.9951690,396,109\r\n"
			      "2023-11-17 00:00:00,879,55\r\n");

	(void)state;
	assert_int_equal(t.count, 3);
	expect_row(&t, 0, 0, 374, 44);
	expect_row(&t, 1, 4314579000u, 396, 109);
	expect_row(&t, 2, 20653319410000u, 879, 55);
	trace_release(&t);
	t = good("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"
		 "2024-05-10T02:00:00.009930+02:00,2162,6\n2024-05-10T00:00:01.009930Z,1,1");
	expect_row(&t, 1, 0, 2162, 6);
	expect_row(&t, 2, 1000000000, 1, 1);
	trace_release(&t);
}

static void test_load_trace__burstgpt(void **state)
{
	struct trace t = good("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
			      "5,ChatGPT,472,18,490,Conversation log\n"
			      "45,ChatGPT,1087,0,1087,API log\n"
			      "118.5,GPT-4,417,276,693,Conversation log\n");

	(void)state;
	assert_int_equal(t.count, 2);
	assert_int_equal(t.skipped, 1); /* failed requests have no answer */
	expect_row(&t, 0, 0, 472, 18);
	expect_row(&t, 1, 113500000000u, 417, 276);
	trace_release(&t);
	t = good(
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
		"5,1,2.5,ChatGPT,\"472\", 18 ,490,Conversation log\n"); /* columns go by name */
	expect_row(&t, 0, 0, 472, 18);
	trace_release(&t);
}

static void test_load_trace__the_first_row_is_time_zero_even_if_it_failed(void **state)
{
	struct trace t =
		good("{\"timestamp\":10,\"input_length\":600,\"output_length\":0,\"hash_ids\":[1,2]}\n"
		     "{\"timestamp\":12,\"input_length\":600,\"output_length\":1,\"hash_ids\":[3,4]}");

	(void)state;
	expect_row(&t, 0, 2000000, 600, 1);
	assert_int_equal(t.block_count, 2);
	assert_int_equal(t.block[t.row[0].block], 3);
	trace_release(&t);
}

static void test_load_trace__what_is_wrong_is_said(void **state)
{
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define BURST "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
#define ROW(time, in, out) "{\"timestamp\":" time ",\"input_length\":" in ",\"output_length\":" out "}\n"
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "t: the trace has no requests"},
		{"\n \n", "t: the trace has no requests"},
		{AZURE, "t: the trace has no requests"},
		{BURST "1,a,0,0,0,b\n", "t: the trace has no requests"},
		{"time,tokens\n", "t:1: not a trace"},
		{"\n\n[1]", "t:3: not a trace"},
		{ROW("1", "2", "3") "{\"timestamp\":", "t:2: it ends too early"},
		{ROW("1", "2", "3") "[]", "t:2: the line is not a JSON object"},
		{ROW("1", "2", "3") "\n" ROW("0.5", "2", "3"),
		 "t:3: the time is 0.000500 s before that of the request above"},
		{ROW("-1", "2", "3"), "t:1: timestamp is not"},
		{ROW("1e300", "2", "3"), "t:1: timestamp is not"},
		{ROW("\"1\"", "2", "3"), "t:1: timestamp is not"},
		{"{}", "t:1: timestamp is not"},
		{ROW("1", "2.5", "3"), "t:1: input_length is not"},
		{ROW("1", "10000001", "3"), "t:1: input_length is not"},
		{ROW("1", "2", "-3"), "t:1: output_length is not"},
		{"{\"timestamp\":1,\"timestamp\":1,\"input_length\":1,\"output_length\":1}", "t:1: "},
		{"{\"timestamp\":1,\"input_length\":513,\"output_length\":1,\"hash_ids\":[1]}",
		 "t:1: hash_ids does not have"},
		{"{\"timestamp\":1,\"input_length\":5,\"output_length\":1,\"hash_ids\":7}",
		 "t:1: hash_ids does not have"},
		{"{\"timestamp\":1,\"input_length\":5,\"output_length\":1,\"hash_ids\":[-1]}",
		 "t:1: hash_ids has a member"},
		{"{\"timestamp\":1,\"input_length\":5,\"output_length\":1,\"hash_ids\":[4294967296]}",
		 "t:1: hash_ids has a member"},
		{AZURE "2023-11-16 18:15:46,1,1\n2023-11-16 18:15:45,1,1",
		 "t:3: the time is 1.000000 s before"},
		{AZURE "2023-13-16 18:15:46,1,1\n", "t:2: not a time: 2023-13-16 18:15:46"},
		{AZURE "2023-11-16 18:15:46\n",
		 "t:2: the line has no such field, or it is too long: ContextTokens"},
		{AZURE "2023-11-16 18:15:46,x,1\n", "t:2: not a number of tokens from 0 to 10000000: x"},
		{AZURE "2023-11-16 18:15:46,1,1.5\n", "t:2: not a number of tokens from 0 to 10000000: 1.5"},
		{AZURE "2023-11-16 18:15:46,1,10000001\n", "t:2: not a number of tokens"},
		{BURST "x,a,1,1,1,b\n", "t:2: not a time: x"},
		{BURST "-5,a,1,1,1,b\n", "t:2: not a time: -5"},
		{BURST "nan,a,1,1,1,b\n", "t:2: not a time: nan"},
		{BURST "1e12,a,1,1,1,b\n", "t:2: not a time: 1e12"},
		{BURST "5,a,1,1,1,b\n4,a,1,1,1,b\n", "t:3: the time is 1.000000 s before"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		struct trace t;

		if (trace_scan(&t, "t", rows[i].text, strlen(rows[i].text), &all, &err) != STATUS_BAD_INPUT)
			fail_msg("read: %s", rows[i].text);
		if (strncmp(err.text, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("%s: %s", rows[i].says, err.text);
		assert_null(t.row);
	}
}

static void test_load_trace__limits(void **state)
{
	static const char text[] = ROW("0", "2", "3") ROW("1", "2", "3") ROW("2", "2", "3") "nothing";
	struct trace_limits limits = {.until_ns = UINT64_MAX, .rows_most = 2};
	struct error err = {0};
	struct trace t;

	(void)state;
	assert_int_equal(trace_scan(&t, "t", text, sizeof(text) - 1, &limits, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "t:3: the trace has more than 2 requests"));
	limits.until_ns = 2000000; /* rows from this time on are not even read */
	assert_int_equal(trace_scan(&t, "t", text, sizeof(text) - 1, &limits, &err), STATUS_OK);
	assert_int_equal(t.count, 2);
	trace_release(&t);
}

static void test_load_trace__a_long_line(void **state)
{
	size_t size = TRACE_LINE_MOST + 2;
	char *text = malloc(size);
	struct error err = {0};
	struct trace t;

	(void)state;
	assert_non_null(text);
	memset(text, '{', size);
	assert_int_equal(trace_scan(&t, "t", text, size, &all, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "t:1: the line is longer than 16 MiB");
	free(text);
}

static void test_load_trace__date_times(void **state)
{
	static const char *const bad[] = {
		"",
		"2023",
		"2023-02-29 00:00:00",
		"2023-00-01 00:00:00",
		"2023-04-31 00:00:00",
		"1969-01-01 00:00:00",
		"2201-01-01 00:00:00",
		"2023-01-01 24:00:00",
		"2023-01-01 00:60:00",
		"2023-01-01 00:00:61",
		"2023-01-01 00:00",
		"2023-01-01_00:00:00",
		"2023-01-01 00:00:00x",
		"2023-01-01 00:00:00+1",
		"2023-01-01 00:00:00+25:00",
		"2023-1-1 00:00:00",
	};
	int64_t ns;

	(void)state;
	assert_true(trace_time_read(&ns, "1970-01-01 00:00:00") && ns == 0);
	assert_true(trace_time_read(&ns, "2000-03-01 00:00:00") && ns == 951868800ll * 1000000000);
	assert_true(trace_time_read(&ns, "2024-02-29T23:59:59.999999999999-00:30") &&
		    ns == 1709252999999999999ll);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (trace_time_read(&ns, bad[i]))
			fail_msg("%s was read", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_trace__mooncake),
		cmocka_unit_test(test_load_trace__azure),
		cmocka_unit_test(test_load_trace__burstgpt),
		cmocka_unit_test(test_load_trace__the_first_row_is_time_zero_even_if_it_failed),
		cmocka_unit_test(test_load_trace__what_is_wrong_is_said),
		cmocka_unit_test(test_load_trace__limits),
		cmocka_unit_test(test_load_trace__a_long_line),
		cmocka_unit_test(test_load_trace__date_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
