/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text form: every row once under each of its names, histograms that add up, escaped labels. */
#include "test.h"

#include "journal/metrics/metrics.h"

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		count++;
	return count;
}

static void test_metrics__rows_are_complete(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *row = metric_row((enum metric)i);
		bool total = strlen(row->name) > 6 && !strcmp(row->name + strlen(row->name) - 6, "_total");

		assert_int_equal(strncmp(row->name, "assay_", 6), 0);
		assert_true(*row->help && *row->unit);
		assert_int_equal(total, row->type == METRIC_COUNTER);
		assert_true(!row->alias || !strncmp(row->alias, "vllm:", 5));
	}
}

static void test_metrics__text(void **state)
{
	struct metrics m = {0};
	struct text out = {0};

	(void)state;
	metrics_add(&m, METRIC_TOKENS, 5);
	metrics_add(&m, METRIC_TOKENS, 2);
	metrics_set(&m, METRIC_CACHE_USE, 0.25);
	metrics_observe(&m, METRIC_TTFT, 0.03);
	metrics_observe(&m, METRIC_TTFT, 1e9);
	metrics_write(&out, &m, "a\"b\\c\nd");
	assert_non_null(strstr(out.data, "\nassay_generated_tokens_total{model_name=\"a\\\"b\\\\c\\nd\"} 7\n"));
	assert_non_null(strstr(out.data, "\nvllm:generation_tokens_total{model_name=\"a\\\"b\\\\c\\nd\"} 7\n"));
	assert_non_null(strstr(out.data, "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{"));
	assert_non_null(strstr(out.data, "_seconds_bucket{model_name=\"a\\\"b\\\\c\\nd\",le=\"0.025\"} 0\n"));
	assert_non_null(strstr(out.data, "_seconds_bucket{model_name=\"a\\\"b\\\\c\\nd\",le=\"0.05\"} 1\n"));
	assert_non_null(strstr(out.data, "time_to_first_token_seconds_count{model_name=\"a\\\"b\\\\c\\nd\"} 2\n"));
	for (int i = 0; i < METRIC_COUNT; i++) {
		char line[128];

		snprintf(line, sizeof(line), "# TYPE %s ", metric_row((enum metric)i)->name);
		assert_int_equal(count_of(out.data, line), 1);
	}
	text_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics__rows_are_complete),
		cmocka_unit_test(test_metrics__text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
