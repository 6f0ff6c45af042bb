/* SPDX-License-Identifier: Apache-2.0 */
/* Suites and command lines that are not understood. */
#include "plan_bed.h"

static void test_plan_suite__what_is_not_understood_is_named_with_its_place(void **state)
{
	static const struct {
		const char *cases, *message;
	} bad[] = {
		{"  - {probe: thingg}\n", "tiny.yaml:3: there is no probe \"thingg\"; did you mean thing"},
		{"  - probe: thing\n    engine: bigg\n",
		 "tiny.yaml:4: engine: probe thing has no engine \"bigg\"; did you mean big"},
		{"  - probe: thing\n    target: gpus\n", "tiny.yaml:4: target: \"gpus\" is none of"},
		{"  - probe: thing\n    options: {sizee: 4}\n",
		 "tiny.yaml:4: unknown option \"sizee\", did you mean \"size\""},
		{"  - probe: thing\n    options: {size: 1e30}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {size: nan}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {size: -4}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {kind: gren}\n", "did you mean \"green\""},
		{"  - probe: thing\n    options: {size: 666}\n", "tiny.yaml:4: size 666 never fits"},
		{"  - probe: thing\n    options:\n      kind: red\n      size: 666\n",
		 "tiny.yaml:6: size 666 never fits"},
		{"  - probe: thing\n    options: {size: [[1]]}\n", "tiny.yaml:4: size: a list inside a list"},
		{"  - probe: thing\n    options: 7\n", "tiny.yaml:4: options"},
		{"  - probe: thing\n    phase: burst\n", "tiny.yaml:4"},
		{"  - probe: thing\n    phases: bust\n", "did you mean burst"},
		{"  - probe: thing\n    phases: both\n",
		 "tiny.yaml:4: phases: \"both\" is none of headline, burst"},
		{"  - probe: thing\n    phases: [headline, burst]\n",
		 "tiny.yaml:4: phases: one word belongs here, of headline, burst"},
		{"  - probe: thing\n    require: judgd\n", "did you mean judged"},
		{"  - probe: thing\n    seconds: -1\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    seconds: 1e30\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    limit: soon\n", "tiny.yaml:4: limit"},
		{"  - probe: thing\n    engine: fast\n    target: gpu\n",
		 "tiny.yaml:5: engine fast of probe thing does not run on target gpu"},
		{"  - probe: thing\n    target: node\n", "tiny.yaml:4: no engine of probe thing runs on target node"},
		{"  - {probe: ecc, engine: fast}\n", "has no engine"},
		{"  - {target: cpu}\n", "tiny.yaml:3: a case needs a probe"},
		{"  - probe: null\n", "tiny.yaml:3: probe: that is YAML's nothing; write \"null\""},
		{"  - thing\n", "tiny.yaml:3: a case is a map"},
		{"  - together: []\n", "together"},
		{"  - {together: [{probe: thing}], probe: thing}\n", "tiny.yaml:3"},
		{"  - lockstep: thing\n", "tiny.yaml:3: lockstep: a list of cases belongs here"},
		{"  - {lockstep: [{probe: thing}], together: [{probe: thing}]}\n", "tiny.yaml:3"},
		{"  - lockstep:\n    - {probe: thing, target: cpu}\n",
		 "tiny.yaml:4: lockstep: what is timed on each GPU belongs here"},
		{"  - lockstep:\n    - {probe: ecc, target: gpu}\n", "not probe ecc on gpu"},
		{"", "a suite needs a name and a list of cases"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(build(bad[i].cases), STATUS_BAD_INPUT);
		if (!strstr(err.text, bad[i].message))
			fail_msg("\"%s\" instead of \"%s\"", err.text, bad[i].message);
		assert_int_equal(plan.count, 0);
	}
}

static void test_plan_suite__one_probe_of_the_command_line_is_a_suite(void **state)
{
	const char *const options[] = {"size=1KiB,2KiB", "kind=green"};
	const char *const bad[] = {"size"};
	struct suite *s = NULL;

	(void)state;
	err = (struct error){0};
	assert_int_equal(suite_of_probe(&s, "thing", "all", "cpu", options, 2, &err), STATUS_OK);
	assert_int_equal(plan_build(&plan, s, &machine, registry, NULL, &err), STATUS_OK);
	assert_int_equal(plan.case_count, 4);
	assert_string_equal(nth(3)->key, "thing engine=big deep=false kind=green size=2KiB");
	assert_int_equal(nth(3)->require, REQUIRE_KNOWN); /* a suite's line asks for judgement */
	plan_release(&plan);
	suite_free(s);
	assert_int_equal(suite_of_probe(&s, "thing", NULL, NULL, bad, 1, &err), STATUS_BAD_INPUT);
	assert_null(s);
}

static void test_plan_suite__an_unknown_suite_is_refused(void **state)
{
	struct suite *s = NULL;

	(void)state;
	err = (struct error){0};
	assert_int_equal(suite_read(&s, "no-such-suite", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "no-such-suite"));
	err = (struct error){0};
	assert_int_not_equal(suite_read(&s, "/nowhere/x.yaml", &err), STATUS_OK);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan_suite__##name, setup)
		test(what_is_not_understood_is_named_with_its_place),
		test(one_probe_of_the_command_line_is_a_suite),
		test(an_unknown_suite_is_refused),
#undef test
	};

	return cmocka_run_group_tests_name("plan_suite", tests, NULL, NULL);
}
