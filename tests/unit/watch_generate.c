/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, alerts and dashboards: each expression names metrics that exist, each alert has tests, and each dashboard's panels
 * lie side by side. promtool and Prometheus read them in end2end/exporter_prometheus.sh. */
#include "test.h"

#include "core/file/file.h"
#include "journal/metrics/catalogue.h"
#include "watch/generate/generate.h"

static bool is_metric(const char *name, size_t size)
{
	static const char *const parts[] = {"", "_bucket", "_sum", "_count", NULL};
	char full[200];

	for (int i = 0; i < CATALOGUE_COUNT; i++)
		if (strlen(catalogue_row((enum catalogue)i)->name) == size && !strncmp(catalogue_row((enum catalogue)i)->name, name, size))
			return true;
	for (int i = 0; i < METRIC_COUNT; i++)
		for (const char *const *part = parts; *part; part++) {
			snprintf(full, sizeof(full), "%s%s", metric_row((enum metric)i)->name, *part);
			if (strlen(full) == size && !strncmp(full, name, size))
				return true;
		}
	return false;
}

static bool is_rule(const char *name, size_t size)
{
	const struct generate_rule *r;

	for (size_t i = 0; (r = generate_rule_at(i)); i++)
		if (strlen(r->name) == size && !strncmp(r->name, name, size))
			return true;
	return false;
}

/* Every word of an expanded expression that has "assay" in it is a metric or a recorded rule. */
static void check_names(const char *expression)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:";

	assert_null(strchr(expression, '@'));
	for (const char *p = expression; *p; p += strspn(p, word) ? strspn(p, word) : 1) {
		size_t size = strspn(p, word);

		if (*p == '"')
			p = strchr(p + 1, '"');
		else if (size && memmem(p, size, "assay", 5) && !is_metric(p, size) && !is_rule(p, size))
			fail_msg("%.*s is no metric: %s", (int)size, p, expression);
	}
}

static void check_expression(const char *expression)
{
	struct text out = {0};
	struct error err = {0};

	if (generate_expression(&out, expression, &err))
		fail_msg("%s: %s", expression, err.text);
	check_names(text_str(&out));
	text_release(&out);
}

static void test_generate__expressions_name_metrics(void **state)
{
	const struct generate_dashboard *d;
	const struct generate_alert *a;
	const struct generate_rule *r;

	(void)state;
	for (size_t i = 0; (r = generate_rule_at(i)); i++)
		check_expression(r->expression);
	for (size_t i = 0; (a = generate_alert_at(i)); i++)
		check_expression(a->expression);
	for (size_t i = 0; (d = generate_dashboard_at(i)); i++)
		for (size_t j = 0; j < d->count; j++)
			for (int k = 0; k < GENERATE_QUERIES_MOST && d->panel[j].query[k].expression; k++)
				check_expression(d->panel[j].query[k].expression);
}

static void expand(const char *expression, const char *expected)
{
	struct text out = {0};
	struct error err = {0};

	assert_int_equal(generate_expression(&out, expression, &err), STATUS_OK);
	assert_string_equal(text_str(&out), expected);
	text_release(&out);
}

static void test_generate__symbols(void **state)
{
	struct text out = {0};
	struct error err = {0};

	(void)state;
	expand("sum(@GPU_POWER)", "sum(assay_gpu_power_watts)");
	expand("@GPU_POWER{a=\"b\"}", "assay_gpu_power_watts{a=\"b\"}");
	expand("@GPU_LIMITED_THERMAL", "assay_gpu_clock_limited_seconds_total{reason=\"thermal\"}");
	expand("rate(@GPU_LIMITED_THERMAL{a=\"b\"}[5m])", "rate(assay_gpu_clock_limited_seconds_total{reason=\"thermal\",a=\"b\"}[5m])");
	expand("@*GPU_LIMITED_THERMAL{a=\"b\"}", "assay_gpu_clock_limited_seconds_total{a=\"b\"}");
	expand("@TTFT_bucket / @EXPORTER_SERIES", "assay_time_to_first_token_seconds_bucket / assay_exporter_series");
	assert_int_equal(generate_expression(&out, "rate(@GPU_POWWER[5m])", &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "GPU_POWWER"));
	text_release(&out);
}

/* A symbol in two tables would be ambiguous. */
static void test_generate__symbols_are_unique(void **state)
{
	(void)state;
	for (int i = 0; i < CATALOGUE_COUNT; i++)
		for (int j = 0; j < METRIC_COUNT; j++)
			assert_string_not_equal(catalogue_row((enum catalogue)i)->symbol, metric_row((enum metric)j)->symbol);
}

/* Text of both files with the alerts' tests. Owner: caller. */
static char *alert_tests(void)
{
	static const char *const names[] = {"alerts.test.yaml", "alerts_week.test.yaml"};
	struct text all = {0};

	for (int i = 0; i < 2; i++) {
		struct error err = {0};
		char path[500], *text = NULL;
		size_t size;

		snprintf(path, sizeof(path), SOURCE_DIR "/tests/data/watch/%s", names[i]);
		assert_int_equal(file_read(&text, &size, path, 1 << 20, &err), STATUS_OK);
		text_add(&all, text);
		free(text);
	}
	return all.data;
}

/* Cases of an alert: those that expect it, and those that expect nothing. */
static void count_cases(const char *tests, const char *alert, int *fires, int *silent)
{
	char line[200];

	*fires = *silent = 0;
	snprintf(line, sizeof(line), "alertname: %s\n", alert);
	for (const char *p = tests; (p = strstr(p, line)); p++) {
		const char *expected = strstr(p, "exp_alerts:");

		assert_non_null(expected);
		if (!strncmp(expected, "exp_alerts: []", strlen("exp_alerts: []")))
			++*silent;
		else
			++*fires;
	}
}

static void test_generate__each_alert_has_tests(void **state)
{
	char *tests = alert_tests();
	const struct generate_alert *a;
	int fires, silent;

	(void)state;
	for (size_t i = 0; (a = generate_alert_at(i)); i++) {
		count_cases(tests, a->name, &fires, &silent);
		if (!fires || !silent)
			fail_msg("%s: %d cases fire, %d do not", a->name, fires, silent);
		assert_true(!strcmp(a->severity, "critical") || !strcmp(a->severity, "warning") || !strcmp(a->severity, "info"));
	}
	free(tests);
}

struct box {
	json_int_t x, y, w, h;
};

static struct box box_of(const json_t *panel)
{
	const json_t *at = json_object_get(panel, "gridPos");

	return (struct box){json_integer_value(json_object_get(at, "x")), json_integer_value(json_object_get(at, "y")),
			    json_integer_value(json_object_get(at, "w")), json_integer_value(json_object_get(at, "h"))};
}

static bool overlap(struct box a, struct box b)
{
	return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

static void check_dashboard(const json_t *d)
{
	const json_t *panels = json_object_get(d, "panels");

	assert_true(json_array_size(panels) > 5);
	for (size_t i = 0; i < json_array_size(panels); i++) {
		const json_t *p = json_array_get(panels, i);
		struct box a = box_of(p);

		assert_true(a.w > 0 && a.h > 0 && a.x >= 0 && a.x + a.w <= 24);
		assert_true(json_array_size(json_object_get(p, "targets")) > 0);
		assert_int_equal(json_integer_value(json_object_get(p, "id")), i + 1);
		for (size_t j = 0; j < i; j++)
			assert_false(overlap(a, box_of(json_array_get(panels, j))));
	}
}

static void test_generate__dashboards(void **state)
{
	struct error err = {0};
	json_t *all = NULL, *one = NULL;

	(void)state;
	assert_int_equal(generate_grafana(&all, NULL, &err), STATUS_OK);
	assert_int_equal(json_array_size(all), 5);
	for (size_t i = 0; i < 5; i++)
		check_dashboard(json_array_get(all, i));
	assert_int_equal(generate_grafana(&one, "cost", &err), STATUS_OK);
	assert_string_equal(json_string_value(json_object_get(one, "uid")), "assay-cost");
	json_decref(one);
	json_decref(all);
	assert_int_equal(generate_grafana(&one, "costs", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "\"costs\"; there are fleet, node, training, serving, cost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generate__expressions_name_metrics),
		cmocka_unit_test(test_generate__symbols),
		cmocka_unit_test(test_generate__symbols_are_unique),
		cmocka_unit_test(test_generate__each_alert_has_tests),
		cmocka_unit_test(test_generate__dashboards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
