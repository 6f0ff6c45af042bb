/* SPDX-License-Identifier: Apache-2.0 */
/* Every way a worker can fail, and what the supervisor makes of it. */
#include "core/process/process.h"
#include "kernel/fatbin.h"
#include "run_bed.h"

bool __real_process_stop(struct process *p, unsigned term_ms, unsigned kill_ms);
bool __wrap_process_stop(struct process *p, unsigned term_ms, unsigned kill_ms);
static bool stuck_on; /* from now on KILL ends nothing */
static pid_t stuck_pid;

bool __wrap_process_stop(struct process *p, unsigned term_ms, unsigned kill_ms)
{
	if (!stuck_on || process_poll(p))
		return __real_process_stop(p, term_ms, kill_ms);
	stuck_pid = p->pid;
	return false;
}

static struct run_bed b;

static void run(void **state, bool gpus, const char *cases)
{
	run_bed_plan(&b, *state, gpus, cases);
	if (run_bed_run(&b))
		fail_msg("%s", b.err.text);
	assert_true(b.record.closed);
	assert_int_equal(b.record.cut_bytes, 0);
}

static void test_run__cases_share_a_worker_while_each_ends_done(void **state)
{
	run(state, false, POINT("cpu", "slot: [1, 2, 3]"));
	for (unsigned i = 0; i < 3; i++) {
		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		assert_int_equal(run_bed_pid(*state, i, NULL), run_bed_pid(*state, 0, NULL));
		assert_true(record_phase(&b.record.cases[i], "burst")->ns_count >= 2);
	}
	assert_int_equal(b.record.close_ending, ENDING_DONE);
	assert_int_equal(b.summary.done, 3);
	run_bed_release(&b);
}

/* The first case had half of its CPU time: it runs once more at the end. A point of a curve does not: it has
 * taken its window again itself. */
static void test_run__a_disturbed_case_has_a_second_round(void **state)
{
	const struct record_case *last;

	run(state, false,
	    "  - {probe: 'null', target: cpu, seconds: 100ms, options: {time: 20ms, cpu_share: 0.5}}\n"
	    "  - {probe: 'null', target: cpu, phases: burst, options: {time: 1ms, cpu_share: 0.4}}\n");
	assert_int_equal(b.record.case_count, 3);
	last = &b.record.cases[2];
	for (unsigned i = 0; i < 3; i++)
		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	assert_string_equal(last->key, b.record.cases[0].key);
	assert_true(json_is_integer(json_object_get(last->plan, "again")));
	assert_int_equal(json_integer_value(json_object_get(last->plan, "again")), 0);
	assert_non_null(record_phase(last, "sustained"));
	assert_int_equal(b.summary.done, 3);
	assert_int_equal(b.summary.cases, 3);
	run_bed_release(&b);
}

/* The bus and the host's memory are the neighbours' too; a GPU's own memory is not, nor are links between all. */
static void test_run__a_disturbed_copy_over_the_link_has_a_second_round(void **state)
{
	run(state, true,
	    "  - {probe: 'null', target: gpu0, seconds: 100ms, options: {time: 20ms, scatter: 0.9}}\n"
	    "  - {probe: 'null', target: gpu0, seconds: 100ms, options: {time: 20ms, scatter: 0.9, link: "
	    "1MiB}}\n"
	    "  - {probe: 'null', target: node, seconds: 100ms, options: {time: 20ms, scatter: 0.9, link: "
	    "2MiB}}\n");
	assert_int_equal(b.record.case_count, 4);
	assert_string_equal(b.record.cases[2].where, "node");
	assert_string_equal(b.record.cases[3].key, b.record.cases[1].key);
	assert_int_equal(json_integer_value(json_object_get(b.record.cases[3].plan, "again")), 1);
	run_bed_release(&b);
}

static void test_run__a_failure_is_the_cases_own_and_the_worker_goes_on(void **state)
{
	run(state, false, POINT("cpu", "fail: prepare") POINT("cpu", "wrong: data") POINT("cpu", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_VENDOR, CAUSE_NONE);
	assert_string_equal(b.record.cases[0].text, "null: the options request a failure in prepare");
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_MISMATCH, CAUSE_WRONG_RESULT);
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	assert_int_equal(run_bed_pid(*state, 2, NULL), run_bed_pid(*state, 0, NULL));
	assert_int_equal(b.summary.failed, 2);
	run_bed_release(&b);
}

static void test_run__a_crash_costs_its_case_and_its_worker_alone(void **state)
{
	static const char *const points[] = {"prepare", "enqueue", "verify", "finish", "release"};
	char cases[512];

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		snprintf(cases, sizeof(cases), POINT("cpu", "crash: %s") POINT("cpu", "slot: 1"), points[i]);
		run(state, false, cases);
		run_bed_expect(&b, 0, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
		assert_non_null(strstr(b.record.cases[0].text, "signal 11"));
		run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		assert_int_not_equal(run_bed_pid(*state, 1, NULL), run_bed_pid(*state, 0, NULL));
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run__what_was_measured_before_a_crash_is_kept(void **state)
{
	run(state, false, POINT("cpu", "crash: finish, signal: 9, leak: 100"));
	run_bed_expect(&b, 0, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
	assert_non_null(strstr(b.record.cases[0].text, "signal 9"));
	assert_non_null(strstr(b.record.cases[0].text, "null leaks a line")); /* its last words */
	assert_non_null(record_phase(&b.record.cases[0], "burst"));
	run_bed_release(&b);
}

static void test_run__a_hang_is_ended_at_its_limit(void **state)
{
	run(state, false,
	    "  - {probe: 'null', phases: burst, limit: 2s, options: {hang: verify}}\n" /* which is come to by then */
	    "  - {probe: 'null', phases: burst, limit: 300ms, options: {hang: prepare, ignore_term: "
	    "true}}\n" POINT("cpu", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_TIMED_OUT, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT);
	assert_non_null(strstr(b.record.cases[0].text, "in phase verify"));
	run_bed_expect(&b, 1, ENDING_TIMED_OUT, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT);
	assert_non_null(strstr(b.record.cases[1].text, "KILL"));
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run__a_long_case_that_heeds_term_is_timed_out_by_it(void **state)
{
	run(state, false,
	    "  - {probe: 'null', phases: burst, seconds: 60s, limit: 300ms, options: {time: 1ms}}\n");
	run_bed_expect(&b, 0, ENDING_TIMED_OUT, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT);
	assert_non_null(strstr(b.record.cases[0].text, "TERM"));
	run_bed_release(&b);
}

static void test_run__beyond_kill_is_stuck_and_its_gpu_is_quarantined(void **state)
{
	stuck_on = true;
	run(state, true,
	    "  - {probe: 'null', target: gpu0, phases: burst, limit: 300ms, options: {hang: "
	    "prepare}}\n" POINT("gpu0", "slot: 1") POINT("gpu1", "slot: 1"));
	stuck_on = false;
	assert_true(stuck_pid > 0);
	kill(-stuck_pid, SIGKILL);
	waitpid(stuck_pid, NULL, 0);
	run_bed_expect(&b, 0, ENDING_STUCK, STATUS_NO_RESOURCE, CAUSE_STUCK);
	run_bed_expect(&b, 1, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED);
	assert_non_null(strstr(b.record.cases[1].text, "in case 0"));
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	assert_int_equal(b.summary.not_run, 1);
	run_bed_release(&b);
}

static void test_run__a_lost_gpu_is_not_used_again(void **state)
{
	run(state, true,
	    POINT("gpu3", "fail: enqueue, status: lost, after: 5") POINT("gpu3", "slot: 1")
		    POINT("gpu4", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_LOST, CAUSE_GPU_LOST);
	run_bed_expect(&b, 1, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED);
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

/* 88 degrees where the recorded GPU slows down at 89. */
static void test_run__a_hot_gpu_is_stopped_and_not_used_again(void **state)
{
	char mood[32];

	run_bed_plan(&b, *state, true,
		     "  - {probe: 'null', target: gpu2, phases: burst, seconds: 60s, limit: 100s, options: "
		     "{time: 1ms}}\n" POINT("gpu2", "slot: 1") POINT("gpu3", "slot: 1"));
	snprintf(mood, sizeof(mood), "hot:%s", machine_gpu(b.machine, 2)->pci);
	setenv("ASSAY_TEST_SAMPLER", mood, 1);
	b.o.sample = true;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	unsetenv("ASSAY_TEST_SAMPLER");
	run_bed_expect(&b, 0, ENDING_CANCELLED, STATUS_CANCELLED, CAUSE_TEMPERATURE_STOP);
	assert_non_null(strstr(b.record.cases[0].text, "88 degrees"));
	run_bed_expect(&b, 1, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED);
	assert_non_null(strstr(b.record.cases[1].text, "heat"));
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	assert_int_equal(b.record.close_ending, ENDING_DONE);
	run_bed_release(&b);
}

/* A worker that heeds nothing is ended by force, for the same cause. */
static void test_run__a_hot_gpu_is_stopped_by_force_where_need_be(void **state)
{
	char mood[32];

	run_bed_plan(&b, *state, true,
		     "  - {probe: 'null', target: gpu2, limit: 100s, options: {hang: prepare, ignore_term: "
		     "true}}\n");
	snprintf(mood, sizeof(mood), "hot:%s", machine_gpu(b.machine, 2)->pci);
	setenv("ASSAY_TEST_SAMPLER", mood, 1);
	b.o.sample = true;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	unsetenv("ASSAY_TEST_SAMPLER");
	run_bed_expect(&b, 0, ENDING_CANCELLED, STATUS_CANCELLED, CAUSE_TEMPERATURE_STOP);
	assert_non_null(strstr(b.record.cases[0].text, "KILL ended it"));
	run_bed_release(&b);
}

/* The recorded machine, its GPU 2 of another compute capability. */
static void give_capability(unsigned cc)
{
	json_t *facts = json_deep_copy(machine_json(b.machine));
	json_t *gpu = json_array_get(json_object_get(facts, "gpus"), 2);

	json_object_set_new(json_object_get(gpu, "facts"), "cc", json_integer(cc));
	machine_free(b.machine);
	assert_int_equal(machine_from_json(&b.machine, facts, &b.err), STATUS_OK);
	json_decref(facts);
}

static void test_run__a_gpu_that_no_kernel_ever_ran_on_is_named(void **state)
{
	static const struct {
		const char *target;
		unsigned cc;
		bool named;
	} rows[] = {{"gpu2", 90, false}, {"gpu2", 100, true}, {"gpu2", 80, true}, {"gpu3", 80, false}};

	if (!kernel_fatbin_at(0))
		skip(); /* built without nvcc */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char cases[160], sm[16];

		snprintf(cases, sizeof(cases),
			 "  - {probe: 'null', target: %s, phases: burst, seconds: 2ms, options: {time: "
			 "1ms}}\n",
			 rows[i].target);
		snprintf(sm, sizeof(sm), "sm_%u", rows[i].cc);
		run_bed_plan(&b, *state, true, cases);
		give_capability(rows[i].cc);
		assert_int_equal(run_bed_run(&b), STATUS_OK);
		assert_int_equal(strstr(b.warnings, sm) != NULL, rows[i].named);
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run__together_all_start_on_one_signal(void **state)
{
	uint64_t last_ready = 0, first_ramp = UINT64_MAX;

	run(state, true,
	    "  - together:\n"
	    "    - {probe: 'null', target: gpu, phases: burst, seconds: 20ms, options: {time: 1ms}}\n"
	    "    - {probe: 'null', phases: burst, seconds: 20ms, options: {time: 1ms, crash: prepare}}\n");
	for (unsigned i = 0; i < 8; i++) {
		const struct record_case *c = &b.record.cases[i];

		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		assert_true(c->together);
		last_ready = c->t0_ns > last_ready ? c->t0_ns : last_ready;
		first_ramp = record_phase(c, "ramp")->t0_ns < first_ramp ? record_phase(c, "ramp")->t0_ns
									 : first_ramp;
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(run_bed_pid(*state, i, NULL), run_bed_pid(*state, k, NULL));
	}
	assert_true(first_ramp > last_ready); /* nobody began before the last was there */
	run_bed_expect(&b, 8, ENDING_CRASHED, STATUS_NO_RESOURCE,
		       CAUSE_CRASHED); /* and the others did not wait for it */
	run_bed_release(&b);
}

/* Eight GPUs; one of them crashes in the second row and goes on with the third. */
static void test_run__lockstep_goes_row_by_row(void **state)
{
	uint64_t last = 0;

	run(state, true,
	    "  - lockstep:\n"
	    "    - {probe: 'null', target: gpu, phases: burst, seconds: 20ms, options: {time: 1ms}}\n"
	    "    - {probe: 'null', target: gpu, phases: burst, seconds: 5ms, options: {time: 1ms, slot: [1, "
	    "2]}}\n"
	    "    - {probe: 'null', target: gpu3, phases: burst, seconds: 5ms, options: {time: 1ms, crash: "
	    "prepare}}\n"
	    "    - {probe: 'null', target: gpu, phases: burst, seconds: 5ms, options: {time: 1ms, slot: "
	    "3}}\n");
	assert_int_equal(b.record.case_count, 8 + 16 + 1 + 8);
	for (unsigned row = 0; row < 3; row++) {
		uint64_t ready = 0, ramp = UINT64_MAX, over = 0;

		for (unsigned gpu = 0; gpu < 8; gpu++) { /* of a line: GPU by GPU, each with its products */
			unsigned id = row ? 8 + 2 * gpu + row - 1 : gpu;
			const struct record_case *c = &b.record.cases[id];

			run_bed_expect(&b, id, ENDING_DONE, STATUS_OK, CAUSE_NONE);
			assert_true(c->lockstep && !c->together && c->t0_ns >= last);
			assert_int_equal(run_bed_pid(*state, id, NULL), run_bed_pid(*state, gpu, NULL));
			ready = c->t0_ns > ready ? c->t0_ns : ready;
			ramp = record_phase(c, "ramp")->t0_ns < ramp ? record_phase(c, "ramp")->t0_ns : ramp;
			over = c->t1_ns > over ? c->t1_ns : over;
		}
		assert_true(ramp > ready); /* nobody began before the last was there */
		last = over;
	}
	run_bed_expect(&b, 24, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
	for (unsigned gpu = 0; gpu < 8; gpu++) {
		run_bed_expect(&b, 25 + gpu, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		if (gpu != 3)
			assert_int_equal(run_bed_pid(*state, 25 + gpu, NULL), run_bed_pid(*state, gpu, NULL));
	}
	run_bed_release(&b);
}

static void test_run__garbage_on_the_channel_ends_the_case_not_the_run(void **state)
{
	run(state, false, POINT("cpu", "garbage: 50") POINT("cpu", "garbage: 3MB") POINT("cpu", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
	assert_non_null(strstr(b.record.cases[0].text, "invalid line"));
	run_bed_expect(&b, 1, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run__what_a_library_prints_disturbs_nothing(void **state)
{
	run(state, false, POINT("cpu", "leak: 5MB") POINT("cpu", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run__a_request_to_stop_in_any_phase_closes_the_journal(void **state)
{
	static const char *const phases[] = {"prepare", "cold",	     "verify", "ramp", "burst",
					     "settle",	"sustained", "search", "pairs"};

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		run_bed_plan(&b, *state, false,
			     "  - {probe: 'null', seconds: 100ms, options: {time: 1ms, variants: 3}}\n  - "
			     "{probe: 'null'}\n");
		run_bed_stop_in(&b, phases[i]);
		assert_int_equal(run_bed_run(&b), STATUS_OK);
		assert_true(b.summary.cancelled);
		assert_true(b.record.closed);
		assert_int_equal(b.record.close_ending, ENDING_CANCELLED);
		run_bed_expect(&b, 0, ENDING_CANCELLED, STATUS_CANCELLED, CAUSE_INTERRUPTED);
		assert_false(b.record.cases[1].begun);
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run__a_request_to_stop_ends_what_hangs_too(void **state)
{
	static const char *const points[] = {"prepare", "verify"};
	char line[128];

	for (size_t i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "  - {probe: 'null', options: {hang: %s, ignore_term: true}}\n",
			 points[i]);
		run_bed_plan(&b, *state, false, line);
		run_bed_stop_in(&b, points[i]);
		assert_int_equal(run_bed_run(&b), STATUS_OK);
		run_bed_expect(&b, 0, ENDING_CANCELLED, STATUS_CANCELLED, CAUSE_INTERRUPTED);
		assert_int_equal(b.record.close_ending, ENDING_CANCELLED);
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run__a_second_request_waits_for_nothing(void **state)
{
	run_bed_plan(&b, *state, false,
		     "  - {probe: 'null', phases: burst, options: {hang: prepare, ignore_term: true}}\n");
	run_bed_stop = 2;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	assert_int_equal(b.record.close_ending, ENDING_CANCELLED);
	run_bed_release(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_run__cases_share_a_worker_while_each_ends_done),
		scratch_test(test_run__a_disturbed_case_has_a_second_round),
		scratch_test(test_run__a_disturbed_copy_over_the_link_has_a_second_round),
		scratch_test(test_run__a_failure_is_the_cases_own_and_the_worker_goes_on),
		scratch_test(test_run__a_crash_costs_its_case_and_its_worker_alone),
		scratch_test(test_run__what_was_measured_before_a_crash_is_kept),
		scratch_test(test_run__a_hang_is_ended_at_its_limit),
		scratch_test(test_run__a_long_case_that_heeds_term_is_timed_out_by_it),
		scratch_test(test_run__beyond_kill_is_stuck_and_its_gpu_is_quarantined),
		scratch_test(test_run__a_lost_gpu_is_not_used_again),
		scratch_test(test_run__a_hot_gpu_is_stopped_and_not_used_again),
		scratch_test(test_run__a_hot_gpu_is_stopped_by_force_where_need_be),
		scratch_test(test_run__a_gpu_that_no_kernel_ever_ran_on_is_named),
		scratch_test(test_run__together_all_start_on_one_signal),
		scratch_test(test_run__lockstep_goes_row_by_row),
		scratch_test(test_run__garbage_on_the_channel_ends_the_case_not_the_run),
		scratch_test(test_run__what_a_library_prints_disturbs_nothing),
		scratch_test(test_run__a_request_to_stop_in_any_phase_closes_the_journal),
		scratch_test(test_run__a_request_to_stop_ends_what_hangs_too),
		scratch_test(test_run__a_second_request_waits_for_nothing),
	};
	int code;

	if (run_bed_child(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("run_faults", tests, NULL, NULL);
}
