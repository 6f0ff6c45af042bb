/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a request log. */
#include "test.h"

#include <unistd.h>

#include "serve/http/request_summary.h"

struct bed {
	char path[64];
	json_t *summary;
};

static void bed_open(struct bed *b)
{
	int fd;

	*b = (struct bed){.path = "/tmp/assay-summary-XXXXXX"};
	fd = mkstemp(b->path);
	assert_true(fd >= 0);
	close(fd);
}

static void bed_close(struct bed *b)
{
	json_decref(b->summary);
	unlink(b->path);
}

static void write_text(const struct bed *b, const char *text)
{
	FILE *f = fopen(b->path, "a");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A request that ended with this status and word; `more` is further members. */
static void write_end(const struct bed *b, int status, const char *end, const char *more)
{
	char line[512];

	snprintf(line, sizeof(line), "{\"endpoint\":\"/v1/completions\",\"status\":%d,\"end\":\"%s\"%s}\n",
		 status, end, more);
	write_text(b, line);
}

static void write_answer(const struct bed *b, double first_s, double total_s, int tokens)
{
	char more[256];

	snprintf(more, sizeof(more),
		 ",\"choices\":1,\"prompt_tokens\":10,\"cached_tokens\":4,\"tokens\":%d,\"retries\":0,"
		 "\"first_token_s\":%.6f,\"total_s\":%.6f",
		 tokens, first_s, total_s);
	write_end(b, 200, "sent", more);
}

static void read_all(struct bed *b, uint64_t begin)
{
	struct error err = {0};

	json_decref(b->summary);
	assert_int_equal(request_summary_read(&b->summary, b->path, begin, &err), STATUS_OK);
}

static double value(const struct bed *b, const char *name)
{
	const json_t *v = json_object_get(b->summary, name);

	if (!v)
		fail_msg("there is no %s", name);
	return json_number_value(v);
}

static void test_summary__every_end_is_counted_in_one_class(void **state)
{
	static const char *const classes[] = {"answered", "refused", "limited", "failed", "left"};
	struct bed b;
	double sum = 0;

	(void)state;
	bed_open(&b);
	write_end(&b, 200, "sent", "");
	write_end(&b, 400, "sent", "");
	write_end(&b, 404, "failed", "");
	write_end(&b, 429, "sent", "");
	write_end(&b, 503, "sent", "");
	write_end(&b, 200, "left", ",\"retries\":1");
	read_all(&b, 0);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		sum += value(&b, classes[i]);
	assert_true(value(&b, "requests") == 6 && sum == 6);
	assert_true(value(&b, "answered") == 1 && value(&b, "refused") == 2);
	assert_true(value(&b, "limited") == 1 && value(&b, "failed") == 1);
	assert_true(value(&b, "left") == 1 && value(&b, "retried") == 1);
	assert_null(json_object_get(b.summary, "ttft_p50_s"));
	assert_null(json_object_get(b.summary, "cache_hit_share"));
	bed_close(&b);
}

static void test_summary__times_are_those_of_complete_answers(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b);
	write_answer(&b, 0.1, 1.1, 11);
	write_answer(&b, 0.2, 2.2, 11);
	write_answer(&b, 0.3, 0.3, 1); /* one token: no time between tokens */
	write_end(&b, 200, "left", ",\"first_token_s\":9,\"total_s\":99,\"tokens\":5,\"choices\":1");
	read_all(&b, 0);
	assert_true(value(&b, "ttft_p50_s") == 0.2 && value(&b, "ttft_samples") == 3);
	assert_null(json_object_get(b.summary, "ttft_p95_s")); /* three answers are too few */
	assert_true(value(&b, "e2e_p50_s") == 1.1 && value(&b, "e2e_samples") == 3);
	assert_float_equal(value(&b, "tpot_p50_s"), 0.15, 1e-9);
	assert_true(value(&b, "tpot_samples") == 2);
	assert_float_equal(value(&b, "cache_hit_share"), 0.4, 1e-9);
	assert_true(value(&b, "tokens") == 28);
	bed_close(&b);
}

static void test_summary__earlier_runs_and_broken_lines_do_not_count(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b);
	write_end(&b, 200, "sent", "");
	write_text(&b, "[1]\nno JSON\n\n");
	write_text(&b, "{\"endpoint\":\"/tokenize\",\"status\":200,\"end\":\"sent\"}\n");
	write_text(&b, "{\"endpoint\":\"/v1/comple");
	read_all(&b, 0);
	assert_true(value(&b, "requests") == 1);
	read_all(&b, 10); /* the rest of a line is no line */
	assert_true(value(&b, "requests") == 0);
	bed_close(&b);
}

static void test_summary__a_long_log_keeps_its_percentiles(void **state)
{
	enum { ANSWERS = 2000 };
	struct bed b;
	FILE *f;

	(void)state;
	bed_open(&b);
	f = fopen(b.path, "w");
	assert_non_null(f);
	for (int i = 0; i < ANSWERS; i++)
		fprintf(f,
			"{\"endpoint\":\"/v1/completions\",\"status\":200,\"end\":\"sent\",\"choices\":1,"
			"\"tokens\":2,\"first_token_s\":%d,\"total_s\":%d}\n",
			i, i + 1);
	fclose(f);
	read_all(&b, 0);
	assert_true(value(&b, "ttft_samples") == ANSWERS);
	assert_float_equal(value(&b, "ttft_p50_s"), (ANSWERS - 1) * 0.5, 1e-6);
	assert_float_equal(value(&b, "ttft_p99_s"), (ANSWERS - 1) * 0.99, 1e-6);
	assert_float_equal(value(&b, "tpot_p99_s"), 1, 1e-9);
	bed_close(&b);
}

static void test_summary__a_missing_log_is_named(void **state)
{
	struct error err = {0};
	json_t *summary;

	(void)state;
	assert_int_not_equal(request_summary_read(&summary, "/nonexistent/requests.jsonl", 0, &err), STATUS_OK);
	assert_null(summary);
	assert_non_null(strstr(err.text, "/nonexistent/requests.jsonl"));
}

/* Reading it would never end. */
static void test_summary__a_device_gives_no_summary(void **state)
{
	struct error err = {0};
	json_t *summary;

	(void)state;
	assert_int_equal(request_summary_read(&summary, "/dev/full", 0, &err), STATUS_UNSUPPORTED);
	assert_null(summary);
	assert_non_null(strstr(err.text, "the request log /dev/full is not a regular file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_summary__a_device_gives_no_summary),
		cmocka_unit_test(test_summary__every_end_is_counted_in_one_class),
		cmocka_unit_test(test_summary__times_are_those_of_complete_answers),
		cmocka_unit_test(test_summary__earlier_runs_and_broken_lines_do_not_count),
		cmocka_unit_test(test_summary__a_long_log_keeps_its_percentiles),
		cmocka_unit_test(test_summary__a_missing_log_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
