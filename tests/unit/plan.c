/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite comes to: products, engines, rounds, windows, hash, JSON. */
#include "plan_bed.h"

static void test_plan__a_list_is_a_cross_product(void **state)
{
	(void)state;
	assert_int_equal(build("  - {probe: thing, options: {kind: [red, green], size: [1KiB, 2KiB]}}\n"),
			 STATUS_OK);
	assert_int_equal(plan.case_count, 4);
	expect(0, "thing engine=fast deep=false kind=red size=1KiB", "cpu", STATUS_OK, CAUSE_NONE);
	expect(1, "thing engine=fast deep=false kind=red size=2KiB", "cpu", STATUS_OK, CAUSE_NONE);
	expect(3, "thing engine=fast deep=false kind=green size=2KiB", "cpu", STATUS_OK, CAUSE_NONE);
	assert_int_equal(plan.count, 1); /* one worker */
	assert_true(nth(1)->work.read_bytes == 2048);
	plan_release(&plan);
}

static void test_plan__an_engine_is_chosen_by_what_it_can_do_here(void **state)
{
	(void)state;
	assert_int_equal(build("  - {probe: thing, options: {size: [1, 13]}}\n"), STATUS_OK);
	assert_ptr_equal(nth(0)->engine, &fast);
	assert_ptr_equal(nth(1)->engine, &big); /* lacks its library, where the other never could: says so */
	assert_int_equal(nth(1)->skip, STATUS_UNAVAILABLE);
	assert_int_equal(nth(1)->skip_cause, CAUSE_LIBRARY_MISSING);
	assert_string_equal(nth(1)->skip_reason, "libbig.so is not here");
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, options: {size: 14}}\n"), STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_UNSUPPORTED);
	assert_string_equal(nth(0)->skip_reason, "fast: not so many; big: this machine has no units");
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, engine: fast, options: {size: 14}}\n"), STATUS_OK);
	assert_string_equal(nth(0)->skip_reason, "thing: not so many"); /* the one asked for */
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, engine: all, options: {size: 13}}\n"), STATUS_OK);
	assert_int_equal(plan.case_count, 2);
	assert_int_equal(nth(0)->skip, STATUS_UNSUPPORTED);
	assert_int_equal(nth(0)->skip_cause, CAUSE_UNSUPPORTED);
	assert_int_equal(nth(1)->skip, STATUS_UNAVAILABLE);
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, engine: [big, fast]}\n"), STATUS_OK);
	assert_ptr_equal(nth(0)->engine, &big);
	assert_ptr_equal(nth(1)->engine, &fast);
	assert_int_equal(plan.count, 2); /* other libraries, another worker */
	plan_release(&plan);
}

static void test_plan__rounds_repeat_what_is_timed(void **state)
{
	static const char cases[] = "  - {probe: limits}\n  - {probe: thing}\n"
				    "  - together: [{probe: thing, target: gpu}]\n";
	const struct plan_options twice = {.rounds = 2}, once = {.rounds = 1};
	struct bench_case c;
	json_t *j, *one;
	char hash[65];

	(void)state;
	fake_machine_init(&machine, 2);
	assert_int_equal(build_with(cases, &once), STATUS_OK);
	assert_int_equal(plan.case_count, 4);
	assert_int_equal(nth(1)->round, 0);
	memcpy(hash, plan.hash, sizeof(hash));
	plan_release(&plan);
	assert_int_equal(build_with(cases, &twice), STATUS_OK);
	assert_int_equal(plan.case_count, 7);
	assert_int_equal(nth(0)->round, 0); /* a reading is taken once */
	assert_int_equal(nth(1)->round, 1);
	assert_int_equal(nth(4)->round, 2);
	assert_string_equal(nth(4)->key, nth(1)->key);
	assert_true(nth(5)->order == STEP_TOGETHER && nth(5)->round == 2);
	assert_int_equal(plan.count, 5);
	assert_string_not_equal(plan.hash, hash);
	j = plan_json(&plan, &machine);
	one = json_array_get(json_object_get(json_array_get(json_object_get(j, "steps"), 3), "cases"), 0);
	assert_int_equal(case_from_json(&c, one, &machine, registry, &err), STATUS_OK);
	assert_int_equal(c.round, 2);
	case_release(&c);
	json_decref(j);
	plan_release(&plan);
}

static void test_plan__a_capped_window_is_the_suites_and_yields_to_the_command_line(void **state)
{
	static const char line[] = "  - {probe: thing, seconds: 2s, seconds_capped: 6s}\n";
	const struct plan_options wish = {.seconds = 3};
	struct bench_case c;
	json_t *j, *one;

	(void)state;
	fake_machine_init(&machine, 0);
	assert_int_equal(build(line), STATUS_OK);
	j = plan_json(&plan, &machine);
	one = json_array_get(json_object_get(json_array_get(json_object_get(j, "steps"), 0), "cases"), 0);
	assert_int_equal(case_from_json(&c, one, &machine, registry, &err), STATUS_OK);
	assert_true(c.seconds == 2 && c.seconds_capped == 6);
	case_release(&c);
	json_decref(j);
	plan_release(&plan);
	assert_int_equal(build_with(line, &wish), STATUS_OK);
	assert_true(nth(0)->seconds == 3 && nth(0)->seconds_capped == 0);
	plan_release(&plan);
}

static void test_plan__the_hash_is_of_what_runs(void **state)
{
	char hash[65];

	(void)state;
	assert_int_equal(build("  - {probe: thing}\n"), STATUS_OK);
	memcpy(hash, plan.hash, sizeof(hash));
	assert_int_equal(strlen(hash), 64);
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, options: {size: 4096, kind: red}, limit: 9s}\n"),
			 STATUS_OK);
	assert_string_equal(plan.hash, hash); /* presets written out: the same plan */
	assert_int_equal(nth(0)->limit_ms, 9000);
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, phases: burst}\n"), STATUS_OK);
	assert_string_not_equal(plan.hash, hash);
	plan_release(&plan);
	assert_int_equal(build("  - {probe: thing, require: nothing}\n"), STATUS_OK);
	assert_string_not_equal(plan.hash, hash);
	plan_release(&plan);
}

static void test_plan__a_case_comes_back_from_its_json(void **state)
{
	struct bench_case c;
	json_t *j, *one;

	(void)state;
	fake_machine_init(&machine, 2);
	assert_int_equal(build("  - {probe: thing, target: gpu1, options: {path: a/b, deep: true}, phases: "
			       "burst, seconds: 2s,"
			       " require: measured, group: g}\n"),
			 STATUS_OK);
	j = plan_json(&plan, &machine);
	assert_non_null(j);
	one = json_array_get(json_object_get(json_array_get(json_object_get(j, "steps"), 0), "cases"), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(one, "gpus"), 0)),
			    "0000:1c:00.0");
	assert_true(json_is_null(json_object_get(one, "skip")));
	assert_int_equal(case_from_json(&c, one, &machine, registry, &err), STATUS_OK);
	assert_string_equal(c.key, nth(0)->key);
	assert_string_equal(((struct opts *)c.opts)->path, "a/b");
	assert_ptr_equal(c.engine, &big);
	assert_int_equal(c.target.gpu[0], 1);
	assert_true(c.seconds == 2 && c.phases == PHASES_BURST && c.require == REQUIRE_MEASURED);
	assert_string_equal(c.group, "g");
	case_release(&c);
	machine.gpus = 1; /* the GPU is gone */
	assert_int_equal(case_from_json(&c, one, &machine, registry, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_GPU_MISSING);
	json_decref(j);
	plan_release(&plan);
}

static void test_plan__json_of_a_wrong_form_is_refused(void **state)
{
	static const char *const odd[] = {
		"{}",
		"{'case':0}",
		"{'case':-1,'target':'cpu','probe':'ecc','engine':''}",
		"{'case':0,'target':'cpu','probe':'nope','engine':''}",
		"{'case':0,'target':'cpu','probe':'thing','engine':''}",
		"{'case':0,'target':'cpu','probe':'thing','engine':'x'}",
		"{'case':0,'target':'moon','probe':'ecc','engine':''}",
		"{'case':0,'target':'gpu0','probe':'ecc','engine':''}",
		"{'case':0,'target':'cpu:node','probe':'ecc','engine':''}",
		"{'case':0,'target':'cpu','probe':'thing','engine':'fast','options':{'size':5}}",
		"{'case':0,'target':'cpu','probe':'thing','engine':'fast','options':{'size':'nan'}}",
		"{'case':0,'target':'cpu','probe':'thing','engine':'fast','options':{'sise':'5'}}",
		"{'case':0,'target':'node','probe':'ecc','engine':'','gpus':[5]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct bench_case c;
		struct error why = {0};
		char text[256];
		json_t *j;

		snprintf(text, sizeof(text), "%s", odd[i]);
		for (char *q = text; *q; q++)
			*q = *q == '\'' ? '"' : *q;
		j = json_loads(text, 0, NULL);
		assert_non_null(j);
		assert_int_equal(case_from_json(&c, j, &machine, registry, &why), STATUS_BAD_INPUT);
		assert_true(*why.text);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan__##name, setup)
		test(a_list_is_a_cross_product),
		test(an_engine_is_chosen_by_what_it_can_do_here),
		test(rounds_repeat_what_is_timed),
		test(a_capped_window_is_the_suites_and_yields_to_the_command_line),
		test(the_hash_is_of_what_runs),
		test(a_case_comes_back_from_its_json),
		test(json_of_a_wrong_form_is_refused),
#undef test
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
