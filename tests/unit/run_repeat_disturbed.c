/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPU figures a run measures again because they contradict each other. */
#include "test.h"
#include "run/followup/case_outcome.h"
#include "run/supervisor/supervisor.h"

enum { CASES = 5 };

static struct bench_case cases[CASES];
static struct step step = {.cases = cases, .count = CASES};
static struct plan plan = {.steps = &step, .count = 1, .case_count = CASES};
static struct case_outcome notes[CASES];
static bool disturbed[CASES];
static struct run run = {.plan = &plan, .note = notes, .disturbed = disturbed};

static void fill(void)
{
	static const char *const keys[CASES] = {
		"peak engine=cpu isa=auto threads=1 type=fp32 unit=fma",
		"peak engine=cpu isa=auto threads=0 type=fp32 unit=fma",
		"peak engine=cpu isa=auto threads=1 type=fp64 unit=fma",
		"memory engine=cpu op=chase search=top size=3MiB store=auto threads=1",
		"memory engine=cpu op=chase search=top size=12MiB store=auto threads=1",
	};
	static const double rates[CASES] = {194e9, 380e9, 97e9, 1e9 / 50, 1e9 / 60};

	for (unsigned i = 0; i < CASES; i++) {
		cases[i] = (struct bench_case){.id = i,
					       .key = (char *)(uintptr_t)keys[i],
					       .target_text = "cpu",
					       .require = REQUIRE_MEASURED};
		cases[i].target.kind = TARGET_CPU;
		notes[i] = (struct case_outcome){.rate = rates[i]};
		disturbed[i] = false;
	}
}

/* "01000": which want a second round. */
static const char *wanted(void)
{
	static char text[CASES + 1];

	repeat_disturbed_contradictions(&run);
	for (unsigned i = 0; i < CASES; i++)
		text[i] = disturbed[i] ? '1' : '0';
	return text;
}

static void test_second__figures_that_contradict_each_other_are_measured_again(void **state)
{
	(void)state;
	fill();
	assert_string_equal(wanted(), "00000");
	notes[1].rate = 172e9; /* two threads do less than one */
	assert_string_equal(wanted(), "11000");
	fill();
	notes[4].rate = 1e9 / 30; /* the larger size is faster */
	assert_string_equal(wanted(), "00011");
}

static void test_second__what_was_not_asked_or_did_not_run_contradicts_nothing(void **state)
{
	(void)state;
	fill();
	notes[1].rate = 172e9;
	cases[1].require = REQUIRE_NOTHING;
	assert_string_equal(wanted(), "00000");
	fill();
	notes[1].rate = 0;
	assert_string_equal(wanted(), "00000");
	fill();
	notes[1].rate = 172e9;
	cases[1].skip = STATUS_UNSUPPORTED;
	assert_string_equal(wanted(), "00000");
	fill();
	notes[1].rate = 172e9;
	snprintf(cases[1].target_text, sizeof(cases[1].target_text), "cpu:node1");
	assert_string_equal(wanted(), "00000");
	fill();
	notes[1].rate = 172e9;
	plan.case_count = 100000; /* a sweep */
	assert_string_equal(wanted(), "00000");
	plan.case_count = CASES;
	assert_string_equal(wanted(), "11000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_second__##name)
		T(figures_that_contradict_each_other_are_measured_again),
		T(what_was_not_asked_or_did_not_run_contradicts_nothing),
#undef T
	};

	return cmocka_run_group_tests_name("run_second", tests, NULL, NULL);
}
