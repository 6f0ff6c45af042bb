/* SPDX-License-Identifier: Apache-2.0 */
/* A journal that others remove, replace, move or write into while it is open. */
#include "core/file/file.h"
#include "journal_bed.h"

/* A folder within the scratch, with a journal of one line that is still open. */
static struct journal *begin_in(char dir[PATH_MAX], const char *scratch)
{
	struct journal *j = NULL;
	struct error err = {0};

	assert_true(snprintf(dir, PATH_MAX, "%s/runs/one", scratch) < PATH_MAX);
	fake_clock_init(&fake, 1000);
	assert_int_equal(journal_create(&j, dir, false, &fake.clock, &err), STATUS_OK);
	append_number(j, 0, STATUS_OK, &err);
	return j;
}

static void remove_tree(const char *dir)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
}

static void test_journal__one_that_was_removed_is_written_again(void **state)
{
	char dir[PATH_MAX], parent[PATH_MAX];
	struct journal *j = begin_in(dir, *state);
	struct seen seen = {0};
	struct error err = {0};
	uint64_t cut = 99;

	assert_true(snprintf(parent, sizeof(parent), "%s/runs", (char *)*state) < PATH_MAX);
	remove_tree(parent);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, "was removed"));
	assert_non_null(strstr(err.text, "written there again"));
	journal_close(&j);
	err = (struct error){0};
	assert_int_equal(journal_read(dir, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 2);
	assert_int_equal(cut, 0);
}

/* The whole of a journal of two lines is in the file that the message names. */
static void assert_two_lines_in(const char *path, const struct error *said)
{
	unsigned lines = 0;
	struct error err = {0};
	char *data;
	size_t size;

	assert_non_null(strstr(said->text, path));
	assert_int_equal(file_read(&data, &size, path, 4096, &err), STATUS_OK);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	assert_int_equal(lines, 2);
	free(data);
}

static void test_journal__where_its_name_is_taken_it_is_written_beside(void **state)
{
	char dir[PATH_MAX], path[PATH_MAX], beside[PATH_MAX + 8], *data;
	struct journal *j = begin_in(dir, *state);
	struct error err = {0};
	size_t size;

	path_in(path, dir);
	snprintf(beside, sizeof(beside), "%s.1", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(file_write(path, "mine", 4, &err), STATUS_OK);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	assert_non_null(strstr(err.text, "was replaced"));
	assert_two_lines_in(beside, &err);
	journal_close(&j);
	err = (struct error){0};
	assert_int_equal(file_read(&data, &size, path, 99, &err), STATUS_OK); /* what stands there stays */
	assert_string_equal(data, "mine");
	free(data);
}

/* Removes the run's folder, and puts a file where its parent was. */
static void put_file_for_folder(const char *scratch)
{
	char parent[PATH_MAX];
	struct error err = {0};

	assert_true(snprintf(parent, sizeof(parent), "%s/runs", scratch) < PATH_MAX);
	remove_tree(parent);
	assert_int_equal(file_write(parent, "no folder", 9, &err), STATUS_OK);
}

static void test_journal__where_its_folder_is_taken_it_is_written_elsewhere(void **state)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct journal *j = begin_in(dir, *state);
	struct error err = {0};
	const char *place, *before = getenv("TMPDIR");
	char *kept = before ? strdup(before) : NULL;

	put_file_for_folder(*state);
	assert_int_equal(setenv("TMPDIR", *state, 1), 0);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	kept ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR");
	free(kept);
	place = strstr(err.text, " is in ");
	assert_non_null(place);
	snprintf(path, sizeof(path), "%s", place + strlen(" is in "));
	assert_non_null(strstr(path, "/assay-run-"));
	assert_two_lines_in(path, &err);
	journal_close(&j);
}

static void test_journal__one_that_can_be_written_nowhere_says_why(void **state)
{
	char dir[PATH_MAX];
	struct journal *j = begin_in(dir, *state);
	struct error err = {0};
	const char *before = getenv("TMPDIR");
	char *kept = before ? strdup(before) : NULL;

	put_file_for_folder(*state);
	assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	kept ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR");
	free(kept);
	assert_non_null(strstr(err.text, "is lost: "));
	journal_close(&j);
}

static void test_journal__one_that_another_wrote_into_or_cut_says_so(void **state)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct journal *j = begin_in(dir, *state);
	struct error err = {0};
	struct stat info;
	FILE *f;

	path_in(path, dir);
	f = fopen(path, "a");
	assert_non_null(f);
	fputs("mine\n", f);
	fclose(f);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	assert_non_null(strstr(err.text, "was written into by another"));
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(truncate(path, info.st_size - 6), 0);
	err = (struct error){0};
	append_number(j, 2, STATUS_UNAVAILABLE, &err);
	assert_non_null(strstr(err.text, "was cut by another"));
	journal_close(&j);
}

static void test_journal__one_that_was_moved_is_named_where_it_is(void **state)
{
	char dir[PATH_MAX], moved[PATH_MAX];
	struct journal *j = begin_in(dir, *state);
	struct seen seen = {0};
	struct error err = {0};
	uint64_t cut;

	assert_true(snprintf(moved, sizeof(moved), "%s/elsewhere", (char *)*state) < PATH_MAX);
	assert_int_equal(rename(dir, moved), 0);
	append_number(j, 1, STATUS_UNAVAILABLE, &err);
	assert_non_null(strstr(err.text, "was moved"));
	assert_non_null(strstr(err.text, "/elsewhere/" JOURNAL_FILE));
	journal_close(&j);
	err = (struct error){0};
	assert_int_equal(journal_read(moved, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_journal__one_that_was_removed_is_written_again),
		scratch_test(test_journal__where_its_name_is_taken_it_is_written_beside),
		scratch_test(test_journal__where_its_folder_is_taken_it_is_written_elsewhere),
		scratch_test(test_journal__one_that_can_be_written_nowhere_says_why),
		scratch_test(test_journal__one_that_another_wrote_into_or_cut_says_so),
		scratch_test(test_journal__one_that_was_moved_is_named_where_it_is),
	};

	return cmocka_run_group_tests_name("journal_lost", tests, NULL, NULL);
}
