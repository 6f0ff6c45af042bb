/* SPDX-License-Identifier: Apache-2.0 */
/* The counter room on the fake driver and the fake CUPTI: ranges, samples, and every refusal. */
#include "test.h"
#include "counter/counter.h"
#include "gpu/device/gpu.h"
#include "vendor/cupti.h"

#define BYTES                                                                                                \
	(3000u * 1000 * 4) /* filled at 3000 bytes a nanosecond: the fake's time is 4 us and a launch        \
			    */

static void stage(const char *faults)
{
	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_CUPTI", FAKE_DIR "/libcupti.so.13", 1);
	setenv("FAKE_CUDA", "", 1);
	setenv("FAKE_CUPTI", faults, 1);
}

struct bed {
	struct gpu_device *device;
	struct gpu_stream *stream;
	gpu_ptr memory;
};

static void bed_open(struct bed *b, const char *faults)
{
	struct error err = {0};

	*b = (struct bed){0};
	stage(faults);
	assert_int_equal(gpu_open(&b->device, NULL, &err), STATUS_OK);
	assert_int_equal(gpu_stream_create(b->device, &b->stream, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(b->device, &b->memory, BYTES, &err), STATUS_OK);
}

static void bed_close(struct bed *b)
{
	gpu_free(b->device, &b->memory);
	gpu_stream_destroy(&b->stream);
	gpu_close(&b->device);
}

static enum status work(struct bed *b, struct error *err)
{
	enum status st = gpu_stream_fill32(b->stream, b->memory, 7, BYTES / 4, err);

	return st ? st : gpu_stream_wait(b->stream, err);
}

/* All passes of a range, and what they counted. */
static enum status count(struct bed *b, struct counter_range *r, unsigned *passes, struct counter_values *v,
			 struct error *err)
{
	bool done = false;
	enum status st = STATUS_OK;

	for (*passes = 0; !st && !done; ++*passes) {
		st = counter_range_begin(r, err);
		if (!st)
			st = counter_range_push(r, err);
		if (!st)
			st = work(b, err);
		if (!st)
			st = counter_range_pop(r, err);
		if (!st)
			st = counter_range_end(r, &done, err);
	}
	return st ? st : counter_range_read(r, 0, v, err);
}

static const struct counter_request core = {.sets = COUNTER_CORE};
static const struct counter_request whole = {.sets = COUNTER_CORE | COUNTER_CACHE | COUNTER_TENSOR,
					  .type = "bf16"};

static void test_counter__core_metrics_take_one_pass(void **state)
{
	struct counter_values v;
	struct counter_range *r;
	struct error err = {0};
	unsigned passes;
	struct bed b;

	(void)state;
	bed_open(&b, "tensor_active_share=0.93,sm_active_share=0.985,dram_read_bytes=2e12,clock_hz=1.5e9");
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_OK);
	assert_int_equal(counter_range_passes(r), 1);
	assert_int_equal(count(&b, r, &passes, &v, &err), STATUS_OK);
	assert_int_equal(passes, 1);
	assert_true(v.has[COUNTER_METRIC_tensor_active_share] && v.has[COUNTER_METRIC_clock_hz]);
	assert_float_equal(v.value[COUNTER_METRIC_tensor_active_share], 0.93, 1e-12);
	assert_float_equal(v.value[COUNTER_METRIC_sm_active_share], 0.985, 1e-12);
	assert_float_equal(v.value[COUNTER_METRIC_clock_hz], 1.5e9, 1);
	assert_true(v.value[COUNTER_METRIC_time_ns] >= 4000);
	assert_float_equal(v.value[COUNTER_METRIC_sm_cycles], 1.5 * v.value[COUNTER_METRIC_time_ns], 1e-6);
	assert_float_equal(v.value[COUNTER_METRIC_dram_read_bytes], 2000 * v.value[COUNTER_METRIC_time_ns],
			   1e-3);
	assert_false(v.has[COUNTER_METRIC_tensor_flop] || v.has[COUNTER_METRIC_l2_bytes]);
	counter_range_close(&r);
	assert_null(r);
	bed_close(&b);
}

static void test_counter__cache_and_flop_take_a_second_pass(void **state)
{
	struct counter_values v;
	struct counter_range *r;
	struct error err = {0};
	unsigned passes;
	struct bed b;

	(void)state;
	bed_open(&b, "tensor_flop=7e14,l2_bytes=3.2e12,l2_hit_share=0.75");
	assert_int_equal(counter_range_open(&r, b.device, &whole, &err), STATUS_OK);
	assert_int_equal(counter_range_passes(r), 2);
	assert_int_equal(count(&b, r, &passes, &v, &err), STATUS_OK);
	assert_int_equal(passes, 2);
	assert_float_equal(v.value[COUNTER_METRIC_tensor_flop] / v.value[COUNTER_METRIC_time_ns], 7e5, 1e-3);
	assert_float_equal(v.value[COUNTER_METRIC_l2_bytes] / v.value[COUNTER_METRIC_time_ns], 3200, 1e-6);
	assert_float_equal(v.value[COUNTER_METRIC_l2_hit_share], 0.75, 1e-12);
	counter_range_close(&r);
	bed_close(&b);
}

static void test_counter__a_metric_that_the_chip_lacks_or_did_not_count_is_absent(void **state)
{
	struct counter_values v;
	struct counter_range *r;
	struct error err = {0};
	unsigned passes;
	struct bed b;

	(void)state;
	bed_open(&b, "unknown=dram__bytes_read,nan=dram_share,tensor_active_share=0.5");
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_OK);
	assert_int_equal(count(&b, r, &passes, &v, &err), STATUS_OK);
	assert_true(v.has[COUNTER_METRIC_dram_read_bytes]); /* by the other of its names */
	assert_false(v.has[COUNTER_METRIC_dram_share]);
	assert_true(v.has[COUNTER_METRIC_tensor_active_share]);
	counter_range_close(&r);
	stage("unknown=dram__");
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_OK);
	assert_int_equal(count(&b, r, &passes, &v, &err), STATUS_OK);
	assert_false(v.has[COUNTER_METRIC_dram_read_bytes] || v.has[COUNTER_METRIC_dram_share]);
	assert_true(v.has[COUNTER_METRIC_time_ns]);
	counter_range_close(&r);
	stage("unknown=_");
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "none of our metrics"));
	bed_close(&b);
}

static void test_counter__a_type_without_a_tensor_metric_has_no_flop(void **state)
{
	(void)state;
	assert_null(counter_tensor_metric("fp32"));
	assert_null(counter_tensor_metric(NULL));
	assert_null(counter_tensor_metric("bf1"));
	assert_string_equal(counter_tensor_metric("bf16"), "sm__ops_path_tensor_src_bf16_dst_fp32.sum");
	assert_string_equal(counter_tensor_metric("e5m2"), counter_tensor_metric("e4m3"));
}

/* Of two ranges the longer less the shorter: what begin and end of a range cost is in both. */
static void test_counter__what_a_range_counts_beyond_a_shorter_one(void **state)
{
	struct counter_values part = {0}, all = {0}, v;
	const struct {
		enum counter_metric metric;
		double part, whole, beyond;
	} rows[] = {
		{COUNTER_METRIC_sm_cycles, 1000, 3000, 2000},
		{COUNTER_METRIC_time_ns, 600, 1600, 1000},
		{COUNTER_METRIC_tensor_active_share, 0.45, 0.75, 0.9}, /* 450 and 2250 cycles */
		{COUNTER_METRIC_sm_active_share, 0.5, 0.8333333333333334, 1},
		{COUNTER_METRIC_occupancy_share, 0.2, 0.16, 0.15}, /* of 500 and 2500 active cycles */
		{COUNTER_METRIC_dram_share, 0.3, 0.6, 0.78},
		{COUNTER_METRIC_dram_read_bytes, 10, 30, 20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		part.has[rows[i].metric] = all.has[rows[i].metric] = true;
		part.value[rows[i].metric] = rows[i].part;
		all.value[rows[i].metric] = rows[i].whole;
	}
	v = counter_beyond(&all, &part);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(v.has[rows[i].metric]);
		assert_float_equal(v.value[rows[i].metric], rows[i].beyond, 1e-9);
	}
	assert_false(v.has[COUNTER_METRIC_l2_hit_share] || v.has[COUNTER_METRIC_tensor_flop]);
	v = counter_beyond(&part, &part); /* nothing beyond: no share of nothing */
	assert_false(v.has[COUNTER_METRIC_tensor_active_share]);
}

static void test_counter__one_client_holds_the_counters(void **state)
{
	struct counter_range *first, *second;
	struct counter_sampling *sampling;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "");
	assert_int_equal(counter_range_open(&first, b.device, &core, &err), STATUS_OK);
	assert_int_equal(counter_range_open(&second, b.device, &core, &err), STATUS_UNAVAILABLE);
	assert_null(second);
	assert_int_equal(err.cause, CAUSE_BUSY);
	assert_non_null(strstr(err.text, "dcgmi profile --pause"));
	counter_range_close(&first);
	error_clear(&err);
	assert_int_equal(counter_sampling_open(&sampling, b.device, 100000, 16, &err), STATUS_OK);
	counter_sampling_close(&sampling);
	bed_close(&b);
}

static void test_counter__refusals_say_what_to_do(void **state)
{
	static const struct {
		const char *faults;
		enum status status;
		enum cause cause;
		const char *says;
	} rows[] = {
		{"cuptiRangeProfilerEnable=35", STATUS_UNAVAILABLE, CAUSE_PERMISSION,
		 "NVreg_RestrictProfilingToAdminUsers=0"},
		{"cuptiProfilerGetCounterAvailability=35", STATUS_UNAVAILABLE, CAUSE_PERMISSION,
		 "run as root"},
		{"cuptiRangeProfilerEnable=40", STATUS_UNAVAILABLE, CAUSE_PERMISSION, "virtual GPU"},
		{"cuptiRangeProfilerEnable=26", STATUS_UNAVAILABLE, CAUSE_BUSY, "dcgmi profile --pause"},
		{"cuptiProfilerInitialize=36", STATUS_UNAVAILABLE, CAUSE_BUSY, "another profiler"},
		{"cuptiProfilerInitialize=14", STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH, "ASSAY_LIB_CUPTI"},
		{"cuptiProfilerHostInitialize=46", STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
		 "version 130001"},
		{"cuptiRangeProfilerEnable=43", STATUS_UNSUPPORTED, CAUSE_MIG_MODE, "MIG"},
		{"level=2", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "virtual GPU whose host does not allow"},
		{"cuptiRangeProfilerSetConfig=999", STATUS_VENDOR, CAUSE_VENDOR_CALL, "range_config"},
	};
	struct counter_range *r;
	struct bed b;

	(void)state;
	bed_open(&b, "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};

		stage(rows[i].faults);
		assert_int_equal(counter_range_open(&r, b.device, &core, &err), rows[i].status);
		assert_null(r);
		assert_int_equal(err.cause, rows[i].cause);
		assert_non_null(strstr(err.text, rows[i].says));
	}
	stage(""); /* and nothing is held by any of them */
	assert_int_equal(counter_range_open(&r, b.device, &core, NULL), STATUS_OK);
	counter_range_close(&r);
	bed_close(&b);
}

static void test_counter__every_call_that_fails_ends_the_range_alone(void **state)
{
	static const char *const symbols[] = {
#define X(need, name, symbol, real, members) #symbol,
		CUPTI_FUNCTIONS(X)
#undef X
	};
	struct bed b;

	(void)state;
	bed_open(&b, "");
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		bool asked = !strstr(symbols[i], "PmSampling") && !strstr(symbols[i], "Properties") &&
			     !strstr(symbols[i], "Disable") && !strstr(symbols[i], "einitialize") &&
			     !strstr(symbols[i], "DeInit");
		char faults[96];
		struct counter_range *r;
		struct counter_values v;
		struct error err = {0};
		unsigned passes;
		enum status st;

		snprintf(faults, sizeof(faults), "%s=999", symbols[i]);
		stage(faults);
		st = counter_range_open(&r, b.device, &core, &err);
		if (!st)
			st = count(&b, r, &passes, &v, &err);
		stage("");
		counter_range_close(&r);
		if (asked)
			assert_int_equal(st, STATUS_VENDOR);
		error_clear(&err);
		assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_OK);
		counter_range_close(&r);
	}
	bed_close(&b);
}

static void test_counter__a_dropped_range_is_an_error(void **state)
{
	struct counter_values v;
	struct counter_range *r;
	struct error err = {0};
	unsigned passes;
	struct bed b;

	(void)state;
	bed_open(&b, "lost=1");
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_OK);
	assert_int_equal(count(&b, r, &passes, &v, &err), STATUS_VENDOR);
	assert_non_null(strstr(err.text, "dropped"));
	counter_range_close(&r);
	bed_close(&b);
}

static void test_counter__a_library_that_is_absent_or_old_says_which_is_needed(void **state)
{
	struct counter_range *r;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "");
	setenv("ASSAY_LIB_CUPTI", "/nowhere/libcupti.so.13", 1);
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(err.text, "CUDA 12.6 or newer"));
	error_clear(&err);
	setenv("ASSAY_LIB_CUPTI", FAKE_DIR "/libnvidia-ml.so.1", 1);
	assert_int_equal(counter_range_open(&r, b.device, &core, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "no symbol cuptiGetVersion"));
	bed_close(&b);
}

static void test_counter__samples_are_intervals_of_the_devices_time(void **state)
{
	struct counter_sample sample[64];
	struct counter_sampling *s;
	struct error err = {0};
	struct bed b;
	size_t n;
	bool lost;

	(void)state;
	bed_open(&b, "dram_share=0.9,nvlink_tx_rate=1e11,unknown=pcie__");
	assert_int_equal(counter_sampling_open(&s, b.device, 1000, 64, &err), STATUS_OK);
	assert_true(counter_sampling_has(s, COUNTER_SAMPLED_dram_share));
	assert_false(counter_sampling_has(s, COUNTER_SAMPLED_pcie_read_rate));
	assert_int_equal(counter_sampling_start(s, &err), STATUS_OK);
	assert_int_equal(work(&b, &err), STATUS_OK);
	assert_int_equal(counter_sampling_read(s, sample, 64, &n, &lost, &err), STATUS_OK);
	assert_true(n >= 4 && n < 16 && !lost);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sample[i].end_ns - sample[i].begin_ns, 1000);
		assert_float_equal(sample[i].value[COUNTER_SAMPLED_dram_share], 0.9, 1e-12);
		assert_float_equal(sample[i].value[COUNTER_SAMPLED_nvlink_tx_rate], 1e11, 1);
	}
	assert_int_equal(counter_sampling_stop(s, &err), STATUS_OK);
	assert_int_equal(work(&b, &err), STATUS_OK); /* nobody looks */
	assert_int_equal(counter_sampling_read(s, sample, 64, &n, &lost, &err), STATUS_OK);
	assert_int_equal(n, 0);
	stage("lost=1");
	assert_int_equal(counter_sampling_read(s, sample, 64, &n, &lost, &err), STATUS_OK);
	assert_true(lost);
	counter_sampling_close(&s);
	assert_null(s);
	bed_close(&b);
}

/* A GPU alone in its machine: its links are not there, and adding their metrics to the others fails. */
static void test_counter__what_a_device_cannot_count_is_left_out(void **state)
{
	struct counter_sample sample[64];
	struct counter_sampling *s;
	struct error err = {0};
	struct bed b;
	size_t n;
	bool lost;

	(void)state;
	bed_open(&b, "dram_share=0.9,uncountable=nvl");
	assert_int_equal(counter_sampling_open(&s, b.device, 1000, 64, &err), STATUS_OK);
	assert_int_equal(err.status, STATUS_OK);
	assert_true(counter_sampling_has(s, COUNTER_SAMPLED_pcie_read_rate));
	assert_false(counter_sampling_has(s, COUNTER_SAMPLED_nvlink_tx_rate));
	assert_false(counter_sampling_has(s, COUNTER_SAMPLED_nvlink_rx_rate));
	assert_int_equal(counter_sampling_start(s, &err), STATUS_OK);
	assert_int_equal(work(&b, &err), STATUS_OK);
	assert_int_equal(counter_sampling_read(s, sample, 64, &n, &lost, &err), STATUS_OK);
	assert_true(n > 0);
	assert_float_equal(sample[0].value[COUNTER_SAMPLED_dram_share], 0.9, 1e-12);
	counter_sampling_close(&s);
	stage("uncountable=_");
	assert_int_not_equal(counter_sampling_open(&s, b.device, 1000, 64, &err), STATUS_OK);
	assert_non_null(strstr(err.text, "host_add"));
	bed_close(&b);
}

static void test_counter__sampling_is_refused_as_ranges_are(void **state)
{
	static const char *const faults[] = {"cuptiPmSamplingEnable=35", "cuptiPmSamplingSetConfig=999",
					     "cuptiPmSamplingGetCounterDataSize=999",
					     "cuptiPmSamplingCounterDataImageInitialize=999", "level=1"};
	struct counter_sampling *s;
	struct bed b;

	(void)state;
	bed_open(&b, "");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = {0};

		stage(faults[i]);
		assert_int_not_equal(counter_sampling_open(&s, b.device, 1000, 64, &err), STATUS_OK);
		assert_null(s);
		assert_true(err.text[0]);
	}
	stage("");
	assert_int_equal(counter_sampling_open(&s, b.device, 1000, 64, NULL), STATUS_OK);
	stage("cuptiPmSamplingStart=26");
	assert_int_equal(counter_sampling_start(s, NULL), STATUS_UNAVAILABLE);
	counter_sampling_close(&s);
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counter__core_metrics_take_one_pass),
		cmocka_unit_test(test_counter__cache_and_flop_take_a_second_pass),
		cmocka_unit_test(test_counter__a_metric_that_the_chip_lacks_or_did_not_count_is_absent),
		cmocka_unit_test(test_counter__a_type_without_a_tensor_metric_has_no_flop),
		cmocka_unit_test(test_counter__what_a_range_counts_beyond_a_shorter_one),
		cmocka_unit_test(test_counter__one_client_holds_the_counters),
		cmocka_unit_test(test_counter__refusals_say_what_to_do),
		cmocka_unit_test(test_counter__every_call_that_fails_ends_the_range_alone),
		cmocka_unit_test(test_counter__a_dropped_range_is_an_error),
		cmocka_unit_test(test_counter__a_library_that_is_absent_or_old_says_which_is_needed),
		cmocka_unit_test(test_counter__samples_are_intervals_of_the_devices_time),
		cmocka_unit_test(test_counter__what_a_device_cannot_count_is_left_out),
		cmocka_unit_test(test_counter__sampling_is_refused_as_ranges_are),
	};

	return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
