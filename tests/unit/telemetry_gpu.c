/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler asks of a GPU, tick by tick, with an NVML of a few functions and a clock of the test's. */
#include "test.h"

#include <jansson.h>
#include <math.h>

#include "telemetry/sample.h"
#include "telemetry_bed.h"

/* An NVML that answers from globals of this file: the GPU's side of one tick. */
static struct {
	nvmlReturn_t field_ret, fields_ret;
	unsigned cc_major;
	unsigned calls_fields, calls_clock, calls_memory;
	bool old_memory; /* only the older call answers */
	nvmlReturn_t clock_ret;
	double gpm_from, gpm_to;
	unsigned mhz;  /* 0: 1980 */
	bool hot;      /* memory at all ones */
	unsigned said; /* warnings */
	char last[240];
} staged;

struct nvmlGpmSample_st {
	double at;
};
static struct nvmlGpmSample_st gpm_buffer[2];
static unsigned gpm_allocated;
static double gpm_time;

static nvmlReturn_t fake_fields(nvmlDevice_t d, int count, nvmlFieldValue_t *values)
{
	int i;

	(void)d;
	staged.calls_fields++;
	for (i = 0; i < count; i++) {
		values[i].nvmlReturn = staged.field_ret;
		values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		values[i].value.ullVal = 690000 + values[i].fieldId;
		if (values[i].fieldId == NVML_FIELD_memory_temperature)
			values[i].value.ullVal = staged.hot ? 4294967295u : 45;
	}
	return staged.fields_ret;
}

static nvmlReturn_t fake_clock_info(nvmlDevice_t d, nvmlClockType_t type, unsigned *mhz)
{
	(void)d, (void)type;
	staged.calls_clock++;
	*mhz = staged.mhz ? staged.mhz : 1980;
	return staged.clock_ret;
}

static nvmlReturn_t fake_reasons(nvmlDevice_t d, unsigned long long *bits)
{
	(void)d;
	*bits = NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_memory(nvmlDevice_t d, nvmlMemory_v2_t *out)
{
	(void)d;
	staged.calls_memory++;
	if (out->version != nvmlMemory_v2 || staged.old_memory)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*out = (nvmlMemory_v2_t){.total = 80e9, .reserved = 500e6, .used = 30e9};
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_old_memory(nvmlDevice_t d, nvmlMemory_t *out)
{
	(void)d;
	*out = (nvmlMemory_t){.total = 80e9, .used = 30.5e9};
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_power(nvmlDevice_t d, unsigned *mw)
{
	(void)d;
	*mw = 251000;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_cc(nvmlDevice_t d, int *major, int *minor)
{
	(void)d;
	*major = (int)staged.cc_major;
	*minor = 0;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_violation(nvmlDevice_t d, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *out)
{
	(void)d;
	*out = (nvmlViolationTime_t){.violationTime = 1000000000ull * (1 + policy)};
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_gpm_support(nvmlDevice_t d, nvmlGpmSupport_t *out)
{
	(void)d;
	out->isSupportedDevice = 1;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_gpm_alloc(nvmlGpmSample_t *out)
{
	*out = &gpm_buffer[gpm_allocated++];
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_gpm_free(nvmlGpmSample_t sample)
{
	(void)sample;
	gpm_allocated--;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_gpm_sample(nvmlDevice_t d, nvmlGpmSample_t sample)
{
	(void)d;
	sample->at = ++gpm_time;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_gpm_metrics(nvmlGpmMetricsGet_t *get)
{
	unsigned i;

	staged.gpm_from = get->sample1->at;
	staged.gpm_to = get->sample2->at;
	for (i = 0; i < get->numMetrics; i++) {
		get->metrics[i].nvmlReturn =
			get->metrics[i].metricId == NVML_GPM_FP64 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
		get->metrics[i].value = 10.0 * get->metrics[i].metricId;
	}
	return NVML_SUCCESS;
}

static struct nvml fake_table(void)
{
	return (struct nvml){.fields = fake_fields,
			     .clock = fake_clock_info,
			     .reasons = fake_reasons,
			     .power = fake_power,
			     .compute_capability = fake_cc,
			     .violation_old = fake_violation};
}

static int stage_well(void **state)
{
	(void)state;
	memset(&staged, 0, sizeof(staged));
	gpm_allocated = 0;
	gpm_time = 0;
	return 0;
}

static void test_sample_gpu__one_field_call_a_tick_carries_what_is_due(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1000};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_gpu g;
	struct batch b;
	int i;

	(void)state;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	for (i = 0; i < 10; i++) {
		time.now_ns = (uint64_t)i * 20000000u;
		sample_gpu_tick(&g, &b, &clock);
	}
	assert_int_equal(staged.calls_fields, 10);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 10);
	assert_true(fabs(b.list[0][TELEMETRY_power_w].value[0] - 690.186) < 1e-9); /* field 186, mW */
	assert_int_equal(b.list[0][TELEMETRY_energy_j].count, 4); /* at 0, 60, 100, 160 ms: 20 Hz */
	assert_true(fabs(b.list[0][TELEMETRY_energy_j].value[3] - 690.083) < 1e-9);
	assert_int_equal(b.list[0][TELEMETRY_violation_power_s].count, 1);
	assert_int_equal(b.list[0][TELEMETRY_temperature_memory_c].count, 1);
	assert_int_equal(staged.calls_clock, 11); /* SM clock each tick, memory clock once a second */
	assert_true(b.list[0][TELEMETRY_clock_reasons].value[3] == 0x48);
	/* The time of a reading is the middle of its call: the clock costs 1 us a look. */
	assert_true(b.list[0][TELEMETRY_power_w].t_ns[1] % 1000 == 500);
	assert_int_equal(b.list[0][TELEMETRY_gpm_tensor_share].count, 0);
	batch_release(&b);
}

static void test_sample_gpu__memory_once_a_second_by_either_call(void **state)
{
	(void)state;
	for (int old = 0; old < 2; old++) {
		struct nvml nvml = fake_table();
		struct fake_clock time = {.step_ns = 1000};
		struct clock clock = {.now_ns = fake_now, .arg = &time};
		struct sample_gpu g;
		struct batch b;

		staged.old_memory = old;
		staged.calls_memory = 0;
		nvml.memory_v2 = fake_memory;
		nvml.memory = fake_old_memory;
		assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
		sample_gpu_init(&g, &nvml, NULL, 0, 0);
		for (int i = 0; i < 100; i++) {
			time.now_ns = (uint64_t)i * 20000000u;
			sample_gpu_tick(&g, &b, &clock);
		}
		assert_int_equal(staged.calls_memory, 2);
		assert_int_equal(b.list[0][TELEMETRY_memory_used_bytes].count, 2);
		assert_true(b.list[0][TELEMETRY_memory_used_bytes].value[1] > (old ? 30.4e9 : 29.9e9));
		assert_true(b.list[0][TELEMETRY_memory_used_bytes].value[1] < (old ? 30.6e9 : 30.1e9));
		batch_release(&b);
	}
}

static void count_warning(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)arg, (void)topic;
	staged.said += level == LOG_WARN;
	snprintf(staged.last, sizeof(staged.last), "%s", line);
}

/* All ones is what a failed read leaves: no reading, and its function is named once. */
static void test_sample_gpu__impossible_values_are_absent_and_named_once(void **state)
{
	const struct log log = {.sink = count_warning};
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1000};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_gpu g;
	struct batch b;
	int i;

	(void)state;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	snprintf(b.name[0], BATCH_SOURCE_SIZE, "gpu:0000:8d:00.0");
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	g.log = &log;
	staged.mhz = 4294967295u;
	for (i = 0; i < 5; i++) {
		time.now_ns = (uint64_t)i * 20000000u;
		staged.hot = true;
		sample_gpu_tick(&g, &b, &clock);
	}
	assert_int_equal(b.list[0][TELEMETRY_sm_clock_mhz].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_temperature_memory_c].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 5);
	assert_int_equal(staged.said, 3); /* two clocks and a temperature, once each */
	assert_non_null(
		strstr(staged.last, "gpu:0000:8d:00.0: nvmlDeviceGetClockInfo answered 4294967295 MHz"));
	staged.mhz = 1500; /* it comes back */
	time.now_ns = 100000000u;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(b.list[0][TELEMETRY_sm_clock_mhz].count, 1);
	batch_release(&b);
}

static void test_sample_gpu__what_the_device_lacks_is_absent_and_not_asked_again(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_gpu g;
	struct batch b;

	(void)state;
	staged.field_ret = NVML_ERROR_NOT_SUPPORTED;
	staged.cc_major = 9;
	nvml.reasons = NULL;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	sample_gpu_tick(&g, &b, &clock);
	time.now_ns = 3000000000u;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(staged.calls_fields, 1);
	/* The plain power call averages over a second there: not what power_w says it is. */
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_energy_j].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_clock_reasons].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_temperature_c].count, 0);
	assert_int_equal(b.list[0][TELEMETRY_sm_clock_mhz].count, 2);
	/* Violation times have an older call. */
	assert_int_equal(b.list[0][TELEMETRY_violation_board_s].count, 2);
	assert_true(b.list[0][TELEMETRY_violation_board_s].value[1] == 1 + NVML_PERF_POLICY_BOARD_LIMIT);
	batch_release(&b);
}

static void test_sample_gpu__ga100_takes_power_by_its_call(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_gpu g;
	struct batch b;

	(void)state;
	staged.field_ret = NVML_ERROR_NOT_SUPPORTED;
	staged.cc_major = 8;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	sample_gpu_tick(&g, &b, &clock);
	time.now_ns = 20000000;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 2);
	assert_true(b.list[0][TELEMETRY_power_w].value[1] == 251);
	batch_release(&b);
}

static void test_sample_gpu__a_passing_refusal_is_a_gap_and_a_lost_gpu_is_left_alone(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_gpu g;
	struct batch b;

	(void)state;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	staged.fields_ret = NVML_ERROR_UNKNOWN;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 0);
	staged.fields_ret = NVML_SUCCESS;
	time.now_ns = 20000000;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 1);
	staged.fields_ret = NVML_ERROR_GPU_IS_LOST;
	time.now_ns = 40000000;
	sample_gpu_tick(&g, &b, &clock);
	assert_true(g.lost);
	assert_int_equal(b.list[0][TELEMETRY_nvml_error].count, 1);
	assert_float_equal(b.list[0][TELEMETRY_nvml_error].value[0], NVML_ERROR_GPU_IS_LOST, 0);
	staged.fields_ret = NVML_SUCCESS;
	time.now_ns = 60000000;
	sample_gpu_tick(&g, &b, &clock);
	assert_int_equal(b.list[0][TELEMETRY_power_w].count, 1);
	batch_release(&b);
}

/* At once where the driver refuses it for good; after a second where it may come back. Once. */
static void test_sample_gpu__a_signal_that_stopped_to_come_is_told(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 1};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct batch_list *told;
	struct sample_gpu g;
	struct batch b;

	(void)state;
	for (unsigned pass = 0; pass < 3; pass++) {
		static const nvmlReturn_t answers[] = {NVML_ERROR_UNKNOWN, NVML_ERROR_NO_PERMISSION,
						       NVML_ERROR_UNKNOWN};

		assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
		told = &b.list[0][TELEMETRY_nvml_error];
		time.now_ns = 0;
		sample_gpu_init(&g, &nvml, NULL, 0, 0);
		staged.clock_ret = pass == 2 ? NVML_ERROR_UNKNOWN : NVML_SUCCESS; /* it never came */
		sample_gpu_tick(&g, &b, &clock);
		staged.clock_ret = answers[pass];
		time.now_ns = 500000000;
		sample_gpu_tick(&g, &b, &clock);
		assert_int_equal(told->count, pass == 1);
		for (time.now_ns = 1000000000; time.now_ns < 2000000000; time.now_ns += 100000000)
			sample_gpu_tick(&g, &b, &clock);
		assert_int_equal(told->count, pass < 2);
		if (pass < 2)
			assert_float_equal(told->value[0], answers[pass], 0);
		batch_release(&b);
	}
	staged.clock_ret = NVML_SUCCESS;
}

static void test_sample_gpu__gpm_marks_the_end_of_each_interval(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 2};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct batch_list *tensor;
	struct sample_gpu g;
	struct batch b;
	int i;

	(void)state;
	nvml.gpm_support = fake_gpm_support;
	nvml.gpm_sample_alloc = fake_gpm_alloc;
	nvml.gpm_sample_free = fake_gpm_free;
	nvml.gpm_sample = fake_gpm_sample;
	nvml.gpm_metrics = fake_gpm_metrics;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	tensor = &b.list[0][TELEMETRY_gpm_tensor_share];
	for (i = 0; i < 3; i++) {
		time.now_ns = (uint64_t)i * 250000000u;
		sample_gpu_tick(&g, &b, &clock);
		assert_int_equal(tensor->count, i); /* the first sample ends nothing */
	}
	assert_true(staged.gpm_from == 2 && staged.gpm_to == 3);
	assert_true(tensor->t_ns[1] >= 500000000u && tensor->t_ns[1] < 500001000u);
	assert_true(tensor->value[1] == 0.5);
	assert_true(fabs(b.list[0][TELEMETRY_gpm_fp32_share].value[0] - 1.2) < 1e-12);
	assert_true(b.list[0][TELEMETRY_gpm_nvlink_rx_rate].value[0] == 600.0 * 1048576); /* MiB/s */
	assert_int_equal(b.list[0][TELEMETRY_gpm_fp64_share].count, 0);
	sample_gpu_release(&g);
	assert_int_equal(gpm_allocated, 0);
	batch_release(&b);
}

static void test_sample_gpu__a_window_that_begins_has_its_own_intervals(void **state)
{
	struct nvml nvml = fake_table();
	struct fake_clock time = {.step_ns = 2};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	const struct batch_list *tensor;
	struct sample_gpu g;
	struct batch b;

	(void)state;
	nvml.gpm_support = fake_gpm_support;
	nvml.gpm_sample_alloc = fake_gpm_alloc;
	nvml.gpm_sample_free = fake_gpm_free;
	nvml.gpm_sample = fake_gpm_sample;
	nvml.gpm_metrics = fake_gpm_metrics;
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	tensor = &b.list[0][TELEMETRY_gpm_tensor_share];
	for (unsigned ms = 0; ms < 660; ms += 10) {
		time.now_ns = ms * 1000000u;
		if (ms == 200) /* due at 250: now at 390 and 640 */
			sample_gpu_align(&g, time.now_ns);
		sample_gpu_tick(&g, &b, &clock);
	}
	assert_int_equal(tensor->count, 2);
	assert_true(tensor->t_ns[0] >= 390000000u && tensor->t_ns[0] < 391000000u);
	assert_true(tensor->t_ns[1] >= 640000000u && tensor->t_ns[1] < 641000000u);
	sample_gpu_release(&g);
	batch_release(&b);
}

static void test_sample_gpu__a_window_that_begins_wakes_no_gpm_that_is_not_there(void **state)
{
	struct nvml nvml = fake_table();
	struct sample_gpu g;

	(void)state;
	sample_gpu_init(&g, &nvml, NULL, 0, 0);
	schedule_never(&g.schedule, TELEMETRY_gpm_tensor_share);
	sample_gpu_align(&g, 5);
	assert_true(g.schedule.due_ns[TELEMETRY_gpm_tensor_share] == UINT64_MAX);
	sample_gpu_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sample_gpu__one_field_call_a_tick_carries_what_is_due,
				       stage_well),
		cmocka_unit_test_setup(test_sample_gpu__memory_once_a_second_by_either_call, stage_well),
		cmocka_unit_test_setup(test_sample_gpu__what_the_device_lacks_is_absent_and_not_asked_again,
				       stage_well),
		cmocka_unit_test_setup(test_sample_gpu__impossible_values_are_absent_and_named_once,
				       stage_well),
		cmocka_unit_test_setup(test_sample_gpu__ga100_takes_power_by_its_call, stage_well),
		cmocka_unit_test_setup(
			test_sample_gpu__a_passing_refusal_is_a_gap_and_a_lost_gpu_is_left_alone, stage_well),
		cmocka_unit_test_setup(test_sample_gpu__a_signal_that_stopped_to_come_is_told, stage_well),
		cmocka_unit_test_setup(test_sample_gpu__gpm_marks_the_end_of_each_interval, stage_well),
		cmocka_unit_test_setup(test_sample_gpu__a_window_that_begins_has_its_own_intervals,
				       stage_well),
		cmocka_unit_test_setup(test_sample_gpu__a_window_that_begins_wakes_no_gpm_that_is_not_there,
				       stage_well),
	};

	return cmocka_run_group_tests_name("telemetry_gpu", tests, NULL, NULL);
}
