/* SPDX-License-Identifier: Apache-2.0 */
/* assay health: when a node is drained and resumed, exit codes, the user's commands, helpers that hang. */
#include "scratch.h"
#include "cmd/health/deadline.h"
#include "cmd/health/gate.h"
#include "cmd/health/hook.h"
#include "cmd/health/lock.h"

static struct gate g;

static int begin(void **state)
{
	(void)state;
	g = (struct gate){0};
	return 0;
}

/* A finding about a part, in a run that judged the GPUs a and b, and the node. */
static enum gate_action step(enum health_verdict verdict, bool hardware, enum cause cause, const char *part)
{
	struct health_finding f = {.verdict = verdict,
				   .hardware = hardware,
				   .cause = cause,
				   .looked = {"a", "b", HEALTH_NODE},
				   .looked_count = 3};

	snprintf(f.part, sizeof(f.part), "%s", part);
	return gate_step(&g, &f);
}

static enum gate_action fault(const char *part)
{
	return step(HEALTH_FAIL, true, CAUSE_ECC, part);
}

static enum gate_action pass(void)
{
	return step(HEALTH_PASS, false, CAUSE_NONE, HEALTH_NODE);
}

static enum gate_action unknown(void)
{
	return step(HEALTH_UNKNOWN, false, CAUSE_TIMED_OUT, HEALTH_NODE);
}

static void test_gate__one_sighting_drains_nothing_two_do(void **state)
{
	(void)state;
	assert_int_equal(fault("a"), GATE_NOTHING);
	assert_int_equal(g.state, GATE_SUSPECT);
	assert_int_equal(fault("a"), GATE_DRAIN);
	/* The command failed: the next run tries again, and nothing is forgotten. */
	assert_int_equal(g.state, GATE_SUSPECT);
	assert_int_equal(fault("a"), GATE_DRAIN);
	gate_did(&g, GATE_DRAIN, "assay health: ecc");
	assert_int_equal(g.state, GATE_DRAINED);
	assert_string_equal(g.reason, "assay health: ecc");
	/* A drained node is not drained again. */
	assert_int_equal(fault("a"), GATE_NOTHING);
	assert_int_equal(fault("b"), GATE_NOTHING);
	assert_string_equal(g.part, "a");
}

static void test_gate__sightings_are_of_one_part_and_one_cause(void **state)
{
	(void)state;
	fault("a");
	assert_int_equal(fault("b"), GATE_NOTHING);
	assert_string_equal(g.part, "b");
	assert_int_equal(step(HEALTH_FAIL, true, CAUSE_XID, "b"), GATE_NOTHING);
	assert_int_equal(g.sightings, 1);
	assert_int_equal(step(HEALTH_FAIL, true, CAUSE_XID, "b"), GATE_DRAIN);
}

static void test_gate__only_hardware_is_suspected(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(step(HEALTH_FAIL, false, CAUSE_POWER_LIMIT_LOWERED, "a"), GATE_NOTHING);
		assert_int_equal(unknown(), GATE_NOTHING);
	}
	assert_int_equal(g.state, GATE_CLEAR);
}

static void test_gate__unknown_forgets_no_suspicion_and_a_pass_does(void **state)
{
	(void)state;
	fault("a");
	unknown();
	step(HEALTH_FAIL, false, CAUSE_NCCL_ENV, HEALTH_NODE);
	assert_int_equal(g.sightings, 1);
	assert_int_equal(fault("a"), GATE_DRAIN);
	pass();
	assert_int_equal(g.state, GATE_CLEAR);
	assert_int_equal(g.sightings, 0);
}

/* A run that did not look at the part says nothing about it. */
static void test_gate__a_pass_counts_only_for_parts_that_were_judged(void **state)
{
	(void)state;
	fault("c");
	pass();
	assert_int_equal(g.state, GATE_SUSPECT);
	assert_int_equal(fault("c"), GATE_DRAIN);
	gate_did(&g, GATE_DRAIN, "r");
	for (int i = 0; i < 4; i++)
		assert_int_equal(pass(), GATE_NOTHING);
	assert_int_equal(g.state, GATE_DRAINED);
}

static void test_gate__two_passes_in_a_row_resume(void **state)
{
	(void)state;
	fault("a");
	fault("a");
	gate_did(&g, GATE_DRAIN, "r");
	assert_int_equal(pass(), GATE_NOTHING);
	assert_int_equal(unknown(), GATE_NOTHING);
	assert_int_equal(pass(), GATE_NOTHING);
	fault("b");
	assert_int_equal(pass(), GATE_NOTHING);
	assert_int_equal(pass(), GATE_RESUME);
	/* The command failed: due again. */
	assert_int_equal(pass(), GATE_RESUME);
	gate_did(&g, GATE_RESUME, "");
	assert_int_equal(g.state, GATE_CLEAR);
	/* A node that assay did not drain is never resumed. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(pass(), GATE_NOTHING);
}

static int code(const char *caller, int plain)
{
	char *argv[] = {(char *)(uintptr_t) "--for", (char *)(uintptr_t)caller};

	return health_code_for_caller(caller ? 2 : 0, argv, plain);
}

static void test_exit_codes__each_caller_has_its_own(void **state)
{
	static const struct {
		const char *caller;
		int pass, fail, unknown, usage;
	} rows[] = {
		{NULL, 0, 1, 2, 64},	      {"nobody", 0, 1, 2, 64},		 {"slurm-prolog", 0, 0, 0, 0},
		{"slurm-epilog", 0, 0, 0, 0}, {"slurm-healthcheck", 0, 0, 0, 0}, {"npd", 0, 1, 2, 2},
		{"readiness", 0, 1, 0, 0},    {"slurm-prollog", 0, 0, 0, 0},	 {"nagios", 0, 1, 2, 64},
	};
	char *glued[] = {(char *)(uintptr_t) "--json", (char *)(uintptr_t) "--for=npd"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(code(rows[i].caller, 0), rows[i].pass);
		assert_int_equal(code(rows[i].caller, 1), rows[i].fail);
		assert_int_equal(code(rows[i].caller, 2), rows[i].unknown);
		assert_int_equal(code(rows[i].caller, 64), rows[i].usage);
	}
	assert_int_equal(health_code_for_caller(2, glued, 64), 2);
	assert_int_equal(health_code_for_caller(1, glued, 64), 64);
}

static void test_line__is_short_and_plain_for_npd(void **state)
{
	struct health_finding f = {.verdict = HEALTH_FAIL, .part = "0000:1b:00.0"};
	char line[512];

	(void)state;
	memset(f.text, 'x', 200);
	f.text[3] = '\n';
	f.text[4] = '\033';
	health_line(line, sizeof(line), HEALTH_FOR_NPD, &f);
	assert_int_equal(strlen(line), 80);
	assert_memory_equal(line, "fail: 0000:1b:00.0: xxx??xx", 27);
	health_line(line, sizeof(line), HEALTH_FOR_NOBODY, &f);
	assert_int_equal(strlen(line), 20 + 200);
}

static void test_finding__the_worst_counts_and_the_first_of_equals_stays(void **state)
{
	struct health_finding f = {0};

	(void)state;
	health_finding_add(&f, HEALTH_UNKNOWN, CAUSE_BUSY, false, NULL, "u");
	health_finding_add(&f, HEALTH_FAIL, CAUSE_NCCL_ENV, false, NULL, "setting");
	health_finding_add(&f, HEALTH_FAIL, CAUSE_ECC, true, "a", "first %d", 1);
	health_finding_add(&f, HEALTH_FAIL, CAUSE_XID, true, "b", "second");
	health_finding_add(&f, HEALTH_PASS, CAUSE_NONE, false, NULL, "fine");
	assert_true(f.hardware && f.verdict == HEALTH_FAIL && f.cause == CAUSE_ECC);
	assert_string_equal(f.text, "first 1");
	assert_string_equal(f.part, "a");
}

static void check_words(const char *command, size_t count, const char *const *words)
{
	static const struct hook_values values = {
		.node = "n1", .reason = "fail: it's \"$(rm)\"; `x` %r", .cause = CAUSE_ECC};
	struct command_words w;
	struct error err = {0};

	if (hook_words(&w, "drain-with", command, &values, &err))
		fail_msg("%s", err.text);
	assert_int_equal(w.count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(w.word[i], words[i]);
	command_words_release(&w);
}

/* Whatever the reason holds, it stays one word: words are split before anything is put in. */
static void test_hook__words_are_split_before_the_reason_is_put_in(void **state)
{
	(void)state;
	check_words("scontrol update nodename=%n state=drain reason=%r", 5,
		    (const char *const[]){"scontrol", "update", "nodename=n1", "state=drain",
					  "reason=fail: it's \"$(rm)\"; `x` %r"});
	check_words("  a 'b c'  \"d \\\" e\" f\\ g '' 100%% ", 6,
		    (const char *const[]){"a", "b c", "d \" e", "f g", "", "100%"});
	check_words("a '$HOME' \"`x`\" *;|>", 4, (const char *const[]){"a", "$HOME", "`x`", "*;|>"});
}

static void test_hook__wrong_commands_are_refused(void **state)
{
	static const char *const wrong[] = {"", "  \t", "''", "a 'b", "a \"b", "a %x", "a %"};
	static const struct hook_values values = {.node = "n"};
	struct command_words w;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = {0};

		assert_int_equal(hook_words(&w, "drain-with", wrong[i], &values, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "--drain-with"));
		assert_int_equal(w.count, 0);
	}
}

static void test_hook__runs_with_its_environment_and_tells_a_failure(void **state)
{
	const volatile sig_atomic_t stop = 0;
	struct hook_values values = {.node = "n1", .cause = CAUSE_ECC};
	char command[PATH_MAX + 200], path[PATH_MAX], text[400] = "";
	struct error err = {0};
	FILE *f;

	hook_reason(values.reason, "fail: a\nb");
	assert_string_equal(values.reason, "assay health: fail: a?b");
	snprintf(path, sizeof(path), "%s/out", (const char *)*state);
	snprintf(
		command, sizeof(command),
		"sh -c 'echo \"$1|$2|$ASSAY_HEALTH_NODE|$ASSAY_HEALTH_REASON|$ASSAY_HEALTH_CAUSE\" > %s' sh %%n %%r",
		path);
	assert_int_equal(hook_run("drain-with", command, &values, &stop, &err), STATUS_OK);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "n1|assay health: fail: a?b|n1|assay health: fail: a?b|ecc\n");
	assert_int_equal(hook_run("drain-with", "sh -c 'exit 3'", &values, &stop, &err), STATUS_VENDOR);
	assert_non_null(strstr(err.text, "--drain-with: sh ended with exit code 3"));
	error_clear(&err);
	assert_true(hook_run("drain-with", "/nowhere/drain", &values, &stop, &err));
	assert_non_null(strstr(err.text, "/nowhere/drain"));
}

/* A clock that a test moves. */
static uint64_t slept;
static const char *ends; /* removed at the first sleep */

static uint64_t fake_now(void *arg)
{
	(void)arg;
	return slept;
}

static void fake_sleep(void *arg, uint64_t ns)
{
	(void)arg;
	slept += ns;
	if (ends)
		unlink(ends);
	ends = NULL;
}

static void put(const char *root, const char *path, const char *text)
{
	char name[PATH_MAX];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(name, 0700);
		*at = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_stuck__a_helper_that_stays_in_state_d_is_found(void **state)
{
	static const struct clock clock = {.now_ns = fake_now, .sleep_ns = fake_sleep};
	const char *root = *state;
	char gone[PATH_MAX];

	slept = 0;
	put(root, "1/stat", "1 (systemd) S 0 1");
	put(root, "12/stat", "12 (dd) D 1 1");
	put(root, "13/stat", "13 (assay-facts) S 1 1");
	put(root, "13/task/13/stat", "13 (assay-facts) S 1 1");
	put(root, "14/stat", "14 (x) D assay-facts) S 1 1");
	put(root, "15/stat", "");
	put(root, "self/stat", "16 (assay-facts) D 1 1");
	assert_int_equal(health_stuck_helper(root, &clock), 0);
	assert_int_equal(slept, 0); /* nothing to wait for */
	put(root, "17/stat", "17 (assay-facts) D 1 1");
	snprintf(gone, sizeof(gone), "%s/17/stat", root);
	ends = gone; /* it was only reading something */
	assert_int_equal(health_stuck_helper(root, &clock), 0);
	put(root, "17/stat", "17 (assay-facts) D 1 1");
	slept = 0;
	assert_int_equal(health_stuck_helper(root, &clock), 17);
	assert_int_equal(slept, 1000000000u);
	unlink(gone);
	/* It was killed: its first thread is a zombie, another one hangs in the driver. */
	put(root, "18/stat", "18 (assay-facts) Z 1 1");
	put(root, "18/task/18/stat", "18 (assay-facts) Z 1 1");
	put(root, "18/task/19/stat", "19 (assay-facts) D 1 1");
	assert_int_equal(health_stuck_helper(root, &clock), 18);
	assert_int_equal(health_stuck_helper("/nowhere", &clock), 0);
}

static void test_deadline__ends_what_runs_too_long(void **state)
{
	volatile sig_atomic_t asked = 0;
	struct error err = {0};
	struct deadline d;

	(void)state;
	assert_int_equal(deadline_begin(&d, &asked, 20, &err), STATUS_OK);
	while (!d.stop)
		usleep(1000);
	assert_int_equal(d.stop, 2);
	assert_true(deadline_end(&d));
	assert_int_equal(deadline_begin(&d, &asked, 3600000, &err), STATUS_OK);
	assert_int_equal(d.stop, 0);
	asked = 1; /* the user's request comes through, and is no lateness */
	while (!d.stop)
		usleep(1000);
	assert_int_equal(d.stop, 1);
	assert_false(deadline_end(&d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_gate__one_sighting_drains_nothing_two_do, begin),
		cmocka_unit_test_setup(test_gate__sightings_are_of_one_part_and_one_cause, begin),
		cmocka_unit_test_setup(test_gate__only_hardware_is_suspected, begin),
		cmocka_unit_test_setup(test_gate__unknown_forgets_no_suspicion_and_a_pass_does, begin),
		cmocka_unit_test_setup(test_gate__a_pass_counts_only_for_parts_that_were_judged, begin),
		cmocka_unit_test_setup(test_gate__two_passes_in_a_row_resume, begin),
		cmocka_unit_test(test_exit_codes__each_caller_has_its_own),
		cmocka_unit_test(test_line__is_short_and_plain_for_npd),
		cmocka_unit_test(test_finding__the_worst_counts_and_the_first_of_equals_stays),
		cmocka_unit_test(test_hook__words_are_split_before_the_reason_is_put_in),
		cmocka_unit_test(test_hook__wrong_commands_are_refused),
		cmocka_unit_test_setup_teardown(test_hook__runs_with_its_environment_and_tells_a_failure,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_stuck__a_helper_that_stays_in_state_d_is_found,
						scratch_create, scratch_remove),
		cmocka_unit_test(test_deadline__ends_what_runs_too_long),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
