/* SPDX-License-Identifier: Apache-2.0 */
/* The state file of assay health, and figures held against a node's own history. */
#include "scratch.h"
#include <errno.h>
#include "judge_world.h"
#include "cmd/health/baseline.h"
#include "cmd/health/state_place.h"
#include "cmd/shared/judged.h"
#include "core/file/file.h"

static const char whole[] =
	"{'format':1,'gate':{'state':'drained','part':'0000:1b:00.0','cause':'ecc','sightings':2,'passes':1,'reason':'r'},"
	"'baselines':[{'gpu':'GPU-1','driver':'580.1','power_limit_w':700.0,'figures':{'gemm a':{'unit':'FLOP/s','values':[1e15,2e15]}}}]}";

static enum status parse(struct health_state *s, const char *text, struct error *err)
{
	char copy[2048];

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return health_state_parse(s, "f", copy, strlen(copy), err);
}

static void test_state__is_written_and_read_again(void **state)
{
	struct health_state s, again;
	struct error err = {0};
	char path[PATH_MAX];
	bool damaged;

	assert_int_equal(parse(&s, whole, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/h.json", (const char *)*state);
	assert_int_equal(health_state_write(&s, path, &err), STATUS_OK);
	assert_int_equal(health_state_read(&again, path, &damaged, &err), STATUS_OK);
	assert_int_equal(again.gate.state, GATE_DRAINED);
	assert_string_equal(again.gate.part, "0000:1b:00.0");
	assert_int_equal(again.gate.cause, CAUSE_ECC);
	assert_int_equal(again.gate.sightings, 2);
	assert_int_equal(again.gate.passes, 1);
	assert_string_equal(again.gate.reason, "r");
	assert_int_equal(again.count, 1);
	assert_int_equal(again.baseline[0].count, 1);
	assert_string_equal(again.baseline[0].figure[0].key, "gemm a");
	assert_int_equal(again.baseline[0].figure[0].count, 2);
	assert_true(again.baseline[0].figure[0].value[1] == 2e15);
	health_state_release(&s);
	health_state_release(&again);
}

static void test_state__an_absent_file_is_an_empty_state(void **state)
{
	struct health_state s;
	struct error err = {0};
	bool damaged;

	(void)state;
	assert_int_equal(health_state_read(&s, "/nowhere/h.json", &damaged, &err), STATUS_OK);
	assert_int_equal(s.gate.state, GATE_CLEAR);
	/* A file of a version that kept no baselines. */
	assert_int_equal(parse(&s, "{'format':1}", &err), STATUS_OK);
	assert_int_equal(s.count, 0);
	assert_int_equal(parse(&s, "{'format':1,'gate':{'state':'clear'},'later':[1]}", &err), STATUS_OK);
}

static void test_state__a_newer_format_is_told_apart_from_damage(void **state)
{
	struct health_state s;
	struct error err = {0};

	(void)state;
	assert_int_equal(parse(&s, "{'format':2,'gate':7}", &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "its format is 2"));
	assert_int_equal(s.gate.state, GATE_CLEAR);
}

/* Every cut of a good file is refused, and leaves nothing behind. */
static void test_state__a_file_that_is_cut_is_refused(void **state)
{
	struct health_state s;
	char cut[sizeof(whole)];

	(void)state;
	for (size_t n = 0; n + 1 < sizeof(whole); n++) {
		struct error err = {0};

		memcpy(cut, whole, n);
		cut[n] = '\0';
		assert_int_equal(parse(&s, cut, &err), STATUS_BAD_INPUT);
		assert_int_equal(s.count, 0);
		assert_non_null(strstr(err.text, "f:"));
	}
}

static void test_state__hostile_content_is_refused(void **state)
{
	static const char *const wrong[] = {
		"[]",
		"7",
		"{}",
		"{'format':0}",
		"{'format':-1}",
		"{'format':'1'}",
		"{'format':1.0}",
		"{'format':1,'format':1}",
		"{'format':1,'gate':[]}",
		"{'format':1,'gate':{}}",
		"{'format':1,'gate':{'state':'armed'}}",
		"{'format':1,'gate':{'state':'suspect'}}",
		/* drained without a sighting, a reason, a hardware cause, a part */
		"{'format':1,'gate':{'state':'drained','part':'a','cause':'ecc','sightings':0,'passes':0,'reason':'r'}}",
		"{'format':1,'gate':{'state':'drained','part':'a','cause':'ecc','sightings':2,'passes':0,'reason':''}}",
		"{'format':1,'gate':{'state':'drained','part':'a','cause':'busy','sightings':2,'passes':0,'reason':'r'}}",
		"{'format':1,'gate':{'state':'drained','part':'','cause':'ecc','sightings':2,'passes':0,'reason':'r'}}",
		"{'format':1,'gate':{'state':'suspect','part':'a','cause':'ecc','sightings':2,'passes':1,'reason':''}}",
		"{'format':1,'gate':{'state':'suspect','part':'a','cause':'ecc','sightings':99999999,'passes':0,'reason':''}}",
		"{'format':1,'gate':{'state':'suspect','part':'a','cause':'ecc','sightings':-1,'passes':0,'reason':''}}",
		"{'format':1,'gate':{'state':'suspect','part':'a part that is too long','cause':'ecc','sightings':1,'passes':0,'reason':''}}",
		"{'format':1,'gate':{'state':'drained','part':'a','cause':'ecc','sightings':2,'passes':0,'reason':'\\u001b[2J'}}",
		"{'format':1,'gate':{'state':'drained','part':'a\\u0000','cause':'ecc','sightings':2,'passes':0,'reason':'r'}}",
		"{'format':1,'baselines':{}}",
		"{'format':1,'baselines':[7]}",
		"{'format':1,'baselines':[{'gpu':'','driver':'d','power_limit_w':1,'figures':{}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':-1,'figures':{}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':[]}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{}},{'gpu':'g','driver':'d','power_limit_w':1,'figures':{}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'':{'unit':'x','values':[]}}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'k':{'unit':'x','values':[0]}}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'k':{'unit':'x','values':[-1]}}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'k':{'unit':'x','values':[1e31]}}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'k':{'unit':'x','values':['1']}}}]}",
		"{'format':1,'baselines':[{'gpu':'g','driver':'d','power_limit_w':1,'figures':{'k':{'unit':'x','values':[1,1,1,1,1,1,1,1,1]}}}]}",
	};
	struct health_state s;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = {0};

		if (parse(&s, wrong[i], &err) != STATUS_BAD_INPUT)
			fail_msg("%s: %s", wrong[i], err.text);
		assert_int_equal(s.count, 0);
		assert_int_equal(s.gate.state, GATE_CLEAR);
	}
}

static void test_state__the_oldest_baseline_goes_when_there_are_too_many(void **state)
{
	struct health_state s = {0};
	char gpu[32];

	(void)state;
	for (int i = 0; i < STATE_BASELINES + 3; i++) {
		snprintf(gpu, sizeof(gpu), "GPU-%d", i);
		assert_non_null(health_state_baseline(&s, gpu, "d", 700));
	}
	assert_int_equal(s.count, STATE_BASELINES);
	assert_string_equal(s.baseline[0].gpu, "GPU-3");
	health_state_release(&s);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
}

static char logged[2048];

static void keep_line(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)arg, (void)level, (void)topic;
	snprintf(logged + strlen(logged), sizeof(logged) - strlen(logged), "%s\n", line);
}

static const struct log log_here = {.sink = keep_line};

static void open_place(struct state_place *p, const char *root)
{
	const volatile sig_atomic_t stop = 0;
	struct error err = {0};

	*logged = '\0';
	*p = (struct state_place){.lock = -1};
	snprintf(p->path, sizeof(p->path), "%s/new/folder/h.json", root);
	assert_int_equal(state_place_open(p, &log_here, &stop, &err), STATUS_OK);
}

static void test_place__a_damaged_state_is_set_aside(void **state)
{
	struct state_place p;
	char bad[PATH_MAX];

	open_place(&p, *state);
	assert_true(state_place_save(&p, &log_here));
	state_place_close(&p);
	put(p.path, "{\"format\":1,\"gate\":");
	open_place(&p, *state);
	assert_non_null(strstr(logged, "h.json.bad"));
	assert_true(p.saves);
	snprintf(bad, sizeof(bad), "%.*s.bad", PATH_MAX - 8, p.path);
	assert_int_equal(access(bad, F_OK), 0);
	assert_true(state_place_save(&p, &log_here));
	state_place_close(&p);
}

static void test_place__no_file_is_overwritten_by_a_damaged_state(void **state)
{
	static const char *const ends[] = {"", ".1", ".2"};
	struct state_place p;
	char bad[PATH_MAX + 16], want[64], *text;
	struct error err = {0};

	for (unsigned i = 0; i < 3; i++) {
		open_place(&p, *state);
		state_place_close(&p);
		snprintf(want, sizeof(want), "{\"format\":1,%u", i);
		put(p.path, want);
		open_place(&p, *state);
		assert_true(p.saves);
		state_place_close(&p);
	}
	for (unsigned i = 0; i < 3; i++) {
		snprintf(bad, sizeof(bad), "%s.bad%s", p.path, ends[i]);
		snprintf(want, sizeof(want), "{\"format\":1,%u", i);
		assert_int_equal(file_read(&text, NULL, bad, 100, &err), STATUS_OK);
		assert_string_equal(text, want);
		free(text);
	}
	assert_int_equal(access(p.path, F_OK), -1);
}

/* What is at the path stays there under its name, and is the same file. */
static void stays(const char *root, const char *says)
{
	struct state_place p;
	struct stat before, after;
	char bad[PATH_MAX + 8];

	snprintf(p.path, sizeof(p.path), "%s/new/folder/h.json", root);
	assert_int_equal(lstat(p.path, &before), 0);
	open_place(&p, root);
	assert_non_null(strstr(logged, "no state is kept: "));
	assert_non_null(strstr(logged, says));
	assert_false(p.saves);
	assert_false(state_place_save(&p, &log_here));
	state_place_close(&p);
	assert_int_equal(lstat(p.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mode, after.st_mode);
	snprintf(bad, sizeof(bad), "%s.bad", p.path);
	assert_int_equal(lstat(bad, &after), -1);
	assert_int_equal(remove(p.path), 0);
}

static void test_place__what_is_no_file_of_this_user_stays(void **state)
{
	struct state_place p;
	char target[PATH_MAX], *text = NULL;
	struct error err = {0};

	open_place(&p, *state);
	state_place_close(&p);
	assert_int_equal(mkdir(p.path, 0700), 0);
	stays(*state, "h.json");
	assert_int_equal(mkfifo(p.path, 0600), 0);
	stays(*state, "not a regular file");
	snprintf(target, sizeof(target), "%s/notes.txt", (const char *)*state);
	put(target, "notes");
	assert_int_equal(symlink(target, p.path), 0);
	stays(*state, "h.json");
	assert_int_equal(file_read(&text, NULL, target, 100, &err), STATUS_OK);
	assert_string_equal(text, "notes");
	free(text);
	put(p.path, "notes of a group");
	assert_int_equal(chmod(p.path, 0660), 0);
	stays(*state, "h.json");
	put(p.path, "x");
	assert_int_equal(truncate(p.path, 1 << 30), 0); /* no state is that long, so it is not read */
	stays(*state, "larger than");
}

static void test_place__a_newer_state_is_neither_read_nor_overwritten(void **state)
{
	struct state_place p;
	struct stat before, after;

	open_place(&p, *state);
	assert_true(state_place_save(&p, &log_here));
	state_place_close(&p);
	put(p.path, "{\"format\":9}");
	assert_int_equal(stat(p.path, &before), 0);
	open_place(&p, *state);
	assert_false(p.saves);
	assert_non_null(strstr(logged, "its format is 9"));
	assert_false(state_place_save(&p, &log_here));
	state_place_close(&p);
	assert_int_equal(stat(p.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(after.st_size, 12);
}

static void test_place__a_state_that_others_may_write_is_not_trusted(void **state)
{
	struct state_place p;

	open_place(&p, *state);
	assert_true(state_place_save(&p, &log_here));
	state_place_close(&p);
	assert_int_equal(chmod(p.path, 0666), 0);
	open_place(&p, *state);
	assert_non_null(strstr(logged, "h.json"));
	assert_int_equal(p.state.gate.state, GATE_CLEAR);
	state_place_close(&p);
}

/* A run of one GPU with one GEMM, judged. */
static struct world w;
static struct judged judged;

static void run_of(double tflops, const char *driver, double watts)
{
	json_t *facts = json_pack("{s:i, s:{s:s}, s:[{s:s, s:s, s:s, s:s, s:{s:f}}]}", "format", 1, "driver",
				  "version", driver, "gpus", "pci", "0000:10:00.0", "uuid", "GPU-1", "name",
				  "NVIDIA H100 80GB HBM3", "status", "ok", "facts", "power_limit_w", watts);
	struct error err = {0};

	world_begin(&w, 1, false);
	world_gemm(&w, "gpu0", "bf16", 8192, tflops, 1400, 695, 0.918);
	world_judge(&w);
	if (machine_from_json(&judged.machine, facts, &err))
		fail_msg("%s", err.text);
	json_decref(facts);
	judged.record = w.r;
	judged.judgements = w.out;
}

static enum health_verdict take(struct health_state *s, double tflops, const char *driver, double watts,
				char *text)
{
	struct health_finding f = {0};
	struct error err = {0};
	size_t figures, compared;

	run_of(tflops, driver, watts);
	if (baseline_take(s, &f, &judged, &figures, &compared, &err))
		fail_msg("%s", err.text);
	assert_int_equal(figures, 1);
	machine_free(judged.machine);
	world_end(&w);
	if (text)
		snprintf(text, HEALTH_TEXT, "%s", f.text);
	assert_false(f.hardware); /* a figure never drains */
	return f.verdict;
}

static void test_baseline__a_node_6_percent_below_its_own_history_is_reported(void **state)
{
	static const double healthy[] = {690, 693, 688, 691};
	struct health_state s = {0};
	char text[HEALTH_TEXT];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(take(&s, healthy[i], "580.1", 700, NULL), HEALTH_PASS);
	assert_int_equal(take(&s, 0.94 * 690.5, "580.1", 700, text), HEALTH_FAIL);
	assert_non_null(strstr(text, "6.0 % below its own history: BF16 GEMM 8192"));
	assert_non_null(strstr(text, "median of 4 earlier runs"));
	/* It is reported each time: a figure below history does not become history. */
	assert_int_equal(s.baseline[0].figure[0].count, 4);
	assert_int_equal(take(&s, 0.94 * 690.5, "580.1", 700, NULL), HEALTH_FAIL);
	assert_int_equal(take(&s, 0.98 * 690.5, "580.1", 700, NULL), HEALTH_PASS);
	health_state_release(&s);
}

/* A state of another driver, power limit or GPU says nothing about this one. */
static void test_baseline__an_older_driver_or_another_limit_is_another_history(void **state)
{
	struct health_state s = {0};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		take(&s, 690, "570.1", 700, NULL);
	assert_int_equal(take(&s, 600, "580.1", 700, NULL), HEALTH_PASS);
	assert_int_equal(take(&s, 600, "570.1", 500, NULL), HEALTH_PASS);
	assert_int_equal(s.count, 3);
	assert_int_equal(take(&s, 600, "570.1", 700, NULL), HEALTH_FAIL);
	health_state_release(&s);
}

/* A decline of 1 % a run hides in a baseline that follows it. This one stands still after eight figures. */
static void test_baseline__a_slow_decline_does_not_hide(void **state)
{
	struct health_state s = {0};
	double tflops = 690;
	int runs = 0;

	(void)state;
	for (int i = 0; i < STATE_VALUES; i++)
		assert_int_equal(take(&s, 690, "580.1", 700, NULL), HEALTH_PASS);
	while (runs < 10 && take(&s, tflops *= 0.99, "580.1", 700, NULL) == HEALTH_PASS)
		runs++;
	assert_int_equal(runs, 3); /* 0.99^4 is more than 3 % below */
	assert_int_equal(s.baseline[0].figure[0].count, STATE_VALUES);
	health_state_release(&s);
}

static void test_baseline__an_unsteady_history_has_a_wider_limit(void **state)
{
	struct baseline_figure f = {.unit = "FLOP/s", .value = {680, 720, 700, 660}, .count = 4};
	double worse, limit;

	(void)state;
	assert_true(baseline_worse(&f, 650, &worse, &limit));
	assert_float_equal(worse, 1 - 650 / 690.0, 1e-9);
	assert_true(limit > 0.1); /* t(3) 3.18 x 3.7 % x sqrt(1.25) */
	f.count = 2;
	assert_false(baseline_worse(&f, 1, &worse, &limit));
	f = (struct baseline_figure){.unit = "ns", .value = {100, 100, 100}, .count = 3};
	assert_true(baseline_worse(&f, 110, &worse, &limit)); /* a longer time is worse */
	assert_float_equal(worse, 0.1, 1e-9);
	assert_float_equal(limit, 0.03, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_state__is_written_and_read_again, scratch_create,
						scratch_remove),
		cmocka_unit_test(test_state__an_absent_file_is_an_empty_state),
		cmocka_unit_test(test_state__a_newer_format_is_told_apart_from_damage),
		cmocka_unit_test(test_state__a_file_that_is_cut_is_refused),
		cmocka_unit_test(test_state__hostile_content_is_refused),
		cmocka_unit_test(test_state__the_oldest_baseline_goes_when_there_are_too_many),
		cmocka_unit_test_setup_teardown(test_place__a_damaged_state_is_set_aside, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(test_place__no_file_is_overwritten_by_a_damaged_state,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_place__what_is_no_file_of_this_user_stays,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_place__a_newer_state_is_neither_read_nor_overwritten,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_place__a_state_that_others_may_write_is_not_trusted,
						scratch_create, scratch_remove),
		cmocka_unit_test(test_baseline__a_node_6_percent_below_its_own_history_is_reported),
		cmocka_unit_test(test_baseline__an_older_driver_or_another_limit_is_another_history),
		cmocka_unit_test(test_baseline__a_slow_decline_does_not_hide),
		cmocka_unit_test(test_baseline__an_unsteady_history_has_a_wider_limit),
	};

	return cmocka_run_group_tests_name("gate_state", tests, NULL, NULL);
}
