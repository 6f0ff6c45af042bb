/* SPDX-License-Identifier: Apache-2.0 */
/* Readings without the fields that decide them: unknown with the driver's reason, or a skip of what is not
 * there. */
#include "judge_bed.h"
#include "core/status.h"
#include "probe/list.h"
#include "probe/registry.h"

#define ECC_WELL                                                                                             \
	"ecc_enabled=1 ecc_volatile_uncorrected=0 ecc_aggregate_uncorrected=0 ecc_volatile_corrected=0"
#define REFUSED "not supported by this device or driver"

/* The first GPU's refusals, "field: why" pairs as JSON, and the layers that gave nothing. */
static void facts(const char *unreadable, const char *layers)
{
	json_decref(w.r.machine);
	w.r.machine =
		json_pack("{s:{s:[{s:s, s:o}], s:o}}", "facts", "gpus", "pci", w.gpu[0].pci, "unreadable",
			  json_loads(unreadable, 0, NULL), "unreadable", json_loads(layers, 0, NULL));
	assert_non_null(w.r.machine);
}

static int end_facts(void **state)
{
	json_decref(w.r.machine);
	w.r.machine = NULL;
	return end(state);
}

/* An unlisted product of an architecture whose products differ. */
static void unlisted(struct gpu *g)
{
	g->pci_device = 0x1111u << 16 | 0x10de;
	world_fact(g, GPU_FACT_cc, 86);
}

/* What the reading has, what the driver said of the rest, and what comes of it on a listed and an unlisted
 * product. */
static void test_decisive__what_the_product_has_must_be_read(void **state)
{
	static const struct {
		const char *probe, *fields, *refused, *why;
		enum verdict listed;
		enum cause cause;
		enum verdict unlisted;
	} rows[] = {
		{"ecc", ECC_WELL, "ecc_sram_threshold", REFUSED, VERDICT_PASS, CAUSE_NONE, VERDICT_PASS},
		{"ecc", "ecc_enabled=1", "ecc_volatile_uncorrected", "permission denied", VERDICT_UNKNOWN,
		 CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"ecc", "ecc_enabled=1 ecc_volatile_corrected=0 ecc_aggregate_uncorrected=0",
		 "ecc_volatile_uncorrected", REFUSED, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED, VERDICT_UNKNOWN},
		{"ecc", ECC_WELL, "ecc_sram_threshold", "permission denied", VERDICT_UNKNOWN,
		 CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"ecc", "ecc_enabled=0", "ecc_volatile_uncorrected", "permission denied", VERDICT_WARN,
		 CAUSE_ECC_OFF, VERDICT_WARN},
		{"ecc", "ecc_aggregate_corrected=0", "ecc_enabled", REFUSED, VERDICT_UNKNOWN,
		 CAUSE_UNSUPPORTED, VERDICT_SKIP},
		{"remap", "remap_failed=0", "remap_pending", "permission denied", VERDICT_UNKNOWN,
		 CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"remap", "remap_pending=0 remap_failed=0", "retired_pages", "permission denied",
		 VERDICT_PASS, CAUSE_NONE, VERDICT_PASS},
		{"remap", "retired_pages=0", "remap_pending", REFUSED, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED,
		 VERDICT_PASS},
		{"remap", "remap_banks_none=0", "remap_pending", REFUSED, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED,
		 VERDICT_SKIP},
		{"clock_state", "clock_reasons=1 power_limit_w=700 temperature_c=40", "power_limit_default_w",
		 "NVML refused", VERDICT_UNKNOWN, CAUSE_VENDOR_CALL, VERDICT_UNKNOWN},
		{"clock_state", "power_limit_w=700 power_limit_default_w=700 temperature_c=40",
		 "clock_reasons", REFUSED, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED, VERDICT_UNKNOWN},
		{"clock_state", "clock_reasons=1 temperature_c=40", "power_limit_w", REFUSED, VERDICT_UNKNOWN,
		 CAUSE_UNSUPPORTED, VERDICT_PASS},
		{"clock_state", "clock_reasons=1 power_limit_default_w=700 temperature_c=40", "power_limit_w",
		 "timed out", VERDICT_UNKNOWN, CAUSE_TIMED_OUT, VERDICT_UNKNOWN},
		{"pcie_state", "pcie_gen=5 pcie_gen_max=5 pcie_width_max=16", "pcie_width",
		 "nvmlDeviceGetCurrPcieLinkWidth answered 64, which is impossible", VERDICT_UNKNOWN,
		 CAUSE_VENDOR_CALL, VERDICT_UNKNOWN},
		{"pcie_state", "pcie_width=16 pcie_width_max=16 pcie_gen=5", "pcie_gen_max",
		 "permission denied", VERDICT_UNKNOWN, CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"gpu_mode", "cuda_profiling_restricted=0 mig_mode=0 compute_mode=0", "recovery_action",
		 REFUSED, VERDICT_PASS, CAUSE_NONE, VERDICT_PASS},
		{"gpu_mode", "cuda_profiling_restricted=0 mig_mode=0 compute_mode=0", "recovery_action",
		 "permission denied", VERDICT_UNKNOWN, CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"contamination", "processes=0 utilization_share=0", "memory_free_bytes", "permission denied",
		 VERDICT_UNKNOWN, CAUSE_PERMISSION, VERDICT_UNKNOWN},
		{"contamination", "memory_used_bytes=0", "processes", "permission denied", VERDICT_UNKNOWN,
		 CAUSE_PERMISSION, VERDICT_UNKNOWN},
	};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (k = 0; k < 2; k++) {
			enum verdict wanted = k ? rows[i].unlisted : rows[i].listed;
			struct record_case *c;
			char refused[200];

			if (k)
				unlisted(&w.gpu[0]);
			snprintf(refused, sizeof(refused), "{\"%s\": \"%s\"}", rows[i].refused, rows[i].why);
			facts(refused, "[]");
			c = world_reading(&w, rows[i].probe, "gpu0", rows[i].fields);
			world_judge(&w);
			if (world_of(&w, c)->verdict != wanted ||
			    (!k && world_of(&w, c)->cause != rows[i].cause) ||
			    (wanted == VERDICT_UNKNOWN && !strstr(world_of(&w, c)->reason, rows[i].why)))
				fail_msg("%s %s, %s %s, %s: %s %s", rows[i].probe, rows[i].fields,
					 rows[i].refused, rows[i].why, k ? "unlisted" : "listed",
					 verdict_name(world_of(&w, c)->verdict), world_of(&w, c)->reason);
			assert_int_equal(w.out.exit_code,
					 wanted == VERDICT_UNKNOWN || wanted == VERDICT_SKIP ? 2 : 0);
			end_facts(NULL);
			begin_one(NULL);
		}
}

/* Neither the product nor its architecture is in a file: nobody can tell that it lacks the field. */
static void test_decisive__of_a_product_that_no_file_knows_nothing_is_skipped(void **state)
{
	static const struct {
		const char *probe, *fields, *refused, *field;
		enum verdict wanted;
	} rows[] = {
		{"ecc", "ecc_aggregate_corrected=0", "ecc_enabled", "ecc_enabled", VERDICT_UNKNOWN},
		{"remap", "remap_banks_none=0", "remap_pending", "remap_pending", VERDICT_UNKNOWN},
		{"clock_state", "clock_reasons=1 temperature_c=40", "power_limit_w", "power_limit_w",
		 VERDICT_UNKNOWN},
		{"pcie_state", "pcie_gen=5 pcie_gen_max=5 pcie_width_max=16", "pcie_width", "pcie_width",
		 VERDICT_UNKNOWN},
		/* no product states these: knowing it would not tell more */
		{"ecc", ECC_WELL, "ecc_sram_threshold", "", VERDICT_PASS},
		{"gpu_mode", "cuda_profiling_restricted=0 mig_mode=0 compute_mode=0", "recovery_action", "",
		 VERDICT_PASS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;
		char refused[200];

		w.gpu[0].pci_device = 0x1111u << 16 | 0x10de;
		world_fact(&w.gpu[0], GPU_FACT_cc, 75);
		snprintf(refused, sizeof(refused), "{\"%s\": \"%s\"}", rows[i].refused, REFUSED);
		facts(refused, "[]");
		c = world_reading(&w, rows[i].probe, "gpu0", rows[i].fields);
		world_judge(&w);
		if (world_of(&w, c)->verdict != rows[i].wanted ||
		    !strstr(world_of(&w, c)->reason, rows[i].field) ||
		    (rows[i].wanted == VERDICT_UNKNOWN &&
		     !strstr(world_of(&w, c)->reason, "assay does not know whether this product has the field")))
			fail_msg("%s %s: %s %s", rows[i].probe, rows[i].refused,
				 verdict_name(world_of(&w, c)->verdict), world_of(&w, c)->reason);
		assert_int_equal(w.out.exit_code, rows[i].wanted == VERDICT_UNKNOWN ? 2 : 0);
		end_facts(NULL);
		begin_one(NULL);
	}
}

/* A fault that was read outranks what was not. */
static void test_decisive__a_fault_that_was_read_still_fails(void **state)
{
	struct record_case *c = world_reading(&w, "remap", "gpu0", "remap_failed=1");

	(void)state;
	facts("{\"remap_pending\": \"permission denied\"}", "[]");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_REMAP_FAILED);
}

static void test_decisive__under_mig_what_the_parent_does_not_tell_is_unknown(void **state)
{
	struct record_case *c = world_reading(&w, "remap", "gpu0", "remap_banks_none=0");

	(void)state;
	unlisted(&w.gpu[0]);
	world_fact(&w.gpu[0], GPU_FACT_mig_mode, 1);
	facts("{\"remap_pending\": \"" REFUSED "\", \"remap_failed\": \"" REFUSED "\"}", "[]");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_MIG_MODE);
	assert_int_equal(w.out.exit_code, 2);
}

/* The whole reading refused: it ended unsupported, which is a skip for products without the feature alone. */
static void test_decisive__a_reading_that_was_refused_whole(void **state)
{
	struct record_case *c = world_case(&w, "remap", "gpu0", "", "");

	(void)state;
	c->reading = true;
	c->status = STATUS_UNSUPPORTED;
	c->cause = CAUSE_UNSUPPORTED;
	facts("{\"remap_pending\": \"" REFUSED "\", \"remap_failed\": \"" REFUSED "\"}", "[]");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED);
	assert_non_null(strstr(world_of(&w, c)->reason, "this device has the field"));
	unlisted(&w.gpu[0]);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_SKIP, CAUSE_UNSUPPORTED);
}

/* CUDA sees the GPU and told what it can; NVML gave nothing. */
static void test_decisive__a_broken_nvml_leaves_readings_unknown_by_its_cause(void **state)
{
	static const struct {
		const char *probe, *target, *fields;
	} rows[] = {
		{"ecc", "gpu0", "ecc_enabled=1"},
		{"clock_state", "gpu0", "sm_clock_max_mhz=1980"},
		{"gpu_mode", "gpu0", "cuda_profiling_restricted=0"},
		{"contamination", "gpu0", "memory_bytes=1000"},
		{"gpu_count", "node", "driver_loaded=1 gpu_count_pci=1 gpu_count_cuda=1 gpu_count_granted=1"},
		{"versions", "node", "driver_version=580.1.2x driver_cuda_version=13000"},
	};
	static const struct {
		const char *layer;
		enum cause cause;
		const char *action;
	} broken[] = {
		{"[{\"what\": \"NVML\", \"cause\": \"library_missing\", \"why\": \"invalid ELF header\"}]",
		 CAUSE_LIBRARY_MISSING, "install the library that the reason names"},
		{"[{\"what\": \"NVML\", \"cause\": \"version_mismatch\", \"why\": \"nvmlInit_v2 answered "
		 "18\"}]",
		 CAUSE_VERSION_MISMATCH, "reload the driver's kernel module"},
	};
	size_t i, k;

	(void)state;
	w.gpu[0].nvml_index = -1;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (k = 0; k < 2; k++) {
			struct record_case *c =
				world_reading(&w, rows[i].probe, rows[i].target, rows[i].fields);

			facts("{}", broken[k].layer);
			world_judge(&w);
			assert_verdict(&w, c, VERDICT_UNKNOWN, broken[k].cause);
			if (!strstr(world_of(&w, c)->reason, broken[k].action))
				fail_msg("%s", world_of(&w, c)->reason);
		}
	assert_int_equal(w.out.exit_code, 2);
}

/* Links are needed between GPUs: one alone is often given without them. */
static void test_decisive__links_are_needed_between_gpus(void **state)
{
	struct record_case *c = world_reading(&w, "nvlink_state", "gpu0", "fabric_state=3 fabric_status=0");

	(void)state;
	facts("{\"nvlink_active\": \"" REFUSED "\"}", "[]");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_NONE);
	w.ctx.gpu_count = 2;
	w.gpus[1] = &w.gpu[1];
	world_gpu(&w.gpu[1], 1, false);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_UNSUPPORTED);
}

/* Exit code 0, unless the suite asks for judgement in words. */
static void test_decisive__an_unreadable_log_counts_where_judgement_is_asked_for(void **state)
{
	static const char *const fields[] = {"kernel_log_readable=0", "xid_count=0"};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct record_case *c;

		c = world_reading(&w, "xid", "gpu0", fields[i]);
		world_judge(&w);
		assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_LOG);
		assert_int_equal(w.out.exit_code, 0);
		c->require_said = true;
		world_judge(&w);
		assert_int_equal(w.out.exit_code, 2);
		c->require = REQUIRE_NOTHING;
		c->require_said = false;
		world_judge(&w);
		assert_int_equal(w.out.exit_code, 0);
		end(NULL);
		begin_one(NULL);
	}
}

/* A name that no reading has would never be missed, or always. */
static void test_decisive__every_field_is_one_of_its_probe(void **state)
{
	size_t i, k;

	(void)state;
	assert_true(w.e->decisive_count > 20);
	for (i = 0; i < w.e->decisive_count; i++) {
		const struct probe *const *p = probe_list;

		while (*p && strcmp((*p)->name, w.e->decisive[i].probe))
			p++;
		assert_non_null(*p);
		assert_int_equal((*p)->kind, PROBE_READING);
		for (k = 0; k < (*p)->field_count && strcmp((*p)->fields[k].name, w.e->decisive[i].field);)
			k++;
		if (k == (*p)->field_count)
			fail_msg("%s has no field %s", (*p)->name, w.e->decisive[i].field);
	}
}

static bool touches_hardware(const char *action)
{
	static const char *const words[] = {"replace", "reseat", "swap", "pull", "RMA"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(action, words[i]))
			return true;
	return false;
}

/* "replace it if they return and an Xid names it": the advice names a second signal, and what to do first. */
static void second_signal(const char *of, const char *action)
{
	const char *condition = strstr(action, " if ");

	if (touches_hardware(action) && (!condition ||
					 !(strstr(condition, " agree") || strstr(condition, " and ") ||
					   strstr(condition, " or ") || strstr(condition, " as well")) ||
					 !strpbrk(action, ";,")))
		fail_msg("%s: \"%s\" would take hardware out for one signal", of, action);
}

static void test_decisive__hardware_is_touched_for_two_signals_only(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < CAUSE_COUNT; i++)
		second_signal(cause_name((enum cause)i), cause_action((enum cause)i));
	for (i = 0; i < w.e->rule_count; i++)
		second_signal(w.e->rule[i].name, w.e->rule[i].action);
	for (i = 0; i < w.e->xid_count; i++)
		second_signal(w.e->xid[i].name, w.e->xid[i].action);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_decisive__##name, begin_one, end_facts)
		T(what_the_product_has_must_be_read),
		T(of_a_product_that_no_file_knows_nothing_is_skipped),
		T(a_fault_that_was_read_still_fails),
		T(under_mig_what_the_parent_does_not_tell_is_unknown),
		T(a_reading_that_was_refused_whole),
		T(a_broken_nvml_leaves_readings_unknown_by_its_cause),
		T(links_are_needed_between_gpus),
		T(an_unreadable_log_counts_where_judgement_is_asked_for),
		T(every_field_is_one_of_its_probe),
		T(hardware_is_touched_for_two_signals_only),
#undef T
	};

	return cmocka_run_group_tests_name("judge_decisive", tests, NULL, NULL);
}
