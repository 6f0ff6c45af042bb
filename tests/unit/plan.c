/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "core/text.h"
#include "run/case_build.h"
#include "run/need.h"
#include "run/suite.h"
#include "run/target.h"
#include "fake_machine.h"
#include "scratch.h"

/* A probe with two engines: "fast" runs on CPUs unless size is 13, "big" on both but lacks its library at
 * size 7. */
struct opts {
	uint64_t size;
	uint32_t kind;
	const char *path, *numa;
	bool deep;
};
static const char *const kinds[] = {"red", "green", NULL};
static const struct opt rows[] = {
	OPT_ROW(struct opts, size, .name = "size", .preset = "4KiB", .unit = "B", .min = 1, .max = 1e9,
		.help = "size"),
	OPT_ROW(struct opts, kind, .name = "kind", .preset = "red", .choices = kinds, .help = "kind"),
	OPT_ROW(struct opts, path, .name = "path", .help = "path"),
	OPT_ROW(struct opts, deep, .name = "deep", .help = "deep"),
	OPT_ROW(struct opts, numa, .name = "numa", .help = "numa"),
};
static const struct field fields[] = {{"depth", "m", "how deep", FIELD_F64, 1}};

static enum status fast_supports(const struct machine *m, const struct target *t, const void *opts,
				 struct error *err)
{
	(void)m, (void)t;
	if (((const struct opts *)opts)->size == 99)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "fast: 99 is more than half of the memory");
	return ((const struct opts *)opts)->size == 13
		       ? error_set(err, STATUS_UNSUPPORTED, "fast: no odd sizes")
		       : STATUS_OK;
}

static enum status big_supports(const struct machine *m, const struct target *t, const void *opts,
				struct error *err)
{
	uint64_t size = ((const struct opts *)opts)->size;

	(void)m, (void)t;
	return size == 7 || size == 13 ? error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
							 "libbig.so is not here")
				       : STATUS_OK;
}

static enum status check(const void *opts, struct error *err)
{
	return ((const struct opts *)opts)->size == 666
		       ? error_set(err, STATUS_BAD_INPUT, "size 666 never fits")
		       : STATUS_OK;
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	(void)m, (void)t;
	return (struct work){.read_bytes = (double)((const struct opts *)opts)->size, .limit = "memory"};
}

static const struct engine fast = {
	.name = "fast", .libs = "", .targets = TARGET_CPU, .supports = fast_supports};
static const struct engine big = {.name = "big",
				  .libs = "big",
				  .targets = TARGET_CPU | TARGET_GPU,
				  .streams = 1,
				  .supports = big_supports};
static const struct engine *const engines[] = {&fast, &big, NULL};
static const struct probe thing = {
	.name = "thing",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = engines,
	.work = work,
	.check = check,
	.fields = fields,
	.field_count = 1,
};
/* A probe that says what memory it needs. */
static struct need wanted;

static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	(void)m, (void)t, (void)opts;
	*out = wanted;
}

static const struct probe hungry = {
	.name = "hungry",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = engines,
	.work = work,
	.need = need,
};
static const struct probe ecc = {.name = "ecc", .kind = PROBE_READING};
static const struct probe *const registry[] = {&ecc, &thing, &hungry, NULL};

static struct machine machine;
static struct plan plan;
static struct error err;

static enum status build_with(const char *cases, const struct plan_wishes *wishes)
{
	struct text t = {0};
	struct suite *s = NULL;
	enum status st;

	err = (struct error){0};
	plan = (struct plan){0};
	text_addf(&t, "name: tiny\ncases:\n%s", cases);
	st = suite_parse(&s, "tiny.yaml", t.data, t.size, &err);
	text_release(&t);
	if (!st)
		st = plan_build(&plan, s, &machine, registry, wishes, &err);
	suite_free(s);
	return st;
}

static enum status build(const char *cases)
{
	return build_with(cases, NULL);
}

static const struct bench_case *nth(size_t n)
{
	for (size_t i = 0; i < plan.count; i++) {
		if (n < plan.steps[i].count)
			return &plan.steps[i].cases[n];
		n -= plan.steps[i].count;
	}
	fail_msg("no such case");
	return NULL;
}

static void expect(size_t n, const char *key, const char *target, enum status skip, enum cause cause)
{
	assert_string_equal(nth(n)->key, key);
	assert_string_equal(nth(n)->target_text, target);
	assert_int_equal(nth(n)->skip, skip);
	assert_int_equal(nth(n)->skip_cause, cause);
	assert_int_equal(nth(n)->id, n);
	assert_true(!skip || *nth(n)->skip_reason);
}

static int setup(void **state)
{
	(void)state;
	fake_machine_init(&machine, 0);
	return 0;
}

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

static void fits(const char *target, enum status expected, const char *word)
{
	char cases[80];

	snprintf(cases, sizeof(cases), "  - {probe: hungry, target: %s, engine: big}\n", target);
	assert_int_equal(build(cases), STATUS_OK);
	assert_int_equal(nth(0)->skip, expected);
	assert_int_equal(nth(0)->skip_cause, expected ? CAUSE_NO_MEMORY : CAUSE_NONE);
	if (word && !strstr(nth(0)->skip_reason, word))
		fail_msg("no \"%s\" in: %s", word, nth(0)->skip_reason);
	assert_true(nth(0)->need.known);
	plan_release(&plan);
}

/* The GPU has 80 GB, 79.5 of them free; 3 GiB (3.22 GB) are left alone. */
static void test_plan__a_case_that_cannot_fit_is_skipped_ahead_with_the_numbers(void **state)
{
	(void)state;
	fake_machine_init(&machine, 1);
	machine.cpu.memory_bytes = 16000000000;
	wanted = (struct need){.device_bytes = 76e9};
	fits("gpu0", STATUS_OK, NULL);
	wanted.device_bytes = 76.5e9;
	fits("gpu0", STATUS_UNAVAILABLE, "has free only 79.5 GB");
	wanted.device_bytes = 77e9;
	fits("gpu0", STATUS_UNSUPPORTED, "needs 77.0 GB of device memory");
	wanted = (struct need){.host_bytes = 16e9};
	fits("cpu", STATUS_OK, NULL);
	wanted.host_bytes = 16.1e9;
	fits("cpu", STATUS_UNSUPPORTED, "this machine has 16.0 GB");
	fits("gpu0", STATUS_UNSUPPORTED, "needs 16.1 GB of host memory");
	machine.cpu.memory_limit_bytes = 2000000000;
	wanted.host_bytes = 2.5e9;
	fits("cpu", STATUS_UNSUPPORTED, "control group may use 2.00 GB");
	machine.cpu.memory_bytes = machine.cpu.memory_limit_bytes = 0; /* nobody knows */
	fits("cpu", STATUS_OK, NULL);
	fake_machine_init(&machine, 0);
}

static void test_plan__the_peak_is_of_the_largest_case_and_of_those_together(void **state)
{
	struct need_peak peak;

	(void)state;
	fake_machine_init(&machine, 2);
	wanted = (struct need){.device_bytes = 5e9, .host_bytes = 2e9};
	assert_int_equal(build("  - {probe: hungry, target: gpu0, engine: big}\n"
			       "  - {probe: hungry, target: gpu1, engine: big}\n"
			       "  - {probe: thing}\n"),
			 STATUS_OK);
	peak = need_peak(&plan);
	assert_true(peak.device_bytes == 5e9 && peak.host_bytes == 2e9);
	assert_int_equal(peak.unknown, 1);
	plan_release(&plan);
	assert_int_equal(build("  - together:\n"
			       "      - {probe: hungry, target: gpu0, engine: big}\n"
			       "      - {probe: hungry, target: gpu1, engine: big}\n"),
			 STATUS_OK);
	peak = need_peak(&plan);
	assert_true(peak.device_bytes == 5e9 && peak.host_bytes == 4e9);
	assert_int_equal(peak.unknown, 0);
	plan_release(&plan);
	fake_machine_init(&machine, 0);
}

static void test_plan__an_engine_that_finds_no_room_ahead_skips_its_case(void **state)
{
	(void)state;
	assert_int_equal(build("  - {probe: thing, engine: fast, options: {size: 99}}\n"), STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_UNSUPPORTED);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_MEMORY);
	assert_string_equal(nth(0)->skip_reason, "fast: 99 is more than half of the memory");
	plan_release(&plan);
}

static void test_plan__no_gpu_is_a_skip_and_a_gpu_without_driver_is_not(void **state)
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

static void test_plan__each_granted_gpu_is_a_target(void **state)
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

static void test_plan__a_busy_gpu_is_blocked_unless_beside(void **state)
{
	const struct plan_wishes beside = {.beside = true};

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

static void test_plan__signs_of_use_are_told_apart(void **state)
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

static void test_plan__a_recorded_machine_is_never_measured(void **state)
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

static void test_plan__numa_nodes_are_targets_where_there_are_several(void **state)
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

static void test_plan__together_is_a_step_of_its_own(void **state)
{
	(void)state;
	fake_machine_init(&machine, 2);
	assert_int_equal(build("  - {probe: thing, target: gpu0}\n"
			       "  - together: [{probe: thing, target: gpu}, {probe: thing, seconds: 3s}]\n"
			       "  - {probe: thing, target: gpu0}\n"),
			 STATUS_OK);
	assert_int_equal(plan.count, 3);
	assert_true(plan.steps[1].together && plan.steps[1].count == 3);
	assert_true(nth(1)->together && nth(1)->seconds == 2 && nth(3)->seconds == 3);
	assert_false(plan.steps[2].together);
	plan_release(&plan);
}

static void test_plan__a_target_asked_for_leaves_the_rest_out(void **state)
{
	const struct plan_wishes cpu = {.target = "cpu", .seconds = 4}, bad = {.target = "gpuu"};

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

static void test_plan__a_gpu_asked_for_must_be_here(void **state)
{
	static const struct {
		unsigned gpus;
		const char *target, *says;
	} wishes[] = {{0, "gpu9", "no NVIDIA GPU"}, {1, "gpu1", "has gpu0 and"}, {8, "gpu8", "gpu0 to gpu7"}};
	const struct plan_wishes last = {.target = "gpu7"}, each = {.target = "cpu-each-numa"};

	(void)state;
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		const struct plan_wishes wish = {.target = wishes[i].target};

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

static void test_plan__together_on_one_gpu_is_a_skip(void **state)
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

static void test_plan__each_numa_node_is_a_case(void **state)
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

static void test_plan__rounds_repeat_what_is_timed(void **state)
{
	static const char cases[] = "  - {probe: ecc, target: node}\n  - {probe: thing}\n"
				    "  - together: [{probe: thing, target: gpu}]\n";
	const struct plan_wishes twice = {.rounds = 2}, once = {.rounds = 1};
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
	assert_true(nth(5)->together && nth(5)->round == 2);
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
	const struct plan_wishes wish = {.seconds = 3};
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

static void test_plan__what_is_not_understood_is_named_with_its_place(void **state)
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
		{"  - probe: thing\n    options: {size: 666}\n", "size 666 never fits"},
		{"  - probe: thing\n    options: {size: [[1]]}\n", "tiny.yaml:4: size: a list inside a list"},
		{"  - probe: thing\n    options: 7\n", "tiny.yaml:4: options"},
		{"  - probe: thing\n    phase: burst\n", "tiny.yaml:4"},
		{"  - probe: thing\n    phases: bust\n", "did you mean burst"},
		{"  - probe: thing\n    require: judgd\n", "did you mean judged"},
		{"  - probe: thing\n    seconds: -1\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    seconds: 1e30\n", "tiny.yaml:4: seconds"},
		{"  - probe: thing\n    limit: soon\n", "tiny.yaml:4: limit"},
		{"  - probe: thing\n    engine: fast\n    target: gpu\n",
		 "tiny.yaml:5: no engine of probe thing runs on target gpu"},
		{"  - {probe: ecc, engine: fast}\n", "has no engine"},
		{"  - {target: cpu}\n", "tiny.yaml:3: a case needs a probe"},
		{"  - thing\n", "tiny.yaml:3: a case is a map"},
		{"  - together: []\n", "together"},
		{"  - {together: [{probe: thing}], probe: thing}\n", "tiny.yaml:3"},
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

static void test_plan__one_probe_of_the_command_line_is_a_suite(void **state)
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

static void test_plan__an_unknown_suite_is_refused(void **state)
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
#define test(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		test(test_plan__a_list_is_a_cross_product),
		test(test_plan__an_engine_is_chosen_by_what_it_can_do_here),
		test(test_plan__a_case_that_cannot_fit_is_skipped_ahead_with_the_numbers),
		test(test_plan__the_peak_is_of_the_largest_case_and_of_those_together),
		test(test_plan__an_engine_that_finds_no_room_ahead_skips_its_case),
		test(test_plan__no_gpu_is_a_skip_and_a_gpu_without_driver_is_not),
		test(test_plan__each_granted_gpu_is_a_target),
		test(test_plan__a_busy_gpu_is_blocked_unless_beside),
		test(test_plan__signs_of_use_are_told_apart),
		test(test_plan__a_recorded_machine_is_never_measured),
		test(test_plan__numa_nodes_are_targets_where_there_are_several),
		test(test_plan__together_is_a_step_of_its_own),
		test(test_plan__a_target_asked_for_leaves_the_rest_out),
		test(test_plan__a_gpu_asked_for_must_be_here),
		test(test_plan__together_on_one_gpu_is_a_skip),
		test(test_plan__each_numa_node_is_a_case),
		test(test_plan__rounds_repeat_what_is_timed),
		test(test_plan__a_capped_window_is_the_suites_and_yields_to_the_command_line),
		test(test_plan__the_hash_is_of_what_runs),
		test(test_plan__a_case_comes_back_from_its_json),
		test(test_plan__json_of_a_wrong_form_is_refused),
		test(test_plan__what_is_not_understood_is_named_with_its_place),
		test(test_plan__one_probe_of_the_command_line_is_a_suite),
		test(test_plan__an_unknown_suite_is_refused),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
