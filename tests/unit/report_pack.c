/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory as one archive: what goes in comes back, of a team with its other ranks, and what is none
 * is refused. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>
#include "core/process/module.h"
#include "report/files/pack.h"
#include "report/files/pack_check.h"
#include "report_sample.h"
#include "report_shown.h"
#include "team_run.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/assay-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	scratch_empty(folder);
	return rmdir(folder);
}

static const char *in_folder(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void test_pack__an_archive_reads_back_with_every_checksum(void **state)
{
	struct error err = {0};
	char out[160], again[160], *first, *second;
	size_t files = 0, size, size_again;

	(void)state;
	if (!sample_has_module(PACK_MODULE))
		skip();
	text_copy(out, sizeof(out), in_folder("a.tar.zst"));
	text_copy(again, sizeof(again), in_folder("b.tar.zst"));
	assert_int_equal(pack_write(out, SOURCE_DIR "/tests/data/report/cpu/", NULL, &err), STATUS_OK);
	assert_int_equal(pack_verify(out, &files, &err), STATUS_OK);
	assert_true(files >= 2);
	assert_int_equal(pack_write(again, SOURCE_DIR "/tests/data/report/cpu", NULL, &err), STATUS_OK);
	assert_int_equal(file_read(&first, &size, out, 1 << 24, &err), STATUS_OK);
	assert_int_equal(file_read(&second, &size_again, again, 1 << 24, &err), STATUS_OK);
	assert_int_equal(size, size_again);
	assert_memory_equal(first, second, size);
	/* one byte of the compressed data: the archive no longer reads, or a checksum no longer holds */
	first[size / 2] = (char)(first[size / 2] ^ 0x10);
	assert_int_equal(file_write(out, first, size, &err), STATUS_OK);
	assert_int_not_equal(pack_verify(out, &files, &err), STATUS_OK);
	free(first);
	free(second);
}

/* An archive of these members, each with its checksum, written past pack_write. */
static void write_members(const char *path, const char *const *names, size_t count)
{
	const struct pack_module *m;
	struct pack_file files[8];
	struct error err = {0};
	struct file_new f;
	char why[256], hex[65];
	struct text sums = {0};

	assert_int_equal(module_open((const void **)&m, PACK_MODULE, PACK_SYMBOL, &err), STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		const char *slash = strchr(names[i], '/');

		files[i] = (struct pack_file){.name = names[i], .data = "x", .size = 1};
		file_sha256(hex, "x", 1);
		text_addf(&sums, "%s  %s\n", hex, slash ? slash + 1 : names[i]);
	}
	files[count] = (struct pack_file){.name = "run/" PACK_SUMS, .data = sums.data, .size = sums.size};
	assert_int_equal(file_new_begin(&f, path, &err), STATUS_OK);
	assert_int_equal(m->write(f.fd, "", files, count + 1, why, sizeof(why)), 0);
	assert_int_equal(file_new_end(&f, STATUS_OK, &err), STATUS_OK);
	text_release(&sums);
}

static void test_pack__runs_inside_a_run_have_their_own_folders(void **state)
{
	static const char *const good[] = {"run/index.html", "run/stage-2-load/journal.jsonl",
					   "run/stage-2-load/serve/journal.jsonl",
					   "run/stage-1-devices/nodes/b/rank-1/journal.jsonl"};
	static const char *const bad[] = {"run/stage-2-load/sub/file", "run/stage-2-load/serve/serve/file",
					  "run/stage-2-load/../file", "run/stage-\x1b[31m/file"};
	struct error err = {0};
	size_t files = 0;

	(void)state;
	if (!sample_has_module(PACK_MODULE))
		skip();
	write_members(in_folder("good.tar.zst"), good, 4);
	assert_int_equal(pack_verify(in_folder("good.tar.zst"), &files, &err), STATUS_OK);
	assert_int_equal(files, 4);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *members[] = {"run/index.html", bad[i]};

		write_members(in_folder("bad.tar.zst"), members, 2);
		error_clear(&err);
		assert_int_equal(pack_verify(in_folder("bad.tar.zst"), &files, &err), STATUS_MISMATCH);
	}
}

static void test_pack__hostile_members_are_no_archive_of_a_run(void **state)
{
	static const char *const good[] = {"run/journal.jsonl", "run/REPORT.md"};
	static const char *const hostile[] = {
		"/etc/cron.d/x",
		"run/../../../tmp/pwn",
		"run/.bashrc",
		"run/sub/file",
		"../journal.jsonl",
		"other/journal.jsonl",
		"run/a\x1b[31m",
		"run/a\nb",
		"run/a b",
		"run/journal.jsonl",
		"journal.jsonl",
		"run/nodes/b",
		"run/nodes/b/journal.jsonl",
		"run/nodes/../rank-1/journal.jsonl",
		"run/nodes/b/rank-x/journal.jsonl",
		"run/nodes/b/rank-1/sub/journal.jsonl",
	};
	static const char *const no_journal[] = {"run/REPORT.md"};
	struct error err = {0};
	size_t files = 0;

	(void)state;
	if (!sample_has_module(PACK_MODULE))
		skip();
	write_members(in_folder("good.tar.zst"), good, 2);
	assert_int_equal(pack_verify(in_folder("good.tar.zst"), &files, &err), STATUS_OK);
	assert_int_equal(files, 2);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		const char *members[] = {"run/journal.jsonl", hostile[i]};

		write_members(in_folder("bad.tar.zst"), members, 2);
		error_clear(&err);
		assert_int_equal(pack_verify(in_folder("bad.tar.zst"), &files, &err), STATUS_MISMATCH);
		assert_non_null(strstr(err.text, "not an archive of a run"));
	}
	write_members(in_folder("bad.tar.zst"), no_journal, 1);
	error_clear(&err);
	assert_int_equal(pack_verify(in_folder("bad.tar.zst"), &files, &err), STATUS_MISMATCH);
}

/* So many empty members of their own names, and what says so. */
static enum status check_many(unsigned count, unsigned *taken, struct error *err)
{
	struct pack_check *c = pack_check_begin(1000);
	struct text sums = {0};
	char name[64], hex[65];
	enum status st = STATUS_OK;
	size_t files;

	assert_non_null(c);
	file_sha256(hex, "", 0);
	*taken = 0;
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "run/%s", i ? "file" : "journal.jsonl");
		if (i)
			snprintf(name, sizeof(name), "run/file-%u", i);
		if (pack_check_member(c, name, "", 0))
			break;
		text_addf(&sums, "%s  %s\n", hex, name + 4);
		++*taken;
	}
	if (*taken == count)
		assert_int_equal(pack_check_member(c, "run/" PACK_SUMS, text_str(&sums), sums.size), 0);
	st = pack_check_refusal(c, "it", err) ? STATUS_MISMATCH : pack_check_end(c, "it", &files, err);
	if (!st)
		assert_int_equal(files, count);
	pack_check_free(c);
	text_release(&sums);
	return st;
}

/* 60,000 empty members took 22 s: each was sought in all names before it. */
static void test_pack__members_are_bounded_and_each_is_looked_up_once(void **state)
{
	struct error err = {0};
	unsigned taken;

	(void)state;
	assert_int_equal(check_many(PACK_FILES_MAX, &taken, &err), STATUS_OK);
	assert_int_equal(check_many(60000, &taken, &err), STATUS_MISMATCH);
	assert_int_equal(taken, PACK_FILES_MAX);
	assert_string_equal(
		err.text,
		"it is not an archive of a run: its member \"run/file-16384\" exceeds the limit of 16384 files");
}

static void test_pack__what_unpacks_to_far_more_than_a_run_is_refused(void **state)
{
	enum { ARCHIVE = 100000, MEMBER = 1 << 20 };
	struct pack_check *c = pack_check_begin(ARCHIVE);
	char *zeros = calloc(1, MEMBER), name[64];
	struct error err = {0};
	unsigned i = 0;

	(void)state;
	assert_true(c && zeros);
	do
		snprintf(name, sizeof(name), "run/file-%u", i);
	while (!pack_check_member(c, name, zeros, MEMBER) && i++ < 200);
	assert_int_equal(i, ARCHIVE * 1000ull / MEMBER);
	assert_true(pack_check_refusal(c, "it", &err));
	assert_non_null(strstr(err.text, "more than a thousand times larger than the archive"));
	pack_check_free(c);
	free(zeros);
}

static void test_pack__sums_are_of_all_members_and_of_no_other(void **state)
{
	static const char journal[] = "{}";
	char hex[65], sums[3][200];
	struct error err = {0};
	size_t files;

	(void)state;
	file_sha256(hex, journal, 2);
	snprintf(sums[0], sizeof(sums[0]), "%s  journal.jsonl\n%s  none\n", hex, hex);
	snprintf(sums[1], sizeof(sums[1]), "%.63sg  journal.jsonl\n", hex);
	snprintf(sums[2], sizeof(sums[2]), "%s  journal.jsonl", hex); /* cut */
	for (size_t i = 0; i < 3; i++) {
		struct pack_check *c = pack_check_begin(1000);

		assert_int_equal(pack_check_member(c, "run/journal.jsonl", journal, 2), 0);
		assert_int_equal(pack_check_member(c, "run/" PACK_SUMS, sums[i], strlen(sums[i])), 0);
		error_clear(&err);
		assert_int_equal(pack_check_end(c, "it", &files, &err), STATUS_MISMATCH);
		assert_non_null(
			strstr(err.text, i == 0	  ? "it: the member none is missing"
					 : i == 1 ? "it: the member journal.jsonl is missing or does not"
						  : "it: the member " PACK_SUMS " is missing"));
		pack_check_free(c);
	}
}

static void test_pack__what_is_no_run_is_not_packed(void **state)
{
	struct error err = {0};
	char empty[160];
	size_t files;

	(void)state;
	if (!sample_has_module(PACK_MODULE))
		skip();
	text_copy(empty, sizeof(empty), in_folder("empty"));
	assert_int_equal(mkdir(empty, 0700), 0);
	assert_int_equal(pack_write(in_folder("x.tar.zst"), empty, NULL, &err), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(pack_write("/dev/null", SOURCE_DIR "/tests/data/report/cpu", NULL, &err),
			 STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_not_equal(pack_write(in_folder("x.tar.zst"), "/no/such/run", NULL, &err), STATUS_OK);
	error_clear(&err);
	assert_int_not_equal(pack_verify("/no/such/archive", &files, &err), STATUS_OK);
}

static int unpack(void *arg, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX], *slash;

	(void)arg;
	snprintf(path, sizeof(path), "%s/out/%s", folder, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(file_make_dir(path, NULL), STATUS_OK);
	*slash = '/';
	assert_int_equal(file_write(path, data, size, NULL), STATUS_OK);
	return 0;
}

/* A team's directory, packed and unpacked elsewhere, gives the same report. */
static void test_pack__a_team_keeps_its_other_ranks(void **state)
{
	const struct pack_module *m;
	struct error err = {0};
	char run[160], why[256];
	struct shown before, after;
	size_t files = 0;

	(void)state;
	if (!sample_has_module(PACK_MODULE))
		skip();
	text_copy(run, sizeof(run), in_folder("team"));
	assert_int_equal(mkdir(run, 0700), 0);
	team_write_all(run);
	assert_int_equal(file_write(in_folder("team/nodes/node-b/rank-1/notes.txt"), "x", 1, NULL),
			 STATUS_OK);
	assert_int_equal(mkdir(in_folder("team/nodes/node-b/mine"), 0700), 0);
	assert_int_equal(file_write(in_folder("team/nodes/node-b/mine/" JOURNAL_FILE), "x", 1, NULL),
			 STATUS_OK);
	if (pack_write(in_folder("team.tar.zst"), run, NULL, &err) ||
	    pack_verify(in_folder("team.tar.zst"), &files, &err))
		fail_msg("%s", err.text);
	assert_int_equal(files, 3); /* a journal a rank, and nothing that is none of a run's */
	assert_int_equal(module_open((const void **)&m, PACK_MODULE, PACK_SYMBOL, &err), STATUS_OK);
	assert_int_equal(m->read(in_folder("team.tar.zst"), 1 << 24, unpack, NULL, why, sizeof(why)), 0);
	shown_read(&before, run);
	shown_read(&after, in_folder("out/team"));
	assert_int_equal(after.j.in.record->node_count, 2);
	assert_string_equal(text_str(&before.text[REPORT_MARKDOWN]), text_str(&after.text[REPORT_MARKDOWN]));
	assert_string_equal(text_str(&before.text[REPORT_CSV]), text_str(&after.text[REPORT_CSV]));
	shown_release(&before);
	shown_release(&after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pack__a_team_keeps_its_other_ranks),
		cmocka_unit_test(test_pack__an_archive_reads_back_with_every_checksum),
		cmocka_unit_test(test_pack__runs_inside_a_run_have_their_own_folders),
		cmocka_unit_test(test_pack__hostile_members_are_no_archive_of_a_run),
		cmocka_unit_test(test_pack__members_are_bounded_and_each_is_looked_up_once),
		cmocka_unit_test(test_pack__what_unpacks_to_far_more_than_a_run_is_refused),
		cmocka_unit_test(test_pack__sums_are_of_all_members_and_of_no_other),
		cmocka_unit_test(test_pack__what_is_no_run_is_not_packed),
	};

	return cmocka_run_group_tests_name("report_pack", tests, make_folder, drop_folder);
}
