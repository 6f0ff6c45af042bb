/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of its time, against what the committed runs took. */
#include <glob.h>
#include <math.h>
#include "journal/record.h"
#include "probe/registry.h"
#include "run/case.h"
#include "test.h"

#define SHORT_S 5 /* of a short list of cases, a few seconds more or less are no plan's fault */

/* In lockstep the GPUs do the same at the same time: the first one's cases stand for all. */
static bool beside_another(const struct record *r, size_t at)
{
	for (size_t i = 0; r->cases[at].lockstep && i < at; i++)
		if (r->cases[i].step == r->cases[at].step && !r->cases[i].skipped)
			return strcmp(r->cases[i].target, r->cases[at].target) != 0;
	return false;
}

/* The plan's cases as they were, without what was skipped. */
static double expected_seconds(const struct record *r)
{
	struct machine *m = NULL;
	struct error err = {0};
	double sum = 0;

	assert_int_equal(machine_from_json(&m, r->machine, &err), STATUS_OK);
	for (size_t i = 0; i < r->case_count; i++) {
		struct bench_case c;

		if (r->cases[i].skipped || beside_another(r, i))
			continue;
		if (case_from_json(&c, r->cases[i].plan, m, probe_list, &err))
			fail_msg("%s: %s", r->dir, err.text);
		sum += plan_case_seconds(&c);
		case_release(&c);
	}
	machine_free(m);
	return sum;
}

static void test_plan_time__is_within_a_third_of_what_committed_runs_took(void **state)
{
	glob_t found = {0};
	size_t runs = 0;

	(void)state;
	assert_int_equal(glob(SOURCE_DIR "/results/*/*/journal.jsonl", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct error err = {0};
		struct record r;
		double took, said;

		*strrchr(found.gl_pathv[i], '/') = '\0';
		assert_int_equal(record_read(&r, found.gl_pathv[i], &err), STATUS_OK);
		took = (double)(r.t_last_ns - r.t_first_ns) * 1e-9;
		said = expected_seconds(&r);
		if (fabs(said - took) > SHORT_S && !(said > took / 1.3 && said < took * 1.3))
			fail_msg("%s: the plan says %.1f s, the run took %.1f s", found.gl_pathv[i], said,
				 took);
		record_release(&r);
		runs++;
	}
	globfree(&found);
	assert_true(runs >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan_time__is_within_a_third_of_what_committed_runs_took),
	};

	return cmocka_run_group_tests_name("plan_time", tests, NULL, NULL);
}
