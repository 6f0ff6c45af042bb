/* SPDX-License-Identifier: Apache-2.0 */
/* libpairs.so (tests/gpu/pairs.h) on the fake driver, whose device memory is the host's: what it runs, and
 * what it refuses. */
#include "test.h"
#include "pairs.h"
#include <stdbool.h>

enum { COUNT = 5000, SIZE = 256 };

struct bed {
	struct pairs *pairs;
	struct pairs_arrays arrays;
	float *in0, *in1, *out;
	double *partial;
	char text[SIZE];
};

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void *aligned(size_t bytes)
{
	return aligned_alloc(128, (bytes + 127) / 128 * 128);
}

static int set_up(void **state)
{
	enum { PARTIAL = 8192 };
	struct bed *b = calloc(1, sizeof(*b));

	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_CUBLASLT", FAKE_DIR "/libcublasLt.so.13", 1);
	unsetenv("FAKE_CUDA");
	unsetenv("FAKE_CUBLASLT");
	if (!b)
		return 1;
	b->pairs = pairs_open(NULL, b->text, SIZE);
	b->in0 = aligned(COUNT * sizeof(float));
	b->in1 = aligned(COUNT * sizeof(float));
	b->out = aligned(COUNT * sizeof(float));
	b->partial = aligned(PARTIAL * sizeof(double));
	for (int i = 0; i < COUNT; i++) {
		b->in0[i] = (float)i;
		b->in1[i] = (float)(i % 7);
		b->out[i] = -1;
	}
	b->arrays = (struct pairs_arrays){.in0 = address(b->in0),
					  .in1 = address(b->in1),
					  .out = address(b->out),
					  .partial = address(b->partial),
					  .partial_count = PARTIAL,
					  .count = COUNT,
					  .factor = 3};
	*state = b;
	return !b->pairs;
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	pairs_close(b->pairs);
	free(b->in0);
	free(b->in1);
	free(b->out);
	free(b->partial);
	free(b);
	unsetenv("FAKE_CUDA");
	return 0;
}

/* Whether the build has kernels at all: without nvcc it has none. */
static bool has_kernels(struct bed *b)
{
	double ns;

	return !pairs_launches(b->pairs, NULL, 1, &ns, b->text, SIZE);
}

#define SKIP_WITHOUT_KERNELS(b)                                                                              \
	do {                                                                                                 \
		if (!has_kernels(b))                                                                         \
			skip();                                                                              \
	} while (0)

static struct pairs_move *open_move(struct bed *b, const char *op, struct pairs_launch shape)
{
	return pairs_move_open(b->pairs, op, &shape, &b->arrays, b->text, SIZE);
}

static void refused(struct bed *b, const char *op, struct pairs_launch shape, const char *words)
{
	assert_null(open_move(b, op, shape));
	if (!strstr(b->text, words))
		fail_msg("\"%s\" does not say \"%s\"", b->text, words);
}

static void test_pairs__a_device_that_does_not_open_says_why(void **state)
{
	char text[SIZE] = "";

	(void)state;
	setenv("FAKE_CUDA", "cuInit=100", 1);
	assert_null(pairs_open(NULL, text, SIZE));
	assert_non_null(strstr(text, "cuInit"));
	unsetenv("FAKE_CUDA");
	assert_null(pairs_open("0000:1b:00.0", text, SIZE));
	assert_non_null(strstr(text, "0000:1b:00.0"));
}

static void test_pairs__a_move_runs_in_a_shape_given_by_numbers(void **state)
{
	struct bed *b = *state;
	struct pairs_move *m;
	double sum;

	SKIP_WITHOUT_KERNELS(b);
	m = open_move(b, "copy", (struct pairs_launch){.rung = 10, .threads = 256});
	assert_non_null(m);
	assert_string_equal(b->text, "copy_v10, 256 threads, a tile a block");
	assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 0);
	assert_memory_equal(b->out, b->in0, COUNT * sizeof(float));
	assert_int_equal(pairs_move_sum(m, &sum, b->text, SIZE), 1);
	assert_non_null(strstr(b->text, "sums nothing"));
	pairs_move_close(m);
	m = open_move(b, "triad",
		      (struct pairs_launch){.rung = 11, .threads = 64, .tile_bytes = 1024, .stages = 2});
	assert_non_null(m);
	assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(b->out[i] == b->in0[i] + 3 * b->in1[i]);
	pairs_move_close(m);
}

static void test_pairs__a_move_runs_in_each_shape_of_the_device(void **state)
{
	static const char *const ops[] = {"read", "write", "copy", "scale", "add", "triad", "dot"};
	struct bed *b = *state;

	SKIP_WITHOUT_KERNELS(b);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct pairs_launch shape = {0};
		struct pairs_move *m;

		for (; (m = open_move(b, ops[i], shape)); shape.index++) {
			assert_memory_equal(b->text, ops[i], strlen(ops[i]));
			assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 0);
			pairs_move_close(m);
		}
		assert_true(shape.index >= 3);
		assert_non_null(strstr(b->text, "launch shapes"));
	}
}

static void test_pairs__sums_come_back(void **state)
{
	struct bed *b = *state;
	struct pairs_move *m;
	double sum, dot = 0;

	SKIP_WITHOUT_KERNELS(b);
	for (int i = 0; i < COUNT; i++)
		dot += (double)i * (i % 7);
	m = open_move(b, "read", (struct pairs_launch){0});
	assert_non_null(m);
	assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 0);
	assert_int_equal(pairs_move_sum(m, &sum, b->text, SIZE), 0);
	assert_true(sum == COUNT * (COUNT - 1) / 2);
	pairs_move_close(m);
	m = open_move(b, "dot", (struct pairs_launch){0});
	assert_non_null(m);
	assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 0);
	assert_int_equal(pairs_move_sum(m, &sum, b->text, SIZE), 0);
	assert_true(sum == dot);
	pairs_move_close(m);
}

static void test_pairs__shapes_that_would_hang_or_overrun_are_refused(void **state)
{
	struct bed *b = *state;
	struct pairs_launch copy = {.rung = 10, .threads = 256};

	SKIP_WITHOUT_KERNELS(b);
	refused(b, "gallop", copy, "no memory operation gallop");
	refused(b, "copy", (struct pairs_launch){.rung = 12, .threads = 256}, "no version 12");
	refused(b, "copy", (struct pairs_launch){.rung = 10}, "not 0");
	refused(b, "copy", (struct pairs_launch){.rung = 10, .threads = 100}, "not 100");
	refused(b, "copy", (struct pairs_launch){.rung = 10, .threads = 2048}, "not 2048");
	refused(b, "copy", (struct pairs_launch){.rung = 6, .threads = 1024}, "at most 512 threads per block");
	refused(b, "copy", (struct pairs_launch){.rung = 11, .threads = 32, .stages = 1}, "1 of 0");
	refused(b, "copy", (struct pairs_launch){.rung = 11, .threads = 32, .stages = 1, .tile_bytes = 64},
		"1 of 64");
	refused(b, "copy", (struct pairs_launch){.rung = 11, .threads = 32, .stages = 17, .tile_bytes = 128},
		"17 of 128");
	refused(b, "add", (struct pairs_launch){.rung = 11, .threads = 32, .stages = 1, .tile_bytes = 128},
		"64 to 1024");
}

static void test_pairs__arrays_that_do_not_fit_are_refused(void **state)
{
	struct bed *b = *state;
	struct pairs_launch copy = {.rung = 10, .threads = 256}, read = {.rung = 2, .threads = 256};
	const struct pairs_arrays good = b->arrays;

	SKIP_WITHOUT_KERNELS(b);
	b->arrays.count = 0;
	refused(b, "copy", copy, "no floats");
	b->arrays = good;
	b->arrays.in0 = 0;
	refused(b, "copy", copy, "in0");
	b->arrays = good;
	b->arrays.in1 += 4;
	refused(b, "add", copy, "in1");
	b->arrays = good;
	b->arrays.out += 16;
	refused(b, "copy", (struct pairs_launch){.rung = 11, .threads = 32, .stages = 1, .tile_bytes = 128},
		"out");
	b->arrays = good;
	b->arrays.partial = 0;
	refused(b, "read", read, "partial");
	b->arrays = good;
	b->arrays.partial_count = 4; /* 5000 floats by four, 256 threads: five blocks */
	refused(b, "read", read, "5 partial sums, there is room for 4");
	b->arrays = good;
}

static void test_pairs__the_drivers_own_copies_and_fills(void **state)
{
	struct bed *b = *state;
	uint64_t in0 = b->arrays.in0, out = b->arrays.out, bytes = COUNT * sizeof(float);

	assert_int_equal(pairs_copy(b->pairs, out, in0, bytes, NULL, b->text, SIZE), 0);
	assert_memory_equal(b->out, b->in0, bytes);
	assert_int_equal(pairs_fill(b->pairs, out, 0x40400000, COUNT, NULL, b->text, SIZE), 0);
	assert_true(b->out[0] == 3 && b->out[COUNT - 1] == 3);
	assert_int_equal(pairs_copy_to(b->pairs, out, b->in1, bytes, NULL, b->text, SIZE), 0);
	assert_memory_equal(b->out, b->in1, bytes);
	assert_int_equal(pairs_copy_from(b->pairs, b->out, in0, bytes, NULL, b->text, SIZE), 0);
	assert_memory_equal(b->out, b->in0, bytes);
}

static void test_pairs__what_the_driver_refuses_is_told(void **state)
{
	struct bed *b = *state;
	struct pairs_move *m = NULL;
	uint64_t out = b->arrays.out, in0 = b->arrays.in0;

	if (has_kernels(b)) {
		m = open_move(b, "copy", (struct pairs_launch){0});
		setenv("FAKE_CUDA", "cuLaunchKernel=719", 1);
		assert_int_equal(pairs_move_run(m, NULL, b->text, SIZE), 1);
		assert_non_null(strstr(b->text, "cuLaunchKernel"));
		pairs_move_close(m);
	}
	setenv("FAKE_CUDA", "cuMemcpyDtoDAsync_v2=719", 1);
	assert_int_equal(pairs_copy(b->pairs, out, in0, 4, NULL, b->text, SIZE), 1);
	assert_non_null(strstr(b->text, "cuMemcpyDtoDAsync"));
	setenv("FAKE_CUDA", "cuMemsetD32Async=719", 1);
	assert_int_equal(pairs_fill(b->pairs, out, 0, 1, NULL, b->text, SIZE), 1);
	setenv("FAKE_CUDA", "cuMemcpyHtoDAsync_v2=719", 1);
	assert_int_equal(pairs_copy_to(b->pairs, out, b->in0, 4, NULL, b->text, SIZE), 1);
	setenv("FAKE_CUDA", "cuMemcpyDtoHAsync_v2=719", 1);
	assert_int_equal(pairs_copy_from(b->pairs, b->out, in0, 4, NULL, b->text, SIZE), 1);
	assert_non_null(strstr(b->text, "cuMemcpyDtoHAsync"));
}

static void test_pairs__stamps_belong_to_slots(void **state)
{
	struct bed *b = *state;
	double hz = 0;

	assert_int_equal(pairs_clock(b->pairs, 3, &hz, b->text, SIZE), 1);
	assert_non_null(strstr(b->text, "slot 3 has no stamps"));
	assert_int_equal(pairs_stamp(b->pairs, PAIRS_SLOTS, 0, NULL, b->text, SIZE), 1);
	assert_int_equal(pairs_stamp(b->pairs, 0, 2, NULL, b->text, SIZE), 1);
	SKIP_WITHOUT_KERNELS(b);
	assert_int_equal(pairs_stamp(b->pairs, 3, 0, NULL, b->text, SIZE), 0);
	assert_int_equal(pairs_stamp(b->pairs, 3, 1, NULL, b->text, SIZE), 0);
	assert_int_equal(pairs_clock(b->pairs, 3, &hz, b->text, SIZE), 0);
	assert_true(hz > 1e8 && hz < 1e11);
}

static void test_pairs__a_product_is_planned_before_it_runs(void **state)
{
	struct pairs_shape shape = {.a = "fp32",
				    .b = "fp32",
				    .d = "fp32",
				    .compute = "fp32",
				    .m = 2,
				    .n = 2,
				    .k = 2,
				    .candidates = 1};
	float a[] = {1, 2, 3, 4}, x[] = {1, 0, 0, 1}, d[4] = {0};
	struct bed *b = *state;

	assert_int_equal(pairs_version(b->pairs), 0);
	assert_int_equal(pairs_plan(b->pairs, &shape, b->text, SIZE), 0);
	assert_non_null(strstr(b->text, "no matrix library"));
	assert_int_equal(pairs_select(b->pairs, 0, b->text, SIZE), 1);
	assert_int_equal(pairs_run(b->pairs, address(a), address(x), address(d), 0, 0, NULL, b->text, SIZE),
			 1);
	assert_non_null(strstr(b->text, "no matrix product was planned"));
	assert_int_equal(pairs_matmul(b->pairs, "/nowhere/libcublasLt.so.13", b->text, SIZE), 1);
	assert_int_equal(pairs_matmul(b->pairs, NULL, b->text, SIZE), 0);
	assert_true(pairs_version(b->pairs) > 0);
	shape.compute = "fp8";
	assert_int_equal(pairs_plan(b->pairs, &shape, b->text, SIZE), 0);
	assert_non_null(strstr(b->text, "no compute type fp8"));
	shape.compute = "fp32";
	assert_true(pairs_plan(b->pairs, &shape, b->text, SIZE) > 0);
	assert_int_equal(pairs_select(b->pairs, 0, b->text, SIZE), 0);
	assert_int_equal(pairs_run(b->pairs, address(a), address(x), address(d), 0, 0, NULL, b->text, SIZE),
			 0);
	assert_memory_equal(d, a, sizeof(a));
}

/* Rows of Q of zeros: O is the mean of V's rows, lse the logarithm of their number. */
static void attend(struct bed *b)
{
	enum { S = 256, D = 64 };
	struct pairs_attention_shape shape = {"fp16", "fp16", "none", 1, 1, 1, S, S, D};
	struct pairs_attention *a;
	uint16_t *q = aligned(S * D * 2), *v = aligned(S * D * 2), *o = aligned(S * D * 2);
	float *lse = aligned(S * sizeof(float));
	const struct pairs_attention_arrays x = {address(q), address(q), address(v), address(o), address(lse),
						 0,	     0,		 0,	     0};

	memset(q, 0, S * D * 2);
	for (int i = 0; i < S * D; i++)
		v[i] = i / D % 2 ? 0x3c00 : 0x4200; /* 1 and 3 */
	a = pairs_attention_open(b->pairs, &shape, b->text, SIZE);
	assert_non_null(a);
	assert_true(pairs_attention_count(a) >= 4);
	for (unsigned c = 0; c < pairs_attention_count(a); c++) {
		memset(o, 0xff, S * D * 2);
		assert_int_equal(pairs_attention_select(a, c, b->text, SIZE), 0);
		assert_non_null(strstr(b->text, "fp16"));
		assert_int_equal(pairs_attention_run(a, &x, NULL, b->text, SIZE), 0);
		for (int i = 0; i < S * D; i++)
			assert_int_equal(o[i], 0x4000); /* 2 */
		for (int i = 0; i < S; i++)
			assert_float_equal(lse[i], 5.5451775, 1e-6);
	}
	assert_int_equal(pairs_attention_select(a, 99, b->text, SIZE), 1);
	assert_string_equal(b->text, "no candidate 99");
	pairs_attention_close(a);
	pairs_attention_close(NULL);
	shape.mask = "striped";
	assert_null(pairs_attention_open(b->pairs, &shape, b->text, SIZE));
	assert_string_equal(b->text, "no attention of striped");
	free(q);
	free(v);
	free(o);
	free(lse);
}

/* The same Q; the map drops the first half's queries the second half's keys. */
static void attend_by_map(struct bed *b)
{
	enum { S = 256, D = 64 };
	const uint8_t map[4] = {1, 0, 1, 1};
	const struct pairs_attention_shape shape = {"bf16", "bf16", "none", 1, 1, 1, S, S, D};
	struct pairs_attention *a;
	uint16_t *q = aligned(S * D * 2), *v = aligned(S * D * 2), *o = aligned(S * D * 2);
	float *lse = aligned(S * sizeof(float));
	const struct pairs_attention_arrays x = {.q = address(q),
						 .k = address(q),
						 .v = address(v),
						 .o = address(o),
						 .lse = address(lse)};

	memset(q, 0, S * D * 2);
	memset(o, 0xff, S * D * 2);
	for (int i = 0; i < S * D; i++)
		v[i] = i / D < S / 2 ? 0x3f80 : 0x4040; /* 1 and 3 */
	a = pairs_attention_open_map(b->pairs, &shape, address(map), 128, b->text, SIZE);
	assert_non_null(a);
	assert_string_equal(b->text, "sparse_bf16_d64_k128");
	assert_int_equal(pairs_attention_count(a), 0);
	assert_int_equal(pairs_attention_lists(a, NULL, b->text, SIZE), 0);
	assert_int_equal(pairs_attention_run(a, &x, NULL, b->text, SIZE), 0);
	for (int i = 0; i < S * D; i++)
		assert_int_equal(o[i], i / D < S / 2 ? 0x3f80 : 0x4000); /* 1 and 2 */
	for (int i = 0; i < S; i++)
		assert_float_equal(lse[i], i < S / 2 ? 4.8520303 : 5.5451775, 1e-6);
	assert_int_equal(pairs_attention_select(a, 0, b->text, SIZE), 1);
	assert_string_equal(b->text, "no candidate 0");
	pairs_attention_close(a);
	assert_null(pairs_attention_open_map(b->pairs, &shape, address(map), 32, b->text, SIZE));
	assert_non_null(strstr(b->text, "key blocks of 64 and 128"));
	a = pairs_attention_open(b->pairs, &shape, b->text, SIZE);
	assert_non_null(a);
	assert_int_equal(pairs_attention_lists(a, NULL, b->text, SIZE), 1);
	assert_string_equal(b->text, "a dense attention has no block lists");
	pairs_attention_close(a);
	free(q);
	free(v);
	free(o);
	free(lse);
}

static void test_pairs__an_attention_goes_by_a_map_of_blocks(void **state)
{
	SKIP_WITHOUT_KERNELS((struct bed *)*state);
	attend_by_map(*state);
}

static void test_pairs__every_attention_of_ours_runs(void **state)
{
	if (!has_kernels(*state))
		skip();
	attend(*state);
}

#define T(name) cmocka_unit_test_setup_teardown(test_pairs__##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_device_that_does_not_open_says_why),
		T(a_move_runs_in_a_shape_given_by_numbers),
		T(a_move_runs_in_each_shape_of_the_device),
		T(sums_come_back),
		T(shapes_that_would_hang_or_overrun_are_refused),
		T(arrays_that_do_not_fit_are_refused),
		T(the_drivers_own_copies_and_fills),
		T(what_the_driver_refuses_is_told),
		T(stamps_belong_to_slots),
		T(a_product_is_planned_before_it_runs),
		T(every_attention_of_ours_runs),
		T(an_attention_goes_by_a_map_of_blocks),
	};

	return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
