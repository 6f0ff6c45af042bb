/* SPDX-License-Identifier: Apache-2.0 */
/* The report of recorded load tests: tables, charts, SUMMARY.md, and the files with AIPerf's names. */
#include "test.h"

#include <math.h>
#include "core/json/member.h"
#include "report/html/html.h"
#include "report/load/load.h"

#define LOADS SOURCE_DIR "/tests/data/load/"

struct bed {
	struct record record;
	struct machine *machine;
	struct expectations *expectations;
	struct judgements judged;
	struct report_input in;
	struct view view;
};

static void bed_open(struct bed *b, const char *name)
{
	struct error err = {0};
	char dir[512];
	enum status st;

	*b = (struct bed){.in = {0}};
	snprintf(dir, sizeof(dir), LOADS "%s", name);
	st = record_read_run(&b->record, dir, &err);
	if (!st)
		st = machine_from_json(&b->machine, b->record.machine, &err);
	if (!st)
		st = expectations_load(&b->expectations, NULL, &err);
	if (!st)
		st = judge_record(&b->judged, &b->record, b->expectations, NULL, &err);
	b->in = (struct report_input){.record = &b->record,
				      .machine = b->machine,
				      .judged = &b->judged,
				      .expectations = b->expectations};
	if (!st)
		st = view_build(&b->view, &b->in, &err);
	if (st)
		fail_msg("%s: %s", name, err.text);
}

/* Judges and arranges again after a change of the values. */
static void bed_again(struct bed *b)
{
	view_release(&b->view);
	judgements_release(&b->judged);
	assert_int_equal(judge_record(&b->judged, &b->record, b->expectations, NULL, NULL), STATUS_OK);
	assert_int_equal(view_build(&b->view, &b->in, NULL), STATUS_OK);
}

static void bed_close(struct bed *b)
{
	view_release(&b->view);
	judgements_release(&b->judged);
	expectations_free(b->expectations);
	machine_free(b->machine);
	record_release(&b->record);
}

static json_t *values_of(struct bed *b)
{
	return (json_t *)load_values(&b->view);
}

/* The cell of the row whose first cell is `name`, under the heading `head`. */
static const char *cell(const struct grid *g, const char *name, const char *head)
{
	for (size_t i = 0; i < grid_rows(g); i++)
		for (size_t k = 0; k < g->columns && !strcmp(grid_at(g, i, 0), name); k++)
			if (!strcmp(g->column[k].head, head))
				return grid_at(g, i, k);
	fail_msg("no cell %s of %s", head, name);
	return NULL;
}

static void test_report_load__latencies_have_their_intervals(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_true(load_latency_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 6); /* no gaps between chunks: chunks are tokens */
	assert_string_equal(cell(&g, "TTFT, from the schedule", "P50"), "29.9 ms (29.6–30.2 ms)");
	assert_string_equal(cell(&g, "TTFT, from the schedule", "samples"), "6400");
	assert_string_equal(cell(&g, "E2E, from the send", "P99"), "868 ms (861–877 ms)");
	grid_release(&g);
	json_object_del(values_of(&b), "ttft_p999_s");
	json_object_del(values_of(&b), "ttft_p99_low_s");
	assert_true(load_latency_grid(&g, &b.view));
	assert_string_equal(cell(&g, "TTFT, from the schedule", "P99.9"), "–");
	assert_string_equal(cell(&g, "TTFT, from the schedule", "P99"), "67.5 ms");
	grid_release(&g);
	bed_close(&b);
}

static void test_report_load__limits_name_their_result(void **state)
{
	struct grid g = {0};
	json_t *set;
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_true(load_slo_grid(&g, &b.view));
	assert_string_equal(cell(&g, "chat", "limits"), "TTFT 200 ms, TPOT 50.0 ms");
	assert_string_equal(cell(&g, "chat", "result"), "met");
	grid_release(&g);
	set = json_array_get(json_object_get(values_of(&b), "slo"), 0);
	json_object_set_new(set, "share_low", json_real(0.985));
	assert_true(load_slo_grid(&g, &b.view));
	assert_string_equal(cell(&g, "chat", "result"), "undecided");
	assert_string_equal(cell(&g, "chat", "95 % interval"), "98.50–100.00 %");
	grid_release(&g);
	json_object_set_new(set, "share_high", json_real(0.9895));
	assert_true(load_slo_grid(&g, &b.view));
	assert_string_equal(cell(&g, "chat", "result"), "missed");
	grid_release(&g);
	json_object_del(values_of(&b), "slo");
	assert_false(load_slo_grid(&g, &b.view));
	grid_release(&g);
	bed_close(&b);
}

static void test_report_load__errors_are_named_by_class(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_false(load_errors_grid(&g, &b.view));
	grid_release(&g);
	json_object_set_new(values_of(&b), "errors", json_pack("{s:i, s:i}", "limited", 12, "reset", 3));
	assert_true(load_errors_grid(&g, &b.view));
	assert_string_equal(cell(&g, "limited", "requests"), "12");
	assert_string_equal(cell(&g, "limited", "what"), "status 429");
	assert_string_equal(cell(&g, "reset", "what"), "connection lost");
	grid_release(&g);
	bed_close(&b);
}

static void test_report_load__checks_have_their_limits_and_doubts_are_sentences(void **state)
{
	struct grid g = {0};
	json_t *check;
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_true(load_checks_grid(&g, &b.view));
	assert_string_equal(cell(&g, "client_lag_p99_s", "limit"), "1.00 ms");
	assert_string_equal(cell(&g, "client_cpu_share", "value"), "22.0 %");
	assert_string_equal(cell(&g, "client_cpu_share", "result"), "kept");
	assert_int_equal(g.note.size, 0);
	grid_release(&g);
	check = json_array_get(json_object_get(values_of(&b), "checks"), 2);
	json_object_set_new(check, "kept", json_false());
	json_object_set_new(values_of(&b), "untrusted", json_pack("[s]", "A sender thread was busy: 0.9"));
	json_object_set_new(values_of(&b), "notes", json_pack("[s, s]", "One.", "Two."));
	assert_true(load_checks_grid(&g, &b.view));
	assert_string_equal(cell(&g, "client_cpu_share", "result"), "exceeded");
	assert_string_equal(text_str(&g.note), "A sender thread was busy: 0.9. One. Two");
	grid_release(&g);
	bed_close(&b);
}

static void test_report_load__stages_of_a_sweep(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_false(load_stages_grid(&g, &b.view));
	grid_release(&g);
	bed_close(&b);
	bed_open(&b, "sweep");
	assert_true(load_stages_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 5);
	assert_string_equal(cell(&g, "1", "rate"), "closed loop");
	assert_string_equal(cell(&g, "4", "rate"), "201 /s");
	assert_string_equal(cell(&g, "4", "met"), "no");
	assert_string_equal(cell(&g, "5", "met"), "yes");
	assert_non_null(strstr(text_str(&g.note), "met up to 192/s and missed at 201/s"));
	grid_release(&g);
	bed_close(&b);
}

static void test_report_load__gpus_in_the_window_and_before(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	assert_true(load_gpus_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 8);
	assert_string_equal(cell(&g, "0000:1b:00.0", "clock"), "1980 MHz");
	assert_string_equal(cell(&g, "0000:22:00.0", "clock"), "1945 MHz");
	assert_string_equal(cell(&g, "0000:1b:00.0", "idle"), "72 W");
	assert_string_equal(cell(&g, "0000:1b:00.0", "limits of the clock"), "power or current limit");
	grid_release(&g);
	json_object_del(values_of(&b), "epoch_ns"); /* then no time of the curves is known */
	assert_false(load_gpus_grid(&g, &b.view));
	grid_release(&g);
	bed_close(&b);
	bed_open(&b, "sweep"); /* it has the phase "window" */
	json_object_del(values_of(&b), "epoch_ns");
	assert_true(load_gpus_grid(&g, &b.view));
	assert_string_equal(cell(&g, "0000:1b:00.0", "clock"), "1980 MHz");
	grid_release(&g);
	bed_close(&b);
}

static const struct load_chart *chart_of(const struct load_chart *charts, size_t count, const char *file)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(charts[i].file, file))
			return &charts[i];
	return NULL;
}

static void charts_release(struct load_chart *charts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		load_chart_release(&charts[i]);
}

static void test_report_load__charts_share_the_axis_of_time(void **state)
{
	static const char *const timed[] = {"load-ttft.svg",	 "load-e2e.svg",   "load-tokens.svg",
					    "load-requests.svg", "load-power.svg", "load-clock.svg",
					    "load-nvlink.svg"};
	struct load_chart charts[LOAD_CHARTS];
	const struct load_chart *c;
	struct bed b;
	size_t count;

	(void)state;
	bed_open(&b, "met");
	count = load_charts(charts, &b.view);
	assert_int_equal(count, 8);
	assert_null(chart_of(charts, count, "load-sweep.svg"));
	for (size_t i = 0; i < sizeof(timed) / sizeof(timed[0]); i++) {
		c = chart_of(charts, count, timed[i]);
		assert_non_null(c);
		assert_true(c->lines.x.low == 0 && c->lines.x.high == 50);
		assert_true(c->lines.shade_from == 5 && c->lines.shade_to == 45);
		assert_true(*c->caption != '\0');
	}
	c = chart_of(charts, count, "load-power.svg");
	assert_int_equal(c->lines.count, 8);
	for (size_t i = 0; i < c->lines.series[0].count; i++) /* the idle time is before the axis */
		assert_true(c->lines.series[0].y[i] > 400);
	c = chart_of(charts, count, "load-requests.svg");
	assert_int_equal(c->lines.count, 5);
	assert_string_equal(c->lines.series[3].name, "running in the server");
	assert_non_null(strstr(chart_of(charts, count, "load-cdf.svg")->caption, "at most"));
	charts_release(charts, count);
	bed_close(&b);
}

static void test_report_load__a_sweep_has_its_points_by_throughput(void **state)
{
	struct load_chart charts[LOAD_CHARTS];
	const struct load_chart *c;
	struct bed b;
	size_t count;

	(void)state;
	bed_open(&b, "sweep");
	count = load_charts(charts, &b.view);
	c = chart_of(charts, count, "load-sweep.svg");
	assert_non_null(c);
	assert_int_equal(c->lines.series[0].count, 5);
	for (size_t i = 1; i < 5; i++)
		assert_true(c->lines.series[0].x[i] > c->lines.series[0].x[i - 1]);
	charts_release(charts, count);
	bed_close(&b);
}

static void test_report_load__curves_of_another_form_are_left_out(void **state)
{
	struct load_chart charts[LOAD_CHARTS];
	json_t *curves;
	struct bed b;
	size_t count;

	(void)state;
	bed_open(&b, "met");
	curves = json_object_get(values_of(&b), "curves");
	json_object_set_new(curves, "ttft_p50_s", json_pack("[f]", 1.0)); /* not as long as the times */
	json_object_set_new(curves, "ttft_p99_s", json_string("no list"));
	json_object_set_new(curves, "cdf", json_pack("{s:[i, [s], {}]}", "ttft", 3, "x"));
	json_object_set_new(values_of(&b), "epoch_ns", json_integer(-5));
	count = load_charts(charts, &b.view);
	assert_null(chart_of(charts, count, "load-ttft.svg"));
	assert_null(chart_of(charts, count, "load-cdf.svg"));
	assert_null(chart_of(charts, count, "load-power.svg"));
	assert_non_null(chart_of(charts, count, "load-e2e.svg"));
	charts_release(charts, count);
	json_object_del(values_of(&b), "curves");
	assert_int_equal(load_charts(charts, &b.view), 0);
	bed_close(&b);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)); text++)
		count++;
	return count;
}

static void test_report_load__the_page_has_every_chart_with_a_name(void **state)
{
	struct text page = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	report_html(&page, &b.in);
	assert_int_equal(page.failed, 0);
	assert_int_equal(count_of(text_str(&page), "<figure class=\"plot\">"), 8);
	assert_int_equal(count_of(text_str(&page), "<svg"), 8);
	assert_non_null(strstr(text_str(&page), "<title>time to first token over time</title>"));
	assert_non_null(strstr(text_str(&page), "href=\"#charts\""));
	assert_null(strstr(text_str(&page), "href=\"#gaps\""));
	assert_null(strstr(text_str(&page), "id=\"roofline\""));
	assert_null(strstr(text_str(&page), "nan"));
	text_release(&page);
	bed_close(&b);
}

static void test_report_load__the_summary_begins_with_the_verdict(void **state)
{
	struct text page = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	load_summary_page(&page, &b.view);
	assert_int_equal(
		strncmp(text_str(&page), "# Load test: pass\n\n**100.00 % of the requests met chat", 50), 0);
	assert_non_null(strstr(text_str(&page), "(exit code 0)"));
	assert_non_null(strstr(text_str(&page), "assay load http://127.0.0.1:8000 --rate 160 --slo chat"));
	assert_non_null(strstr(text_str(&page), "### Latencies"));
	assert_null(strstr(text_str(&page), "What to do"));
	assert_null(strstr(text_str(&page), "cannot be trusted"));
	text_release(&page);
	json_object_set_new(values_of(&b), "untrusted",
			    json_pack("[s, s]", "The client <b>was</b> late", "Second"));
	bed_again(&b);
	load_summary_page(&page, &b.view);
	assert_int_equal(strncmp(text_str(&page), "# Load test: untrusted\n", 23), 0);
	assert_non_null(strstr(text_str(&page), "What to do: give the client more CPUs"));
	assert_non_null(strstr(text_str(&page), "- The client \\<b\\>was\\</b\\> late\n- Second\n"));
	assert_non_null(strstr(text_str(&page), "(exit code 2)"));
	text_release(&page);
	bed_close(&b);
}

/* Every name and unit is one of AIPerf's (tests/data/load/aiperf.json, from its own exports), except the two
 * that it does not measure. */
static void test_report_load__names_and_units_are_those_of_aiperf(void **state)
{
	json_t *theirs = json_load_file(LOADS "aiperf.json", 0, NULL), *ours, *value;
	struct text out = {0};
	unsigned named = 0;
	const char *tag;
	struct bed b;

	(void)state;
	assert_non_null(theirs);
	bed_open(&b, "met");
	load_export_json(&out, &b.view);
	ours = json_loads(text_str(&out), 0, NULL);
	assert_non_null(ours);
	json_object_foreach(ours, tag, value)
	{
		const char *unit = json_string_value(json_object_get(theirs, tag));

		if (!json_is_object(value) || strstr(tag, "_from_schedule"))
			continue;
		if (!unit || strcmp(unit, json_string_value(json_object_get(value, "unit"))) != 0)
			fail_msg("%s: AIPerf's unit is %s", tag, unit ? unit : "not known");
		named++;
	}
	assert_true(named >= 18);
	json_decref(ours);
	json_decref(theirs);
	text_release(&out);
	bed_close(&b);
}

static double member(const json_t *root, const char *tag, const char *stat)
{
	const json_t *value = json_object_get(json_object_get(root, tag), stat);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void test_report_load__figures_are_ours_in_aiperfs_units(void **state)
{
	struct text out = {0};
	json_t *ours;
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	load_export_json(&out, &b.view);
	ours = json_loads(text_str(&out), 0, NULL);
	assert_true(fabs(member(ours, "time_to_first_token", "p50") -
			 1e3 * json_member_number(values_of(&b), "ttft_send_p50_s")) < 1e-9);
	assert_true(fabs(member(ours, "inter_token_latency", "avg") -
			 1e3 * json_member_number(values_of(&b), "tpot_mean_s")) < 1e-9);
	assert_true(member(ours, "request_latency", "count") == 6400);
	assert_true(member(ours, "output_sequence_length", "avg") == 64);
	assert_true(member(ours, "input_sequence_length", "avg") == 512);
	assert_true(fabs(member(ours, "overall_usage_prompt_cache_read_pct", "avg") - 1.2) < 1e-9);
	assert_true(member(ours, "total_osl", "avg") == 409600);
	assert_string_equal(json_string_value(json_object_get(ours, "verdict")), "pass");
	json_decref(ours);
	text_release(&out);
	json_object_set_new(values_of(&b), "error_share", json_real(0.02));
	json_object_del(values_of(&b), "output_tokens"); /* not known: absent, not 0 */
	load_export_json(&out, &b.view);
	ours = json_loads(text_str(&out), 0, NULL);
	assert_null(json_object_get(ours, "output_sequence_length"));
	assert_null(json_object_get(ours, "total_osl"));
	assert_true(member(ours, "request_error_rate", "avg") == 2);
	json_decref(ours);
	text_release(&out);
	bed_close(&b);
}

static void test_report_load__csv_has_two_tables_as_aiperfs(void **state)
{
	struct text out = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	load_export_csv(&out, &b.view);
	assert_int_equal(strncmp(text_str(&out), "Metric,avg,min,max,p50,p90,p95,p99,p999\n", 40), 0);
	assert_non_null(strstr(text_str(&out), "\nTime to First Token (ms),"));
	assert_non_null(strstr(text_str(&out), "\n\nMetric,Value\n"));
	assert_non_null(strstr(text_str(&out), "\nRequest Count,6400\n"));
	assert_non_null(strstr(text_str(&out), "\nOutput Sequence Length (tokens),64\n"));
	text_release(&out);
	bed_close(&b);
}

static void test_report_load__other_jobs_have_no_such_tables(void **state)
{
	struct load_chart charts[LOAD_CHARTS];
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "met");
	b.view.rows[0].c = &(struct record_case){.job = true, .probe = "serve"};
	assert_null(load_case(&b.view));
	assert_false(load_latency_grid(&g, &b.view));
	grid_release(&g);
	assert_false(load_gpus_grid(&g, &b.view));
	grid_release(&g);
	assert_int_equal(load_charts(charts, &b.view), 0);
	bed_close(&b);
}

static void draw(const struct lines *l, size_t *strokes, size_t *fills)
{
	struct canvas c;

	canvas_init(&c, LINES_WIDTH, LINES_HEIGHT);
	lines_draw(&c, l);
	assert_false(c.failed);
	*strokes = *fills = 0;
	for (size_t i = 0; i < c.op_count; i++) {
		*strokes += c.ops[i].kind == CANVAS_STROKE && c.ops[i].role == CANVAS_s0;
		*fills += c.ops[i].kind == CANVAS_FILL && c.ops[i].role == CANVAS_s0;
	}
	for (size_t i = 0; i < c.point_count; i++)
		assert_true(isfinite(c.points[i].x) && isfinite(c.points[i].y));
	canvas_release(&c);
}

static void test_lines__a_gap_divides_a_line_and_a_lone_point_is_a_mark(void **state)
{
	double x[] = {0, 1, 2, 3, 4, 5, 6, 7}, y[] = {1, 2, (double)NAN, 4, (double)NAN, 2, 3, 4};
	struct lines l = {.x = {.label = "x", .unit = "s"},
			  .y = {.label = "y", .unit = "s", .zero = true},
			  .series = {{.name = "a", .x = x, .y = y, .count = 8}},
			  .count = 1};
	size_t strokes, fills;

	(void)state;
	draw(&l, &strokes, &fills);
	assert_int_equal(strokes, 3); /* the legend's piece, 0 to 1, 5 to 7 */
	assert_int_equal(fills, 1);   /* the point at 3 */
}

static void test_lines__values_of_zero_are_not_on_a_logarithmic_axis(void **state)
{
	double x[] = {1, 2, 3, 4}, y[] = {0, 10, -1, (double)INFINITY};
	struct lines l = {.x = {.label = "x", .unit = "s", .log = true},
			  .y = {.label = "y", .unit = "s", .log = true},
			  .series = {{.name = "a", .x = x, .y = y, .count = 4}},
			  .count = 1};
	size_t strokes, fills;

	(void)state;
	assert_true(lines_any(&l));
	draw(&l, &strokes, &fills); /* one point, so all values of an axis are equal */
	assert_int_equal(fills, 1);
	y[1] = 0;
	assert_false(lines_any(&l));
	draw(&l, &strokes, &fills);
	assert_int_equal(fills, 0);
}

static void test_lines__axes_of_foreign_journals_end(void **state)
{
	double x[] = {1e17, 1e17 + 16, 3, 4}, y[] = {1e300, -1e300, 5, 6};
	struct lines l = {.x = {.label = "x", .unit = "s", .low = 1e17, .high = 1e17 + 16},
			  .y = {.label = "y", .unit = "s"},
			  .series = {{.name = "a", .x = x, .y = y, .count = 4}},
			  .count = 1};
	size_t strokes, fills;

	(void)state;
	draw(&l, &strokes, &fills); /* the third and the fourth point are a line */
	assert_int_equal(strokes, 2);
	l.x.low = 1000;
	l.x.high = 1001; /* both points are far outside */
	draw(&l, &strokes, &fills);
	l.x.low = (double)-INFINITY;
	l.x.high = (double)INFINITY;
	draw(&l, &strokes, &fills);
	assert_int_equal(strokes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_load__latencies_have_their_intervals),
		cmocka_unit_test(test_report_load__limits_name_their_result),
		cmocka_unit_test(test_report_load__errors_are_named_by_class),
		cmocka_unit_test(test_report_load__checks_have_their_limits_and_doubts_are_sentences),
		cmocka_unit_test(test_report_load__stages_of_a_sweep),
		cmocka_unit_test(test_report_load__gpus_in_the_window_and_before),
		cmocka_unit_test(test_report_load__charts_share_the_axis_of_time),
		cmocka_unit_test(test_report_load__a_sweep_has_its_points_by_throughput),
		cmocka_unit_test(test_report_load__curves_of_another_form_are_left_out),
		cmocka_unit_test(test_report_load__the_page_has_every_chart_with_a_name),
		cmocka_unit_test(test_report_load__the_summary_begins_with_the_verdict),
		cmocka_unit_test(test_report_load__names_and_units_are_those_of_aiperf),
		cmocka_unit_test(test_report_load__figures_are_ours_in_aiperfs_units),
		cmocka_unit_test(test_report_load__csv_has_two_tables_as_aiperfs),
		cmocka_unit_test(test_report_load__other_jobs_have_no_such_tables),
		cmocka_unit_test(test_lines__a_gap_divides_a_line_and_a_lone_point_is_a_mark),
		cmocka_unit_test(test_lines__axes_of_foreign_journals_end),
		cmocka_unit_test(test_lines__values_of_zero_are_not_on_a_logarithmic_axis),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
