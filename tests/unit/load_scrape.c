/* SPDX-License-Identifier: Apache-2.0 */
/* Readings from the metrics of servers. */
#include "scratch.h"

#include <math.h>

#include "core/file/file.h"
#include "journal/metrics/metrics.h"
#include "load/scrape/prometheus.h"
#include "load/scrape/scrape.h"

static struct load_scrape scrape(const char *text)
{
	char *own = malloc(strlen(text) + 1); /* without a NUL, for the sanitizers */
	struct load_scrape s;
	struct error err = {0};

	assert_non_null(own);
	memcpy(own, text, strlen(text));
	if (load_scrape_read(&s, own, strlen(text), &err))
		fail_msg("%s", err.text);
	free(own);
	return s;
}

static void expect(const struct load_scrape *s, enum load_reading r, double value)
{
	if (!s->known[r] || s->value[r] != value)
		fail_msg("%s: %d, %g", load_reading_row(r)->word, s->known[r], s->value[r]);
}

/* Two engines: counts are added up, and of a share the mean is taken. */
static void test_vllm__engines_are_added_up(void **state)
{
	const struct load_scrape s =
		scrape("# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
		       "# TYPE vllm:num_requests_running gauge\n"
		       "vllm:num_requests_running{engine=\"0\",model_name=\"m, \\\"x\\\\\"} 3.0\n"
		       "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0 1712345678901\n"
		       "vllm:num_requests_waiting{engine=\"0\",} 2.0\n"
		       "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\r\n"
		       "vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n"
		       "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.9\n"
		       "vllm:prompt_tokens_total{engine=\"0\"} 1.234e+06\n"
		       "vllm:generation_tokens_total 77\n"
		       "vllm:prefix_cache_queries_total 100\n\n"
		       "vllm:prefix_cache_hits_total 40\n"
		       "vllm:num_preemptions_total 0\n"
		       "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 5 # {trace_id=\"x\"} 0.67\n"
		       "process_resident_memory_bytes NaN\n"
		       "http_size_max +Inf");

	(void)state;
	assert_string_equal(s.server, "vllm");
	expect(&s, LOAD_READING_RUNNING, 7);
	expect(&s, LOAD_READING_WAITING, 2);
	expect(&s, LOAD_READING_KV_USE, 0.5);
	expect(&s, LOAD_READING_PROMPT_TOKENS, 1234000);
	expect(&s, LOAD_READING_GENERATED_TOKENS, 77);
	expect(&s, LOAD_READING_CACHE_QUERIES, 100);
	expect(&s, LOAD_READING_CACHE_HITS, 40);
	expect(&s, LOAD_READING_PREEMPTIONS, 0);
}

static void test_others__have_their_names(void **state)
{
	struct load_scrape s = scrape("sglang:num_running_reqs{tp_rank=\"0\"} 5\nsglang:num_queue_reqs 1\n"
				      "sglang:token_usage 0.28\nsglang:prompt_tokens_total 800\n"
				      "sglang:generation_tokens_total 70\nsglang:cached_tokens_total 60\n");

	(void)state;
	assert_string_equal(s.server, "sglang");
	expect(&s, LOAD_READING_RUNNING, 5);
	expect(&s, LOAD_READING_KV_USE, 0.28);
	expect(&s, LOAD_READING_PROMPT_TOKENS, 800);
	expect(&s, LOAD_READING_CACHE_QUERIES, 800);
	expect(&s, LOAD_READING_CACHE_HITS, 60);
	assert_false(s.known[LOAD_READING_PREEMPTIONS]);
	s = scrape("tgi_batch_current_size 3\ntgi_queue_size 2\ntgi_request_generated_tokens_sum 44\n"
		   "tgi_request_generated_tokens_count 4\ntgi_request_input_length_sum 400\n");
	assert_string_equal(s.server, "tgi");
	expect(&s, LOAD_READING_GENERATED_TOKENS, 44);
	expect(&s, LOAD_READING_PROMPT_TOKENS, 400);
	assert_false(s.known[LOAD_READING_KV_USE]);
	s = scrape("llamacpp:prompt_tokens_total 6886\nllamacpp:tokens_predicted_total 3469\n"
		   "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n");
	assert_string_equal(s.server, "llama.cpp");
	expect(&s, LOAD_READING_WAITING, 0);
	expect(&s, LOAD_READING_GENERATED_TOKENS, 3469);
	expect(&s, LOAD_READING_PROMPT_TOKENS,
	       6886); /* an older version, which did not count cached tokens */
	assert_false(s.known[LOAD_READING_CACHE_QUERIES] || s.known[LOAD_READING_CACHE_HITS]);
}

/* A page of llama.cpp's server after some thirty requests, as xllamacpp 2026.10 from PyPI runs it. */
static void test_llamacpp__a_recorded_page(void **state)
{
	static const char path[] = SOURCE_DIR "/tests/data/load/llamacpp-metrics.txt";
	struct load_scrape s;
	struct error err = {0};
	char *text;
	size_t size;

	(void)state;
	if (file_read(&text, &size, path, 1 << 20, &err))
		fail_msg("%s", err.text);
	s = scrape(text);
	free(text);
	assert_string_equal(s.server, "llama.cpp");
	expect(&s, LOAD_READING_RUNNING, 0);
	expect(&s, LOAD_READING_WAITING, 0);
	expect(&s, LOAD_READING_PROMPT_TOKENS, 1318 + 697);
	expect(&s, LOAD_READING_GENERATED_TOKENS, 997);
	expect(&s, LOAD_READING_CACHE_QUERIES, 1318 + 697);
	expect(&s, LOAD_READING_CACHE_HITS, 697);
	assert_false(s.known[LOAD_READING_KV_USE]);
}

/* assay repeats its figures under vLLM's names; they count once. */
static void test_assay__its_own_metrics(void **state)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct text text = {0};
	struct load_scrape s;

	(void)state;
	assert_non_null(m);
	metrics_set(m, METRIC_REQUESTS_RUNNING, 6);
	metrics_set(m, METRIC_REQUESTS_WAITING, 5);
	metrics_set(m, METRIC_CACHE_USE, 0.5);
	metrics_add(m, METRIC_PROMPT_TOKENS, 1000);
	metrics_add(m, METRIC_TOKENS, 100);
	metrics_add(m, METRIC_CACHED_QUERIES, 900);
	metrics_add(m, METRIC_CACHED_TOKENS, 80);
	metrics_add(m, METRIC_PREEMPTIONS, 2);
	metrics_observe(m, METRIC_TTFT, 0.25);
	metrics_write(&text, m, "a \"model\" \\ of\nmine");
	s = scrape(text_str(&text));
	assert_string_equal(s.server, "assay");
	expect(&s, LOAD_READING_RUNNING, 6);
	expect(&s, LOAD_READING_WAITING, 5);
	expect(&s, LOAD_READING_KV_USE, 0.5);
	expect(&s, LOAD_READING_PROMPT_TOKENS, 1000);
	expect(&s, LOAD_READING_GENERATED_TOKENS, 100);
	expect(&s, LOAD_READING_CACHE_QUERIES, 900);
	expect(&s, LOAD_READING_CACHE_HITS, 80);
	expect(&s, LOAD_READING_PREEMPTIONS, 2);
	text_release(&text);
	free(m);
}

static void test_unknown__servers_give_nothing(void **state)
{
	const struct load_scrape s = scrape("go_goroutines 5\nvllm:num_requests_running NaN\n");

	(void)state;
	assert_null(s.server);
	for (int r = 0; r < LOAD_READING_COUNT; r++)
		assert_false(s.known[r]);
	assert_null(scrape("").server);
}

static void test_wrong__lines_are_named(void **state)
{
	static const char *const wrong[] = {
		"<html>",
		"7up 1",
		"a",
		"a ",
		"a b",
		"a 1 b",
		"a 0x10",
		"a 1 2 3",
		"a{ 1",
		"a{b} 1",
		"a{b=c} 1",
		"a{b=\"c} 1",
		"a{b=\"c\"d=\"e\"} 1",
		"a{b=\"c\"",
		"a{b=\"\\",
		"a nan(1)",
		"a 1e",
		"a{=\"c\"} 1",
		"a 11111111111111111111111111111111111111111111111111111111111111111111111",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct load_scrape s;
		struct error err = {0};
		char text[128];

		snprintf(text, sizeof(text), "# comment\nok 1\n%s\n", wrong[i]);
		if (load_scrape_read(&s, text, strlen(text), &err) != STATUS_BAD_INPUT)
			fail_msg("not refused: %s", wrong[i]);
		assert_non_null(strstr(err.text, "line 3"));
	}
}

static void test_large__texts_are_refused(void **state)
{
	char *text = calloc(1, PROMETHEUS_MOST + 1);
	struct load_scrape s;
	struct error err = {0};

	(void)state;
	assert_non_null(text);
	memset(text, '\n', PROMETHEUS_MOST + 1);
	assert_int_equal(load_scrape_read(&s, text, PROMETHEUS_MOST + 1, &err), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(load_scrape_read(&s, text, PROMETHEUS_MOST, &err), STATUS_OK);
	free(text);
}

static void test_json__holds_what_the_server_reports(void **state)
{
	static const char text[] = "tgi_queue_size 2\ntgi_batch_current_size 3.5\n";
	json_t *line = scrape_read(text, sizeof(text) - 1), *expected;

	(void)state;
	expected = json_pack("{s:s, s:f, s:f}", "server", "tgi", "waiting", 2.0, "running", 3.5);
	assert_true(json_equal(line, expected));
	json_decref(line);
	json_decref(expected);
	assert_null(scrape_read("<html>", 6));
	assert_null(scrape_read("go_goroutines 5\n", 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vllm__engines_are_added_up),
		cmocka_unit_test(test_others__have_their_names),
		cmocka_unit_test(test_llamacpp__a_recorded_page),
		cmocka_unit_test(test_assay__its_own_metrics),
		cmocka_unit_test(test_unknown__servers_give_nothing),
		cmocka_unit_test(test_wrong__lines_are_named),
		cmocka_unit_test(test_large__texts_are_refused),
		cmocka_unit_test(test_json__holds_what_the_server_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
