/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of expectations: the built-in one, a folder, and how a SKU is found in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cmd/shared/checked_expectations.h"
#include "judge/expect/expect.h"

static void test_expectations__the_built_in_set_holds(void **state)
{
	struct expectations *e = NULL;
	struct error err = {0};

	(void)state;
	if (expectations_load(&e, NULL, &err) || expectations_check(e, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strlen(expectations_hash(e)), 64);
	assert_true(e->sku_count >= 20 && e->band_count >= 30 && e->rule_count >= 20 && e->xid_count >= 30);
	expectations_free(e);
}

static void test_expectations__the_folder_gives_the_same_hash_as_the_program(void **state)
{
	struct expectations *a = NULL, *b = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(expectations_load(&a, NULL, &err), STATUS_OK);
	assert_int_equal(expectations_load(&b, SOURCE_DIR "/expectations", &err), STATUS_OK);
	assert_string_equal(expectations_hash(a), expectations_hash(b));
	expectations_free(a);
	expectations_free(b);
}

static void test_expectations__a_missing_folder_is_an_error(void **state)
{
	struct expectations *e = NULL;
	struct error err = {0};

	(void)state;
	assert_int_not_equal(expectations_load(&e, "/nonexistent/expectations", &err), STATUS_OK);
	assert_null(e);
	assert_non_null(strstr(err.text, "/nonexistent/expectations"));
}

static struct gpu gpu_of(unsigned device, double sm, double gib)
{
	struct gpu g = {.pci_device = device << 16 | 0x10de, .name = "NVIDIA H100 80GB HBM3"};

	g.fact[GPU_FACT_memory_bytes] = gib * 0x1p30;
	g.present |= 1ull << GPU_FACT_memory_bytes;
	if (sm > 0) {
		g.fact[GPU_FACT_sm_count] = sm;
		g.present |= 1ull << GPU_FACT_sm_count;
	}
	return g;
}

static void test_expectations__a_sku_is_its_ids_sms_and_memory_never_its_name(void **state)
{
	static const struct {
		unsigned device;
		double sm, gib;
		const char *sku;
	} rows[] = {
		{0x2330, 132, 79.6, "h100-sxm-80"},
		{0x2330, 0, 79.6, "h100-sxm-80"},
		{0x2330, 114, 79.6, ""},
		{0x2330, 132, 39.6, ""},
		{0x9999, 132, 79.6, ""},
		{0x2335, 132, 140.4, "h200-sxm-141"},
		{0x233b, 132, 140.4, "h200-nvl-141"}, /* 143771 MiB as NVML tells */
		{0x2342, 132, 95.6, "gh200-96"},      /* 97871 MiB */
		{0x2348, 132, 143.4, "gh200-144"},    /* 146831 MiB */
		{0x20b2, 108, 79.3, "a100-sxm-80"},
		{0x2684, 128, 24.0, "rtx-4090-24"},
	};
	struct expectations *e = NULL;
	struct error err = {0};
	size_t i;

	(void)state;
	assert_int_equal(expectations_load(&e, NULL, &err), STATUS_OK);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpu g = gpu_of(rows[i].device, rows[i].sm, rows[i].gib);

		assert_string_equal(expectations_sku(e, &g), rows[i].sku);
	}
	expectations_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expectations__the_built_in_set_holds),
		cmocka_unit_test(test_expectations__the_folder_gives_the_same_hash_as_the_program),
		cmocka_unit_test(test_expectations__a_missing_folder_is_an_error),
		cmocka_unit_test(test_expectations__a_sku_is_its_ids_sms_and_memory_never_its_name),
	};

	return cmocka_run_group_tests_name("judge_sets", tests, NULL, NULL);
}
