/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of checkpoints that several ranks write: damaged and missing shards, wrong reports, and a writer
 * that is killed at any call that changes a file. */
#include "shards_bed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* -- planted faults: this process is killed at the n-th call that changes a file -- */

static long strikes_in = -1; /* calls until the kill; negative: never */

static void strike(void)
{
	if (strikes_in >= 0 && !strikes_in--)
		kill(getpid(), SIGKILL);
}

int fsync(int fd)
{
	strike();
	return (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t size)
{
	strike();
	return syscall(SYS_write, fd, data, size);
}

int mkdir(const char *path, mode_t mode)
{
	strike();
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to)
{
	strike();
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	strike();
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int unlink(const char *path)
{
	strike();
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int dir, const char *path, int flags)
{
	strike();
	return (int)syscall(SYS_unlinkat, dir, path, flags);
}

static void change(const struct bed *b, const char *file, long cut)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", b->run, file);
	if (cut) {
		assert_int_equal(truncate(path, cut), 0);
		return;
	}
	f = fopen(path, "r+");
	assert_non_null(f);
	assert_true(fputc('!', f) == '!');
	fclose(f);
}

static void damaged_shards_are_put_aside(void **state)
{
	struct bed *b = *state;
	struct text note = {0};

	must_save(b, 1, 3);
	must_save(b, 2, 3);
	must_save(b, 3, 3);
	change(b, "checkpoint-3/optimizer-00002-of-00003.bin", 100);
	change(b, "checkpoint-2/optimizer-00003-of-00003.bin", 0);
	assert_int_equal(newest(b, &note), 1);
	assert_non_null(strstr(
		text_str(&note),
		"checkpoint-3/optimizer-00002-of-00003.bin is cut: it has 100 bytes, and rank 1 wrote"));
	assert_non_null(
		strstr(text_str(&note), "checkpoint-2/optimizer-00003-of-00003.bin: its SHA-256 differs"));
	assert_non_null(strstr(text_str(&note), "that rank 2 wrote"));
	assert_true(is_there(b, "checkpoint-3.damaged"));
	text_release(&note);
}

/* The disk of another node may have it, so nothing is renamed and no older checkpoint is taken. */
static void a_missing_shard_is_an_error(void **state)
{
	struct bed *b = *state;
	struct text note = {0};
	struct error err = {0};
	struct checkpoint_found f;
	char path[300];

	must_save(b, 1, 4);
	must_save(b, 2, 4);
	snprintf(path, sizeof(path), "%s/checkpoint-2/optimizer-00004-of-00004.bin", b->run);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_BAD_INPUT);
	assert_non_null(
		strstr(err.text, "checkpoint-2/optimizer-00004-of-00004.bin is not there; rank 3 wrote it"));
	assert_non_null(
		strstr(err.text, "on a disk that all nodes share; copy it there, or remove that checkpoint"));
	assert_int_equal(note.size, 0);
	assert_true(is_there(b, "checkpoint-2"));
	assert_null(f.manifest);
	error_clear(&err);
	assert_int_equal(checkpoint_open(&f, b->run, 2, &note, &err), STATUS_UNAVAILABLE);
	assert_true(f.elsewhere);
}

static void another_models_are_refused_by_the_manifest(void **state)
{
	struct bed *b = *state;
	struct text note = {0};
	struct error err = {0};
	struct checkpoint_found f;

	must_save(b, 1, 2);
	must(checkpoint_find(&f, b->run, &note, &err), &err);
	b->p.table[2].rows++;
	assert_int_equal(checkpoint_fits(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "parameter t2 has another size"));
	b->p.table[2].rows--;
	error_clear(&err);
	use_format(b, MOMENTS_8BIT, MASTER_F32);
	assert_int_equal(checkpoint_fits(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "F32 moments"));
	checkpoint_found_release(&f);
}

/* What rank 0 does not find as it was reported, or what has a gap, does not become a checkpoint. */
static void wrong_reports_make_no_checkpoint(void **state)
{
	struct bed *b = *state;

	must_save(b, 1, 2);
	for (int fault = 0; fault < 3; fault++) {
		static const char *const words[] = {
			"rank 1 wrote elements from", "optimizer-00002-of-00002.bin is cut",
			"optimizer-00002-of-00002.bin is not there; rank 1 wrote it"};
		char folder[PATH_MAX + 64], path[PATH_MAX + 128];
		json_t *reports = json_array();
		struct error err = {0};
		struct text note = {0};

		fill(&b->p, b->memory, false, 2);
		must(checkpoint_folder(folder, b->run, 2, "abc", &err), &err);
		must(write_part(b, folder, 2, 0, 2, reports, &err), &err);
		must(write_part(b, folder, 2, 1, 2, reports, &err), &err);
		snprintf(path, sizeof(path), "%s/optimizer-00002-of-00002.bin", folder);
		if (!fault)
			json_object_set_new(json_array_get(reports, 1), "begin", json_integer(1));
		else
			assert_int_equal(fault == 1 ? truncate(path, 1) : unlink(path), 0);
		assert_int_not_equal(join(b, folder, 2, reports, &err), STATUS_OK);
		assert_non_null(strstr(err.text, words[fault]));
		assert_true(no_temporary_folder(b));
		assert_int_equal(newest(b, &note), 1);
		json_decref(reports);
	}
}

/* In a process of its own: a save that is killed before its n-th call. True: it was killed. */
static bool killed_at(struct bed *b, long call, unsigned ranks)
{
	struct error err = {0};
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		const struct checkpoint_source alone = {
			.run = b->run, .step = 2, .params = &b->p, .state = b->state};

		fill(&b->p, b->memory, false, 2);
		strikes_in = call;
		_exit((ranks ? save(b, 2, ranks, &err) : checkpoint_write(&alone, &err)) != STATUS_OK);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

/* Ranks 0: one rank writes everything. */
static void a_writer_killed_at_any_call_leaves_a_checkpoint(void **state)
{
	static const unsigned numbers[] = {0, 3};
	struct bed *b = *state;

	for (size_t i = 0; i < 2; i++) {
		long call = 0, became = -1;
		bool killed;

		do {
			struct text note = {0};
			uint64_t step;

			file_remove_tree(b->run);
			assert_int_equal(mkdir(b->run, 0777), 0);
			must_save(b, 1, 2);
			killed = killed_at(b, call, numbers[i]);
			step = newest(b, &note);
			if (step == 2 && became < 0)
				became = call;
			assert_int_equal(step, became < 0 ? 1 : 2); /* once it is there, it stays */
			assert_int_equal(note.size, 0);		    /* none is damaged */
			assert_true(no_temporary_folder(b));
			must_save(b, 3, 3); /* and the next run writes on */
			assert_int_equal(newest(b, &note), 3);
			call++;
		} while (killed);
		assert_true(became > 10 && became < call - 1);
		print_message("# %u ranks: %ld calls, a checkpoint from call %ld on\n", numbers[i], call - 1,
			      became);
	}
}

/* A rank of an attempt that was given up still writes: the next attempt's files are others. */
static void an_old_attempt_writes_elsewhere(void **state)
{
	struct bed *b = *state;
	char old[PATH_MAX + 64];
	json_t *reports = json_array();
	struct error err = {0};
	struct text note = {0};
	struct checkpoint_found f;

	must_save(b, 1, 2);
	fill(&b->p, b->memory, false, 9);
	must(checkpoint_folder(old, b->run, 2, "aaaa", &err), &err);
	must(write_part(b, old, 2, 0, 2, reports, &err), &err);
	must(checkpoint_find(&f, b->run, &note, &err), &err); /* the next attempt begins */
	checkpoint_found_release(&f);
	assert_int_not_equal(write_part(b, old, 2, 1, 2, reports, &err), STATUS_OK);
	must_save(b, 2, 2);
	assert_int_equal(newest(b, &note), 2);
	json_decref(reports);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(damaged_shards_are_put_aside),
		CASE(a_missing_shard_is_an_error),
		CASE(another_models_are_refused_by_the_manifest),
		CASE(wrong_reports_make_no_checkpoint),
		CASE(a_writer_killed_at_any_call_leaves_a_checkpoint),
		CASE(an_old_attempt_writes_elsewhere),
	};

	return cmocka_run_group_tests_name("train_shard_faults", tests, NULL, NULL);
}
