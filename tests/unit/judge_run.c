/* SPDX-License-Identifier: Apache-2.0 */
/* How cases end, exit codes, the headline, what is told ahead of a run. */
#include "judge_bed.h"

static void test_run__every_ending_has_its_verdict(void **state)
{
	static const struct {
		enum ending ending;
		enum cause given;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{ENDING_CRASHED, CAUSE_NONE, VERDICT_ERROR, CAUSE_CRASHED},
		{ENDING_TIMED_OUT, CAUSE_NONE, VERDICT_ERROR, CAUSE_TIMED_OUT},
		{ENDING_STUCK, CAUSE_NONE, VERDICT_ERROR, CAUSE_STUCK},
		{ENDING_CANCELLED, CAUSE_NONE, VERDICT_UNKNOWN, CAUSE_INTERRUPTED},
		{ENDING_CANCELLED, CAUSE_TEMPERATURE_STOP, VERDICT_FAIL, CAUSE_TEMPERATURE_STOP},
		{ENDING_CANCELLED, CAUSE_POWER_BRAKE, VERDICT_FAIL, CAUSE_POWER_BRAKE},
		{ENDING_NOT_RUN, CAUSE_QUARANTINED, VERDICT_UNKNOWN, CAUSE_QUARANTINED},
		{ENDING_NOT_RUN, CAUSE_GPU_LOST, VERDICT_ERROR, CAUSE_GPU_LOST},
		{ENDING_NOT_RUN, CAUSE_NONE, VERDICT_UNKNOWN, CAUSE_INTERRUPTED},
		{ENDING_CUT, CAUSE_NONE, VERDICT_UNKNOWN, CAUSE_CUT},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");

		c->ending = rows[i].ending;
		c->cause = rows[i].given;
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_true(*world_of(&w, c)->reason);
	}
}

static void test_run__every_status_has_its_verdict(void **state)
{
	static const struct {
		enum status status;
		enum cause given;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{STATUS_UNAVAILABLE, CAUSE_DRIVER_MISSING, VERDICT_UNKNOWN, CAUSE_DRIVER_MISSING},
		{STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, VERDICT_UNKNOWN, CAUSE_LIBRARY_MISSING},
		{STATUS_UNAVAILABLE, CAUSE_NONE, VERDICT_UNKNOWN, CAUSE_LIBRARY_MISSING},
		{STATUS_UNAVAILABLE, CAUSE_GPU_MISSING, VERDICT_FAIL, CAUSE_GPU_MISSING},
		{STATUS_UNAVAILABLE, CAUSE_BUSY, VERDICT_UNKNOWN, CAUSE_BUSY},
		{STATUS_UNSUPPORTED, CAUSE_NONE, VERDICT_SKIP, CAUSE_UNSUPPORTED},
		{STATUS_NO_RESOURCE, CAUSE_NONE, VERDICT_ERROR, CAUSE_NO_MEMORY},
		{STATUS_NO_RESOURCE, CAUSE_DISK_FULL, VERDICT_ERROR, CAUSE_DISK_FULL},
		{STATUS_BAD_INPUT, CAUSE_NONE, VERDICT_ERROR, CAUSE_BAD_INPUT},
		{STATUS_VENDOR, CAUSE_NONE, VERDICT_ERROR, CAUSE_VENDOR_CALL},
		{STATUS_LOST, CAUSE_NONE, VERDICT_ERROR, CAUSE_GPU_LOST},
		{STATUS_CANCELLED, CAUSE_NONE, VERDICT_UNKNOWN, CAUSE_INTERRUPTED},
		{STATUS_BUG, CAUSE_NONE, VERDICT_ERROR, CAUSE_DEFECT},
		{STATUS_MISMATCH, CAUSE_GPU_SHARED, VERDICT_FAIL, CAUSE_GPU_SHARED},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");

		c->status = rows[i].status;
		c->cause = rows[i].given;
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
	}
}

static void test_run__a_skip_of_the_plan_is_a_skip_only_where_nothing_is_missing(void **state)
{
	static const struct {
		enum status status;
		enum cause given;
		enum verdict v;
	} rows[] = {
		{STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE, VERDICT_SKIP},
		{STATUS_OK, CAUSE_NOT_ASKED, VERDICT_SKIP},
		{STATUS_UNAVAILABLE, CAUSE_RECORDED, VERDICT_SKIP},
		{STATUS_UNAVAILABLE, CAUSE_BUSY, VERDICT_UNKNOWN},
		{STATUS_UNAVAILABLE, CAUSE_DRIVER_MISSING, VERDICT_UNKNOWN},
		{STATUS_LOST, CAUSE_GPU_LOST, VERDICT_ERROR},
		{STATUS_UNAVAILABLE, CAUSE_GPU_MISSING, VERDICT_FAIL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");

		c->skipped = true;
		c->skip_status = rows[i].status;
		c->skip_cause = rows[i].given;
		c->skip_reason = "";
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].given);
	}
}

/* Nothing judged: the run ends well, but does not pass. */
static void test_run__a_run_of_measurements_alone_is_measured(void **state)
{
	struct record_case *c = world_case(&w, "dispatch", "gpu0", "latency", "");

	(void)state;
	c->require = REQUIRE_NOTHING;
	world_set(c, "sustained", "latency_ns", 2300);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_int_equal(w.out.exit_code, 0);
	assert_int_equal(w.out.verdict, VERDICT_MEASURED);
	assert_non_null(
		strstr(w.out.headline, "0 passed, 0 with warnings, 1 measured without a reference"));
	c->require = REQUIRE_JUDGED;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(w.out.exit_code, 2);
}

static void test_run__exit_codes_follow_the_table(void **state)
{
	static const struct {
		enum verdict v;
		enum cause cause;
		int judged, measured, nothing;
	} rows[] = {
		{VERDICT_PASS, CAUSE_NONE, 0, 0, 0},
		{VERDICT_WARN, CAUSE_BELOW_BAND, 0, 0, 0},
		{VERDICT_MEASURED, CAUSE_NO_REFERENCE, 0, 0, 0},
		{VERDICT_SKIP, CAUSE_NO_HARDWARE, 0, 0, 0},
		{VERDICT_FAIL, CAUSE_WRONG_RESULT, 1, 1, 1},
		{VERDICT_UNKNOWN, CAUSE_NO_REFERENCE, 2, 0, 0},
		{VERDICT_UNKNOWN, CAUSE_DRIVER_MISSING, 2, 2, 0},
		{VERDICT_UNKNOWN, CAUSE_NO_LOG, 0, 0, 0},
		{VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED, 2, 2, 0},
		{VERDICT_ERROR, CAUSE_CRASHED, 2, 2, 0},
		{VERDICT_UNKNOWN, CAUSE_INTERRUPTED, 2, 2, 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct judgement j = {.verdict = rows[i].v, .cause = rows[i].cause};

		assert_int_equal(exit_of_case(&j, 0, false), rows[i].judged);
		assert_int_equal(exit_of_case(&j, 1, false), rows[i].measured);
		assert_int_equal(exit_of_case(&j, 2, false), rows[i].nothing);
	}
}

static void test_run__one_fail_outranks_everything_and_nothing_measured_is_inconclusive(void **state)
{
	struct record_case *c;

	(void)state;
	world_judge(&w); /* an empty record */
	assert_int_equal(w.out.exit_code, 2);
	assert_non_null(strstr(w.out.headline, "nothing was measured"));
	c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");
	c->skipped = true;
	c->skip_cause = CAUSE_NOT_ASKED;
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 2);
	c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");
	c->ending = ENDING_CRASHED;
	world_reading(&w, "remap", "gpu0", "remap_pending=1");
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	assert_non_null(strstr(w.out.headline, "remap"));
}

static void test_run__ahead_it_says_what_would_judge(void **state)
{
	struct record_case *gemm =
		world_case(&w, "gemm", "gpu0", "compute.bf16",
			   "type=bf16 m=8192 n=8192 k=8192 batch=1 data=random search=first");
	struct record_case *odd =
		world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16 m=77 n=77 k=77 batch=1");
	struct record_case *cpu =
		world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32 m=2048 n=2048 k=2048");
	struct record_case *reading = world_reading(&w, "ecc", "gpu0", "ecc_enabled=1");
	struct record_case *sm = world_case(&w, "sm", "gpu0", "latency", "type=bf16");
	struct record_case *memory = world_case(&w, "memory", "gpu0", "memory", "op=read size=0");
	struct record_case *zeros =
		world_case(&w, "gemm", "gpu0", "compute.bf16",
			   "type=bf16 m=8192 n=8192 k=8192 batch=1 data=zeros search=first");

	(void)state;
	zeros->engine = "cublaslt";
	w.r.machine = json_pack("{s:{s:{s:s}}}", "software", "cublaslt", "version", "13.1.0");
	gemm->begun = gemm->ended = false;
	gemm->skipped = true; /* on a recording: it still says what would judge it live */
	gemm->skip_cause = CAUSE_RECORDED;
	w.ctx.ahead = true;
	world_judge(&w);
	assert_verdict(&w, gemm, VERDICT_PASS, CAUSE_NONE);
	assert_true(world_of(&w, gemm)->has_band && world_of(&w, gemm)->bound.value > 1e15);
	assert_verdict(&w, odd, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, cpu)->judged_by, JUDGED_CEILING);
	assert_int_equal(world_of(&w, reading)->judged_by, JUDGED_RULE);
	assert_int_equal(world_of(&w, sm)->judged_by, JUDGED_RULE);
	assert_true(world_of(&w, memory)->has_band); /* a size of 0: what the device allows */
	assert_non_null(
		strstr(world_of(&w, gemm)->reason, "data random, power_limit default; 4 cards, 6 runs"));
	assert_non_null(strstr(world_of(&w, zeros)->reason, "efficiency: phase sustained, library_major 13"));
	json_decref(w.r.machine);
	w.r.machine = json_pack("{s:{s:{s:s}}}", "software", "cublaslt", "version", "12.8.4");
	world_judge(&w); /* another major of the library: nothing is known of its shares */
	assert_verdict(&w, zeros, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	zeros->require = REQUIRE_MEASURED; /* nobody asks to judge it */
	world_judge(&w);
	assert_verdict(&w, zeros, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	json_decref(w.r.machine);
}

/* The way in that report and check take: facts of the journal, parsed. */
static void test_run__a_recorded_card_is_known_by_its_facts(void **state)
{
	struct judgements out;
	struct error err = {0};
	struct record_case *c = world_case(&w, "gemm", "gpu0", "compute.bf16",
					   "type=bf16 m=8192 n=8192 k=8192 batch=1 data=random search=first");
	const char *pci;

	(void)state;
	w.r.machine = json_load_file(SOURCE_DIR "/tests/replay/h100-sxm-1-facts.json", 0, NULL);
	assert_non_null(w.r.machine);
	pci = json_string_value(
		json_object_get(json_array_get(json_object_get(w.r.machine, "gpus"), 0), "pci"));
	assert_non_null(pci);
	json_array_set_new(json_object_get(c->plan, "gpus"), 0, json_string(pci));
	if (judge_plan(&out, &w.r, w.e, &err))
		fail_msg("%s", err.text);
	assert_true(out.of_case[0].has_band);
	assert_float_equal(out.of_case[0].bound.value / 1e12, 1070.5, 0.1);
	assert_int_equal(out.operator_input_count, 2);
	judgements_release(&out);
	if (judge_record(&out, &w.r, w.e, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal(out.exit_code, 2); /* no figure */
	judgements_release(&out);
	json_decref(w.r.machine);
}

static void test_run__judging_is_pure(void **state)
{
	struct judgements first;

	(void)state;
	world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	world_memory(&w, "gpu0", "read", 3.1, 0.92);
	world_judge(&w);
	first = w.out;
	w.out = (struct judgements){0};
	world_judge(&w);
	assert_int_equal(first.count, w.out.count);
	assert_memory_equal(first.of_case, w.out.of_case, first.count * sizeof(*first.of_case));
	assert_string_equal(first.headline, w.out.headline);
	judgements_release(&first);
}

/* A GPU's open case is what the reader wants to hear of, though a CPU's came before it. */
static void test_run__the_headline_names_a_gpu_s_open_case_before_a_cpu_s(void **state)
{
	struct record_case *cpu = world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32 m=64 n=64 k=64");
	struct record_case *gpu = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16 m=64 n=64 k=64");

	(void)state;
	world_set(cpu, "sustained", "flop_rate", 1e11);
	world_set(gpu, "sustained", "flop_rate", 1e14); /* neither was checked: untrusted */
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 2);
	assert_non_null(strstr(w.out.headline, "2 of 2 cases have no verdict, both of them unverified; first "));
	assert_non_null(strstr(w.out.headline, "type=bf16"));
	world_verified(gpu);
	world_set(gpu, "sustained", "half_width_share", 0.2);
	world_judge(&w); /* another cause than the other's: each is its own */
	assert_non_null(strstr(w.out.headline, "2 of 2 cases have no verdict; first "));
	gpu->status = STATUS_MISMATCH; /* and a failure before either */
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	assert_non_null(strstr(w.out.headline, "failed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_run__##name, setup, end)
		T(begin_one, every_ending_has_its_verdict),
		T(begin_one, every_status_has_its_verdict),
		T(begin_one, a_skip_of_the_plan_is_a_skip_only_where_nothing_is_missing),
		T(begin_one, a_run_of_measurements_alone_is_measured),
		T(begin_one, exit_codes_follow_the_table),
		T(begin_one, one_fail_outranks_everything_and_nothing_measured_is_inconclusive),
		T(begin_one, ahead_it_says_what_would_judge),
		T(begin_one, a_recorded_card_is_known_by_its_facts),
		T(begin_one, judging_is_pure),
		T(begin_one, the_headline_names_a_gpu_s_open_case_before_a_cpu_s),
#undef T
	};

	return cmocka_run_group_tests_name("judge_run", tests, NULL, NULL);
}
