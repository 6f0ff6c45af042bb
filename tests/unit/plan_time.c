/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of its time, against what the committed runs took. */
#include <glob.h>
#include <math.h>
#include "journal/record/record.h"
#include "probe/registry.h"
#include "run/plan/case.h"
#include "test.h"

#define SHORT_S 5 /* of a short list of cases, a few seconds more or less are no plan's fault */

/* The record's plan again, without what it skips and what a search has added. */
static void plan_of(struct plan *p, const struct record *r, const struct machine *m)
{
	size_t steps = 0;

	*p = (struct plan){0};
	for (size_t i = 0; i < r->case_count; i++)
		steps = r->cases[i].step + 1 > steps ? r->cases[i].step + 1 : steps;
	p->steps = calloc(steps, sizeof(*p->steps));
	assert_non_null(p->steps);
	p->count = steps;
	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		struct step *s = &p->steps[c->step];
		struct error err = {0};

		if (c->skipped || record_is_isolation(c) || json_object_get(c->plan, "again"))
			continue;
		s->cases = realloc(s->cases, (s->count + 1) * sizeof(*s->cases));
		assert_non_null(s->cases);
		if (case_from_json(&s->cases[s->count], c->plan, m, probe_list, &err))
			fail_msg("%s: %s", r->dir, err.text);
		s->cases[s->count].work.flop =
			json_number_value(json_object_get(json_object_get(c->plan, "work"), "flop"));
		s->order = s->cases[s->count++].order;
	}
}

/* Whether counters were asked for behind short windows too: the plan knows by the environment. */
static void set_counters_of(const struct record *r)
{
	const json_t *environment = json_object_get(r->machine, "environment");
	const char *asked = json_string_value(json_object_get(environment, "ASSAY_COUNTERS"));

	if (asked)
		setenv("ASSAY_COUNTERS", asked, 1);
	else
		unsetenv("ASSAY_COUNTERS");
}

static double expected_seconds(const struct record *r)
{
	struct machine *m = NULL;
	struct error err = {0};
	struct plan p;
	double sum;

	assert_int_equal(machine_from_json(&m, r->machine, &err), STATUS_OK);
	set_counters_of(r);
	plan_of(&p, r, m);
	sum = plan_seconds(&p);
	plan_release(&p);
	machine_free(m);
	return sum;
}

/* From the first case to the last one's end: what is planned, without second rounds (they come last). */
static double taken_seconds(const struct record *r)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];

		if (!c->begun || record_is_isolation(c) || json_object_get(c->plan, "again"))
			continue;
		first = c->t0_ns < first ? c->t0_ns : first;
		last = c->t1_ns > last ? c->t1_ns : last;
	}
	return (double)(last - first) * 1e-9;
}

/* A planted fault takes the time it takes, a run that was stopped did not take its plan's, and a job (a profile) has none. */
static bool ran_as_planned(const struct record *r)
{
	for (size_t i = 0; i < r->case_count; i++)
		if (r->cases[i].job)
			return false;
	return r->closed && r->close_ending == ENDING_DONE && !json_object_get(r->open, "planted");
}

static void test_plan_time__is_within_a_quarter_of_what_committed_runs_took(void **state)
{
	glob_t found = {0};
	size_t runs = 0;

	(void)state;
	assert_int_equal(glob(SOURCE_DIR "/results/*/*/journal.jsonl*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct error err = {0};
		struct record r;
		double took, said;

		*strrchr(found.gl_pathv[i], '/') = '\0';
		assert_int_equal(record_read(&r, found.gl_pathv[i], &err), STATUS_OK);
		if (!ran_as_planned(&r)) {
			record_release(&r);
			continue;
		}
		took = taken_seconds(&r);
		said = expected_seconds(&r);
		if (fabs(said - took) > SHORT_S && !(said > took / 1.25 && said < took * 1.25))
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
		cmocka_unit_test(test_plan_time__is_within_a_quarter_of_what_committed_runs_took),
	};

	return cmocka_run_group_tests_name("plan_time", tests, NULL, NULL);
}
