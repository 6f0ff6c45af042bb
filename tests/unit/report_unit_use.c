/* SPDX-License-Identifier: Apache-2.0 */
/* A run with products, attention and counters, judged and rendered in every form:
 * tests/data/report/attention, whose counters are those of results/2026-11-22-h100-sxm/counters.log. */
#include "test.h"
#include "core/input/tree.h"
#include "report/tables/unit_use.h"
#include "report/report.h"
#include "schema.h"

static struct record record;
static struct machine *machine;
static struct expectations *expectations;
static struct judgements judged;
static struct report_input in;

static int load(void **state)
{
	static const char dir[] = SOURCE_DIR "/tests/data/report/attention";
	struct error err = {0};

	(void)state;
	if (record_read(&record, dir, &err) || machine_from_json(&machine, record.machine, &err) ||
	    expectations_load(&expectations, NULL, &err) ||
	    judge_record(&judged, &record, expectations, NULL, &err))
		fail_msg("%s: %s", dir, err.text);
	in = (struct report_input){
		.record = &record, .machine = machine, .judged = &judged, .expectations = expectations};
	return 0;
}

static int unload(void **state)
{
	(void)state;
	judgements_release(&judged);
	expectations_free(expectations);
	machine_free(machine);
	record_release(&record);
	return 0;
}

static void rendered(struct text *out, enum report_format format, unsigned columns)
{
	const struct report_style style = {.columns = columns};
	struct error err = {0};

	*out = (struct text){0};
	if (report_render(out, format, &in, &style, &err))
		fail_msg("%s", err.text);
}

static void expect(const struct text *t, const char *words)
{
	if (!strstr(text_str(t), words))
		fail_msg("no \"%s\" in\n%s", words, text_str(t));
}

static void test_report_metrics__values_stand_beside_targets(void **state)
{
	struct text t;

	(void)state;
	rendered(&t, REPORT_MARKDOWN, 0);
	expect(&t, "### GEMM\n\n| case | rate | efficiency | at the measured clock | latency |");
	expect(&t, "| BF16 GEMM 8192, cuBLASLt | 685 TFLOPS | 64.0 % | 89.3 % | 1.60 ms |");
	expect(&t, "| case | SM active (85 %) | tensor pipe (90 %) | memory (2.5 TB/s) | occupancy (85 %) | "
		   "by |");
	expect(&t, "| BF16 GEMM 8192, cuBLASLt | 94.2 %, met | 91.4 %, met | 864 GB/s, missed | 14.8 %, "
		   "missed | CUPTI |");
	expect(&t, "| 95.5 %, met | 41.1 %, missed | 1.56 TB/s, missed | 14.1 %, missed | CUPTI |");
	expect(&t, "| memory read 4 GiB | – | – | 3.20 TB/s, met | – | measured |");
	expect(&t, "| 1.034 | 2.1e-05 | 1.01 |"); /* of cuDNN's time, and of its error */
	text_release(&t);
}

/* No number, no recommendation: each row has its evidence. */
static void test_report_metrics__recommendations_have_their_evidence(void **state)
{
	struct text t;

	(void)state;
	rendered(&t, REPORT_MARKDOWN, 0);
	expect(&t, "| case | recommendation | evidence | gain |");
	expect(&t, "| power limit and cooling | clock 1419 of 1980 MHz by stamps; power limit: 700 of 700 W");
	expect(&t, "tensor pipe 41.1 %, exponentials 42.9 %, DRAM 46.5 %; 14.1 % of the warps that an SM can hold");
	expect(&t, "engine cudnn reached 399.4 TFLOPS on the same problem in this run; this one reached 386.3");
	text_release(&t);
}

static void test_report_metrics__the_terminal_and_the_page_say_the_same(void **state)
{
	struct text t;

	(void)state;
	rendered(&t, REPORT_TEXT, 160);
	expect(&t, "GEMM\n");
	expect(&t, "94.2 %, met");
	expect(&t, "Recommendations, each with its evidence\n");
	text_release(&t);
	rendered(&t, REPORT_TEXT, 80);
	expect(&t, "memory read 4 GiB: memory (2.5 TB/s) 3.20 TB/s, met; by measured\n"); /* what nothing told
											     is left out */
	text_release(&t);
	rendered(&t, REPORT_HTML, 0);
	expect(&t, "<h3>Metrics against targets</h3>");
	expect(&t, "<td class=\"num\">41.1 %, missed</td>");
	text_release(&t);
}

static void test_report_metrics__json_has_them_by_its_schema(void **state)
{
	json_t *schema = json_load_file(SOURCE_DIR "/docs/schema/results.schema.json", 0, NULL), *root,
	       *metric, *second;
	struct text t;
	char why[256];

	(void)state;
	rendered(&t, REPORT_JSON, 0);
	root = json_loads(text_str(&t), 0, NULL);
	assert_non_null(root);
	if (!schema_valid(schema, root, why, sizeof(why)))
		fail_msg("%s", why);
	metric = json_array_get(json_object_get(json_array_get(json_object_get(root, "cases"), 1), "metrics"),
				1);
	assert_string_equal(json_string_value(json_object_get(metric, "name")), "tensor_active");
	assert_float_equal(json_number_value(json_object_get(metric, "value")), 0.411417, 1e-9);
	assert_float_equal(json_number_value(json_object_get(metric, "target")), 0.9, 1e-9);
	assert_true(json_is_false(json_object_get(metric, "reached")));
	second = json_array_get(json_object_get(root, "attention"), 1);
	assert_int_equal(json_integer_value(json_object_get(second, "library_case")), 1);
	assert_float_equal(json_number_value(json_object_get(second, "time_over_library")), 1.034, 0.001);
	assert_float_equal(json_number_value(json_object_get(second, "error_over_library")), 1.0106, 0.001);
	json_decref(schema);
	json_decref(root);
	text_release(&t);
}

/* What the counters tell of the recorded product and attention closes their chains. */
static void test_report_metrics__the_recorded_chains_close(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		if (!judged.of_case[i].explained)
			fail_msg("%s: residual %.3f", record.cases[i].key, judged.of_case[i].unexplained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_metrics__values_stand_beside_targets),
		cmocka_unit_test(test_report_metrics__recommendations_have_their_evidence),
		cmocka_unit_test(test_report_metrics__the_terminal_and_the_page_say_the_same),
		cmocka_unit_test(test_report_metrics__json_has_them_by_its_schema),
		cmocka_unit_test(test_report_metrics__the_recorded_chains_close),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
