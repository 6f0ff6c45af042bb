/* SPDX-License-Identifier: Apache-2.0 */
/* The gpu room on the fake driver: each error path, copies, graphs, stamps. */
#include "test.h"
#include <zstd.h>
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"
#include "gpu/memory/move.h"
#include "kernel/test_data/numbers.h"
#include "kernel/fatbin.h"

#define FAKE FAKE_DIR "/libcuda.so.1"

static void stage(const char *faults)
{
	setenv("ASSAY_LIB_CUDA", FAKE, 1);
	setenv("FAKE_CUDA", faults, 1);
}

static struct gpu_device *open_device(const char *faults)
{
	struct gpu_device *d = NULL;
	struct error err = {0};

	stage(faults);
	assert_int_equal(gpu_open(&d, NULL, &err), STATUS_OK);
	return d;
}

static int needs_kernels(void **state)
{
	struct gpu_device *d = open_device("");
	struct gpu_kernel *k;
	struct error err = {0};
	enum status st = gpu_kernel(d, &k, "data", "fill_words", &err);

	(void)state;
	gpu_close(&d);
	return st != STATUS_OK;
}

#define SKIP_WITHOUT_KERNELS()                                                                               \
	do {                                                                                                 \
		if (needs_kernels(NULL))                                                                     \
			skip();                                                                              \
	} while (0)

static void opening_fails_with(const char *faults, enum status status, enum cause cause)
{
	struct gpu_device *d = (struct gpu_device *)1;
	struct error err = {0};

	stage(faults);
	assert_int_equal(gpu_open(&d, NULL, &err), status);
	assert_null(d);
	assert_int_equal(err.cause, cause);
	assert_true(err.text[0]);
}

static void test_gpu__a_driver_that_is_not_there_is_missing(void **state)
{
	struct gpu_device *d;
	struct error err = {0};

	(void)state;
	stage("");
	setenv("ASSAY_LIB_CUDA", "/nowhere/libcuda.so.1", 1);
	assert_int_equal(gpu_open(&d, NULL, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_DRIVER_MISSING);
}

static void test_gpu__a_library_without_the_functions_is_an_old_driver(void **state)
{
	struct gpu_device *d;
	struct error err = {0};

	(void)state;
	stage("");
	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libnvidia-ml.so.1", 1);
	assert_int_equal(gpu_open(&d, NULL, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_DRIVER_OLD);
	assert_non_null(strstr(err.text, "cuInit"));
}

static void test_gpu__what_the_driver_says_at_the_start_is_told_apart(void **state)
{
	(void)state;
	opening_fails_with("cuInit=100", STATUS_UNAVAILABLE, CAUSE_NOT_GRANTED);
	opening_fails_with("cuInit=999", STATUS_UNAVAILABLE, CAUSE_DRIVER_MISSING);
	opening_fails_with("cuInit=803", STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH);
	opening_fails_with("cuInit=802", STATUS_UNAVAILABLE, CAUSE_FABRIC_STATE);
	opening_fails_with("cuDevicePrimaryCtxRetain=46", STATUS_UNAVAILABLE, CAUSE_BUSY);
	opening_fails_with("cuDevicePrimaryCtxRetain=2", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY);
	opening_fails_with("cuCtxSetCurrent=201", STATUS_VENDOR, CAUSE_VENDOR_CALL);
	opening_fails_with("cuDeviceGetAttribute=999", STATUS_LOST, CAUSE_GPU_LOST);
	opening_fails_with("devices=0", STATUS_UNAVAILABLE, CAUSE_NOT_GRANTED);
}

static void test_gpu__an_address_that_is_not_granted_says_so(void **state)
{
	struct gpu_device *d;
	struct error err = {0};

	(void)state;
	stage("");
	assert_int_equal(gpu_open(&d, "0000:8d:00.0", &err), STATUS_OK);
	assert_int_equal(gpu_sm_count(d), 132);
	assert_int_equal(gpu_cc(d), 90);
	gpu_close(&d);
	assert_int_equal(gpu_open(&d, "0000:1b:00.0", &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_NOT_GRANTED);
	assert_non_null(strstr(err.text, "0000:1b:00.0"));
}

static void test_gpu__two_gibibytes_are_left_alone(void **state)
{
	struct gpu_device *d = open_device("memory=2052");
	struct error err = {0};
	gpu_ptr p = 1, q;

	(void)state;
	assert_int_equal(gpu_memory_usable(d), 4u << 20);
	assert_int_equal(gpu_alloc(d, &p, (4u << 20) + 1, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
	assert_int_equal(p, 0);
	error_clear(&err);
	assert_int_equal(gpu_alloc(d, &p, 4u << 20, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &q, 1, &err), STATUS_NO_RESOURCE);
	gpu_free(d, &p);
	gpu_free(d, &p);
	assert_int_equal(gpu_memory_usable(d), 4u << 20);
	gpu_close(&d);
}

static void test_gpu__an_allocation_that_fails_names_the_call(void **state)
{
	struct gpu_device *d = open_device("cuMemAlloc_v2=2@2");
	struct error err = {0};
	gpu_ptr p, q;

	(void)state;
	assert_int_equal(gpu_alloc(d, &p, 4096, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &q, 4096, &err), STATUS_NO_RESOURCE);
	assert_int_equal(q, 0);
	assert_non_null(strstr(err.text, "cuMemAlloc_v2"));
	assert_non_null(strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"));
	gpu_free(d, &p);
	gpu_close(&d);
}

static void test_gpu__what_is_copied_arrives(void **state)
{
	struct gpu_device *d = open_device("");
	struct gpu_stream *s;
	uint32_t in[64], out[64] = {0};
	struct error err = {0};
	gpu_ptr a, b;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		in[i] = 7 * i;
	assert_int_equal(gpu_stream_create(d, &s, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &a, sizeof(in), &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &b, sizeof(in), &err), STATUS_OK);
	assert_int_equal(gpu_copy_to(d, a, in, sizeof(in), &err), STATUS_OK);
	assert_int_equal(gpu_stream_copy(s, b, a, sizeof(in), &err), STATUS_OK);
	assert_int_equal(gpu_stream_fill32(s, b, 9, 2, &err), STATUS_OK);
	assert_int_equal(gpu_copy_from(d, out, b, sizeof(out), &err), STATUS_OK);
	assert_int_equal(out[1], 9);
	assert_memory_equal(out + 2, in + 2, sizeof(in) - 8);
	gpu_free(d, &a);
	gpu_free(d, &b);
	gpu_stream_destroy(&s);
	gpu_close(&d);
}

static void test_gpu__a_device_lost_in_the_middle_stays_lost(void **state)
{
	struct gpu_device *d = open_device("cuCtxSynchronize=999@3");
	struct error err = {0};
	uint32_t word = 1;
	gpu_ptr p;

	(void)state;
	assert_int_equal(gpu_alloc(d, &p, 4, &err), STATUS_OK);
	assert_int_equal(gpu_copy_to(d, p, &word, 4, &err), STATUS_OK);
	assert_int_equal(gpu_copy_to(d, p, &word, 4, &err), STATUS_LOST);
	assert_int_equal(err.cause, CAUSE_GPU_LOST);
	error_clear(&err);
	assert_int_equal(gpu_copy_from(d, &word, p, 4, &err), STATUS_LOST);
	gpu_free(d, &p);
	gpu_close(&d);
}

static void test_gpu__a_kernel_is_loaded_once_and_fails_with_words(void **state)
{
	struct gpu_kernel *k, *again;
	struct gpu_device *d;
	struct error err = {0};

	(void)state;
	SKIP_WITHOUT_KERNELS();
	d = open_device("cuLibraryLoadData=209@2");
	stage("cuLibraryLoadData=209@2");
	assert_int_equal(gpu_kernel(d, &k, "data", "fill_words", &err), STATUS_OK);
	assert_int_equal(gpu_kernel(d, &again, "data", "fill_words", &err), STATUS_OK);
	assert_ptr_equal(k, again);
	assert_int_equal(gpu_kernel(d, &k, "data", "no_such", &err), STATUS_BUG);
	error_clear(&err);
	assert_int_equal(gpu_kernel(d, &k, "hbm", "hbm_write", &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "sm_90"));
	error_clear(&err);
	assert_int_equal(gpu_kernel(d, &k, "no_such_file", "x", &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	gpu_close(&d);
}

static void test_gpu__a_launch_that_fails_is_the_vendors(void **state)
{
	struct gpu_device *d;
	struct gpu_stream *s;
	struct gpu_kernel *k;
	struct error err = {0};

	(void)state;
	SKIP_WITHOUT_KERNELS();
	d = open_device("cuLaunchKernel=719");
	assert_int_equal(gpu_stream_create(d, &s, &err), STATUS_OK);
	assert_int_equal(gpu_kernel(d, &k, "data", "fill_words", &err), STATUS_OK);
	assert_int_equal(gpu_launch_1d(k, s, 1, 32, 0, &(struct fill_args){0}, &err), STATUS_VENDOR);
	assert_non_null(strstr(err.text, "719"));
	error_clear(&err);
	assert_int_equal(gpu_synchronize(d, &err), STATUS_VENDOR);
	gpu_stream_destroy(&s);
	gpu_close(&d);
}

static void test_gpu__a_graph_runs_what_was_captured(void **state)
{
	struct gpu_device *d = open_device("");
	struct gpu_stream *s;
	struct gpu_graph *g;
	struct error err = {0};
	uint32_t word = 5;
	gpu_ptr p;

	(void)state;
	assert_int_equal(gpu_stream_create(d, &s, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &p, 4, &err), STATUS_OK);
	assert_int_equal(gpu_copy_to(d, p, &word, 4, &err), STATUS_OK);
	assert_int_equal(gpu_capture_begin(s, &err), STATUS_OK);
	assert_int_equal(gpu_stream_fill32(s, p, 77, 1, &err), STATUS_OK);
	assert_int_equal(gpu_capture_end(s, &g, &err), STATUS_OK);
	assert_int_equal(gpu_copy_from(d, &word, p, 4, &err), STATUS_OK);
	assert_int_equal(word, 5);
	assert_int_equal(gpu_graph_launch(g, s, &err), STATUS_OK);
	assert_int_equal(gpu_copy_from(d, &word, p, 4, &err), STATUS_OK);
	assert_int_equal(word, 77);
	gpu_graph_destroy(&g);
	stage("cuGraphInstantiateWithFlags=2");
	assert_int_equal(gpu_capture_begin(s, &err), STATUS_OK);
	assert_int_equal(gpu_capture_end(s, &g, &err), STATUS_NO_RESOURCE);
	assert_null(g);
	gpu_free(d, &p);
	gpu_stream_destroy(&s);
	gpu_close(&d);
}

static void test_gpu__the_stamped_clock_is_cycles_over_time(void **state)
{
	struct gpu_device *d;
	struct gpu_stamps *stamps;
	struct gpu_stream *s;
	struct gpu_clock clock;
	struct error err = {0};
	gpu_ptr p;

	(void)state;
	SKIP_WITHOUT_KERNELS();
	d = open_device("clock=1357");
	assert_int_equal(gpu_stream_create(d, &s, &err), STATUS_OK);
	assert_int_equal(gpu_stamps_create(d, &stamps, &err), STATUS_OK);
	assert_int_equal(gpu_alloc(d, &p, 1 << 20, &err), STATUS_OK);
	assert_int_equal(gpu_stamps_enqueue(stamps, 0, s, &err), STATUS_OK);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(gpu_stream_fill32(s, p, 1, 1 << 18, &err), STATUS_OK);
	assert_int_equal(gpu_stamps_enqueue(stamps, 1, s, &err), STATUS_OK);
	assert_int_equal(gpu_stamps_read(stamps, &clock, &err), STATUS_OK);
	assert_int_equal(clock.sms, 132);
	assert_true(clock.hz_mean > 1356.9e6 && clock.hz_mean < 1357.1e6);
	stage("clock=1357,drop=stamp");
	assert_int_equal(gpu_stamps_enqueue(stamps, 1, s, &err), STATUS_OK);
	assert_int_equal(gpu_stamps_read(stamps, &clock, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_BUSY);
	assert_non_null(strstr(err.text, "only 0 of 132 SMs were stamped"));
	gpu_free(d, &p);
	gpu_stamps_destroy(&stamps);
	gpu_stream_destroy(&s);
	gpu_close(&d);
}

static void every_shape_can_be_prepared(struct gpu_device *d)
{
	struct error err = {0};
	struct move m;
	unsigned count;

	for (int op = 0; op < MOVE_OP_COUNT; op++) {
		const struct move_shape *shapes = move_shapes(d, (enum move_op)op, &count);

		assert_true(count > 0);
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(move_prepare(&m, d, (enum move_op)op, &shapes[i], 1 << 20, &err),
					 STATUS_OK);
			assert_true(m.blocks <= move_blocks_max(1 << 20));
		}
	}
}

static void test_gpu__a_device_with_more_memory_an_sm_takes_other_shapes(void **state)
{
	struct gpu_device *d;
	struct error err = {0};
	struct move m;
	unsigned count;

	(void)state;
	SKIP_WITHOUT_KERNELS();
	d = open_device("");
	every_shape_can_be_prepared(d);
	assert_int_equal(move_shapes(d, MOVE_COPY, &count)->resident, 3);
	gpu_close(&d);
	d = open_device("memory_khz=4000000"); /* 5.12 TB/s over 132 SMs */
	every_shape_can_be_prepared(d);
	assert_int_equal(move_prepare(&m, d, MOVE_COPY, move_shapes(d, MOVE_COPY, &count), 1 << 20, &err),
			 STATUS_OK);
	assert_string_equal(m.name, "copy_v10, 128 threads, a tile a block");
	assert_int_equal(m.blocks, (1 << 20) / 4 / 128 + 1);
	gpu_close(&d);
}

static void test_gpu__moves_say_where_they_cannot_run(void **state)
{
	static const struct move_shape bulk = {
		.rung = MOVE_BULK, .threads = 32, .tile_bytes = 32768, .stages = 8};
	static const struct move_shape single = {.rung = MOVE_V10, .threads = 128};
	static const struct move_shape persistent = {.rung = MOVE_V10, .threads = 128, .per_sm = 8};
	struct gpu_device *d;
	struct error err = {0};
	struct move m;

	(void)state;
	SKIP_WITHOUT_KERNELS();
	d = open_device("");
	assert_int_equal(move_prepare(&m, d, MOVE_COPY, &bulk, 1 << 20, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "shared memory"));
	error_clear(&err);
	assert_int_equal(move_prepare(&m, d, MOVE_COPY, &bulk, 1023, &err), STATUS_UNSUPPORTED);
	error_clear(&err);
	assert_int_equal(move_prepare(&m, d, MOVE_READ, &single, 1023, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "only writing operations"));
	error_clear(&err);
	assert_int_equal(move_prepare(&m, d, MOVE_COPY, &persistent, 1023, &err), STATUS_UNSUPPORTED);
	error_clear(&err);
	assert_int_equal(move_prepare(&m, d, MOVE_COPY, &single, (uint64_t)UINT32_MAX * 4, &err),
			 STATUS_UNSUPPORTED);
	gpu_close(&d);
}

static void test_gpu__what_a_device_ran_is_told_from_what_was_only_compiled(void **state)
{
	static const struct kernel_fatbin plain = {.ran = "sm_90"}, own = {.ran = "sm_80 sm_90a"},
					  hundred = {.ran = "sm_100"}, none = {.ran = ""};

	(void)state;
	assert_true(kernel_fatbin_ran(&plain, 90) && !kernel_fatbin_ran(&plain, 80));
	assert_true(kernel_fatbin_ran(&own, 90) && kernel_fatbin_ran(&own, 80));
	assert_true(kernel_fatbin_ran(&hundred, 100) && !kernel_fatbin_ran(&hundred, 10));
	assert_false(kernel_fatbin_ran(&none, 90));
}

static void test_gpu__a_compressed_file_is_unpacked(void **state)
{
	static const unsigned char plain[] = "no zstd frame, so these are the bytes themselves";
	unsigned char text[100000], packed[2000];
	struct kernel_fatbin f = {.name = "one", .data = plain, .size = sizeof(plain)};
	struct error err = {0};
	const void *code;
	void *owned;

	(void)state;
	assert_int_equal(gpu_file_code(&code, &owned, &f, &err), STATUS_OK);
	assert_ptr_equal(code, plain);
	assert_null(owned);
	memset(text, 'x', sizeof(text));
	f.data = packed;
	f.size = ZSTD_compress(packed, sizeof(packed), text, sizeof(text), 3);
	assert_false(ZSTD_isError(f.size));
	assert_int_equal(gpu_file_code(&code, &owned, &f, &err), STATUS_OK);
	assert_memory_equal(code, text, sizeof(text));
	free(owned);
	f.size -= 3;
	assert_int_equal(gpu_file_code(&code, &owned, &f, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "kernel file one in this program is damaged"));
	assert_null(owned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu__a_driver_that_is_not_there_is_missing),
		cmocka_unit_test(test_gpu__a_library_without_the_functions_is_an_old_driver),
		cmocka_unit_test(test_gpu__what_the_driver_says_at_the_start_is_told_apart),
		cmocka_unit_test(test_gpu__an_address_that_is_not_granted_says_so),
		cmocka_unit_test(test_gpu__two_gibibytes_are_left_alone),
		cmocka_unit_test(test_gpu__an_allocation_that_fails_names_the_call),
		cmocka_unit_test(test_gpu__what_is_copied_arrives),
		cmocka_unit_test(test_gpu__a_device_lost_in_the_middle_stays_lost),
		cmocka_unit_test(test_gpu__what_a_device_ran_is_told_from_what_was_only_compiled),
		cmocka_unit_test(test_gpu__a_compressed_file_is_unpacked),
		cmocka_unit_test(test_gpu__a_kernel_is_loaded_once_and_fails_with_words),
		cmocka_unit_test(test_gpu__a_launch_that_fails_is_the_vendors),
		cmocka_unit_test(test_gpu__a_graph_runs_what_was_captured),
		cmocka_unit_test(test_gpu__the_stamped_clock_is_cycles_over_time),
		cmocka_unit_test(test_gpu__a_device_with_more_memory_an_sm_takes_other_shapes),
		cmocka_unit_test(test_gpu__moves_say_where_they_cannot_run),
	};

	return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
