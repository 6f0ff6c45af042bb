/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's rows against the real header where there is one, against the fake everywhere, and against our
 * manners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#if __has_include(<nvml.h>)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#define VENDOR_REAL_NVML
#endif
#include "vendor/nvml.h"

#ifdef VENDOR_REAL_NVML
#define X(need, ret, field, symbol, params)                                                                  \
	_Static_assert(                                                                                      \
		__builtin_types_compatible_p(__typeof__(((struct nvml *)0)->field), __typeof__(&symbol)),    \
		#symbol);
NVML_FUNCTIONS(X)
#undef X
_Static_assert(NVML_FIELD_power_instant == NVML_FI_DEV_POWER_INSTANT, "field id");
_Static_assert(NVML_FIELD_energy_total == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "field id");
_Static_assert(NVML_FIELD_remap_pending == NVML_FI_DEV_REMAPPED_PENDING, "field id");
_Static_assert(NVML_FIELD_recovery_action == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, "field id");
_Static_assert(NVML_FIELD_violation_power == NVML_FI_DEV_PERF_POLICY_POWER, "field id");
_Static_assert(NVML_LINK_FIELD_raw_rx == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, "field id");
_Static_assert((int)NVML_GPM_TENSOR == (int)NVML_GPM_METRIC_ANY_TENSOR_UTIL, "metric id");
_Static_assert((int)NVML_GPM_DRAM == (int)NVML_GPM_METRIC_DRAM_BW_UTIL, "metric id");
#else
_Static_assert(nvmlMemory_v2 == 0x02000028, "as nvidia-ml-py writes it");
_Static_assert(nvmlTemperature_v1 == 0x100000C, "as nvidia-ml-py writes it");
_Static_assert(nvmlEccSramErrorStatus_v1 == 0x1000068, "as nvidia-ml-py writes it");
_Static_assert(nvmlGpuFabricInfo_v2 == 0x02000024, "as nvidia-ml-py writes it");
_Static_assert(nvmlGpuFabricInfo_v3 == 0x3000028, "as nvidia-ml-py writes it");
#endif

static const char *const allowed[] = {"nvmlEventSetCreate", "nvmlEventSetFree", "nvmlEventSetWait_v2", NULL};

/* The words stand in a name as words: "Set" in "EventSet" and "SetClocks", "Clock" is not "Lock". */
static bool changes_the_machine(const char *symbol)
{
	static const char *const words[] = {"Set", "Reset", "Lock", "Clear"};

	for (size_t i = 0; allowed[i]; i++) {
		if (!strcmp(symbol, allowed[i]))
			return false;
	}
	for (size_t i = 0; i < 4; i++) {
		if (strstr(symbol, words[i]))
			return true;
	}
	return false;
}

static void test_vendor_nvml__no_row_changes_the_machine(void **state)
{
	(void)state;
	assert_true(changes_the_machine("nvmlDeviceSetPersistenceMode"));
	assert_true(changes_the_machine("nvmlDeviceResetGpuLockedClocks"));
	assert_false(changes_the_machine("nvmlDeviceGetClockInfo"));
	for (size_t i = 0; i < nvml_lib.symbol_count; i++) {
		if (changes_the_machine(nvml_lib.symbols[i].symbol))
			fail_msg("%s changes the machine", nvml_lib.symbols[i].symbol);
	}
}

static void open_fake(struct nvml *nvml)
{
	struct error err = {0};

	if (lib_open(nvml, &nvml_lib, FAKE_DIR "/libnvidia-ml.so.1", NULL, &err))
		fail_msg("%s", err.text);
}

static void test_vendor_nvml__the_fake_has_every_row_and_answers(void **state)
{
	struct nvml nvml;
	nvmlDevice_t d;
	nvmlPciInfo_t pci;
	char text[16];
	unsigned value = 0;

	(void)state;
	open_fake(&nvml);
#define X(need, ret, field, symbol, params) assert_non_null(nvml.field);
	NVML_FUNCTIONS(X)
#undef X
	assert_int_equal(nvml.init(), NVML_SUCCESS);
	assert_int_equal(nvml.by_index(0, &d), NVML_SUCCESS);
	assert_int_equal(nvml.pci(d, &pci), NVML_SUCCESS);
	assert_true(nvml_pci_text(text, pci.busId));
	assert_string_equal(text, "0000:8d:00.0");
	assert_int_equal(nvml.power_limit(d, &value), NVML_SUCCESS);
	assert_int_equal(value, 700000);
	setenv("FAKE_NVML_VALUE", "power_limit=500000", 1);
	assert_int_equal(nvml.power_limit(d, &value), NVML_SUCCESS);
	assert_int_equal(value, 500000);
	unsetenv("FAKE_NVML_VALUE");
	setenv("FAKE_NVML_LOST", "0", 1);
	assert_int_equal(nvml.power_limit(d, &value), NVML_ERROR_GPU_IS_LOST);
	unsetenv("FAKE_NVML_LOST");
}

static void test_vendor_nvml__fields_are_read_by_type(void **state)
{
	nvmlFieldValue_t f = {.valueType = NVML_VALUE_TYPE_SIGNED_INT, .value.siVal = -3};
	double v = 0;

	(void)state;
	assert_true(nvml_field_f64(&f, &v));
	assert_true(v == -3.0);
	f.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	assert_false(nvml_field_f64(&f, &v));
	f = (nvmlFieldValue_t){.valueType = (nvmlValueType_t)77};
	assert_false(nvml_field_f64(&f, &v));
}

static void test_vendor_nvml__codes_have_status_and_cause(void **state)
{
	enum cause cause;

	(void)state;
	assert_int_equal(nvml_status(NVML_ERROR_GPU_IS_LOST, &cause), STATUS_LOST);
	assert_int_equal(cause, CAUSE_GPU_LOST);
	assert_int_equal(nvml_status(NVML_ERROR_DRIVER_NOT_LOADED, &cause), STATUS_UNAVAILABLE);
	assert_int_equal(cause, CAUSE_DRIVER_MISSING);
	assert_int_equal(nvml_status(NVML_ERROR_NOT_SUPPORTED, &cause), STATUS_UNSUPPORTED);
	assert_int_equal(nvml_status((nvmlReturn_t)4711, &cause), STATUS_VENDOR);
	assert_int_equal(nvml_status(NVML_SUCCESS, &cause), STATUS_OK);
	assert_int_equal(cause, CAUSE_NONE);
}

static void test_vendor_nvml__pci_addresses_are_checked(void **state)
{
	char out[16];

	(void)state;
	assert_true(nvml_pci_text(out, "00010000:AB:1F.0"));
	assert_string_equal(out, "10000:ab:1f.0");
	assert_false(nvml_pci_text(out, "garbage"));
	assert_false(nvml_pci_text(out, "0000:00:00.0x"));
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vendor_nvml__no_row_changes_the_machine),
		cmocka_unit_test(test_vendor_nvml__the_fake_has_every_row_and_answers),
		cmocka_unit_test(test_vendor_nvml__fields_are_read_by_type),
		cmocka_unit_test(test_vendor_nvml__codes_have_status_and_cause),
		cmocka_unit_test(test_vendor_nvml__pci_addresses_are_checked),
	};

	return cmocka_run_group_tests_name("vendor_nvml", tests, NULL, NULL);
}
