/* SPDX-License-Identifier: Apache-2.0 */
/* The metric list against CUPTI's own knowledge of chips, where a real one is found: it needs no GPU. */
#include "test.h"
#include "counter/counter.h"
#include "vendor/cupti.h"

static struct cupti cu;

/* The toolkit's own: on the loader's path of a test stands the fake. */
static bool find_cupti(void)
{
	static const char *const below[] = {"lib64", "lib", "extras/CUPTI/lib64"};
	char path[4096];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", TOOLKIT_DIR, below[i]);
		if (!cupti_load(&cu, path, NULL))
			return true;
	}
	return false;
}

/* Passes of these sets on the chip; 0: a metric of them is not known there. */
static size_t passes_of(const char *chip, unsigned sets, const char *type)
{
	struct cupti_host_open open =
		CUPTI_PARAMS(host_open, .type = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .chip = chip);
	const char *metric[COUNTER_METRIC_COUNT];
	char name[COUNTER_METRIC_COUNT][96];
	struct cupti_host_image_size size;
	struct cupti_host_passes passes = {0};
	uint8_t *image;
	size_t n = 0;

	assert_int_equal(cu.host_open(&open), CUPTI_SUCCESS);
	for (unsigned i = 0; i < COUNTER_METRIC_COUNT; i++) {
		const char *names =
			counter_rows[i].metric ? counter_rows[i].metric : counter_tensor_metric(type);

		if (!(counter_rows[i].set & sets))
			continue;
		metric[n] = name[n];
		for (bool found = false; !found; names += strcspn(names, "|") + 1) {
			snprintf(name[n], sizeof(name[n]), "%.*s", (int)strcspn(names, "|"), names);
			found = !cu.host_properties(
				&CUPTI_PARAMS(host_properties, .host = open.host, .metric = name[n]));
			if (!found && !strchr(names, '|'))
				return 0;
		}
		n++;
	}
	assert_int_equal(
		cu.host_add(&CUPTI_PARAMS(host_add, .host = open.host, .metrics = metric, .count = n)),
		CUPTI_SUCCESS);
	size = CUPTI_PARAMS(host_image_size, .host = open.host);
	assert_int_equal(cu.host_image_size(&size), CUPTI_SUCCESS);
	image = calloc(1, size.image_size);
	assert_int_equal(cu.host_image(&CUPTI_PARAMS(host_image, .host = open.host, .image = image,
						     .image_size = size.image_size)),
			 CUPTI_SUCCESS);
	passes = CUPTI_PARAMS(host_passes, .image = image, .image_size = size.image_size);
	assert_int_equal(cu.host_passes(&passes), CUPTI_SUCCESS);
	free(image);
	assert_int_equal(cu.host_close(&CUPTI_PARAMS(host_close, .host = open.host)), CUPTI_SUCCESS);
	return passes.passes;
}

#define SKIP_WITHOUT_CUPTI()                                                                                 \
	do {                                                                                                 \
		if (!find_cupti()) {                                                                         \
			print_message("# no CUPTI of CUDA 12.6 or newer in the toolkit \"" TOOLKIT_DIR       \
				      "\"\n");                                                               \
			skip();                                                                              \
		}                                                                                            \
	} while (0)

static void test_counter_host__core_is_one_pass_and_all_of_a_type_two(void **state)
{
	static const char *const chips[] = {"GA100", "GH100", "GB100"};

	(void)state;
	SKIP_WITHOUT_CUPTI();
	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		unsigned core = COUNTER_CORE;

		assert_int_equal(passes_of(chips[i], core, NULL), 1);
		assert_int_equal(passes_of(chips[i], core | COUNTER_XU, NULL), 1);
		assert_int_equal(passes_of(chips[i], core | COUNTER_FMA, NULL), 1);
		assert_int_equal(passes_of(chips[i], core | COUNTER_FP64, NULL), 1);
		assert_int_equal(passes_of(chips[i], core | COUNTER_XU | COUNTER_ISSUE, NULL), 1);
		assert_int_equal(passes_of(chips[i], core | COUNTER_CACHE, NULL), 2);
		assert_int_equal(passes_of(chips[i], core | COUNTER_CACHE | COUNTER_TENSOR, "bf16"), 2);
		assert_int_equal(passes_of(chips[i], core | COUNTER_CACHE | COUNTER_TENSOR, "fp16"), 2);
		core |= COUNTER_XU | COUNTER_ISSUE;
		assert_int_equal(passes_of(chips[i], core | COUNTER_CACHE | COUNTER_TENSOR, "bf16"), 3);
	}
}

static void test_counter_host__hopper_knows_every_metric(void **state)
{
	static const char *const types[] = {
#define X(type, metric) #type,
		COUNTER_TENSOR_TYPES(X)
#undef X
	};

	(void)state;
	SKIP_WITHOUT_CUPTI();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(passes_of("GH100", COUNTER_CORE | COUNTER_CACHE | COUNTER_TENSOR, types[i]),
				 2);
	for (unsigned i = 0; i < COUNTER_SAMPLED_COUNT; i++) {
		struct cupti_host_open open =
			CUPTI_PARAMS(host_open, .type = CUPTI_PROFILER_TYPE_PM_SAMPLING, .chip = "GH100");

		assert_int_equal(cu.host_open(&open), CUPTI_SUCCESS);
		assert_int_equal(
			cu.host_add(&CUPTI_PARAMS(host_add, .host = open.host,
						  .metrics = (const char *[]){counter_sampled_rows[i].metric},
						  .count = 1)),
			CUPTI_SUCCESS);
		assert_int_equal(cu.host_close(&CUPTI_PARAMS(host_close, .host = open.host)), CUPTI_SUCCESS);
	}
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	/* The host library opens a part of itself in a way that ends such a program. */
	puts("1..0 # SKIP CUPTI's host library does not run under AddressSanitizer");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counter_host__core_is_one_pass_and_all_of_a_type_two),
		cmocka_unit_test(test_counter_host__hopper_knows_every_metric),
	};

	return cmocka_run_group_tests_name("counter_host", tests, NULL, NULL);
}
