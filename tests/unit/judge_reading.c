/* SPDX-License-Identifier: Apache-2.0 */
/* Readings and the rules of health.yaml: links, counters that rose, Xids. */
#include "judge_bed.h"

#define ECC_WELL                                                                                             \
	"ecc_enabled=1 ecc_volatile_uncorrected=0 ecc_aggregate_uncorrected=0 ecc_volatile_corrected=0"

static void test_reading__readings_are_judged_by_rule(void **state)
{
	static const struct {
		const char *probe, *fields;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{"ecc", ECC_WELL " ecc_sram_threshold=0", VERDICT_PASS, CAUSE_NONE},
		{"ecc", "ecc_enabled=1 ecc_volatile_uncorrected=2", VERDICT_FAIL, CAUSE_ECC},
		{"ecc", "ecc_enabled=0", VERDICT_WARN, CAUSE_ECC_OFF},
		{"remap", "remap_pending=1 remap_failed=0", VERDICT_FAIL, CAUSE_REMAP_PENDING},
		{"remap", "remap_pending=1 remap_failed=1", VERDICT_FAIL, CAUSE_REMAP_PENDING},
		{"remap", "remap_failed=1", VERDICT_FAIL, CAUSE_REMAP_FAILED},
		{"remap", "remap_pending=0 remap_failed=0 retired_pages=3", VERDICT_WARN, CAUSE_RETIRED_PAGES},
		{"clock_state", "power_limit_w=500 power_limit_default_w=700", VERDICT_FAIL,
		 CAUSE_POWER_LIMIT_LOWERED},
		{"clock_state", "power_limit_w=700 power_limit_default_w=700 clock_reasons=1 temperature_c=40",
		 VERDICT_PASS, CAUSE_NONE},
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
		{"host_state", "kernel_log_readable=1 governor=powersave", VERDICT_WARN, CAUSE_LOW_CLOCK},
		{"host_state", "kernel_log_readable=1 governor=performance", VERDICT_PASS, CAUSE_NONE},
		{"host_state", "kernel_log_readable=1 foreign_share=0.02", VERDICT_PASS, CAUSE_NONE},
		{"host_state", "kernel_log_readable=1 foreign_share=0.75", VERDICT_WARN, CAUSE_CPU_CONTENDED},
		{"host_state", "kernel_log_readable=1 load_share=4", VERDICT_WARN, CAUSE_CPU_CONTENDED},
		{"versions", "driver_version=580.1.2x nvml_version=13.580.1.2x", VERDICT_UNKNOWN, CAUSE_NO_REFERENCE},
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

static void test_reading__the_size_of_a_loss_of_links_is_told(void **state)
{
	struct record_case *c = world_reading(&w, "nvlink_state", "gpu0", "nvlink_count=18 nvlink_active=12");

	(void)state;
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, c)->reason, "0.667"));
	world_text(c, "once", "nvlink_down", "12,13,14,15,16,17");
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, c)->reason, "0.667; nvlink_down 12,13,14,15,16,17"));
}

static void test_reading__a_counter_that_rose_during_the_run_is_judged_by_its_rise(void **state)
{
	struct record_case *before =
		world_reading(&w, "nvlink_state", "gpu0", "nvlink_errors=0 nvlink_count=18 nvlink_active=18");
	struct record_case *after =
		world_reading(&w, "nvlink_state", "gpu0", "nvlink_errors=7 nvlink_count=18 nvlink_active=18");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, before, VERDICT_PASS, CAUSE_NONE);
	assert_verdict(&w, after, VERDICT_WARN, CAUSE_NVLINK_ERRORS);
	assert_non_null(strstr(world_of(&w, after)->reason, "rose during this run"));
}

/* The link that grew is named, not those whose errors are old. */
static void test_reading__the_link_whose_errors_rose_is_named(void **state)
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
		before = world_reading(&w, "nvlink_state", target, "nvlink_errors=13 nvlink_count=18 nvlink_active=18");
		after = world_reading(&w, "nvlink_state", target, "nvlink_errors=20 nvlink_count=18 nvlink_active=18");
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
static void test_reading__xids_before_the_run_name_their_device(void **state)
{
	struct record_case *c = world_reading(
		&w, "xid", "gpu2", "kernel_log_readable=1 xid_count=1 xid_list=79@8.2 xid_first=79");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_XID);
	assert_non_null(strstr(world_of(&w, c)->reason, "Xid 79 (GPU fell off the bus) of 0000:12:00.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_reading__##name, setup, end)
		T(begin_one, readings_are_judged_by_rule),
		T(begin_one, the_size_of_a_loss_of_links_is_told),
		T(begin_one, a_counter_that_rose_during_the_run_is_judged_by_its_rise),
		T(begin_eight, the_link_whose_errors_rose_is_named),
		T(begin_eight, xids_before_the_run_name_their_device),
#undef T
	};

	return cmocka_run_group_tests_name("judge_reading", tests, NULL, NULL);
}
