/* SPDX-License-Identifier: Apache-2.0 */
/* How cases end, readings, ceilings, siblings, what was stated, and what a run is worth. */
#include "judge_world.h"
#include <math.h>
#include <unistd.h>
#include "core/text.h"

static struct world w;

static int begin_cpu(void **state)
{
	(void)state;
	world_begin(&w, 0, false);
	return 0;
}

static int begin_one(void **state)
{
	(void)state;
	world_begin(&w, 1, false);
	return 0;
}

static int begin_eight(void **state)
{
	(void)state;
	world_begin(&w, 8, false);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&w);
	return 0;
}

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

static void test_run__readings_are_judged_by_rule(void **state)
{
	static const struct {
		const char *probe, *fields;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{"ecc", "ecc_enabled=1 ecc_volatile_uncorrected=0 ecc_sram_threshold=0", VERDICT_PASS,
		 CAUSE_NONE},
		{"ecc", "ecc_enabled=1 ecc_volatile_uncorrected=2", VERDICT_FAIL, CAUSE_ECC},
		{"ecc", "ecc_enabled=0", VERDICT_WARN, CAUSE_ECC_OFF},
		{"remap", "remap_pending=1 remap_failed=0", VERDICT_FAIL, CAUSE_REMAP_PENDING},
		{"remap", "remap_pending=1 remap_failed=1", VERDICT_FAIL, CAUSE_REMAP_PENDING},
		{"remap", "remap_failed=1", VERDICT_FAIL, CAUSE_REMAP_FAILED},
		{"remap", "retired_pages=3", VERDICT_WARN, CAUSE_RETIRED_PAGES},
		{"clock_state", "power_limit_w=500 power_limit_default_w=700", VERDICT_FAIL,
		 CAUSE_POWER_LIMIT_LOWERED},
		{"clock_state", "power_limit_w=700 power_limit_default_w=700 clock_reasons=1", VERDICT_PASS,
		 CAUSE_NONE},
		{"clock_state", "clock_reasons=128", VERDICT_FAIL, CAUSE_POWER_BRAKE},
		{"clock_state", "clock_reasons=72", VERDICT_FAIL, CAUSE_THERMAL_HW},
		{"nvlink_state", "nvlink_count=18 nvlink_active=12", VERDICT_FAIL, CAUSE_NVLINK_COUNT},
		{"nvlink_state", "fabric_state=2 nvlink_count=18 nvlink_active=0", VERDICT_UNKNOWN,
		 CAUSE_FABRIC_STATE},
		{"nvlink_state", "fabric_state=3 fabric_status=0", VERDICT_PASS, CAUSE_NONE},
		{"pcie_state", "pcie_width=8 pcie_width_max=16", VERDICT_FAIL, CAUSE_PCIE_WIDTH},
		{"gpu_mode", "recovery_action=1", VERDICT_FAIL, CAUSE_RECOVERY_ACTION},
		{"gpu_mode", "mig_mode=1", VERDICT_WARN, CAUSE_MIG_MODE},
		{"gpu_mode", "cuda_profiling_restricted=1 recovery_action=0", VERDICT_PASS, CAUSE_PERMISSION},
		{"contamination", "processes=1", VERDICT_WARN, CAUSE_BUSY},
		{"gpu_count", "driver_loaded=0 gpu_count_pci=1", VERDICT_UNKNOWN, CAUSE_DRIVER_MISSING},
		{"gpu_count", "driver_loaded=1 gpu_count_pci=8 gpu_count_nvml=7", VERDICT_FAIL,
		 CAUSE_GPU_MISSING},
		{"gpu_count", "driver_loaded=1 gpu_count_pci=8 gpu_count_nvml=8 gpu_count_lost=1",
		 VERDICT_ERROR, CAUSE_GPU_LOST},
		{"xid", "kernel_log_readable=0", VERDICT_UNKNOWN, CAUSE_NO_LOG},
		{"xid", "kernel_log_readable=1 xid_count=0", VERDICT_PASS, CAUSE_NONE},
		{"xid", "kernel_log_readable=1 xid_first=79 xid_list=79@8.2", VERDICT_FAIL, CAUSE_XID},
		{"xid", "kernel_log_readable=1 xid_first=43 xid_list=43@8.2", VERDICT_PASS, CAUSE_NONE},
		{"xid", "kernel_log_readable=1 xid_first=999 xid_list=999@8.2", VERDICT_WARN, CAUSE_XID},
		{"nccl_env", "NCCL_P2P_DISABLE=1", VERDICT_FAIL, CAUSE_NCCL_ENV},
		{"nccl_env", "NCCL_ALGO=Ring", VERDICT_WARN, CAUSE_NCCL_ENV},
		{"host_state", "governor=powersave", VERDICT_WARN, CAUSE_LOW_CLOCK},
		{"host_state", "governor=performance", VERDICT_PASS, CAUSE_NONE},
		{"versions", "driver_version=580.1.2x", VERDICT_UNKNOWN, CAUSE_NO_REFERENCE},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world one;
		struct record_case *c;

		world_begin(&one, 1, false);
		c = world_reading(&one, rows[i].probe, "gpu0", rows[i].fields);
		world_judge(&one);
		if (world_of(&one, c)->verdict != rows[i].v || world_of(&one, c)->cause != rows[i].cause)
			fail_msg("%s %s: %s", rows[i].probe, rows[i].fields, world_of(&one, c)->reason);
		world_end(&one);
	}
}

static void test_run__the_size_of_a_loss_of_links_is_told(void **state)
{
	struct record_case *c = world_reading(&w, "nvlink_state", "gpu0", "nvlink_count=18 nvlink_active=12");

	(void)state;
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, c)->reason, "0.667"));
	world_text(c, "once", "nvlink_down", "12,13,14,15,16,17");
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, c)->reason, "0.667; nvlink_down 12,13,14,15,16,17"));
}

static void test_run__a_counter_that_rose_during_the_run_is_judged_by_its_rise(void **state)
{
	struct record_case *before =
		world_reading(&w, "nvlink_state", "gpu0", "nvlink_errors=0 nvlink_count=18 nvlink_active=18");
	struct record_case *after =
		world_reading(&w, "nvlink_state", "gpu0", "nvlink_errors=7 nvlink_count=18 nvlink_active=18");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, before, VERDICT_PASS, CAUSE_NONE);
	assert_verdict(&w, after, VERDICT_WARN, CAUSE_NVLINK_ERRORS);
	assert_non_null(strstr(world_of(&w, after)->reason, "rose during our traffic"));
}

/* The link that grew is named, not those whose errors are old. */
static void test_run__the_link_whose_errors_rose_is_named(void **state)
{
	static const struct {
		const char *before, *after, *named, *not_named;
	} rows[] = {
		{"link 3: 12, link 11: 1", "link 3: 12, link 11: 8", "(nvlink_errors.rise 7: link 11: 7)",
		 "link 3"},
		{"link 1: 4", "link 1: 4, link 17: 7", "(nvlink_errors.rise 7: link 17: 7)", "link 1:"},
		{"", "link 0: 7", "(nvlink_errors.rise 7: link 0: 7)", "link 1"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char target[8];
		struct record_case *before, *after;

		snprintf(target, sizeof(target), "gpu%zu", i);
		before = world_reading(&w, "nvlink_state", target, "nvlink_errors=13");
		after = world_reading(&w, "nvlink_state", target, "nvlink_errors=20");
		if (*rows[i].before)
			world_text(before, "once", "nvlink_error_links", rows[i].before);
		world_text(after, "once", "nvlink_error_links", rows[i].after);
		world_judge(&w);
		assert_verdict(&w, after, VERDICT_WARN, CAUSE_NVLINK_ERRORS);
		if (!strstr(world_of(&w, after)->reason, rows[i].named) ||
		    strstr(world_of(&w, after)->reason, rows[i].not_named))
			fail_msg("%s", world_of(&w, after)->reason);
	}
	assert_non_null(strstr(world_of(&w, &w.cases[0])->reason, "link 3: 12, link 11: 1"));
}

/* Xids of the log belong to the GPU whose address they carry. */
static void test_run__xids_before_the_run_name_their_device(void **state)
{
	struct record_case *c = world_reading(
		&w, "xid", "gpu2", "kernel_log_readable=1 xid_count=1 xid_list=79@8.2 xid_first=79");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_XID);
	assert_non_null(strstr(world_of(&w, c)->reason, "Xid 79 (GPU fell off the bus) of 0000:12:00.0"));
}

/* Two threads, FMA ceilings of one and both, dependent-add clock, read stream: as a small machine leaves
 * them. */
static void ceilings(void)
{
	struct record_case *c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=0");

	world_set(c, "sustained", "flop_rate", 200e9);
	world_set(c, "sustained", "threads", 2);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "compute.fp32", "unit=fma type=fp32 threads=1");
	world_set(c, "sustained", "flop_rate", 110e9);
	world_set(c, "sustained", "threads", 1);
	world_verified(c);
	c = world_case(&w, "peak", "cpu", "memory", "unit=read threads=0");
	world_set(c, "sustained", "byte_rate", 20e9);
	world_verified(c);
}

static struct record_case *sgemm(double gflops, double cpu_share)
{
	struct record_case *c =
		world_case(&w, "gemm", "cpu", "compute.fp32", "type=fp32 m=2048 n=2048 k=2048 data=random");

	c->engine = "openblas";
	world_set(c, "sustained", "flop_rate", gflops * 1e9);
	world_set(c, "sustained", "cpu_share", cpu_share);
	world_set(c, "sustained", "threads", 2);
	world_set(c, "sustained", "half_width_share", 0.003);
	world_verified(c);
	return c;
}

static void test_run__a_cpu_is_held_against_its_own_ceilings(void **state)
{
	static const struct {
		double gflops;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{184, VERDICT_PASS, CAUSE_NONE},
		{150, VERDICT_WARN, CAUSE_BELOW_CEILING},
		{90, VERDICT_FAIL, CAUSE_BELOW_CEILING},
		{230, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;
		char key[8];

		if (!i)
			ceilings();
		c = sgemm(rows[i].gflops, 0.999);
		snprintf(key, sizeof(key), "k%zu", i); /* not a round of the one before */
		json_object_set_new((json_t *)c->plan, "key", json_string(key));
		c->key = json_string_value(json_object_get(c->plan, "key"));
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_int_equal(world_of(&w, c)->bound.from, BOUND_CEILING);
		assert_int_equal(world_of(&w, c)->judged_by, JUDGED_CEILING);
	}
	assert_verdict(&w, &w.cases[0], VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
}

static void test_run__a_cpu_memory_case_counts_what_the_store_moves(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = world_case(&w, "memory", "cpu", "memory", "op=copy store=auto size=0");
	world_set(c, "sustained", "byte_rate", 8e9);
	world_text(c, "once", "store", "regular");
	world_verified(c);
	world_judge(&w);
	/* 8 of 20 is 0.40, but 0.60 of what a copy with regular stores can reach */
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	world_text(c, "once", "store", "nontemporal");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_BELOW_CEILING);
}

static void test_run__stolen_cpu_time_is_contention_and_a_quota_is_not(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = sgemm(184, 0.93);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
	w.cpu.quota = 1;
	world_set(c, "sustained", "cpu_share", 0.499);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_CPU_QUOTA);
}

/* Takes the last case out of the world again. */
static void forget(struct record_case *c)
{
	for (size_t p = 0; p < c->phase_count; p++)
		json_decref(c->phase[p].values);
	free(c->phase);
	json_decref((json_t *)c->plan);
	w.r.case_count--;
}

static const struct factor *factor_of(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	fail_msg("no factor %s", name);
	return NULL;
}

/* 150 GFLOPS that were timed in turns with the ceiling; each turn between low and high. */
static struct record_case *in_turns(double ratio, double low, double high, double cpu_share, double steal)
{
	struct record_case *c = sgemm(150, cpu_share);

	world_set(c, "sustained", "ceiling_ratio", ratio);
	world_set(c, "sustained", "ceiling_ratio_low", low);
	world_set(c, "sustained", "ceiling_ratio_high", high);
	world_set(c, "sustained", "half_width_share", 0.2); /* of the rate: the ratio is what is judged */
	world_set(c, "sustained", "clock_hz", 2.7e9);
	if (steal > 0)
		world_set(c, "sustained", "steal_share", steal);
	world_text(c, "ceiling", "ceiling_by", "peak engine=cpu threads=0 type=fp32 unit=fma");
	world_set(c, "ceiling", "cpu_share", 0.99);
	world_set(c, "ceiling", "clock_hz", 3e9);
	return c;
}

/* ratio, low, high, CPU share, steal: what is judged is the interval, and who took the CPU time. */
static void test_run__a_case_in_turns_is_judged_by_their_interval(void **state)
{
	static const struct {
		double ratio, low, high, cpu_share, steal;
		enum verdict v;
		enum cause cause;
		const char *words;
	} rows[] = {
		{0.90, 0.88, 0.92, 0.999, 0, VERDICT_PASS, CAUSE_NONE,
		 "0.90 (0.88 .. 0.92) of this machine's own"},
		{0.64, 0.62, 0.66, 0.999, 0, VERDICT_WARN, CAUSE_BELOW_CEILING, "0.64 (0.62 .. 0.66)"},
		{0.82, 0.70, 0.95, 0.999, 0, VERDICT_PASS, CAUSE_NONE, "(0.70 .. 0.95)"},
		{0.45, 0.43, 0.47, 0.999, 0, VERDICT_FAIL, CAUSE_BELOW_CEILING, "under 0.50"},
		{0.45, 0.35, 0.66, 0.999, 0, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD, "both sides of 0.50"},
		{1.04, 0.90, 1.30, 0.999, 0, VERDICT_PASS, CAUSE_NONE, ""},
		{1.20, 1.10, 1.30, 0.999, 0, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND, "one of the two"},
		/* A neighbour that takes a tenth of both, a host that takes half of both, other work that
		   takes half. */
		{0.90, 0.86, 0.93, 0.900, 0, VERDICT_PASS, CAUSE_CPU_CONTENDED, "other work here took"},
		{0.90, 0.80, 0.95, 0.500, 0.48, VERDICT_PASS, CAUSE_CPU_CONTENDED, "the host gave to others"},
		{0.90, 0.86, 0.93, 0.500, 0.01, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED,
		 "other work on this machine"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;

		w.r.case_count = 0;
		c = in_turns(rows[i].ratio, rows[i].low, rows[i].high, rows[i].cpu_share, rows[i].steal);
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
		assert_non_null(strstr(world_of(&w, c)->reason, rows[i].words));
		assert_float_equal(world_of(&w, c)->share_of_bound, rows[i].ratio, 1e-9);
		assert_float_equal(world_of(&w, c)->bound.value, 150e9 / rows[i].ratio, 1);
		forget(c);
	}
}

/* Clock, CPU time and the one-thread case explain; the residual is what sharing costs, and the knob was
 * tried. */
static void test_run__a_cpu_s_gap_has_signals_of_its_own(void **state)
{
	struct record_case *one, *both;
	const struct judgement *j;

	(void)state;
	ceilings();
	one = in_turns(0.88, 0.87, 0.89, 0.999, 0);
	json_object_set_new(json_object_get((json_t *)one->plan, "options"), "threads", json_string("1"));
	world_set(one, "sustained", "threads", 1);
	world_set(one, "sustained", "flop_rate", 165e9);
	both = in_turns(0.64, 0.62, 0.66, 0.98, 0);
	json_object_set_new(json_object_get((json_t *)both->plan, "options"), "threads", json_string("0"));
	world_judge(&w);
	j = world_of(&w, both);
	assert_float_equal(factor_of(j, "clock")->value, 0.9, 1e-9);
	assert_float_equal(factor_of(j, "cpu time")->value, 0.98 / 0.99, 1e-9);
	assert_float_equal(factor_of(j, "kernel")->value, 0.88, 1e-9);
	assert_true(factor_of(j, "threads")->shown_only);
	assert_float_equal(factor_of(j, "threads")->value, 200.0 / 220, 1e-9);
	assert_float_equal(j->unexplained, 0.64 / (0.9 * 0.98 / 0.99 * 0.88), 1e-6);
	assert_int_equal(j->cause, CAUSE_BELOW_CEILING); /* a residual on a CPU is no finding of its own */
	assert_int_equal(j->advice_count, 2);
	assert_non_null(strstr(j->advice[0].knob, "clock"));
	assert_non_null(strstr(j->advice[1].knob, "one thread a core"));
	assert_non_null(strstr(j->advice[1].gain, "x 1.10: one thread gave that here"));
	/* The one-thread case itself has no such factor: it stays in the residual. */
	assert_false(factor_of(world_of(&w, one), "kernel")->present);
}

static void test_run__a_point_of_a_curve_may_scatter(void **state)
{
	struct record_case *c = world_case(&w, "memory", "cpu", "latency", "op=chase size=65536");

	(void)state;
	c->phases = "burst";
	c->require = 1;
	world_set(c, "burst", "latency_ns", 5);
	world_set(c, "burst", "half_width_share", 0.049);
	world_set(c, "burst", "cpu_share", 0.9);
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	world_set(c, "burst", "half_width_share", 0.09);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_WIDE_SPREAD);
	world_set(c, "burst", "cpu_share", 0.5);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
}

/* The second round counts where it is better, the first where that is; a failure is never repeated away. */
static void test_run__the_better_round_counts(void **state)
{
	static const struct {
		double share[2];
		int exit_code;
	} rows[] = {{{0.5, 0.999}, 0}, {{0.999, 0.5}, 0}, {{0.5, 0.5}, 2}};
	struct record_case *a, *b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		w.r.case_count = 0;
		a = in_turns(0.90, 0.89, 0.91, rows[i].share[0], 0);
		b = in_turns(0.90, 0.89, 0.91, rows[i].share[1], 0);
		json_object_set_new((json_t *)b->plan, "again", json_integer(0));
		world_judge(&w);
		assert_int_equal(w.out.exit_code, rows[i].exit_code);
		assert_int_equal(world_of(&w, a)->superseded + world_of(&w, b)->superseded, 1);
		forget(b);
		forget(a);
	}
	a = in_turns(0.30, 0.29, 0.31, 0.999, 0);
	b = in_turns(0.90, 0.89, 0.91, 0.999, 0);
	json_object_set_new((json_t *)b->plan, "again", json_integer(0));
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_run__rounds_in_turns_are_compared_by_their_shares(void **state)
{
	struct record_case *b;

	(void)state;
	in_turns(0.90, 0.89, 0.91, 0.999, 0);
	b = in_turns(0.91, 0.90, 0.92, 0.999, 0);
	world_set(b, "sustained", "flop_rate", 120e9); /* slower by its clock, and so was the ceiling */
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_NONE);
	world_set(b, "sustained", "ceiling_ratio", 0.82);
	world_set(b, "sustained", "ceiling_ratio_low", 0.81);
	world_set(b, "sustained", "ceiling_ratio_high", 0.83);
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_WARN, CAUSE_WIDE_SPREAD);
}

/* Nothing judged: the run ends well, but does not pass. */
static void test_run__a_run_of_measurements_alone_is_measured(void **state)
{
	struct record_case *c = world_case(&w, "dispatch", "gpu0", "latency", "");

	(void)state;
	c->require = 2;
	world_set(c, "sustained", "latency_ns", 2300);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_int_equal(w.out.exit_code, 0);
	assert_int_equal(w.out.verdict, VERDICT_MEASURED);
	assert_non_null(
		strstr(w.out.headline, "0 passed, 0 deserve a look, 1 measured without being judged"));
	c->require = 0;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(w.out.exit_code, 2);
}

static void test_run__a_ceiling_that_others_slowed_judges_nothing(void **state)
{
	struct record_case *c;

	(void)state;
	ceilings();
	c = sgemm(184, 0.999);
	world_set(&w.cases[0], "sustained", "cpu_share", 0.80);
	w.cases[0].key = "peak of two threads";
	world_set(&w.cases[1], "sustained", "cpu_share", 0.70);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, c)->bound.from, BOUND_NONE);
	assert_verdict(&w, &w.cases[0], VERDICT_UNTRUSTED, CAUSE_CPU_CONTENDED);
}

static void test_run__a_healthy_cpu_machine_ends_with_zero_and_says_what_that_means(void **state)
{
	struct record_case *log;
	size_t i;

	(void)state;
	ceilings();
	for (i = 0; i < w.r.case_count; i++)
		w.cases[i].require = 1;
	sgemm(184, 0.999);
	log = world_reading(&w, "host_state", "cpu", "kernel_log_readable=0");
	world_judge(&w);
	assert_verdict(&w, log, VERDICT_UNKNOWN, CAUSE_NO_LOG);
	assert_int_equal(w.out.exit_code, 0);
	assert_int_equal(w.out.verdict, VERDICT_PASS);
	assert_non_null(strstr(w.out.headline, "own ceilings: no reference for this CPU model"));
	assert_int_equal(w.out.could_not_look_count, 1);
	assert_true(w.out.operator_input_count >= 1);
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

		assert_int_equal(exit_of_case(&j, 0), rows[i].judged);
		assert_int_equal(exit_of_case(&j, 1), rows[i].measured);
		assert_int_equal(exit_of_case(&j, 2), rows[i].nothing);
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

static void test_run__a_slow_gpu_among_eight_is_named_and_only_that(void **state)
{
	struct record_case *c[8];
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		c[i] = world_gemm(&w, target, "bf16", 8192, i == 5 ? 689 * 0.96 : 689 + i,
				  i == 5 ? 1395 * 0.96 : 1395, 695, 0);
		c[i]->together = true;
		c[i]->step = 0;
		world_set(c[i], "sustained", "temperature_c", i == 5 ? 79 : 70);
	}
	world_judge(&w);
	assert_verdict(&w, c[5], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	world_set(c[5], "sustained", "clock_reasons_or", 0x24);
	world_judge(&w);
	assert_verdict(&w, c[5], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_non_null(strstr(world_of(&w, c[5])->reason, "thermal_sw"));
	assert_non_null(strstr(world_of(&w, c[5])->reason, "hotter by 9 C"));
	for (i = 0; i < 8; i++)
		if (i != 5)
			assert_verdict(&w, c[i], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_run__an_outlier_seen_twice_fails(void **state)
{
	struct record_case *again;
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		world_gemm(&w, target, "bf16", 8192, i == 2 ? 700 : 725, i == 2 ? 1420 : 1470, 695, 0);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	again = world_gemm(&w, "gpu2", "bf16", 8192, 701, 1420, 695, 0);
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_int_equal(world_of(&w, again)->verdict, VERDICT_PASS);
}

static void test_run__siblings_judge_what_no_band_knows(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		world_gemm(&w, target, "bf16", 5000, i == 1 ? 420 : 600 + i, 1395, 695, 0);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_verdict(&w, &w.cases[0], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, &w.cases[0])->judged_by, JUDGED_SIBLINGS);
}

static void test_run__a_slow_link_is_named_with_its_direction(void **state)
{
	static const char *const pairs[] = {"gpu0+gpu1", "gpu1+gpu0", "gpu3+gpu6", "gpu6+gpu3", "gpu2+gpu5"};
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct record_case *c = world_case(&w, "link", pairs[i], "link.p2p", "direction=p2p");

		c->work_link = 1e9;
		world_set(c, "sustained", "link_rate", i == 2 ? 180e9 : 390e9);
		world_verified(c);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_non_null(strstr(world_of(&w, &w.cases[2])->reason, "gpu3+gpu6"));
	assert_int_equal(world_of(&w, &w.cases[3])->verdict, VERDICT_PASS);
}

static void test_run__two_cases_on_one_gpu_at_once_are_shared(void **state)
{
	struct record_case *a = world_gemm(&w, "gpu0", "bf16", 8192, 350, 1395, 695, 0);
	struct record_case *b = world_gemm(&w, "gpu0", "bf16", 8192, 350, 1395, 695, 0);

	(void)state;
	a->together = b->together = true;
	a->step = b->step = 3;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_FAIL, CAUSE_GPU_SHARED);
	assert_verdict(&w, b, VERDICT_FAIL, CAUSE_GPU_SHARED);
}

static void test_run__the_leave_one_out_median_is_not_moved_by_the_outlier(void **state)
{
	const double x[] = {100, 101, 99, 60};
	double limit;

	(void)state;
	assert_float_equal(siblings_deviation(x, 4, 3, &limit), 60.0 / 100 - 1, 1e-9);
	assert_float_equal(limit, 0.03, 1e-9); /* 3 MAD of 100, 101, 99 */
	assert_float_equal(siblings_deviation(x, 2, 0, &limit), 0, 0);
}

static void stated(const char *expect, enum verdict v, enum cause cause, int exit_code)
{
	struct judge_site site = {.expect = expect};
	struct error err = {0};

	judgements_release(&w.out);
	if (judge_run(&w.out, &w.ctx, &site, &err))
		fail_msg("%s", err.text);
	assert_true(w.out.has_stated);
	assert_int_equal(w.out.stated.verdict, v);
	assert_int_equal(w.out.stated.cause, cause);
	assert_int_equal(w.out.exit_code, exit_code);
}

static void test_run__what_was_bought_is_held_against_what_is_here(void **state)
{
	(void)state;
	world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	stated("h100-sxm:8", VERDICT_PASS, CAUSE_NONE, 0);
	stated("h100-sxm:4", VERDICT_WARN, CAUSE_CONFIG_MISMATCH, 0);
	stated("h100-sxm-80:8,h100:8", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	stated("h200:8", VERDICT_FAIL, CAUSE_CONFIG_MISMATCH, 1);
	world_fact(&w.gpu[6], GPU_FACT_memory_bytes, 39.8 * 0x1p30); /* half the memory is another product */
	stated("h100-sxm:8", VERDICT_FAIL, CAUSE_CONFIG_MISMATCH, 1);
	assert_non_null(strstr(w.out.stated.reason, "found 7"));
	world_fact(&w.gpu[6], GPU_FACT_memory_bytes, 79.6 * 0x1p30);
	stated("h100-sxm:9", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	w.gpu[3].status = STATUS_LOST;
	stated("h100-sxm:8", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	assert_true(w.out.could_not_look_count >= 1);
}

static void test_run__a_wrong_statement_is_a_usage_error_with_the_nearest_name(void **state)
{
	static const char *const wrong[] = {"h100-smx:8", "h100-sxm:0",	 "h100-sxm:8x",
					    ":8",	  "h100-sxm:-1", "h100-sxm:99999"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct judge_site site = {.expect = wrong[i]};
		struct error err = {0};

		judgements_release(&w.out);
		assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "--expect"));
		assert_int_equal(judge_site_text(&(struct text){0}, &site, w.ctx.e, &err), STATUS_BAD_INPUT);
	}
}

static void test_run__a_short_name_has_its_nearest_short_name(void **state)
{
	static const struct {
		const char *stated, *meant;
	} rows[] = {
		{"h10-sxm:8", "\"h100-sxm\""}, {"h20o", "\"h200\""}, {"h100-sxm-8O:8", "\"h100-sxm-80\""}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct judge_site site = {.expect = rows[i].stated};
		struct error err = {0};

		assert_int_equal(judge_site_text(&(struct text){0}, &site, w.ctx.e, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, rows[i].meant))
			fail_msg("%s", err.text);
	}
}

static void test_run__a_statement_kept_as_a_file_says_the_same(void **state)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	struct judge_site site = {.expect = "h100-sxm:8,l40s"}, kept = {.file = path};
	struct text first = {0}, second = {0};
	FILE *f = fdopen(mkstemp(path), "w");
	struct error err = {0};

	(void)state;
	assert_int_equal(judge_site_text(&first, &site, w.ctx.e, &err), STATUS_OK);
	fprintf(f, "%spower_limit: 650.5 W\nnvlinks: 18\n", text_str(&first));
	fclose(f);
	assert_int_equal(judge_site_text(&second, &kept, w.ctx.e, &err), STATUS_OK);
	assert_string_equal(strchr(text_str(&second), '\n'),
			    "\ngpus: [\"h100-sxm:8\", \"l40s:1\"]\npower_limit: 650.5 W\nnvlinks: 18\n");
	text_release(&first);
	assert_int_equal(judge_site_text(&first, &(struct judge_site){0}, w.ctx.e, &err), STATUS_OK);
	assert_int_equal(first.size, 0);
	unlink(path);
	text_release(&first);
	text_release(&second);
}

static void test_run__a_site_file_states_limits_and_links(void **state)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct judge_site site = {.file = path};
	struct error err = {0};

	(void)state;
	fputs("gpus: [\"h100-sxm:8\"]\npower_limit: 650 W\nnvlinks: 18\n", f);
	fclose(f);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_OK);
	assert_int_equal(w.out.stated.cause, CAUSE_CONFIG_MISMATCH);
	f = fopen(path, "w");
	fputs("gpu: [\"h100-sxm:8\"]\n", f);
	fclose(f);
	judgements_release(&w.out);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "gpus"));
	remove(path);
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
		strstr(world_of(&w, gemm)->reason, "data random, power_limit default; one card, 4 runs"));
	assert_non_null(strstr(world_of(&w, zeros)->reason, "efficiency: phase sustained, library_major 13"));
	json_decref(w.r.machine);
	w.r.machine = json_pack("{s:{s:{s:s}}}", "software", "cublaslt", "version", "12.8.4");
	world_judge(&w); /* another major of the library: nothing is known of its shares */
	assert_verdict(&w, zeros, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	zeros->require = 1; /* nobody asks to judge it */
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
	if (judge_ahead(&out, &w.r, w.e, &err))
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
	assert_non_null(strstr(w.out.headline, "2 of 2 cases stay open"));
	assert_non_null(strstr(w.out.headline, "type=bf16"));
	gpu->status = STATUS_MISMATCH; /* and a failure before either */
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	assert_non_null(strstr(w.out.headline, "failed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_run__##name, setup, end)
		T(begin_one, the_headline_names_a_gpu_s_open_case_before_a_cpu_s),
		T(begin_one, every_ending_has_its_verdict),
		T(begin_one, every_status_has_its_verdict),
		T(begin_one, a_skip_of_the_plan_is_a_skip_only_where_nothing_is_missing),
		T(begin_one, readings_are_judged_by_rule),
		T(begin_one, the_size_of_a_loss_of_links_is_told),
		T(begin_one, a_counter_that_rose_during_the_run_is_judged_by_its_rise),
		T(begin_eight, the_link_whose_errors_rose_is_named),
		T(begin_eight, xids_before_the_run_name_their_device),
		T(begin_cpu, a_cpu_is_held_against_its_own_ceilings),
		T(begin_cpu, a_cpu_memory_case_counts_what_the_store_moves),
		T(begin_cpu, stolen_cpu_time_is_contention_and_a_quota_is_not),
		T(begin_cpu, a_ceiling_that_others_slowed_judges_nothing),
		T(begin_one, a_run_of_measurements_alone_is_measured),
		T(begin_cpu, a_case_in_turns_is_judged_by_their_interval),
		T(begin_cpu, a_cpu_s_gap_has_signals_of_its_own),
		T(begin_cpu, a_point_of_a_curve_may_scatter),
		T(begin_cpu, rounds_in_turns_are_compared_by_their_shares),
		T(begin_cpu, the_better_round_counts),
		T(begin_cpu, a_healthy_cpu_machine_ends_with_zero_and_says_what_that_means),
		T(begin_one, exit_codes_follow_the_table),
		T(begin_one, one_fail_outranks_everything_and_nothing_measured_is_inconclusive),
		T(begin_eight, a_slow_gpu_among_eight_is_named_and_only_that),
		T(begin_eight, an_outlier_seen_twice_fails),
		T(begin_eight, siblings_judge_what_no_band_knows),
		T(begin_eight, a_slow_link_is_named_with_its_direction),
		T(begin_one, two_cases_on_one_gpu_at_once_are_shared),
		T(begin_one, the_leave_one_out_median_is_not_moved_by_the_outlier),
		T(begin_eight, what_was_bought_is_held_against_what_is_here),
		T(begin_one, a_wrong_statement_is_a_usage_error_with_the_nearest_name),
		T(begin_one, a_short_name_has_its_nearest_short_name),
		T(begin_one, a_statement_kept_as_a_file_says_the_same),
		T(begin_eight, a_site_file_states_limits_and_links),
		T(begin_one, ahead_it_says_what_would_judge),
		T(begin_one, a_recorded_card_is_known_by_its_facts),
		T(begin_one, judging_is_pure),
#undef T
	};

	return cmocka_run_group_tests_name("judge_run", tests, NULL, NULL);
}
