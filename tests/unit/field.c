/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/field.h"
#include <math.h>
#include "scratch.h"

static const struct field own_text = {"algorithm", "", "name", FIELD_TEXT, 0};
static const struct field own_bits = {"bits", "", "flags", FIELD_BITS, 0};

static void test_field__absent_is_not_zero(void **state)
{
	struct result *r = result_create();
	json_t *values;

	(void)state;
	assert_false(result_has(r, &field_power_w));
	assert_true(result_get(r, &field_power_w, -1) == -1);
	result_f64(r, &field_power_w, 0);
	assert_true(result_has(r, &field_power_w));
	assert_true(result_get(r, &field_power_w, -1) == 0);
	values = result_json(r);
	assert_int_equal(json_object_size(values), 1);
	json_decref(values);
	result_destroy(r);
}

static void test_field__nan_and_infinities_never_get_in(void **state)
{
	struct result *r = result_create();
	json_t *values;

	(void)state;
	result_f64(r, &field_power_w, 3);
	result_f64(r, &field_power_w, NAN);
	result_f64(r, &field_clock_hz, INFINITY);
	result_f64(r, &field_energy_j, -INFINITY);
	assert_false(result_has(r, &field_power_w)); /* a value that became NaN is not the old one */
	result_f64(r, &field_clock_hz, NAN);
	values = result_json(r);
	assert_int_equal(json_object_size(values), 1);
	assert_string_equal(json_string_value(json_object_get(values, "not_finite")),
			    "power_w, energy_j, clock_hz");
	json_decref(values);
	result_f64(r, &field_energy_j, 5); /* what is there is not lost */
	values = result_json(r);
	assert_string_equal(json_string_value(json_object_get(values, "not_finite")), "power_w, clock_hz");
	json_decref(values);
	result_clear(r);
	values = result_json(r);
	assert_int_equal(json_object_size(values), 0);
	json_decref(values);
	result_destroy(r);
}

/* More than are named are still left out. */
static void test_field__many_that_are_not_finite_are_named_as_far_as_there_is_room(void **state)
{
	struct result *r = result_create();
	const char *names;
	json_t *values;
	size_t commas = 0;

	(void)state;
	for (size_t i = 0; result_fields[i]; i++)
		if (result_fields[i]->kind == FIELD_F64)
			result_f64(r, result_fields[i], NAN);
	values = result_json(r);
	assert_int_equal(json_object_size(values), 1);
	names = json_string_value(json_object_get(values, "not_finite"));
	for (; *names; names++)
		commas += *names == ',';
	assert_int_equal(commas, 15);
	json_decref(values);
	result_destroy(r);
}

static void test_field__kinds_write_as_they_should(void **state)
{
	struct result *r = result_create();
	json_t *values;
	char *text;

	(void)state;
	result_u64(r, &field_samples, 7);
	result_u64(r, &own_bits, 0x44);
	result_text(r, &own_text, "tile \"128x256\"");
	result_text(r, &field_variant, "bad \xff\xfe bytes");
	result_f64(r, &field_time_ns_mean, 1.5);
	values = result_json(r);
	text = json_dumps(values, JSON_COMPACT);
	assert_string_equal(text, "{\"samples\":7,\"bits\":\"0x44\",\"algorithm\":\"tile \\\"128x256\\\"\","
				  "\"variant\":\"bad ?? bytes\",\"time_ns_mean\":1.5}");
	free(text);
	json_decref(values);
	result_destroy(r);
}

static void test_field__a_value_takes_the_place_of_the_one_before(void **state)
{
	struct result *r = result_create();

	(void)state;
	result_f64(r, &field_power_w, 1);
	result_f64(r, &field_power_w, 10);
	result_u64(r, &own_bits, 3);
	result_text(r, &own_text, "old");
	result_text(r, &own_text, "new");
	assert_true(result_get(r, &field_power_w, 0) == 10);
	assert_true(result_get(r, &own_bits, 0) == 3);
	assert_true(result_get(r, &own_text, -1) == -1); /* text is no number */
	result_text(r, &own_text, NULL);
	assert_false(result_has(r, &own_text));
	result_destroy(r);
}

static void test_field__every_core_field_is_listed_once_with_its_unit(void **state)
{
	(void)state;
	for (size_t i = 0; result_fields[i]; i++) {
		assert_true(*result_fields[i]->name && *result_fields[i]->help);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(result_fields[i]->name, result_fields[k]->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field__absent_is_not_zero),
		cmocka_unit_test(test_field__nan_and_infinities_never_get_in),
		cmocka_unit_test(test_field__many_that_are_not_finite_are_named_as_far_as_there_is_room),
		cmocka_unit_test(test_field__kinds_write_as_they_should),
		cmocka_unit_test(test_field__a_value_takes_the_place_of_the_one_before),
		cmocka_unit_test(test_field__every_core_field_is_listed_once_with_its_unit),
	};

	return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
