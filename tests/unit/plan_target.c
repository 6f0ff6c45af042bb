/* SPDX-License-Identifier: Apache-2.0 */
/* Which device each case is for, and why one is skipped: absent, busy, recorded, not asked. */
#include "plan_bed.h"
#include <math.h>

static void test_plan_target__no_gpu_is_a_skip_and_a_gpu_without_driver_is_not(void **state)
{
	const char *suite = "  - {probe: thing, target: gpu}\n  - {probe: ecc, target: gpu}\n";

	(void)state;
	assert_int_equal(build(suite), STATUS_OK);
	expect(0, "thing engine=big deep=false kind=red size=4KiB", "gpu", STATUS_UNSUPPORTED,
	       CAUSE_NO_HARDWARE);
	expect(1, "ecc", "gpu", STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE);
	plan_release(&plan);
	fake_machine_init(&machine, 2);
	machine.gpu[0].status = STATUS_UNAVAILABLE;
	machine.gpu[0].cause = CAUSE_DRIVER_MISSING;
	machine.gpu[1].status = STATUS_LOST;
	assert_int_equal(build(suite), STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_UNAVAILABLE);
	assert_int_equal(nth(0)->skip_cause, CAUSE_DRIVER_MISSING);
	assert_non_null(strstr(nth(0)->skip_reason, "0000:1b:00.0"));
	assert_int_equal(nth(1)->skip, STATUS_LOST);
	assert_int_equal(nth(1)->skip_cause, CAUSE_GPU_LOST);
	assert_int_equal(nth(2)->skip, STATUS_UNAVAILABLE); /* the reading too */
	plan_release(&plan);
}

/* Nobody has to know which readings are of a GPU. */
static void test_plan_target__a_reading_goes_where_it_reads_and_nowhere_else(void **state)
{
	static const struct {
		const char *line, *why;
	} refused[] = {
		{"  - {probe: ecc, target: node}\n", "probe ecc reads a GPU, not node; its target is gpu"},
		{"  - {probe: ecc, target: cpu}\n", "probe ecc reads a GPU, not cpu; its target is gpu"},
		{"  - {probe: limits, target: gpu}\n",
		 "probe limits reads the node, not gpu; its target is node"},
	};

	(void)state;
	assert_int_equal(build("  - {probe: ecc}\n  - {probe: limits}\n"), STATUS_OK);
	expect(0, "ecc", "gpu", STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE);
	assert_string_equal(nth(0)->skip_reason, "no NVIDIA GPU on the PCI bus");
	expect(1, "limits", "node", STATUS_OK, CAUSE_NONE);
	plan_release(&plan);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(build(refused[i].line), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, refused[i].why));
	}
	fake_machine_init(&machine, 2);
	assert_int_equal(build("  - {probe: ecc}\n"), STATUS_OK);
	assert_int_equal(plan.case_count, 2);
	assert_string_equal(nth(1)->target_text, "gpu1");
	plan_release(&plan);
}

/* Of the engines that a case names alone: without a GPU theirs is the reason, not that no CPU runs them. */
static void test_plan_target__the_engines_named_say_where_a_case_runs(void **state)
{
	static const struct engine far = {.name = "far", .targets = TARGET_GPU},
				   between = {.name = "between", .targets = TARGET_PAIR};
	static const struct engine *const all[] = {&far, &fast, &between, NULL};
	const struct probe mixed = {.name = "mixed", .kind = PROBE_TIMED, .engines = all};
	char words[][8] = {"far", "fast", "between", "all", "wrong"};
	char *names[] = {words[0], words[1], words[2], words[3], words[4]};

	(void)state;
	assert_string_equal(target_default(&mixed, NULL, 0), "cpu");
	assert_string_equal(target_default(&mixed, names, 1), "gpu");
	assert_string_equal(target_default(&mixed, names + 1, 1), "cpu");
	assert_string_equal(target_default(&mixed, names + 2, 1), "pair");
	assert_string_equal(target_default(&mixed, names, 2), "cpu"); /* one of both */
	assert_string_equal(target_default(&mixed, names + 3, 1), "cpu");
	assert_string_equal(target_default(&mixed, names + 4, 1), "cpu");
	assert_string_equal(target_default(&wire, NULL, 0), "pair");
}

static void test_plan_target__each_granted_gpu_is_a_target(void **state)
{
	(void)state;
	fake_machine_init(&machine, 3);
	machine.gpu[1].granted = false;
	assert_int_equal(build("  - {probe: thing, target: gpu}\n  - {probe: thing, target: gpu7}\n"),
			 STATUS_OK);
	assert_int_equal(plan.case_count, 4);
	assert_string_equal(nth(0)->target_text, "gpu0");
	assert_int_equal(nth(0)->skip, STATUS_OK);
	assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_GRANTED);
	assert_int_equal(nth(2)->target.gpu[0], 2);
	assert_int_equal(nth(3)->skip_cause, CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(3)->skip_reason, "this machine has 3"));
	plan_release(&plan);
}

static void test_plan_target__a_busy_gpu_is_blocked_unless_beside(void **state)
{
	const struct plan_options beside = {.beside = true};

	(void)state;
	fake_machine_init(&machine, 1);
	fake_gpu_fact(&machine.gpu[0], GPU_FACT_processes, 1);
	assert_int_equal(build("  - {probe: thing, target: gpu}\n  - {probe: ecc, target: gpu}\n"),
			 STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_UNAVAILABLE);
	assert_int_equal(nth(0)->skip_cause, CAUSE_BUSY);
	assert_non_null(strstr(nth(0)->skip_reason, "1 other process"));
	assert_int_equal(nth(1)->skip, STATUS_OK); /* a reading disturbs nobody */
	plan_release(&plan);
	assert_int_equal(build_with("  - {probe: thing, target: gpu}\n", &beside), STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_OK);
	assert_non_null(strstr(nth(0)->beside, "1 other process"));
	plan_release(&plan);
}

static void test_plan_target__signs_of_use_are_told_apart(void **state)
{
	char reason[160];
	struct gpu *g = &machine.gpu[0];

	(void)state;
	fake_machine_init(&machine, 1);
	assert_false(gpu_busy(g, reason, sizeof(reason)));
	fake_gpu_fact(g, GPU_FACT_memory_free_bytes, 70e9);
	assert_true(gpu_busy(g, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "9.3 GiB"));
	fake_gpu_fact(g, GPU_FACT_memory_free_bytes, 79.9e9);
	fake_gpu_fact(g, GPU_FACT_utilization_share, 0.4);
	assert_true(gpu_busy(g, reason, sizeof(reason)));
	fake_gpu_fact(g, GPU_FACT_utilization_share, 0.01); /* an idle desktop */
	fake_gpu_fact(g, GPU_FACT_processes, 2);
	fake_gpu_fact(g, GPU_FACT_processes_graphics, 2);
	assert_false(gpu_busy(g, reason, sizeof(reason)));
	fake_gpu_fact(g, GPU_FACT_processes_graphics, 1);
	assert_true(gpu_busy(g, reason, sizeof(reason)));
}

static void test_plan_target__a_recorded_machine_is_never_measured(void **state)
{
	(void)state;
	fake_machine_init(&machine, 1);
	machine.live = false;
	fake_gpu_fact(&machine.gpu[0], GPU_FACT_processes, 5); /* of another day */
	assert_int_equal(build("  - {probe: thing, target: [cpu, gpu]}\n  - {probe: ecc, target: gpu}\n"),
			 STATUS_OK);
	assert_int_equal(nth(0)->skip_cause, CAUSE_RECORDED);
	assert_int_equal(nth(1)->skip_cause, CAUSE_RECORDED);
	assert_int_equal(nth(2)->skip, STATUS_OK);
	plan_release(&plan);
}

static void test_plan_target__numa_nodes_are_targets_where_there_are_several(void **state)
{
	(void)state;
	assert_int_equal(build("  - {probe: thing, target: cpu-each-numa}\n"), STATUS_OK);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_HARDWARE);
	plan_release(&plan);
	machine.cpu.numa_count = 2;
	machine.cpu.numa[1] = (struct numa){.node = 3};
	assert_int_equal(build("  - {probe: thing, target: cpu-each-numa}\n"), STATUS_OK);
	assert_string_equal(nth(0)->target_text, "cpu:node0");
	assert_string_equal(nth(1)->target_text, "cpu:node3");
	assert_int_equal(nth(1)->target.numa, 3);
	assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_GRANTED);
	assert_int_equal(plan.count, 2); /* each is bound to its node: a worker each */
	plan_release(&plan);
}

static void test_plan_target__together_is_a_step_of_its_own(void **state)
{
	(void)state;
	fake_machine_init(&machine, 2);
	assert_int_equal(build("  - {probe: thing, target: gpu0}\n"
			       "  - together: [{probe: thing, target: gpu}, {probe: thing, seconds: 3s}]\n"
			       "  - {probe: thing, target: gpu0}\n"),
			 STATUS_OK);
	assert_int_equal(plan.count, 3);
	assert_true(plan.steps[1].order == STEP_TOGETHER && plan.steps[1].count == 3);
	assert_true(nth(1)->order == STEP_TOGETHER && nth(1)->seconds == 2 && nth(3)->seconds == 3);
	assert_false(plan.steps[2].order);
	plan_release(&plan);
}

#define LOCKSTEP                                                                                             \
	"  - lockstep:\n    - {probe: thing, target: gpu, options: {size: [1KiB, 2KiB]}, seconds: 1s}\n"

static void test_plan_target__lockstep_is_as_long_as_one_gpu(void **state)
{
	double alone;

	(void)state;
	fake_machine_init(&machine, 1);
	assert_int_equal(build(LOCKSTEP), STATUS_OK);
	alone = plan.seconds_expected;
	assert_true(plan.steps[0].order == STEP_IN_ORDER && !nth(0)->order); /* nothing to keep in step */
	plan_release(&plan);
	fake_machine_init(&machine, 4);
	assert_int_equal(build("  - {probe: thing, target: gpu0}\n" LOCKSTEP), STATUS_OK);
	assert_int_equal(plan.count, 2);
	assert_true(plan.steps[1].order == STEP_LOCKSTEP && plan.steps[1].count == 8);
	assert_true(nth(1)->order == STEP_LOCKSTEP && nth(1)->seconds == 1);
	/* One worker more, and the turns of three beside the first: 1 s; the cases in turns took six more. */
	assert_true(fabs(plan.seconds_expected - plan_case_seconds(nth(0)) - alone - 1) < 1e-6);
	plan_release(&plan);
}

/* One GPU alone after all at once: with one GPU the plan has it already. */
static void test_plan_target__one_alone_is_planned_once(void **state)
{
	(void)state;
	for (unsigned gpus = 1; gpus <= 2; gpus++) {
		fake_machine_init(&machine, gpus);
		assert_int_equal(
			build(LOCKSTEP
			      "  - {probe: thing, target: gpu0, options: {size: 2KiB}, seconds: 1s}\n"),
			STATUS_OK);
		assert_int_equal(nth(2 * gpus)->skip_cause, gpus == 1 ? CAUSE_NOT_ASKED : CAUSE_NONE);
		if (gpus == 1)
			assert_string_equal(nth(2)->skip_reason, "case 1 is the same measurement");
		plan_release(&plan);
	}
}

static void test_plan_target__a_target_asked_for_leaves_the_rest_out(void **state)
{
	const struct plan_options cpu = {.target = "cpu", .seconds = 4}, bad = {.target = "gpuu"};

	(void)state;
	fake_machine_init(&machine, 1);
	assert_int_equal(build_with("  - {probe: thing, target: [cpu, gpu], seconds: 1s}\n", &cpu),
			 STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_OK);
	assert_true(nth(0)->seconds == 4);
	assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_ASKED);
	plan_release(&plan);
	assert_int_equal(build_with("  - {probe: thing}\n", &bad), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "command line: target"));
}

static void test_plan_target__a_gpu_asked_for_must_be_here(void **state)
{
	static const struct {
		unsigned gpus;
		const char *target, *says;
	} wishes[] = {{0, "gpu9", "no NVIDIA GPU"}, {1, "gpu1", "has gpu0 and"}, {8, "gpu8", "gpu0 to gpu7"}};
	const struct plan_options last = {.target = "gpu7"}, each = {.target = "cpu-each-numa"};

	(void)state;
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		const struct plan_options wish = {.target = wishes[i].target};

		fake_machine_init(&machine, wishes[i].gpus);
		assert_int_equal(build_with("  - {probe: thing, target: gpu}\n", &wish), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, wishes[i].target));
		if (!strstr(err.text, wishes[i].says))
			fail_msg("%s", err.text);
	}
	assert_int_equal(build_with("  - {probe: thing, target: gpu}\n", &last), STATUS_OK);
	assert_int_equal(nth(6)->skip_cause, CAUSE_NOT_ASKED);
	assert_int_equal(nth(7)->skip, STATUS_OK);
	plan_release(&plan);
	machine.cpu.numa_count = 2;
	machine.cpu.numa[1] = (struct numa){.node = 1, .cpus = 4};
	assert_int_equal(build_with("  - {probe: thing, target: [cpu, cpu-each-numa]}\n", &each), STATUS_OK);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NOT_ASKED);
	assert_int_equal(nth(2)->skip, STATUS_OK);
	plan_release(&plan);
}

static void test_plan_target__together_on_one_gpu_is_a_skip(void **state)
{
	(void)state;
	fake_machine_init(&machine, 1);
	assert_int_equal(build("  - together: [{probe: thing, target: gpu}]\n"
			       "  - together: [{probe: thing, target: gpu}, {probe: thing}]\n"),
			 STATUS_OK);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(0)->skip_reason, "one GPU"));
	assert_int_equal(nth(1)->skip, STATUS_OK);
	plan_release(&plan);
}

static void test_plan_target__each_numa_node_is_a_case(void **state)
{
	static const char line[] = "  - {probe: thing, options: {size: [1KiB, 2KiB], numa: each}}\n";

	(void)state;
	fake_machine_init(&machine, 0);
	assert_int_equal(build(line), STATUS_OK);
	assert_int_equal(plan.case_count, 2);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(0)->skip_reason, "one NUMA node"));
	plan_release(&plan);
	machine.cpu.numa_count = 2;
	machine.cpu.numa[1] = (struct numa){.node = 3, .cpus = 4};
	assert_int_equal(build(line), STATUS_OK);
	assert_int_equal(plan.case_count, 4);
	assert_int_equal(nth(1)->skip, STATUS_OK);
	assert_string_equal(((const struct opts *)nth(0)->opts)->numa, "0");
	assert_string_equal(((const struct opts *)nth(1)->opts)->numa, "3");
	plan_release(&plan);
}

static void test_plan_target__pairs_are_ordered_and_each_once_is_not(void **state)
{
	static const struct {
		unsigned gpus;
		size_t pairs, once;
	} tries[] = {{2, 2, 1}, {4, 12, 6}, {8, 56, 28}, {20, 240, 120} /* as many GPUs as a target holds */};

	(void)state;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		fake_machine_init(&machine, tries[i].gpus);
		assert_int_equal(build("  - {probe: wire}\n"),
				 STATUS_OK); /* what has pairs alone is for pairs */
		assert_int_equal(plan.case_count, tries[i].pairs);
		assert_string_equal(nth(0)->target_text, "gpu0>gpu1");
		assert_int_equal(nth(0)->target.gpu_count, 2);
		assert_int_equal(nth(0)->target.ranks, 1);
		assert_int_equal(nth(tries[i].gpus < 16 ? tries[i].gpus - 1 : 15)->target.gpu[0], 1);
		assert_int_equal(nth(tries[i].gpus < 16 ? tries[i].gpus - 1 : 15)->target.gpu[1], 0);
		plan_release(&plan);
		assert_int_equal(build("  - {probe: wire, target: pair-once}\n"), STATUS_OK);
		assert_int_equal(plan.case_count, tries[i].once);
		for (size_t k = 0; k < plan.case_count; k++)
			assert_true(nth(k)->target.gpu[0] < nth(k)->target.gpu[1]);
		plan_release(&plan);
	}
}

static void test_plan_target__a_pair_needs_two_gpus(void **state)
{
	static const char suite[] = "  - {probe: wire, target: [pair, pair-once, gpu0>gpu1]}\n";

	(void)state;
	fake_machine_init(&machine, 0);
	assert_int_equal(build(suite), STATUS_OK);
	for (size_t k = 0; k < 3; k++)
		assert_int_equal(nth(k)->skip_cause, CAUSE_NO_HARDWARE);
	plan_release(&plan);
	fake_machine_init(&machine, 1);
	assert_int_equal(build(suite), STATUS_OK);
	expect(0, "wire engine=across deep=false kind=red size=4KiB", "pair", STATUS_UNSUPPORTED,
	       CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(0)->skip_reason, "one GPU"));
	assert_int_equal(nth(1)->skip_cause, CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(2)->skip_reason, "no GPU 1"));
	plan_release(&plan);
}

static void test_plan_target__what_keeps_one_gpu_keeps_its_pairs(void **state)
{
	(void)state;
	fake_machine_init(&machine, 3);
	machine.gpu[2].granted = false;
	fake_gpu_fact(&machine.gpu[1], GPU_FACT_processes, 1);
	assert_int_equal(build("  - {probe: wire, target: [gpu0>gpu1, gpu1>gpu0, gpu0>gpu2, gpu2>gpu0]}\n"),
			 STATUS_OK);
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(nth(k)->skip_cause, CAUSE_BUSY);
		assert_non_null(strstr(nth(k)->skip_reason, "0000:1c:00.0"));
	}
	for (size_t k = 2; k < 4; k++) {
		assert_int_equal(nth(k)->skip_cause, CAUSE_NOT_GRANTED);
		assert_non_null(strstr(nth(k)->skip_reason, "0000:1d:00.0"));
	}
	plan_release(&plan);
}

static void test_plan_target__a_pair_is_read_back_and_no_other_text_is(void **state)
{
	static const char *const wrong[] = {"gpu0>gpu0",      "gpu0>",	    ">gpu1",
					    "gpu0>gpu1>gpu2", "gpu0 >gpu1", "gpu0>cpu"};
	json_t *two, *one;
	struct target t;

	(void)state;
	fake_machine_init(&machine, 4);
	two = json_pack("[s, s]", machine.gpu[3].pci, machine.gpu[1].pci);
	one = json_pack("[s]", machine.gpu[3].pci);
	assert_int_equal(target_parse(&t, "gpu3>gpu1", two, &machine, &err), STATUS_OK);
	assert_true(t.kind == TARGET_PAIR && t.gpu[0] == 3 && t.gpu[1] == 1);
	assert_int_equal(target_parse(&t, "gpu3>gpu1", one, &machine, &err), STATUS_BAD_INPUT);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char suite[80];

		assert_int_equal(target_parse(&t, wrong[i], two, &machine, &err), STATUS_BAD_INPUT);
		snprintf(suite, sizeof(suite), "  - {probe: wire, target: \"%s\"}\n", wrong[i]);
		assert_int_equal(build(suite), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "pair-once"));
	}
	json_decref(one);
	json_decref(two);
}

static void test_plan_target__pairs_can_be_asked_for(void **state)
{
	static const struct {
		const char *wish;
		size_t asked;
	} tries[] = {{"pair", 12}, {"pair-once", 6}, {"gpu2>gpu1", 1}, {"gpu", 0}, {"all", 12}};
	const struct plan_options absent = {.target = "gpu2>gpu4"};

	(void)state;
	fake_machine_init(&machine, 4);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const struct plan_options wish = {.target = tries[i].wish};
		size_t asked = 0;

		assert_int_equal(build_with("  - {probe: wire, target: pair}\n", &wish), STATUS_OK);
		for (size_t k = 0; k < plan.case_count; k++)
			asked += !nth(k)->skip;
		assert_int_equal(asked, tries[i].asked);
		plan_release(&plan);
	}
	assert_int_equal(build_with("  - {probe: wire}\n", &absent), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "gpu0 to gpu3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan_target__##name, setup)
		test(no_gpu_is_a_skip_and_a_gpu_without_driver_is_not),
		test(a_reading_goes_where_it_reads_and_nowhere_else),
		test(the_engines_named_say_where_a_case_runs),
		test(each_granted_gpu_is_a_target),
		test(a_busy_gpu_is_blocked_unless_beside),
		test(signs_of_use_are_told_apart),
		test(a_recorded_machine_is_never_measured),
		test(numa_nodes_are_targets_where_there_are_several),
		test(together_is_a_step_of_its_own),
		test(lockstep_is_as_long_as_one_gpu),
		test(one_alone_is_planned_once),
		test(a_target_asked_for_leaves_the_rest_out),
		test(a_gpu_asked_for_must_be_here),
		test(together_on_one_gpu_is_a_skip),
		test(each_numa_node_is_a_case),
		test(pairs_are_ordered_and_each_once_is_not),
		test(a_pair_needs_two_gpus),
		test(what_keeps_one_gpu_keeps_its_pairs),
		test(a_pair_is_read_back_and_no_other_text_is),
		test(pairs_can_be_asked_for),
#undef test
	};

	return cmocka_run_group_tests_name("plan_target", tests, NULL, NULL);
}
