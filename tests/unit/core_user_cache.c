/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a user's processes keep for later ones: what is believed, what is not, how many there are, and several
 * writers at once. */
#include "scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "core/file/file.h"
#include "core/file/user_cache.h"

static struct user_cache cache_in(const char *folder)
{
	struct user_cache c;
	struct error err = {0};

	setenv("XDG_CACHE_HOME", folder, 1);
	assert_int_equal(user_cache_open(&c, "choices", &err), STATUS_OK);
	return c;
}

static void write_one(const struct user_cache *c, const char *key, const char *body)
{
	struct error err = {0};

	if (user_cache_write(c, key, body, &err))
		fail_msg("%s", err.text);
}

/* The file of a key. */
static void path_of(char path[PATH_MAX], const struct user_cache *c, const char *key)
{
	char id[USER_CACHE_ID];

	user_cache_id(id, key);
	snprintf(path, PATH_MAX, "%.3900s/%s.kept", c->dir, id);
}

/* NULL: nothing is kept. */
static void assert_kept(const struct user_cache *c, const char *key, const char *body)
{
	struct error err = {0};
	char *got;

	if (user_cache_read(c, key, &got, &err))
		fail_msg("%s", err.text);
	if (body)
		assert_string_equal(got, body);
	else
		assert_null(got);
	free(got);
}

static void assert_refused(const struct user_cache *c, const char *key, const char *why)
{
	struct error err = {0};
	char *got;

	assert_int_equal(user_cache_read(c, key, &got, &err), STATUS_BAD_INPUT);
	assert_null(got);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static mode_t mode_of(const char *path)
{
	struct stat about;

	assert_int_equal(lstat(path, &about), 0);
	return about.st_mode & 07777;
}

static void what_is_kept_is_read_under_its_key_alone(void **state)
{
	const struct user_cache c = cache_in(*state);
	char path[PATH_MAX];

	assert_kept(&c, "card A", NULL);
	write_one(&c, "card A", "{\"x\":1}");
	assert_kept(&c, "card A", "{\"x\":1}");
	assert_kept(&c, "card B", NULL);
	write_one(&c, "card A", "");
	assert_kept(&c, "card A", "");
	path_of(path, &c, "card A");
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(mode_of(c.dir), 0700);
	snprintf(path, sizeof(path), "%.3900s/assay", (const char *)*state);
	assert_int_equal(mode_of(path), 0700);
}

/* Changes one byte, or cuts there. */
static void damage(const char *path, size_t at, bool cut)
{
	struct error err = {0};
	char *data;
	size_t size;

	assert_int_equal(file_read(&data, &size, path, USER_CACHE_MOST, &err), STATUS_OK);
	assert_true(at < size);
	data[at] ^= 1;
	assert_int_equal(file_write_private(path, data, cut ? at : size, &err), STATUS_OK);
	free(data);
}

static void each_damaged_byte_is_found(void **state)
{
	const struct user_cache c = cache_in(*state);
	char path[PATH_MAX];
	struct stat about;

	path_of(path, &c, "key");
	write_one(&c, "key", "a body");
	assert_int_equal(stat(path, &about), 0);
	for (size_t at = 0; at < (size_t)about.st_size; at++)
		for (int cut = 0; cut < 2; cut++) {
			write_one(&c, "key", "a body");
			damage(path, at, cut);
			assert_refused(&c, "key", path);
		}
	write_one(&c, "key", "a body");
	assert_kept(&c, "key", "a body");
}

static void another_version_and_another_key_are_told(void **state)
{
	const struct user_cache c = cache_in(*state);
	char path[PATH_MAX], other[PATH_MAX];
	struct error err = {0};

	path_of(path, &c, "key");
	write_one(&c, "key", "a body");
	damage(path, strlen("assay cache "), false);
	assert_refused(&c, "key", "another version of the cache format");
	write_one(&c, "another", "its body");
	path_of(other, &c, "another");
	assert_int_equal(rename(other, path), 0);
	assert_refused(&c, "key", "it belongs to another key");
	assert_int_equal(file_write_private(path, "", 0, &err), STATUS_OK);
	assert_refused(&c, "key", "another version of the cache format");
}

static void what_others_can_write_is_not_believed(void **state)
{
	const struct user_cache c = cache_in(*state);
	char path[PATH_MAX], elsewhere[PATH_MAX];
	struct error err = {0};

	path_of(path, &c, "key");
	write_one(&c, "key", "a body");
	assert_int_equal(chmod(path, 0620), 0);
	assert_refused(&c, "key", "others may write to it");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chmod(c.dir, 0702), 0);
	assert_refused(&c, "key", "others may write to it");
	assert_int_equal(user_cache_write(&c, "key", "x", &err), STATUS_BAD_INPUT);
	assert_int_equal(chmod(c.dir, 0700), 0);
	assert_kept(&c, "key", "a body");
	snprintf(elsewhere, sizeof(elsewhere), "%.3900s/elsewhere", (const char *)*state);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_refused(&c, "key", "it is a symbolic link");
	assert_int_equal(user_cache_write(&c, "key", "x", &err), STATUS_BAD_INPUT);
	assert_int_equal(mode_of(elsewhere), 0600);
	if (geteuid()) /* nobody else can give a file away */
		return;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	assert_refused(&c, "key", "belongs to user 12345");
	assert_int_equal(chown(path, 0, (gid_t)-1), 0);
	assert_int_equal(chown(c.dir, 12345, (gid_t)-1), 0);
	assert_refused(&c, "key", "belongs to user 12345");
	assert_int_equal(chown(c.dir, 0, (gid_t)-1), 0);
}

static void a_folder_that_is_a_link_is_refused(void **state)
{
	const struct user_cache c = cache_in(*state);
	char elsewhere[PATH_MAX];
	struct error err = {0};

	write_one(&c, "key", "a body");
	snprintf(elsewhere, sizeof(elsewhere), "%.3900s/elsewhere", (const char *)*state);
	assert_int_equal(rename(c.dir, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, c.dir), 0);
	assert_refused(&c, "key", "it is not a folder");
	assert_int_equal(user_cache_write(&c, "key", "x", &err), STATUS_BAD_INPUT);
}

static void without_a_place_nothing_is_kept(void **state)
{
	struct user_cache c;
	struct error err = {0};
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL, path[PATH_MAX];

	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", *state, 1);
	assert_int_equal(user_cache_open(&c, "choices", &err), STATUS_OK);
	snprintf(path, sizeof(path), "%.3900s/.cache/assay/choices", (const char *)*state);
	assert_string_equal(c.dir, path);
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_int_equal(user_cache_open(&c, "choices", &err), STATUS_UNAVAILABLE);
	c = cache_in("/dev/null/none");
	assert_kept(&c, "key", NULL);
	assert_int_not_equal(user_cache_write(&c, "key", "x", &err), STATUS_OK);
	if (home)
		setenv("HOME", home, 1);
	free(home);
}

static size_t files_in(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* Long ago, the later the higher. */
static void age(const struct user_cache *c, const char *key, time_t when)
{
	const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
	char path[PATH_MAX];

	path_of(path, c, key);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Which go is a matter of when they were used, by reading as well. */
static void what_was_used_longest_ago_makes_room(void **state)
{
	const struct user_cache c = cache_in(*state);
	char key[16];

	for (unsigned i = 0; i < USER_CACHE_FILES; i++) {
		snprintf(key, sizeof(key), "key %u", i);
		write_one(&c, key, "a body");
		age(&c, key, 1000 + (time_t)i);
	}
	assert_kept(&c, "key 0", "a body");
	write_one(&c, "one more", "x");
	write_one(&c, "and one", "x");
	assert_int_equal(files_in(c.dir), USER_CACHE_FILES);
	assert_kept(&c, "key 0", "a body");
	assert_kept(&c, "key 1", NULL);
	assert_kept(&c, "key 2", NULL);
	assert_kept(&c, "key 3", "a body");
	assert_kept(&c, "one more", "x");
}

static void too_much_is_not_kept(void **state)
{
	const struct user_cache c = cache_in(*state);
	char *body = malloc(USER_CACHE_MOST + 1);
	struct error err = {0};

	assert_non_null(body);
	memset(body, 'x', USER_CACHE_MOST);
	body[USER_CACHE_MOST] = '\0';
	assert_int_equal(user_cache_write(&c, "key", body, &err), STATUS_BAD_INPUT);
	assert_kept(&c, "key", NULL);
	free(body);
}

enum { WRITERS = 4, TIMES = 60, BODY = 4000 };

static void write_many(const struct user_cache *c, int writer)
{
	char body[BODY + 1];
	int bad = 0;

	memset(body, 'a' + writer, BODY);
	body[BODY] = '\0';
	for (int i = 0; i < TIMES; i++)
		bad |= user_cache_write(c, "key", body, NULL) != STATUS_OK;
	_exit(bad);
}

/* What is read meanwhile is one writer's, whole. */
static void writers_at_once_damage_nothing(void **state)
{
	const struct user_cache c = cache_in(*state);
	pid_t pid[WRITERS];
	int running = WRITERS, read = 0;

	write_one(&c, "key", "a");
	for (int i = 0; i < WRITERS; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i])
			write_many(&c, i);
	}
	while (running) {
		struct error err = {0};
		char *got;
		int how;

		if (user_cache_read(&c, "key", &got, &err))
			fail_msg("%s", err.text);
		assert_non_null(got);
		for (const char *s = got; *s; s++)
			assert_int_equal(*s, got[0]);
		assert_true(strlen(got) == BODY || strlen(got) == 1);
		free(got);
		read++;
		for (int i = 0; i < WRITERS; i++)
			if (pid[i] && waitpid(pid[i], &how, WNOHANG) == pid[i]) {
				assert_true(WIFEXITED(how) && !WEXITSTATUS(how));
				pid[i] = 0;
				running--;
			}
	}
	assert_true(read > 1);
	assert_int_equal(files_in(c.dir), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(what_is_kept_is_read_under_its_key_alone),
		scratch_test(each_damaged_byte_is_found),
		scratch_test(another_version_and_another_key_are_told),
		scratch_test(what_others_can_write_is_not_believed),
		scratch_test(a_folder_that_is_a_link_is_refused),
		scratch_test(without_a_place_nothing_is_kept),
		scratch_test(what_was_used_longest_ago_makes_room),
		scratch_test(too_much_is_not_kept),
		scratch_test(writers_at_once_damage_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
