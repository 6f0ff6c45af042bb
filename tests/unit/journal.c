/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to a journal, and what of it reads back however it was cut. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "core/file/file.h"
#include "journal_bed.h"

/* A small journal of `count` lines: open, then begins. */
static void write_journal(const char *dir, unsigned count)
{
	struct journal *j = NULL;
	struct error err = {0};

	fake_clock_init(&fake, 1000);
	assert_int_equal(journal_create(&j, dir, false, &fake.clock, &err), STATUS_OK);
	for (unsigned i = 0; i < count; i++) {
		json_t *body = json_pack("{s:i, s:s, s:f}", "case", (int)i, "text", "caf\xc3\xa9 \"x\"\n",
					 "v", 0.1 * i);

		fake.now_ns += 10;
		assert_int_equal(journal_append(j, i ? JOURNAL_BEGIN : JOURNAL_OPEN, body, &err), STATUS_OK);
		json_decref(body);
	}
	journal_close(&j);
	assert_null(j);
}

static void test_journal__what_is_written_reads_back(void **state)
{
	struct seen seen = {0};
	struct error err = {0};
	uint64_t cut = 99;

	write_journal(*state, 5);
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 5);
	assert_int_equal(seen.t_last, 1050);
	assert_int_equal(cut, 0);
}

static void test_journal__a_visitor_stops_the_reading(void **state)
{
	struct seen seen = {.stop_after = 2};
	struct error err = {0};
	uint64_t cut;

	write_journal(*state, 5);
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 2);
}

static void test_journal__cut_at_every_byte_reads_up_to_the_cut(void **state)
{
	char path[PATH_MAX], *data;
	struct error err = {0};
	size_t size;

	write_journal(*state, 4);
	path_in(path, *state);
	assert_int_equal(file_read(&data, &size, path, 1 << 20, &err), STATUS_OK);
	for (size_t at = 0; at <= size; at++) {
		unsigned lines = 0;
		size_t good = 0;
		struct seen seen = {0};
		uint64_t cut = 0;

		for (size_t i = 0; i < at; i++)
			if (data[i] == '\n') {
				lines++;
				good = i + 1;
			}
		assert_int_equal(file_write(path, data, at, &err), STATUS_OK);
		assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
		assert_int_equal(seen.count, lines);
		assert_int_equal(cut, at - good);
	}
	free(data);
}

static void test_journal__going_on_cuts_the_torn_line_and_counts_on(void **state)
{
	char path[PATH_MAX];
	struct journal *j = NULL;
	struct error err = {0};
	struct seen seen = {0};
	uint64_t cut;
	json_t *body = json_pack("{s:i}", "case", 2);
	struct stat info;

	write_journal(*state, 3);
	path_in(path, *state);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(truncate(path, info.st_size - 3), 0);
	assert_int_equal(journal_create(&j, *state, true, &fake.clock, &err), STATUS_OK);
	assert_int_equal(journal_append(j, JOURNAL_BEGIN, body, &err), STATUS_OK);
	journal_close(&j);
	json_decref(body);
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 3);
	assert_int_equal(cut, 0);
}

static void test_journal__what_going_on_cuts_is_kept_beside(void **state)
{
	char path[PATH_MAX], beside[PATH_MAX + 8], *before, *after, *cut;
	struct error err = {0};
	size_t size, good, kept;
	struct journal *j = NULL;

	write_journal(*state, 6);
	path_in(path, *state);
	snprintf(beside, sizeof(beside), "%s" JOURNAL_CUT, path);
	assert_int_equal(file_read(&before, &size, path, 1 << 20, &err), STATUS_OK);
	good = (size_t)(strstr(before, "{\"n\":2") - before);
	before[good] = 'x';
	assert_int_equal(file_write(path, before, size, &err), STATUS_OK);
	for (unsigned times = 1; times <= 2; times++) { /* what is cut a second time joins the first */
		assert_int_equal(journal_create(&j, *state, true, &fake.clock, &err), STATUS_OK);
		journal_close(&j);
		assert_int_equal(file_read(&cut, &kept, beside, 1 << 20, &err), STATUS_OK);
		assert_int_equal(kept, times * (size - good));
		assert_memory_equal(cut + kept - (size - good), before + good, size - good);
		free(cut);
		assert_int_equal(file_read(&after, &kept, path, 1 << 20, &err), STATUS_OK);
		assert_int_equal(kept, good);
		free(after);
		assert_int_equal(file_write(path, before, size, &err), STATUS_OK);
	}
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(mkfifo(beside, 0600), 0);
	assert_int_equal(journal_create(&j, *state, true, &fake.clock, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(file_read(&after, &kept, path, 1 << 20, &err), STATUS_OK);
	assert_int_equal(kept, size); /* nothing is cut that cannot be kept */
	free(after);
	free(before);
}

static void test_journal__an_existing_one_is_refused_unless_going_on(void **state)
{
	struct journal *j = NULL;
	struct error err = {0};

	write_journal(*state, 1);
	assert_int_equal(journal_create(&j, *state, false, &fake.clock, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "--resume"));
	assert_null(j);
}

static void test_journal__two_writers_are_refused(void **state)
{
	struct journal *first = NULL, *second = NULL;
	struct error err = {0};

	fake_clock_init(&fake, 1);
	assert_int_equal(journal_create(&first, *state, false, &fake.clock, &err), STATUS_OK);
	assert_int_equal(journal_create(&second, *state, true, &fake.clock, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_BUSY);
	journal_close(&first);
}

static void test_journal__garbage_in_the_middle_ends_the_reading_there(void **state)
{
	static const char *const garbage[] = {
		"not json\n",
		"{}\n",
		"[1]\n",
		"\n",
		"{\"n\":1,\"t\":2,\"type\":\"nonsense\"}\n",
		"{\"n\":0,\"t\":2,\"type\":\"begin\"}\n" /* a repeated number */,
		"{\"n\":7,\"t\":2,\"type\":\"begin\"}\n",
		"{\"n\":1,\"t\":-2,\"type\":\"begin\"}\n",
		"{\"n\":1,\"t\":2.5,\"type\":\"begin\"}\n",
		"{\"n\":1,\"t\":1e999,\"type\":\"begin\"}\n",
		"{\"n\":1,\"n\":1,\"t\":1,\"type\":\"begin\"}\n",
	};
	char path[PATH_MAX], text[512];
	struct error err = {0};

	path_in(path, *state);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		struct seen seen = {0};
		uint64_t cut = 0;
		int size = snprintf(text, sizeof(text),
				    "{\"n\":0,\"t\":1,\"type\":\"open\",\"case\":0}\n%s"
				    "{\"n\":1,\"t\":2,\"type\":\"begin\",\"case\":1}\n",
				    garbage[i]);

		assert_int_equal(file_write(path, text, (size_t)size, &err), STATUS_OK);
		assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
		assert_int_equal(seen.count, 1);
		assert_int_equal(cut, (size_t)size - (strchr(text, '\n') + 1 - text));
	}
}

static void test_journal__a_line_without_end_is_bounded(void **state)
{
	char path[PATH_MAX];
	size_t size = JOURNAL_LINE_MAX + (4 << 20);
	char *data = malloc(size);
	struct seen seen = {0};
	struct error err = {0};
	uint64_t cut = 0;

	assert_non_null(data);
	memset(data, '[', size);
	path_in(path, *state);
	assert_int_equal(file_write(path, data, size, &err), STATUS_OK);
	assert_int_equal(journal_read(*state, see, &seen, &cut, &err), STATUS_OK);
	assert_int_equal(seen.count, 0);
	assert_int_equal(cut, size);
	free(data);
}

static void test_journal__an_absent_directory_is_an_error(void **state)
{
	char dir[PATH_MAX];
	struct error err = {0};
	uint64_t cut;

	assert_true(snprintf(dir, sizeof(dir), "%s/none", (char *)*state) < PATH_MAX);
	assert_int_equal(journal_read(dir, see, NULL, &cut, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "/none"));
}

/* A folder of runs names one of them, and a file says that it is none. */
static void test_journal__what_is_no_run_directory_says_what_it_is(void **state)
{
	char run[PATH_MAX], path[PATH_MAX];
	struct error err = {0};
	uint64_t cut;

	assert_int_equal(journal_read(*state, see, NULL, &cut, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "is not a run directory: it has no journal.jsonl"));
	assert_null(strstr(err.text, "it contains"));
	error_clear(&err);
	assert_true(snprintf(run, sizeof(run), "%s/monday", (char *)*state) < PATH_MAX);
	assert_int_equal(mkdir(run, 0700), 0);
	path_in(path, run);
	assert_int_equal(file_write(path, "", 0, &err), STATUS_OK);
	assert_int_equal(journal_read(*state, see, NULL, &cut, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "but it contains a run: give "));
	assert_non_null(strstr(err.text, "/monday"));
	error_clear(&err);
	assert_int_equal(journal_read(path, see, NULL, &cut, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "is a file; give the directory of a run"));
}

/* In a child, since a limit cannot be raised again: writes until the file may not grow, then once more. */
static void fill_the_disk(const char *dir)
{
	struct rlimit limit = {2000, 2000};
	struct journal *j = NULL;
	struct error err = {0};
	json_t *body = json_pack("{s:s}", "text",
				 "a hundred bytes or so of text, so that the limit falls into a line");
	enum status st = STATUS_OK;

	signal(SIGXFSZ, SIG_IGN);
	fake_clock_init(&fake, 1);
	if (setrlimit(RLIMIT_FSIZE, &limit) || journal_create(&j, dir, false, &fake.clock, &err))
		_exit(1);
	for (int i = 0; !st && i < 1000; i++)
		st = journal_append(j, JOURNAL_BEGIN, body, &err);
	if (st != STATUS_NO_RESOURCE || err.cause != CAUSE_DISK_FULL)
		_exit(2);
	journal_close(&j);
	_exit(0);
}

static int count_only(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	(void)type, (void)t_ns, (void)body;
	++*(unsigned *)arg;
	return 0;
}

static void test_journal__a_full_disk_leaves_what_was_written(void **state)
{
	struct error err = {0};
	unsigned lines = 0;
	uint64_t cut = 0;
	int how;
	pid_t child = fork();

	if (!child)
		fill_the_disk(*state);
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
	assert_int_equal(journal_read(*state, count_only, &lines, &cut, &err), STATUS_OK);
	assert_true(lines > 10);
	assert_int_equal(cut, 0);
}

static void test_journal__a_read_only_directory_says_permission(void **state)
{
	char dir[PATH_MAX];
	struct journal *j = NULL;
	struct error err = {0};

	if (!geteuid()) { /* root writes anywhere; /proc refuses even it */
		assert_int_not_equal(journal_create(&j, "/proc/assay", false, &fake.clock, &err), STATUS_OK);
		return;
	}
	assert_int_equal(chmod(*state, 0500), 0);
	assert_true(snprintf(dir, sizeof(dir), "%s/run", (char *)*state) < PATH_MAX);
	assert_int_equal(journal_create(&j, dir, false, &fake.clock, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_PERMISSION);
}

static void test_journal__a_body_may_not_hide_the_lines_own_words(void **state)
{
	struct journal *j = NULL;
	struct error err = {0};
	json_t *body = json_pack("{s:i}", "t", 5);
	uint64_t cut = 9;

	fake_clock_init(&fake, 1);
	assert_int_equal(journal_create(&j, *state, false, &fake.clock, &err), STATUS_OK);
	assert_int_equal(journal_append(j, JOURNAL_TELEMETRY, body, &err), STATUS_BUG);
	json_decref(body);
	journal_close(&j);
	assert_int_equal(journal_read(*state, NULL, NULL, &cut, &err), STATUS_OK);
	assert_int_equal(cut, 0);
}

static void test_journal__type_names_go_there_and_back(void **state)
{
	enum journal_type type;

	(void)state;
	for (unsigned i = 0; i < JOURNAL_TYPE_COUNT; i++) {
		assert_true(journal_type_from_name(journal_type_name((enum journal_type)i), &type));
		assert_int_equal(type, i);
	}
	assert_false(journal_type_from_name("opens", &type));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_journal__what_is_written_reads_back),
		scratch_test(test_journal__a_visitor_stops_the_reading),
		scratch_test(test_journal__cut_at_every_byte_reads_up_to_the_cut),
		scratch_test(test_journal__going_on_cuts_the_torn_line_and_counts_on),
		scratch_test(test_journal__what_going_on_cuts_is_kept_beside),
		scratch_test(test_journal__an_existing_one_is_refused_unless_going_on),
		scratch_test(test_journal__two_writers_are_refused),
		scratch_test(test_journal__garbage_in_the_middle_ends_the_reading_there),
		scratch_test(test_journal__a_line_without_end_is_bounded),
		scratch_test(test_journal__an_absent_directory_is_an_error),
		scratch_test(test_journal__what_is_no_run_directory_says_what_it_is),
		scratch_test(test_journal__a_full_disk_leaves_what_was_written),
		scratch_test(test_journal__a_read_only_directory_says_permission),
		scratch_test(test_journal__a_body_may_not_hide_the_lines_own_words),
		cmocka_unit_test(test_journal__type_names_go_there_and_back),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
