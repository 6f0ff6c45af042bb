/* SPDX-License-Identifier: Apache-2.0 */
/* results.json against docs/schema/results.schema.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report/text/basis.h"
#include "report_sample.h"
#include "schema.h"

static json_t *load_schema(void)
{
	json_t *schema = json_load_file(SOURCE_DIR "/docs/schema/results.schema.json", 0, NULL);

	assert_non_null(schema);
	return schema;
}

static json_t *results_of(const char *name)
{
	struct text out = {0};
	struct sample s;
	json_t *results;

	sample_load(&s, name);
	assert_int_equal(report_json(&out, &s.in, NULL), STATUS_OK);
	results = json_loads(text_str(&out), 0, NULL);
	assert_non_null(results);
	text_release(&out);
	sample_release(&s);
	return results;
}

static void test_report_schema__every_sample_is_valid(void **state)
{
	static const char *const samples[] = {"cpu",	    "curve", "cut",	"empty",
					      "h100-fault", "h200",  "hostile", "skips"};
	json_t *schema = load_schema();

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		json_t *results = results_of(samples[i]);
		char why[256] = "";

		if (!schema_valid(schema, results, why, sizeof(why)))
			fail_msg("%s: %s", samples[i], why);
		json_decref(results);
	}
	json_decref(schema);
}

/* The member "energy" of the sample's first case, whose counter shows 695 W, if the power readings had this
 * mean.
 */
static json_t *energy_of(double readings_w)
{
	json_t *schema = load_schema(), *results, *energy;
	char why[256] = "";
	struct text out = {0};
	struct sample s;

	sample_load(&s, "h100-fault");
	json_object_set_new(record_phase(&s.record.cases[0], "sustained")->values, "power_integral_w",
			    json_real(readings_w));
	assert_int_equal(report_json(&out, &s.in, NULL), STATUS_OK);
	results = json_loads(text_str(&out), 0, NULL);
	if (!schema_valid(schema, results, why, sizeof(why)))
		fail_msg("%s", why);
	energy = json_incref(json_object_get(json_array_get(json_object_get(results, "cases"), 0), "energy"));
	json_decref(results);
	json_decref(schema);
	text_release(&out);
	sample_release(&s);
	return energy;
}

static void test_report_schema__an_energy_in_doubt_has_its_reason(void **state)
{
	json_t *sure = energy_of(690), *doubt = energy_of(640);

	(void)state;
	assert_true(json_number_value(json_object_get(sure, "power_w")) == 695);
	assert_null(json_object_get(sure, "why"));
	assert_null(json_object_get(doubt, "power_w"));
	assert_string_equal(json_string_value(json_object_get(doubt, "why")),
			    "the energy counter and the power readings differ by 8.6 %, allowed 5 %");
	json_decref(sure);
	json_decref(doubt);
}

/* A validator that takes everything would prove nothing. */
static void test_report_schema__what_is_wrong_is_refused(void **state)
{
	json_t *schema = load_schema(), *results = results_of("h200"), *first;
	char why[256];

	(void)state;
	first = json_array_get(json_object_get(results, "cases"), 0);
	assert_true(schema_valid(schema, results, why, sizeof(why)));
	json_object_set_new(first, "verdict", json_string("fine"));
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_object_set_new(first, "verdict", json_string("pass"));
	json_object_set_new(first, "share_of_bound", json_null());
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_object_del(first, "share_of_bound");
	json_object_set_new(first, "extra", json_true());
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_object_del(first, "extra");
	json_object_del(first, "key");
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_object_set_new(first, "key", json_string(""));
	json_object_set_new(json_object_get(results, "counts"), "pass", json_integer(-1));
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_object_set_new(json_object_get(results, "counts"), "pass", json_integer(1));
	json_object_set_new(results, "schema_version", json_integer(2));
	assert_false(schema_valid(schema, results, why, sizeof(why)));
	json_decref(results);
	json_decref(schema);
}

static void same_words(const json_t *list, const char *(*name)(int), int count)
{
	assert_int_equal(json_array_size(list), count);
	for (int i = 0; i < count; i++)
		assert_string_equal(json_string_value(json_array_get(list, (size_t)i)), name(i));
}

static const char *verdict_at(int i)
{
	return verdict_name((enum verdict)i);
}

static const char *cause_at(int i)
{
	return cause_name((enum cause)i);
}

static void test_report_schema__the_closed_lists_are_the_programs(void **state)
{
	json_t *schema = load_schema(), *defs = json_object_get(schema, "$defs");

	(void)state;
	same_words(json_object_get(json_object_get(defs, "verdict"), "enum"), verdict_at, VERDICT_COUNT);
	same_words(json_object_get(json_object_get(defs, "cause"), "enum"), cause_at, CAUSE_COUNT);
	json_decref(schema);
}

static const char *judged_by_at(int i)
{
	return judged_by_name((enum judged_by)i);
}

static const char *kind_at(int i)
{
	return judged_by_name((enum judged_by)(i + 1));
}

static void test_report_schema__the_kinds_of_reference_are_the_judges(void **state)
{
	json_t *schema = load_schema(), *defs = json_object_get(schema, "$defs");
	json_t *properties = json_object_get(json_object_get(defs, "case"), "properties");
	json_t *kind = json_object_get(
		json_object_get(json_object_get(json_object_get(defs, "basis"), "properties"), "kind"),
		"enum");

	(void)state;
	same_words(json_object_get(json_object_get(properties, "judged_by"), "enum"), judged_by_at,
		   JUDGED_COUNT);
	same_words(kind, kind_at, JUDGED_COUNT - 1);
	json_decref(schema);
}

/* What a case was held against, whichever it was, is told and fits the schema. */
static void test_report_schema__every_kind_of_reference_is_told(void **state)
{
	static const char *const words[JUDGED_COUNT] = {
		"",
		"an expected range of 1.00–2.00 TFLOPS, low confidence: one card, 3 runs of 6 s; a paper, 2026-01-02",
		"this machine's ceiling, measured in the same run, low confidence",
		"its siblings in this run, low confidence",
		"earlier runs, low confidence",
		"rules for its values, low confidence",
		"the bound of its device: 2 x 3",
	};
	struct judgement j = {.has_band = true,
			      .low_confidence = true,
			      .figure_unit = "FLOP/s",
			      .bound = {.from = BOUND_DEVICE, .value = 3e12, .formula = "2 x 3"},
			      .band = {.low = 1e12,
				       .high = 2e12,
				       .confidence = 1,
				       .source = "a paper",
				       .date = "2026-01-02",
				       .basis = "one card, 3 runs of 6 s"}};
	json_t *schema = load_schema(), *basis;
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	for (int by = 0; by < JUDGED_COUNT; by++) {
		struct text out = {0}, told = {0};
		char why[256] = "";
		json_t *results;

		j.judged_by = (enum judged_by)by;
		j.has_band = by == JUDGED_BAND;
		basis_add(&told, &j);
		assert_string_equal(text_str(&told), words[by]);
		s.judged.of_case[0] = j;
		assert_int_equal(report_json(&out, &s.in, NULL), STATUS_OK);
		results = json_loads(text_str(&out), 0, NULL);
		if (!schema_valid(schema, results, why, sizeof(why)))
			fail_msg("%s: %s", judged_by_name(j.judged_by), why);
		basis = json_object_get(json_array_get(json_object_get(results, "cases"), 0), "basis");
		assert_int_equal(basis != NULL, by != JUDGED_NOTHING);
		if (basis)
			assert_string_equal(json_string_value(json_object_get(basis, "text")), words[by]);
		json_decref(results);
		text_release(&out);
		text_release(&told);
	}
	sample_release(&s);
	json_decref(schema);
}

static void test_report_schema__parts_name_the_device_and_no_serial_number_of_its_own(void **state)
{
	json_t *results = results_of("h100-fault"), *parts = json_object_get(results, "parts"), *part;

	(void)state;
	assert_int_equal(json_array_size(parts), 1);
	part = json_array_get(parts, 0);
	assert_string_equal(json_string_value(json_object_get(part, "pci")), "0000:43:00.0");
	assert_string_equal(json_string_value(json_object_get(part, "slot")), "7");
	assert_string_equal(json_string_value(json_object_get(part, "verdict")), "fail");
	assert_int_equal(strncmp(json_string_value(json_object_get(part, "serial")), "serial-", 7), 0);
	assert_int_equal(json_array_size(json_object_get(part, "evidence")), 4);
	json_decref(results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_schema__every_sample_is_valid),
		cmocka_unit_test(test_report_schema__an_energy_in_doubt_has_its_reason),
		cmocka_unit_test(test_report_schema__what_is_wrong_is_refused),
		cmocka_unit_test(test_report_schema__the_closed_lists_are_the_programs),
		cmocka_unit_test(test_report_schema__the_kinds_of_reference_are_the_judges),
		cmocka_unit_test(test_report_schema__every_kind_of_reference_is_told),
		cmocka_unit_test(test_report_schema__parts_name_the_device_and_no_serial_number_of_its_own),
	};

	return cmocka_run_group_tests_name("report_schema", tests, NULL, NULL);
}
