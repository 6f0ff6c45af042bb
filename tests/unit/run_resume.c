/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a run that was cut, and telemetry in all its moods. */
#include <math.h>
#include "core/file/file.h"
#include "run_bed.h"
#include "telemetry/telemetry.h"

static struct run_bed b;
static const char *const three =
	"  - {probe: 'null', phases: burst, seconds: 2ms, options: {time: 1ms, slot: [1, 2, 3]}}\n";

/* Keeps the journal's lines up to and with the `count`-th that holds `text`, and `torn` bytes of the next. */
static void cut_after(const char *dir, const char *text, unsigned count, size_t torn)
{
	char path[PATH_MAX], *data, *at;
	struct error err = {0};
	size_t size;

	assert_true(snprintf(path, sizeof(path), "%s/%s", dir, JOURNAL_FILE) < PATH_MAX);
	assert_int_equal(file_read(&data, &size, path, 64 << 20, &err), STATUS_OK);
	at = data;
	for (unsigned i = 0; i < count; i++) {
		at = strstr(at, text);
		assert_non_null(at);
		at++;
	}
	at = strchr(at, '\n') + 1;
	assert_int_equal(truncate(path, at - data + (off_t)torn), 0);
	free(data);
}

static void test_resume__what_is_done_stays_and_what_was_begun_is_named_and_run_again(void **state)
{
	unsigned attempts;

	run_bed_plan(&b, *state, false, three);
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	record_release(&b.record);
	cut_after(*state, "\"type\":\"begin\"", 2, 17); /* the node died in the second case */
	b.o.resume = true;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	for (unsigned i = 0; i < 3; i++) {
		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		run_bed_pid(*state, i, &attempts);
		assert_int_equal(attempts, i == 1 ? 2 : 1);
	}
	assert_non_null(strstr(b.warnings, "case 1 began but did not end"));
	assert_non_null(strstr(b.warnings, b.record.cases[1].key));
	assert_int_equal(b.summary.done, 3);
	assert_true(b.record.closed);
	run_bed_release(&b);
}

static void test_resume__a_cancelled_case_runs_again(void **state)
{
	run_bed_plan(
		&b, *state, false,
		"  - {probe: 'null', phases: burst, seconds: 400ms, options: {time: 1ms, slot: [1, 2]}}\n");
	run_bed_stop_in(&b, "burst");
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	assert_int_equal(b.record.close_ending, ENDING_CANCELLED);
	record_release(&b.record);
	run_bed_stop = 0;
	b.o.progress = (struct run_progress){0};
	b.o.resume = true;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_resume__another_plan_or_machine_is_refused(void **state)
{
	run_bed_plan(&b, *state, false, three);
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	run_bed_release(&b);
	run_bed_plan(&b, *state, false, "  - {probe: 'null', phases: burst, seconds: 2ms}\n");
	b.o.resume = true;
	assert_int_equal(run_bed_run(&b), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "its plan differs"));
	run_bed_release(&b);
	run_bed_plan(&b, *state, true, three);
	b.o.resume = true;
	assert_int_equal(run_bed_run(&b), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "another machine"));
	run_bed_release(&b);
	run_bed_plan(&b, *state, false, three);
	b.o.resume = true;
	b.o.seed = 6;
	assert_int_equal(run_bed_run(&b), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "begun with --seed 5, not 6"));
	run_bed_release(&b);
}

static void test_resume__nothing_to_go_on_with_is_an_error(void **state)
{
	run_bed_plan(&b, *state, false, three);
	b.o.resume = true;
	assert_int_equal(run_bed_run(&b), STATUS_UNAVAILABLE);
	run_bed_release(&b);
}

static void run_with_sampler_for(void **state, const char *how, const char *seconds)
{
	char cases[128];

	setenv("ASSAY_TEST_SAMPLER", how, 1);
	snprintf(cases, sizeof(cases),
		 "  - {probe: 'null', phases: burst, seconds: %s, options: {time: 1ms}}\n", seconds);
	run_bed_plan(&b, *state, false, cases);
	b.o.sample = true;
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	assert_true(b.record.closed);
}

static void run_with_sampler(void **state, const char *how)
{
	run_with_sampler_for(state, how, "300ms");
}

static void test_telemetry__means_of_a_window_join_its_result(void **state)
{
	double v;

	run_with_sampler(state, "good");
	assert_true(record_number(record_phase(&b.record.cases[0], "burst"), "power_integral_w", &v));
	assert_true(fabs(v - 250) < 1e-9);
	assert_true(record_number(record_phase(&b.record.cases[0], "burst"), "power_w", &v) && v > 0);
	assert_true(record_number(record_phase(&b.record.cases[0], "burst"), "time_ns_mean", &v) && v > 0);
	assert_non_null(record_series(&b.record, "host", "energy_j"));
	run_bed_release(&b);
}

struct blocks {
	unsigned lines;
	uint64_t longest_ns; /* that a reading waited for its line */
};

static int look_at_block(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct blocks *blocks = arg;
	uint64_t from_ns = (uint64_t)json_integer_value(json_object_get(body, "from"));

	if (type != JOURNAL_TELEMETRY)
		return 0;
	blocks->lines++;
	if (t_ns - from_ns > blocks->longest_ns)
		blocks->longest_ns = t_ns - from_ns;
	return 0;
}

/* The sampler sends two lines every 5 ms; a crash within a case may lose a second. */
static void test_telemetry__readings_of_a_second_are_journaled_together(void **state)
{
	struct blocks blocks = {0};
	struct error err = {0};
	uint64_t cut;

	run_with_sampler_for(state, "good", "1500ms");
	assert_int_equal(journal_read(*state, look_at_block, &blocks, &cut, &err), STATUS_OK);
	assert_true(blocks.lines >= 2);
	assert_true(record_series(&b.record, "host", "power_w")->count > 10 * blocks.lines);
	assert_true(blocks.longest_ns >= 1000000000);
	run_bed_release(&b);
}

/* As a kill right behind the end would leave the journal: no block of a second was full by then. */
static void test_telemetry__an_ended_case_has_its_readings_in_the_journal(void **state)
{
	const struct series *power;
	struct record cut;
	struct error err = {0};

	run_with_sampler(state, "good");
	cut_after(*state, "\"type\":\"end\"", 1, 0);
	assert_int_equal(record_read(&cut, *state, &err), STATUS_OK);
	power = record_series(&cut, "host", "power_w");
	assert_non_null(power);
	assert_true(power->t_ns[power->count - 1] > cut.cases[0].t0_ns);
	record_release(&cut);
	run_bed_release(&b);
}

static void test_telemetry__a_sampler_that_dies_stalls_or_raves_costs_its_readings_alone(void **state)
{
	static const char *const moods[] = {"die", "silent", "garbage"};
	double v;

	for (size_t i = 0; i < 3; i++) {
		run_with_sampler(state, moods[i]);
		assert_false(record_number(record_phase(&b.record.cases[0], "burst"), "power_w", &v));
		if (!i)
			assert_non_null(strstr(b.warnings, "telemetry has a gap: the sampler died"));
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_telemetry__a_sampler_that_died_starts_again(void **state)
{
	char how[PATH_MAX];

	snprintf(how, sizeof(how), "once:%s.died", (const char *)*state);
	run_with_sampler_for(state, how, "3s");
	assert_non_null(strstr(b.warnings, "telemetry has a gap: the sampler died"));
	assert_null(strstr(b.warnings, "telemetry ends here"));
	assert_non_null(record_series(&b.record, "host", "power_w"));
	run_bed_release(&b);
	unlink(how + strlen("once:"));
}

static void test_telemetry__a_sampler_that_always_dies_is_started_four_times(void **state)
{
	const uint64_t second = 1000000000;
	struct sampler_life life = {.started_ns = 5 * second};

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		assert_true(sampler_died(&life, 5 * second));
		assert_int_equal(life.again_ns, (5 + (1u << i)) * second);
	}
	assert_false(sampler_died(&life, 5 * second));
	assert_int_equal(life.again_ns, 0);
	life.started_ns = 100 * second; /* one that lived for long is none of those */
	assert_true(sampler_died(&life, 161 * second));
	assert_int_equal(life.again_ns, 162 * second);
}

static size_t health_lines(const char *dir)
{
	char path[512], line[4096];
	size_t count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/journal.jsonl", dir);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, "\"type\":\"health\"") != NULL;
	fclose(f);
	return count;
}

/* Before, after the case that failed, after the last; none where the helper hangs or no case uses a GPU. */
static void test_health__counters_are_read_before_between_and_after(void **state)
{
	static const char cases[] = "  - {probe: 'null', target: gpu0, phases: burst, seconds: 2ms, options: {time: 1ms, "
				    "crash: enqueue}}\n"
				    "  - {probe: 'null', target: gpu0, phases: burst, seconds: 2ms, options: {time: 1ms, "
				    "slot: 1}}\n";
	static const char none[] = "  - {probe: 'null', phases: burst, seconds: 2ms, options: {time: 1ms, slot: 2}}\n";
	char answer[256];

	run_bed_plan(&b, *state, true, cases);
	snprintf(answer, sizeof(answer), "{\"gpus\":{\"%s\":{\"t_ns\":1,\"counters\":{\"pcie_replays\":1}}}}",
		 machine_gpu(b.machine, 0)->pci);
	setenv("ASSAY_TEST_HEALTH", answer, 1);
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	assert_int_equal(health_lines(*state), 3);
	assert_int_equal(b.record.health.change_count, 0);
	run_bed_release(&b);
	scratch_empty(*state);
	setenv("ASSAY_TEST_HEALTH", "hang", 1);
	setenv("ASSAY_FACTS_LIMIT_MS", "100", 1);
	run_bed_plan(&b, *state, true, cases);
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	assert_int_equal(health_lines(*state), 1); /* that NVML has stopped answering */
	assert_int_equal(b.record.health.silence_count, 1);
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
	scratch_empty(*state);
	run_bed_plan(&b, *state, true, none);
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	assert_int_equal(health_lines(*state), 0);
	run_bed_release(&b);
	unsetenv("ASSAY_TEST_HEALTH");
	unsetenv("ASSAY_FACTS_LIMIT_MS");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_resume__what_is_done_stays_and_what_was_begun_is_named_and_run_again),
		scratch_test(test_resume__a_cancelled_case_runs_again),
		scratch_test(test_resume__another_plan_or_machine_is_refused),
		scratch_test(test_resume__nothing_to_go_on_with_is_an_error),
		scratch_test(test_telemetry__means_of_a_window_join_its_result),
		scratch_test(test_telemetry__readings_of_a_second_are_journaled_together),
		scratch_test(test_telemetry__an_ended_case_has_its_readings_in_the_journal),
		scratch_test(test_health__counters_are_read_before_between_and_after),
		scratch_test(test_telemetry__a_sampler_that_dies_stalls_or_raves_costs_its_readings_alone),
		scratch_test(test_telemetry__a_sampler_that_died_starts_again),
		scratch_test(test_telemetry__a_sampler_that_always_dies_is_started_four_times),
	};
	int code;

	if (run_bed_child(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("run_resume", tests, NULL, NULL);
}
