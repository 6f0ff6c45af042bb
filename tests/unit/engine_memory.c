/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of the engine fail, one at a time: at its start, for a request, and during steps. */
#include "engine_bed.h"

static int64_t left = -1; /* allocations until one fails; -1: none does */

static bool fails(void)
{
	return left >= 0 && !left--;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

enum { TEXT = 20 };
static const int32_t text[TEXT] = {7, 23, 16, 36, 5, 30, 21, 13, 37, 2, 9, 11, 20, 8, 3, 1, 22, 14, 29, 31};

static void test_memory__a_start_without_memory_leaves_nothing(void **state)
{
	char path[512];
	struct engine_options o = bed_options(path, "llama");
	enum status st = STATUS_NO_RESOURCE;
	int64_t count = 0;

	(void)state;
	for (; st; count++) {
		struct error err = {0};
		struct engine *e;

		left = count;
		st = engine_create(&e, &o, &err);
		left = -1;
		if (!st) {
			engine_destroy(&e);
			break;
		}
		if (st != STATUS_NO_RESOURCE || !*err.text)
			fail_msg("allocation %lld: %s: %s", (long long)count, status_name(st), err.text);
		assert_null(e);
	}
	assert_in_range(count, 50, 5000);
}

/* Either the request does not exist, or it ends as it would with memory. */
static void test_memory__a_request_without_memory_does_not_exist(void **state)
{
	static const struct engine_bias bias = {3, 1};
	static const int32_t stop = 2;
	struct engine_request r = bed_request(1, text, TEXT, 6);
	struct engine_request later = bed_request(2, text, TEXT, 6);
	enum status st = STATUS_NO_RESOURCE;
	struct heard plain;
	int64_t count = 0;
	struct bed b;

	(void)state;
	r.bias = &bias, r.biases = 1, r.stop = &stop, r.stops = 1;
	for (; st; count++) {
		struct error err = {0};

		bed_open(&b, 2);
		left = count;
		st = engine_submit(b.e, &r, &err);
		left = -1;
		assert_true(!st || st == STATUS_NO_RESOURCE);
		bed_listen(b.e, b.h, FEW);
		if (!st && !b.h[0].ends)
			bed_run(b.e, b.h, 1);
		assert_true(st || b.h[0].ends == 1);
		if (!st && b.h[0].last.end == ENGINE_END_REFUSED)
			st = STATUS_NO_RESOURCE;
		plain = *answer(&b, &later);
		assert_int_equal(plain.last.end, ENGINE_END_LENGTH);
		bed_close(&b);
	}
	assert_in_range(count, 3, 30);
}

/* A step either works, or it fails as a whole, and the engine can still be destroyed. */
static void test_memory__a_step_without_memory_fails_as_a_whole(void **state)
{
	static const struct engine_bias bias[8] = {{3, 1}};
	struct engine_request r = bed_request(1, text, TEXT, 90);
	bool failed = true;

	(void)state;
	r.bias = bias, r.biases = 8, r.sampling.presence = 1;
	for (int64_t count = 0; failed; count++) {
		struct error err = {0};
		enum status st = STATUS_OK;
		bool idle = false;
		struct bed b;

		assert_in_range(count, 0, 200);
		bed_open(&b, 0);
		bed_submit(b.e, &r);
		left = count;
		while (!st && !idle) {
			st = engine_step(b.e, &idle, &err);
			bed_listen(b.e, b.h, 1);
		}
		left = -1;
		failed = st || b.h[0].last.end != ENGINE_END_LENGTH;
		if (st)
			assert_true(st == STATUS_NO_RESOURCE && *err.text);
		else
			assert_int_equal(b.h[0].ends, 1);
		engine_destroy(&b.e);
		grammar_vocab_destroy(&b.vocab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__a_start_without_memory_leaves_nothing),
		cmocka_unit_test(test_memory__a_request_without_memory_does_not_exist),
		cmocka_unit_test(test_memory__a_step_without_memory_fails_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
