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
		{"  - probe: thing\n    target: gpus\n", "tiny.yaml:4: target: \"gpus\" is not one of"},
		{"  - probe: thing\n    options: {sizee: 4}\n",
		 "tiny.yaml:4: unknown option \"sizee\", did you mean \"size\""},
		{"  - probe: thing\n    options: {size: 1e30}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {size: nan}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {size: -4}\n", "tiny.yaml:4: size"},
		{"  - probe: thing\n    options: {kind: gren}\n", "did you mean \"green\""},
		{"  - probe: thing\n    options: {size: 666}\n", "tiny.yaml:4: size 666 never fits"},
		{"  - probe: thing\n    options:\n      kind: red\n      size: 666\n",
		 "tiny.yaml:6: size 666 never fits"},
		{"  - probe: thing\n    options: {size: [[1]]}\n", "tiny.yaml:4: size: expected a value, found a list inside a list"},
		{"  - probe: thing\n    options: 7\n", "tiny.yaml:4: options"},
		{"  - probe: thing\n    phase: burst\n", "tiny.yaml:4"},
		{"  - probe: thing\n    phases: bust\n", "did you mean burst"},
		{"  - probe: thing\n    phases: both\n",
		 "tiny.yaml:4: phases: \"both\" is not one of headline, burst"},
		{"  - probe: thing\n    phases: [headline, burst]\n",
		 "tiny.yaml:4: phases: expected one of headline, burst"},
		{"  - probe: thing\n    require: judgd\n", "did you mean judged"},
		{"  - probe: thing\n    seconds: -1\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    seconds: 1e30\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    limit: soon\n", "tiny.yaml:4: limit"},
		{"  - probe: thing\n    engine: fast\n    target: gpu\n",
		 "tiny.yaml:5: engine fast of probe thing does not run on target gpu"},
		{"  - probe: thing\n    target: node\n",
		 "tiny.yaml:4: no engine of probe thing runs on target node"},
		{"  - {probe: ecc, engine: fast}\n", "has no engine"},
		{"  - {target: cpu}\n", "tiny.yaml:3: a case needs the key probe"},
		{"  - probe: null\n", "tiny.yaml:3: probe: null without quotes is YAML's empty value; write \"null\""},
		{"  - thing\n", "tiny.yaml:3: expected a case: a map"},
		{"  - together: []\n", "together"},
		{"  - {together: [{probe: thing}], probe: thing}\n", "tiny.yaml:3"},
		{"  - lockstep: thing\n", "tiny.yaml:3: lockstep: expected a list of cases"},
		{"  - {lockstep: [{probe: thing}], together: [{probe: thing}]}\n", "tiny.yaml:3"},
		{"  - lockstep:\n    - {probe: thing, target: cpu}\n",
		 "tiny.yaml:4: lockstep: only timed probes with target gpu can run in lockstep"},
		{"  - lockstep:\n    - {probe: ecc, target: gpu}\n", "not probe ecc on gpu"},
		{"", "a suite needs the keys name and cases (a list)"},
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

/* "0,1,2,.." up to `count`, in a line of a suite. Owner: caller, text_release. */
static void list_values(struct text *t, unsigned count)
{
	text_add(t, "  - probe: thing\n    options: {size: [");
	for (unsigned i = 0; i < count; i++)
		text_addf(t, "%s%u", i ? "," : "", i + 4);
	text_add(t, "]}\n");
}

/* What took minutes, because each value was held against each other one. */
static void test_plan_suite__a_list_without_end_is_refused_with_its_place_and_count(void **state)
{
	struct text t = {0};

	(void)state;
	list_values(&t, 200000);
	assert_int_equal(build(text_str(&t)), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "tiny.yaml:4: size: 200000 values in one list; the limit is 10000");
	text_release(&t);
	err = (struct error){0};
	list_values(&t, 3);
	text_add(&t, "  - probe: thing\n    options: {size: [4, 8, 16, 8]}\n");
	assert_int_equal(build(text_str(&t)), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "tiny.yaml:6: size: the value 8 is given twice");
	text_release(&t);
}

static void test_plan_suite__a_list_of_the_command_line_has_the_same_bound(void **state)
{
	struct text t = {0};
	const char *options[2];
	struct suite *s = NULL;

	(void)state;
	err = (struct error){0};
	text_add(&t, "size=4");
	for (unsigned i = 0; i < SUITE_VALUES_MAX; i++)
		text_addf(&t, ",%u", i + 5);
	options[0] = text_str(&t);
	assert_int_equal(suite_of_probe(&s, "thing", NULL, NULL, options, 1, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "command line: size: 10001 values in one list; the limit is 10000");
	text_release(&t);
	err = (struct error){0};
	options[0] = "size=4";
	options[1] = "size=8";
	assert_int_equal(suite_of_probe(&s, "thing", NULL, NULL, options, 2, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "size is given twice"));
}

/* Each line is small; all of them together are not. */
static void test_plan_suite__a_plan_has_a_most_of_cases(void **state)
{
	struct text t = {0};

	(void)state;
	for (unsigned i = 0; i <= PLAN_CASES_MAX; i++)
		text_add(&t, "  - {probe: thing, target: cpu, options: {size: 4}}\n");
	assert_int_equal(build(text_str(&t)), STATUS_BAD_INPUT);
	assert_string_equal(err.text,
			    "tiny.yaml:16003: probe thing: with this line the suite has more than "
			    "16000 cases, the limit of one plan; split the suite");
	assert_int_equal(plan.count, 0);
	text_release(&t);
}

/* More than the index begins with, so that it has to grow. */
static void test_plan_suite__of_many_cases_each_finds_its_twin(void **state)
{
	struct text t = {0};
	char same[40];

	(void)state;
	fake_machine_init(&machine, 1);
	for (unsigned twice = 0; twice < 2; twice++) {
		text_add(&t, "  - probe: thing\n    target: gpu0\n    options: {size: [");
		for (unsigned i = 0; i < 300; i++)
			text_addf(&t, "%s%u", i ? "," : "", i + 1000);
		text_add(&t, "]}\n");
	}
	assert_int_equal(build(text_str(&t)), STATUS_OK);
	text_release(&t);
	assert_int_equal(plan.case_count, 600);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(nth(i)->skip, STATUS_OK);
		snprintf(same, sizeof(same), "case %u is the same measurement", i);
		assert_int_equal(nth(300 + i)->skip_cause, CAUSE_NOT_ASKED);
		assert_string_equal(nth(300 + i)->skip_reason, same);
	}
	plan_release(&plan);
}

static void test_plan_suite__planning_ends_when_somebody_asks(void **state)
{
	const volatile sig_atomic_t stop = 1;
	const struct plan_options wishes = {.stop = &stop};

	(void)state;
	assert_int_equal(build_with("  - {probe: thing, options: {size: [4, 8]}}\n", &wishes),
			 STATUS_CANCELLED);
	assert_int_equal(err.cause, CAUSE_INTERRUPTED);
	assert_int_equal(plan.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan_suite__##name, setup)
		test(what_is_not_understood_is_named_with_its_place),
		test(one_probe_of_the_command_line_is_a_suite),
		test(an_unknown_suite_is_refused),
		test(a_list_without_end_is_refused_with_its_place_and_count),
		test(a_list_of_the_command_line_has_the_same_bound),
		test(a_plan_has_a_most_of_cases),
		test(of_many_cases_each_finds_its_twin),
		test(planning_ends_when_somebody_asks),
#undef test
	};

	return cmocka_run_group_tests_name("plan_suite", tests, NULL, NULL);
}
