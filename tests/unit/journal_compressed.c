/* SPDX-License-Identifier: Apache-2.0 */
/* A journal that was compressed reads as the journal itself does, however it is cut or damaged. */
#include <sys/stat.h>
#include <zstd.h>
#include "core/file/file.h"
#include "journal/file/compressed.h"
#include "journal_bed.h"

enum { LINES = 400 };

/* A journal of LINES lines, longer than what one read of the decompressor brings. *plain: its bytes. */
static void write_packed(const char *dir, char **plain, size_t *plain_size, char **packed,
			 size_t *packed_size)
{
	char path[PATH_MAX];
	struct journal *j = NULL;
	struct error err = {0};

	fake_clock_init(&fake, 1000);
	assert_int_equal(journal_create(&j, dir, false, &fake.clock, &err), STATUS_OK);
	for (unsigned i = 0; i < LINES; i++) {
		json_t *body = json_pack("{s:i, s:f}", "case", (int)i, "v", 0.1 * i * i);

		assert_int_equal(journal_append(j, i ? JOURNAL_BEGIN : JOURNAL_OPEN, body, &err), STATUS_OK);
		json_decref(body);
	}
	journal_close(&j);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	assert_int_equal(file_read(plain, plain_size, path, 1 << 20, &err), STATUS_OK);
	remove(path);
	*packed = malloc(ZSTD_compressBound(*plain_size));
	assert_non_null(*packed);
	*packed_size = ZSTD_compress(*packed, ZSTD_compressBound(*plain_size), *plain, *plain_size, 3);
	assert_false(ZSTD_isError(*packed_size));
	snprintf(path, sizeof(path), "%s/" JOURNAL_COMPRESSED, dir);
	assert_int_equal(file_write(path, *packed, *packed_size, &err), STATUS_OK);
}

static void put(const char *dir, const char *data, size_t size)
{
	char path[PATH_MAX];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/" JOURNAL_COMPRESSED, dir);
	assert_int_equal(file_write(path, data, size, &err), STATUS_OK);
}

static void test_packed__reads_as_the_journal_itself(void **state)
{
	char *plain, *packed, hex[65], right[65];
	struct seen seen = {0};
	struct error err = {0};
	size_t size, packed_size;
	uint64_t cut = 99;

	write_packed(*state, &plain, &size, &packed, &packed_size);
	assert_true(packed_size < size / 2);
	assert_true(journal_exists(*state));
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, LINES);
	assert_int_equal(cut, 0);
	file_sha256(right, plain, size);
	assert_int_equal(journal_sha256(hex, *state, &err), STATUS_OK);
	assert_string_equal(hex, right);
	free(plain);
	free(packed);
}

static void test_packed__cut_anywhere_reads_up_to_the_cut_and_says_so(void **state)
{
	char *plain, *packed;
	size_t size, packed_size;

	write_packed(*state, &plain, &size, &packed, &packed_size);
	for (size_t at = 0; at < packed_size; at += at < 64 ? 1 : 37) {
		struct seen seen = {0};
		struct error err = {0};
		uint64_t cut = 0;

		put(*state, packed, at);
		assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
		assert_true(seen.count < LINES);
		assert_true(at == 0 ? cut == 0 : cut > 0);
	}
	free(plain);
	free(packed);
}

static int count_lines(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	(void)type;
	(void)t_ns;
	(void)body;
	++*(size_t *)arg;
	return 0;
}

/* What a damaged byte becomes may be JSON still: nothing is asked but that the reading ends well. */
static void test_packed__damaged_bytes_do_no_harm(void **state)
{
	char *plain, *packed;
	size_t size, packed_size;

	write_packed(*state, &plain, &size, &packed, &packed_size);
	for (size_t at = 0; at < packed_size; at += 41) {
		struct error err = {0};
		size_t count = 0;
		uint64_t cut;

		packed[at] = (char)(packed[at] ^ 0x5a);
		put(*state, packed, packed_size);
		assert_int_equal(journal_read(*state, count_lines, &count, &cut, &err), STATUS_OK);
		assert_true(count <= LINES);
		packed[at] = (char)(packed[at] ^ 0x5a);
	}
	free(plain);
	free(packed);
}

/* A line that is none, in the middle: what follows counts as cut, as in a plain journal. */
static void test_packed__garbage_in_the_middle_counts_what_follows(void **state)
{
	char *plain, *packed, *line;
	struct seen seen = {0};
	struct error err = {0};
	size_t size, packed_size;
	uint64_t cut;

	write_packed(*state, &plain, &size, &packed, &packed_size);
	line = plain;
	for (unsigned i = 0; i < 100; i++)
		line = (char *)memchr(line, '\n', size - (size_t)(line - plain)) + 1;
	*line = '#';
	packed_size = ZSTD_compress(packed, ZSTD_compressBound(size), plain, size, 3);
	put(*state, packed, packed_size);
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 100);
	assert_int_equal(cut, size - (size_t)(line - plain));
	free(plain);
	free(packed);
}

static void test_packed__is_never_gone_on_with(void **state)
{
	char *plain, *packed;
	struct journal *j = NULL;
	struct error err = {0};
	size_t size, packed_size;

	write_packed(*state, &plain, &size, &packed, &packed_size);
	for (int append = 0; append < 2; append++) {
		assert_int_equal(journal_create(&j, *state, append, &fake.clock, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "journal.jsonl.zst: a compressed journal is read only"));
	}
	free(plain);
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_packed__reads_as_the_journal_itself),
		scratch_test(test_packed__cut_anywhere_reads_up_to_the_cut_and_says_so),
		scratch_test(test_packed__damaged_bytes_do_no_harm),
		scratch_test(test_packed__garbage_in_the_middle_counts_what_follows),
		scratch_test(test_packed__is_never_gone_on_with),
	};

	return cmocka_run_group_tests_name("journal_packed", tests, NULL, NULL);
}
