/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the reading and the measuring fails once. */
#include "load_bed.h"

#include "load/answer/answer.h"
#include "scratch.h"
#include "failing_memory.h"

static const struct load_slo set = {.name = "a", .ttft_s = 1};

static void open_bed(struct load_bed *b)
{
	load_bed_open(b, 0, 40, 10);
	b->spec.slo = &set;
	b->spec.slo_count = 1;
	for (int i = 0; i < 400; i++)
		load_bed_add(b, 0.1 * i, 0.02, 5000, 5);
}

static const char body[] = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
			   "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"b\","
			   "\"reasoning\":\"c\"},\"finish_reason\":\"stop\"}],"
			   "\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
static const struct load_stamp stamp = {5, sizeof(body) - 1};
static const struct load_answer answer = {
	.bytes = body, .size = sizeof(body) - 1, .stamp = &stamp, .stamps = 1, .stream = true};

static void test_memory__a_summary_is_whole_or_absent(void **state)
{
	json_t *whole, *out = NULL;
	int64_t count = 0;
	struct load_bed b;

	(void)state;
	open_bed(&b);
	whole = load_summary(&b.all, &b.spec);
	assert_non_null(whole);
	for (; !out; count++) {
		left = count;
		out = load_summary(&b.all, &b.spec);
		left = -1;
	}
	assert_true(json_equal(out, whole));
	assert_in_range(count, 20, 200);
	json_decref(out);
	json_decref(whole);
	load_bed_close(&b);
}

/* The same for the allocations of jansson, which does not always say why it fails: nothing is lost or used
 * after its end. */
static void test_memory__a_summary_without_room_for_json(void **state)
{
	struct load_bed b;

	(void)state;
	open_bed(&b);
	json_set_alloc_funcs(malloc, free);
	for (int64_t count = 0; count < 1500; count += count < 200 ? 1 : 13) {
		left = count;
		json_decref(load_summary(&b.all, &b.spec));
		left = -1;
	}
	for (int64_t count = 0; count < 60; count++) {
		struct load_record r = {.first_token_ns = LOAD_NEVER, .last_token_ns = LOAD_NEVER};
		struct load_answer_text text;
		struct error err = {0};

		left = count;
		load_answer_read(&answer, &r, &text, &err);
		left = -1;
		load_answer_text_release(&text);
		load_record_release(&r);
	}
	json_set_alloc_funcs(__real_malloc, free);
	load_bed_close(&b);
}

static void test_memory__an_answer_is_whole_or_refused(void **state)
{
	enum status st = STATUS_NO_RESOURCE;
	int64_t count = 0;

	(void)state;
	for (; st; count++) {
		struct load_record r = {.first_token_ns = LOAD_NEVER, .last_token_ns = LOAD_NEVER};
		struct load_answer_text text;
		struct error err = {0};

		left = count;
		st = load_answer_read(&answer, &r, &text, &err);
		left = -1;
		assert_true(!st || (st == STATUS_NO_RESOURCE && strstr(err.text, "no memory")));
		if (!st)
			assert_true(r.chunks == 2 && r.output_usage == 2 && !r.error && !r.flags);
		load_answer_text_release(&text);
		load_record_release(&r);
	}
	assert_in_range(count, 4, 200);
}

static void test_memory__records_are_whole_or_refused(void **state)
{
	enum status st = STATUS_NO_RESOURCE;
	struct text lines = {0};
	char path[PATH_MAX];
	int64_t count = 0;
	struct load_bed b;
	FILE *f;

	open_bed(&b);
	for (size_t i = 0; i < 3; i++)
		load_record_write(&lines, &b.all.record[i]);
	snprintf(path, sizeof(path), "%s/requests.jsonl", (char *)*state);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text_str(&lines), f);
	fclose(f);
	for (; st; count++) {
		struct load_records all;
		struct error err = {0};
		size_t cut;

		left = count;
		st = load_records_open(&all, *state, &cut, &err);
		left = -1;
		assert_true(!st ||
			    (st == STATUS_NO_RESOURCE && strstr(err.text, "no memory") && !all.record));
		assert_true(st || (all.count == 3 && !cut));
		load_records_release(&all);
	}
	assert_in_range(count, 5, 400);
	text_release(&lines);
	load_bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__a_summary_is_whole_or_absent),
		cmocka_unit_test(test_memory__a_summary_without_room_for_json),
		cmocka_unit_test(test_memory__an_answer_is_whole_or_refused),
		scratch_test(test_memory__records_are_whole_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
