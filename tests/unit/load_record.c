/* SPDX-License-Identifier: Apache-2.0 */
/* Records of requests as lines of JSON. */
#include "test.h"

#include <unistd.h>
#include <zstd.h>

#include "load/record/record.h"
#include "scratch.h"

static struct load_record full_record(void)
{
	struct load_record r = {
		.index = 7,
		.stage = 1,
		.session = 5,
		.turn = 2,
		.scheduled_ns = 1000000,
		.handed_ns = 1000100,
		.connected_ns = 1000200,
		.sent_ns = 1000300,
		.first_byte_ns = 2000000,
		.first_token_ns = 3000000,
		.last_token_ns = 9000000,
		.end_ns = 9500000,
		.prompt_asked = 10,
		.output_asked = 3,
		.prompt_usage = 11,
		.output_usage = 4,
		.cached = 0,
		.output_counted = 3,
		.chunks = 3,
		.blanks = 2,
		.status = 200,
		.flags = LOAD_FLAG_NO_DONE | LOAD_FLAG_AFTER_DONE,
		.gap_count = 2,
	};

	r.gap_us = malloc(2 * sizeof(*r.gap_us));
	assert_non_null(r.gap_us);
	r.gap_us[0] = 0;
	r.gap_us[1] = 5000;
	return r;
}

static struct load_record refused_record(void)
{
	return (struct load_record){
		.index = 8,
		.scheduled_ns = 5,
		.handed_ns = 6,
		.connected_ns = LOAD_NEVER,
		.sent_ns = LOAD_NEVER,
		.first_byte_ns = LOAD_NEVER,
		.first_token_ns = LOAD_NEVER,
		.last_token_ns = LOAD_NEVER,
		.end_ns = 70,
		.prompt_usage = LOAD_UNKNOWN,
		.output_usage = LOAD_UNKNOWN,
		.cached = LOAD_UNKNOWN,
		.output_counted = LOAD_UNKNOWN,
		.error = LOAD_ERROR_CONNECT,
	};
}

static void assert_same(const struct load_record *a, const struct load_record *b)
{
	assert_true(a->index == b->index && a->stage == b->stage && a->session == b->session &&
		    a->turn == b->turn);
	assert_true(a->scheduled_ns == b->scheduled_ns && a->handed_ns == b->handed_ns);
	assert_true(a->connected_ns == b->connected_ns && a->sent_ns == b->sent_ns);
	assert_true(a->first_byte_ns == b->first_byte_ns && a->first_token_ns == b->first_token_ns);
	assert_true(a->last_token_ns == b->last_token_ns && a->end_ns == b->end_ns);
	assert_true(a->prompt_asked == b->prompt_asked && a->output_asked == b->output_asked);
	assert_true(a->prompt_usage == b->prompt_usage && a->output_usage == b->output_usage);
	assert_true(a->cached == b->cached && a->output_counted == b->output_counted);
	assert_true(a->chunks == b->chunks && a->blanks == b->blanks && a->status == b->status);
	assert_true(a->error == b->error && a->flags == b->flags && a->gap_count == b->gap_count);
	for (uint32_t i = 0; i < a->gap_count; i++)
		assert_int_equal(a->gap_us[i], b->gap_us[i]);
}

static void assert_returns(struct load_record r)
{
	struct error err = {0};
	struct load_record back;
	struct text line = {0};

	load_record_write(&line, &r);
	assert_true(line.data[line.size - 1] == '\n');
	if (load_record_read(&back, line.data, line.size - 1, &err))
		fail_msg("%s: %s", err.text, line.data);
	assert_same(&r, &back);
	load_record_release(&back);
	load_record_release(&r);
	text_release(&line);
}

static void test_record__comes_back_from_its_line(void **state)
{
	struct load_record r;

	(void)state;
	assert_returns(full_record());
	assert_returns(refused_record());
	for (int e = 0; e < LOAD_ERROR_COUNT; e++) {
		r = refused_record();
		r.error = (enum load_error)e;
		assert_returns(r);
	}
	r = full_record();
	r.connected_ns = r.sent_ns + 1; /* of another reading of the clock */
	assert_returns(r);
	r = full_record();
	r.gap_us[0] = 6000000;
	r.gap_us[1] = UINT32_MAX;
	r.last_token_ns = r.end_ns = UINT64_MAX / 4;
	assert_returns(r);
}

static void test_record__its_line_is_plain_json(void **state)
{
	struct load_record r = refused_record();
	struct text line = {0};

	(void)state;
	load_record_write(&line, &r);
	assert_string_equal(
		line.data,
		"{\"type\":\"request\",\"index\":8,\"stage\":0,\"session\":0,\"turn\":0,"
		"\"scheduled_ns\":5,\"handed_ns\":6,\"end_ns\":70,\"prompt_asked\":0,"
		"\"output_asked\":0,\"chunks\":0,\"blanks\":0,\"status\":0,\"error\":\"connect\"}\n");
	text_release(&line);
	r = full_record();
	load_record_write(&line, &r);
	assert_non_null(strstr(line.data, ",\"flags\":[\"no_done\",\"after_done\"],\"gaps_us\":[0,5000]}\n"));
	text_release(&line);
	load_record_release(&r);
}

#define TIMES "\"scheduled_ns\":10,\"end_ns\":20"
static const struct {
	const char *line, *names;
} wrong[] = {
	{"", "no JSON"},
	{"[1]", "no JSON object"},
	{"{\"index\":1," TIMES "}", "type"},
	{"{\"type\":\"request\"," TIMES "}", "index"},
	{"{\"type\":\"request\",\"index\":1,\"end_ns\":1}", "scheduled_ns"},
	{"{\"type\":\"request\",\"index\":1,\"scheduled_ns\":1}", "end_ns"},
	{"{\"type\":\"request\",\"index\":-1," TIMES "}", "index"},
	{"{\"type\":\"request\",\"index\":1.5," TIMES "}", "index"},
	{"{\"type\":\"request\",\"index\":1,\"turn\":4294967296," TIMES "}", "turn"},
	{"{\"type\":\"request\",\"index\":1,\"turn\":\"2\"," TIMES "}", "turn"},
	{"{\"type\":\"request\",\"index\":1,\"status\":1000," TIMES "}", "status"},
	{"{\"type\":\"request\",\"index\":1,\"error\":\"none\"," TIMES "}", "error"},
	{"{\"type\":\"request\",\"index\":1,\"error\":3," TIMES "}", "error"},
	{"{\"type\":\"request\",\"index\":1,\"flags\":1," TIMES "}", "flags"},
	{"{\"type\":\"request\",\"index\":1,\"flags\":[\"x\"]," TIMES "}", "flags"},
	{"{\"type\":\"request\",\"index\":1,\"sent_ns\":9," TIMES "}",
	 "sent_ns is earlier than scheduled_ns"},
	{"{\"type\":\"request\",\"index\":1,\"handed_ns\":12,\"connected_ns\":11," TIMES "}",
	 "connected_ns is earlier than handed_ns"},
	{"{\"type\":\"request\",\"index\":1,\"sent_ns\":21," TIMES "}", "end_ns is earlier than sent_ns"},
	{"{\"type\":\"request\",\"index\":1,\"chunks\":1," TIMES "}", "first_token_ns"},
	{"{\"type\":\"request\",\"index\":1,\"gaps_us\":[]," TIMES "}", "gaps_us"},
	{"{\"type\":\"request\",\"index\":1,\"gaps_us\":[1]," TIMES "}", "gaps_us"},
	{"{\"type\":\"request\",\"index\":1,\"chunks\":2,\"first_token_ns\":11,\"last_token_ns\":12,"
	 "\"gaps_us\":[-1]," TIMES "}",
	 "gaps_us"},
	{"{\"type\":\"request\",\"index\":1,\"chunks\":2,\"first_token_ns\":11,\"last_token_ns\":12,"
	 "\"gaps_us\":[2]," TIMES "}",
	 "gaps_us"},
	{"{\"type\":\"request\",\"index\":1,\"chunks\":2,\"first_token_ns\":11,\"gaps_us\":[0]," TIMES "}",
	 "gaps_us"},
	{"{\"type\":\"request\",\"index\":1,\"index\":2," TIMES "}", "no JSON"},
};

static void test_record__what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = {0};
		struct load_record r;

		if (load_record_read(&r, wrong[i].line, strlen(wrong[i].line), &err) != STATUS_BAD_INPUT)
			fail_msg("not refused: %s", wrong[i].line);
		if (!strstr(err.text, wrong[i].names))
			fail_msg("\"%s\" does not name %s: %s", err.text, wrong[i].names, wrong[i].line);
		assert_null(r.gap_us);
	}
}

/* ---- files ---- */

static void put_file(const char *dir, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
}

/* As many lines as need several pieces of reading. */
static struct text many_lines(size_t count)
{
	struct text all = {0};

	for (size_t i = 0; i < count; i++) {
		struct load_record r = full_record();

		r.index = i;
		load_record_write(&all, &r);
		load_record_release(&r);
	}
	assert_false(all.failed);
	return all;
}

enum { LINES = 3000 };

static void check_all(const char *dir, size_t count, size_t cut_expected)
{
	struct load_records all;
	struct error err = {0};
	size_t cut;

	if (load_records_open(&all, dir, &cut, &err))
		fail_msg("%s", err.text);
	assert_int_equal(all.count, count);
	assert_int_equal(cut, cut_expected);
	for (size_t i = 0; i < count; i++) {
		struct load_record expected = full_record();

		expected.index = i;
		assert_same(&all.record[i], &expected);
		load_record_release(&expected);
	}
	load_records_release(&all);
	assert_null(all.record);
}

static void test_records__a_file_is_read(void **state)
{
	struct text all = many_lines(LINES);

	put_file(*state, "requests.jsonl", all.data, all.size);
	check_all(*state, LINES, 0);
	put_file(*state, "requests.jsonl", "", 0);
	check_all(*state, 0, 0);
	text_release(&all);
}

static void test_records__a_torn_last_line_is_dropped(void **state)
{
	struct text all = many_lines(LINES);

	put_file(*state, "requests.jsonl", all.data, all.size - 1); /* even if only its end is missing */
	check_all(*state, LINES - 1, 1);
	put_file(*state, "requests.jsonl", all.data, all.size - 40);
	check_all(*state, LINES - 1, 1);
	text_release(&all);
}

static void test_records__a_compressed_file_is_read(void **state)
{
	struct text all = many_lines(LINES);
	const size_t room = ZSTD_compressBound(all.size);
	char *packed = malloc(room);
	struct load_records records;
	struct error err = {0};
	size_t size, cut;

	assert_non_null(packed);
	size = ZSTD_compress(packed, room, all.data, all.size, 1);
	assert_false(ZSTD_isError(size));
	put_file(*state, "requests.jsonl.zst", packed, size);
	check_all(*state, LINES, 0);
	put_file(*state, "requests.jsonl.zst", packed, size - 5);
	assert_int_equal(load_records_open(&records, *state, &cut, &err), STATUS_OK);
	assert_true(records.count <= LINES && cut == 1);
	load_records_release(&records);
	free(packed);
	text_release(&all);
}

static void test_records__an_error_names_file_and_line(void **state)
{
	struct text all = many_lines(3);
	struct load_records records;
	struct error err = {0};
	size_t cut;

	text_add(&all, "{\"type\":\"request\"}\n");
	put_file(*state, "requests.jsonl", all.data, all.size);
	assert_int_equal(load_records_open(&records, *state, &cut, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "requests.jsonl:4: member index is missing"));
	assert_true(!records.record && !records.count);
	text_release(&all);
}

static void test_records__a_missing_file_is_named(void **state)
{
	struct load_records records;
	struct error err = {0};
	size_t cut;

	assert_int_equal(load_records_open(&records, *state, &cut, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "requests.jsonl"));
}

static void test_records__a_folder_in_its_place_is_an_error(void **state)
{
	struct load_records records;
	struct error err = {0};
	char path[PATH_MAX];
	size_t cut;

	snprintf(path, sizeof(path), "%s/requests.jsonl", (char *)*state);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(load_records_open(&records, *state, &cut, &err), STATUS_OK);
	assert_non_null(strstr(err.text, "requests.jsonl"));
}

static void test_errors__have_words(void **state)
{
	(void)state;
	for (int e = 1; e < LOAD_ERROR_COUNT; e++) {
		assert_true(load_error_word((enum load_error)e)[0]);
		for (int other = 0; other < e; other++)
			assert_string_not_equal(load_error_word((enum load_error)e),
						load_error_word((enum load_error)other));
	}
	assert_string_equal(load_error_word(LOAD_ERROR_COUNT), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record__comes_back_from_its_line),
		cmocka_unit_test(test_record__its_line_is_plain_json),
		cmocka_unit_test(test_record__what_is_wrong_is_named),
		scratch_test(test_records__a_file_is_read),
		scratch_test(test_records__a_torn_last_line_is_dropped),
		scratch_test(test_records__a_compressed_file_is_read),
		scratch_test(test_records__an_error_names_file_and_line),
		scratch_test(test_records__a_missing_file_is_named),
		scratch_test(test_records__a_folder_in_its_place_is_an_error),
		cmocka_unit_test(test_errors__have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
