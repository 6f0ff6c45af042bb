/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry in blocks: what goes in comes out, in as few words; what has a wrong form is passed over. */
#include "journal/telemetry/telemetry_block.h"
#include <string.h>
#include "test.h"

struct read {
	struct series *series;
	size_t count;
};

static void release(struct read *r)
{
	for (size_t i = 0; i < r->count; i++)
		series_release(&r->series[i]);
	free(r->series);
	*r = (struct read){0};
}

static void read_text(struct read *r, const char *text, uint64_t shift_ns)
{
	struct error err = {0};
	json_error_t why;
	json_t *body = json_loads(text, 0, &why);

	if (!body)
		fail_msg("%s: %s", text, why.text);
	*r = (struct read){0};
	assert_int_equal(telemetry_block_read(body, &r->series, &r->count, shift_ns, &err), STATUS_OK);
	assert_int_equal(err.status, STATUS_OK); /* or a later mistake would be told in its words */
	assert_string_equal(err.text, "");
	json_decref(body);
}

static void test_block__what_goes_in_comes_out(void **state)
{
	struct telemetry_block b = {0};
	struct read r = {0};
	json_t *body;
	char *text;

	(void)state;
	assert_null(telemetry_block_take(&b));
	telemetry_block_add(&b, "gpu:a", "power_w", SIGNAL_GAUGE, 1000000100, 78.122);
	telemetry_block_add(&b, "gpu:a", "clock_reasons", SIGNAL_BITS, 1000000050, 4);
	telemetry_block_add(&b, "host", "busy", SIGNAL_GAUGE, 999, 0.25);
	telemetry_block_add(&b, "gpu:a", "power_w", SIGNAL_GAUGE, 1020000100, 77);
	telemetry_block_add(&b, "gpu:a", "power_w", SIGNAL_GAUGE, 1000000000, 1); /* older than the one before: lost */
	telemetry_block_add(&b, "gpu:a", "power_w", SIGNAL_GAUGE, 1020000100, 0.1);
	assert_int_equal(b.readings, 5);
	body = telemetry_block_take(&b);
	text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(15));
	assert_string_equal(
		text,
		"{\"source\":\"gpu:a\",\"from\":1000000050,\"signals\":{\"power_w\":{\"kind\":\"gauge\","
		"\"after\":[50,20000000,0],\"v\":[78.122,77,0.1]},\"clock_reasons\":{\"kind\":\"bits\","
		"\"after\":[0],\"v\":[4]}}}");
	assert_int_equal(telemetry_block_read(body, &r.series, &r.count, 5, NULL), STATUS_OK);
	assert_int_equal(r.count, 2);
	assert_string_equal(r.series[0].signal, "power_w");
	assert_int_equal(r.series[0].count, 3);
	assert_true(r.series[0].t_ns[1] == 1020000105 && r.series[0].value[0] == 78.122);
	assert_true(r.series[1].kind == SIGNAL_BITS && r.series[1].t_ns[0] == 1000000055);
	free(text);
	json_decref(body);
	release(&r);
	body = telemetry_block_take(&b);
	assert_string_equal(json_string_value(json_object_get(body, "source")), "host");
	json_decref(body);
	assert_null(telemetry_block_take(&b));
	assert_int_equal(b.readings, 0);
	telemetry_block_add(&b, "host", "busy", SIGNAL_GAUGE, 1, 2); /* the next block does not know the one before */
	body = telemetry_block_take(&b);
	assert_non_null(body);
	json_decref(body);
	telemetry_block_release(&b);
}

static void test_block__lines_of_schema_1_still_read(void **state)
{
	struct read r;

	(void)state;
	read_text(&r,
		  "{\"source\":\"host\",\"signal\":\"e\",\"kind\":\"counter\",\"at\":[10,20,30],\"v\":[1,"
		  "null,3]}",
		  7);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.series[0].kind, SIGNAL_COUNTER);
	assert_int_equal(r.series[0].count, 2);
	assert_true(r.series[0].t_ns[1] == 37 && r.series[0].value[1] == 3);
	release(&r);
}

/* The text, and how many readings are left of it. */
static void test_block__wrong_forms_are_passed_over(void **state)
{
	static const struct {
		const char *text;
		size_t readings;
	} cases[] = {
		{"{}", 0},
		{"{\"source\":\"a\",\"signals\":{\"b\":{\"after\":[0],\"v\":[1]}}}", 0},
		{"{\"source\":\"a\",\"from\":-1,\"signals\":{\"b\":{\"after\":[0],\"v\":[1]}}}", 0},
		{"{\"source\":7,\"from\":1,\"signals\":{\"b\":{\"after\":[0],\"v\":[1]}}}", 0},
		{"{\"source\":\"a\",\"from\":1,\"signals\":[1]}", 0},
		{"{\"source\":7,\"signal\":\"b\",\"at\":[1],\"v\":[1]}", 0},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"a name of more than thirty-nine bytes, by "
		 "far\":"
		 "{\"after\":[0],\"v\":[1]},\"b\":{\"after\":[0],\"v\":[1]}}}",
		 1},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"\":{\"after\":[0],\"v\":[1]},\"c\":7}}", 0},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"b\":{\"after\":[0,-1,1],\"v\":[1,2,3]}}}", 1},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"b\":{\"after\":[0,\"x\",1],\"v\":[1,2,3]}}}",
		 1},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"b\":{\"after\":[0,1,1],\"v\":[null,\"x\",3]}}}",
		 1},
		{"{\"source\":\"a\",\"from\":1,\"signals\":{\"b\":{\"after\":[0,1,2],\"v\":[1]}}}", 1},
		{"{\"source\":\"a\",\"from\":9223372036854775807,\"signals\":{\"b\":{\"after\":[0,1],\"v\":["
		 "1,2]}}}",
		 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct read r;
		size_t readings = 0;

		read_text(&r, cases[i].text, 0);
		for (size_t k = 0; k < r.count; k++)
			readings += r.series[k].count;
		if (readings != cases[i].readings)
			fail_msg("%s: %zu readings", cases[i].text, readings);
		release(&r);
	}
}

static void test_block__names_beyond_the_most_are_passed_over(void **state)
{
	json_t *signals = json_object(), *body;
	struct error err = {0};
	struct read r = {0};
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 2 * SERIES_MAX; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		json_object_set_new(signals, name, json_pack("{s:[i], s:[i]}", "after", 0, "v", 1));
	}
	body = json_pack("{s:s, s:i, s:o}", "source", "a", "from", 1, "signals", signals);
	for (unsigned pass = 1; pass <= 2; pass++) { /* those that are there go on */
		assert_int_equal(telemetry_block_read(body, &r.series, &r.count, 0, &err), STATUS_OK);
		assert_int_equal(r.count, SERIES_MAX);
		assert_int_equal(r.series[SERIES_MAX - 1].count, pass);
	}
	assert_int_equal(err.status, STATUS_OK);
	json_decref(body);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block__what_goes_in_comes_out),
		cmocka_unit_test(test_block__lines_of_schema_1_still_read),
		cmocka_unit_test(test_block__wrong_forms_are_passed_over),
		cmocka_unit_test(test_block__names_beyond_the_most_are_passed_over),
	};

	return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
