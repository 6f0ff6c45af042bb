/* SPDX-License-Identifier: Apache-2.0 */
/* Files of live runs: the lines of a file that grows, and the time in a line of the requests' log. */
#include "failing_memory.h"
#include "test.h"

#include <fcntl.h>
#include <unistd.h>
#include "scratch.h"
#include "watch/read/request_line.h"
#include "watch/read/tail.h"

static void append(const char *folder, const char *text)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/log", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Appends the line and a bar. */
static void take(void *arg, const char *line, size_t size)
{
	struct text *lines = arg;

	text_add_bytes(lines, line, size);
	text_add(lines, "|");
}

static void assert_lines(struct tail *t, const char *expected)
{
	struct text lines = {0};

	tail_read(t, take, &lines);
	assert_string_equal(text_str(&lines), expected);
	text_release(&lines);
}

static void test_tail__gives_complete_lines(void **state)
{
	struct tail t = {.fd = -1};

	assert_lines(&t, "");
	append(*state, "before\n");
	tail_open(&t, *state, "log", 0);
	append(*state, "one\ntwo\n\nth");
	assert_lines(&t, "one|two|");
	append(*state, "r");
	assert_lines(&t, "");
	append(*state, "ee\nfour\n");
	assert_lines(&t, "three|four|");
	tail_close(&t);
	tail_open(&t, *state, "log", 7);
	assert_lines(&t, "e|four|");
	tail_close(&t);
	tail_open(&t, *state, "no such file", 0);
	assert_int_equal(t.fd, -1);
}

/* The line whose beginning is lost is left out, and no other. */
static void test_tail__a_line_without_memory_is_left_out(void **state)
{
	struct tail t = {.fd = -1};
	struct text lines = {0};

	append(*state, "");
	tail_open(&t, *state, "log", 0);
	append(*state, "one");
	left = 0;
	tail_read(&t, take, &lines);
	assert_int_equal(left, -1); /* the allocation has failed */
	assert_lines(&t, "");
	append(*state, " line\ntwo\nthr");
	assert_lines(&t, "two|");
	append(*state, "ee\n");
	assert_lines(&t, "three|");
	tail_close(&t);
}

static void test_request__time_of_the_first_token(void **state)
{
	static const struct {
		const char *line;
		double seconds;
	} right[] = {
		{"{\"first_token_s\":0.25}", 0.25},
		{"{\"tokens\":2,\"first_token_s\":0.25,\"total_s\":3}", 0.25},
		{"{\"first_token_s\":0}", 0},
		{"{\"first_token_s\":12}", 12},
		{"{\"first_token_s\":-1.5}", -1.5},
		{"{\"first_token_s\":25e-2}", 0.25},
		{"{\"first_token_s\":2.5E-1,\"a\":1}", 0.25},
		{"{\"first_token_s\":1e+1}", 10},
		{"{\"first_token_s\":0.00000000000000000000000000001}", 1e-29}, /* 31 bytes */
	};
	static const char *const wrong[] = {
		"", "}", "{", "{}", "{\"total_s\":3}", "{\"total_s\":3,\"request\":\"{\\\"first_token_s\\\":7}\"}",
		"{\"total_s\":3,\"request\":\"first_token_s\"}", "{\"first_token_s\":null}", "{\"first_token_s\":\"7\"}",
		"{\"first_token_s\":}", "{\"first_token_s\":-}", "{\"first_token_s\":-nan}", "{\"first_token_s\":nan}",
		"{\"first_token_s\":inf}", "{\"first_token_s\":+1}", "{\"first_token_s\":--1}", "{\"first_token_s\":1-2}",
		"{\"first_token_s\":1.2.3}", "{\"first_token_s\":.5}", "{\"first_token_s\":5.}", "{\"first_token_s\":5.e1}",
		"{\"first_token_s\":05}", "{\"first_token_s\":-05}", "{\"first_token_s\":0x7}", "{\"first_token_s\":1e}",
		"{\"first_token_s\":1e+}", "{\"first_token_s\":1e1.5}", "{\"first_token_s\":1e999}", "{\"first_token_s\":7 8}",
		"{\"first_token_s\":7x}", "{\"first_token_s\":7]}", "{\"first_token_s\":7:1}",
		"{\"first_token_s\":0.000000000000000000000000000001}", "{\"first_token_s\":11111111111111111111111111111111}",
		/* no objects */
		"\"first_token_s\":7", "\"first_token_s\":7,", "\"first_token_s\":7}", "[\"first_token_s\":7,1]",
		"[{\"first_token_s\":7}]", "{\"first_token_s\":7", "{\"first_token_s\":7,", "{\"first_token_s\":", "x{\"first_token_s\":7}"};
	double seconds;

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		if (!request_first_token(&seconds, right[i].line, strlen(right[i].line)))
			fail_msg("refused: %s", right[i].line);
		assert_true(seconds == right[i].seconds);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (request_first_token(&seconds, wrong[i], strlen(wrong[i])))
			fail_msg("taken: %s", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_tail__gives_complete_lines),
		scratch_test(test_tail__a_line_without_memory_is_left_out),
		cmocka_unit_test(test_request__time_of_the_first_token),
	};

	return cmocka_run_group_tests_name("watch_runs", tests, NULL, NULL);
}
