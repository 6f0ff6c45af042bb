/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the scheduler and its pool fails once. */
#include "schedule_bed.h"

#include "engine/pages/pages.h"

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

static void test_memory__creation_fails_as_a_whole(void **state)
{
	enum status st = STATUS_NO_RESOURCE;
	int64_t count = 0;

	(void)state;
	for (; st; count++) {
		struct schedule *s = NULL;
		struct error err = {0};

		left = count;
		st = schedule_create(&s, &bed_options, &err);
		left = -1;
		assert_true(!st || (st == STATUS_NO_RESOURCE && !s && strstr(err.text, "no memory for")));
		schedule_free(&s);
		assert_null(s);
	}
	assert_in_range(count, 20, 40);
}

static void test_memory__a_request_without_memory_is_refused(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 2);
	struct error err = {0};
	uint32_t number;

	(void)state;
	left = 0;
	assert_int_equal(schedule_submit(s, &q, 0, 0, &number, &err), STATUS_NO_RESOURCE);
	left = -1;
	assert_string_equal(err.text, "no memory for a prompt of 20 tokens");
	bed_check(s);
	bed_submit(s, &q, 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(bed_end(s, 1, NULL), ENGINE_END_LENGTH);
	schedule_free(&s);
}

/* A text of 2000 tokens: its memory grows a few times. */
static void test_memory__a_text_without_memory_fails(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 2000);
	struct schedule_event end;
	const struct schedule_plan *plan;

	(void)state;
	bed_submit(s, &q, 0);
	while ((plan = schedule_plan(s, 0, 1))) {
		struct error err = {0};

		left = plan->step < 1000 ? -1 : 0;
		assert_int_equal(schedule_done(s, bed_results(plan), plan->count, 0, &err), STATUS_OK);
		left = -1;
		bed_check(s);
	}
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_FAILED);
	assert_string_equal(end.text, "no memory for the tokens of the text");
	assert_in_range(end.tokens, 1000, 1999);
	schedule_free(&s);
}

static void test_memory__a_check_without_memory_says_so(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	const struct pages_options o = {100, P, 1};
	struct pages *pool;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct error err = {0};

		left = i;
		assert_int_equal(schedule_check(s, &err), STATUS_NO_RESOURCE);
		left = -1;
		assert_non_null(strstr(err.text, "no memory to check"));
	}
	schedule_free(&s);
	for (int i = 0; i < 7; i++) {
		struct error err = {0};

		left = i;
		assert_int_equal(pages_create(&pool, &o, &err), STATUS_NO_RESOURCE);
		left = -1;
		assert_null(pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__creation_fails_as_a_whole),
		cmocka_unit_test(test_memory__a_request_without_memory_is_refused),
		cmocka_unit_test(test_memory__a_text_without_memory_fails),
		cmocka_unit_test(test_memory__a_check_without_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
