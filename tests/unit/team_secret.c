/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>

#include "scratch.h"
#include "core/file/file.h"
#include "team/transport/secret.h"
#include "team_env.h"

static const struct team_place zero = {.size = 2, .rank = 0, .job = "job.7"}, one = {.size = 2, .rank = 1, .job = "job.7"};

static void write_mode(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void refused(const char *file, const char *const *rows, const char *says)
{
	struct environment env = team_env(rows);
	struct error err = {0};
	struct secret s;

	assert_int_not_equal(secret_find(&s, file, &zero, &env, &err), STATUS_OK);
	if (!strstr(err.text, says))
		fail_msg("%s", err.text);
}

static void test_secret__a_file_is_ours_alone(void **state)
{
	static const char *const none[] = {NULL};
	struct environment env = team_env(none);
	struct error err = {0};
	char path[300], link[300];
	struct secret s;

	snprintf(path, sizeof(path), "%s/secret", (char *)*state);
	snprintf(link, sizeof(link), "%s/link", (char *)*state);
	refused(path, none, "No such file");
	write_mode(path, "0123456789abcdef\n", 0600);
	assert_int_equal(secret_find(&s, path, &zero, &env, &err), STATUS_OK);
	assert_string_equal(s.text, "0123456789abcdef");
	secret_forget(&s, true);
	assert_int_equal(access(path, F_OK), 0); /* the user's own file stays */
	assert_string_equal(s.text, "");
	write_mode(path, "0123456789abcdef\n", 0640);
	refused(path, none, "open to other users");
	write_mode(path, "short\n", 0600);
	refused(path, none, "5 characters");
	write_mode(path, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
			 "0123456789abcdef0123456789abcdef0123456789abcdefg",
		   0600);
	refused(path, none, "characters; it needs 16 to 128");
	write_mode(path, "0123456789abcdef\n", 0600);
	assert_int_equal(symlink(path, link), 0);
	refused(link, none, "link");
	refused(*state, none, "not a regular file");
}

static void test_secret__from_the_environment(void **state)
{
	static const char *const told[] = {"ASSAY_TEAM_SECRET=0123456789abcdef", NULL}, *const small[] = {"ASSAY_TEAM_SECRET=abc",
													 NULL};
	struct environment env = team_env(told);
	struct error err = {0};
	struct secret s;

	(void)state;
	assert_int_equal(secret_find(&s, NULL, &one, &env, &err), STATUS_OK);
	assert_string_equal(s.text, "0123456789abcdef");
	refused(NULL, small, "3 characters");
}

static void test_secret__rank_0_lays_one_for_the_job(void **state)
{
	char home[300], *rows[] = {home, NULL};
	struct environment env = team_env((const char *const *)rows);
	struct error err = {0};
	struct secret made, found, again;
	struct stat about;

	snprintf(home, sizeof(home), "HOME=%s", (char *)*state);
	assert_int_equal(secret_find(&found, NULL, &one, &env, &err), STATUS_UNAVAILABLE); /* not yet */
	assert_int_equal(err.cause, CAUSE_TEAM_LATE);
	error_clear(&err);
	assert_int_equal(secret_find(&made, NULL, &zero, &env, &err), STATUS_OK);
	assert_int_equal(strlen(made.text), 32);
	assert_int_equal(stat(made.file, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_int_equal(secret_find(&found, NULL, &one, &env, &err), STATUS_OK);
	assert_string_equal(found.text, made.text);
	/* What a killed run left is not used again. */
	assert_int_equal(secret_find(&again, NULL, &zero, &env, &err), STATUS_OK);
	assert_string_not_equal(again.text, made.text);
	secret_forget(&found, false);
	secret_forget(&made, true);
	assert_int_not_equal(stat(again.file, &about), 0);
	secret_forget(&again, true);
}

static void test_secret__one_node_has_it_where_nobody_else_looks(void **state)
{
	const struct team_place here = {.size = 2, .local_size = 2, .job = "j"};
	char runtime[300], *rows[] = {runtime, NULL};
	static const char *const none[] = {NULL};
	struct environment env = team_env((const char *const *)rows);
	struct error err = {0};
	struct secret s;

	snprintf(runtime, sizeof(runtime), "XDG_RUNTIME_DIR=%s", (char *)*state);
	assert_int_equal(secret_find(&s, NULL, &here, &env, &err), STATUS_OK);
	assert_memory_equal(s.file, runtime + 16, strlen(runtime + 16));
	secret_forget(&s, true);
	refused(NULL, none, "no folder for the team's secret");
}

/* What rank 0 would lay in its home, where `dir`/assay/team is a symbolic link to a folder that we own. */
static void test_secret__a_planted_link_is_refused_and_its_target_stays(void **state)
{
	const struct team_place here = {.size = 2, .local_size = 2, .job = "j"};
	char runtime[300], home[300], path[4096], target[300], victim[320], link[300];
	char *rows[] = {runtime, home, NULL};
	struct environment env = team_env((const char *const *)rows);
	struct error err = {0};
	struct secret s;
	struct stat about;

	snprintf(runtime, sizeof(runtime), "XDG_RUNTIME_DIR=%s", (char *)*state);
	snprintf(home, sizeof(home), "HOME=%s", (char *)*state);
	snprintf(target, sizeof(target), "%s/target", (char *)*state);
	snprintf(victim, sizeof(victim), "%s/j", target);
	assert_int_equal(mkdir(target, 0755), 0);
	assert_int_equal(chmod(target, 0755), 0);
	write_mode(victim, "keep", 0644);

	snprintf(link, sizeof(link), "%s/assay", (char *)*state);
	assert_int_equal(mkdir(link, 0755), 0);
	snprintf(link, sizeof(link), "%s/assay/team", (char *)*state);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(secret_find(&s, NULL, &here, &env, &err), STATUS_BAD_INPUT);
	assert_int_equal(err.cause, CAUSE_TEAM_REFUSED);
	assert_non_null(strstr(err.text, "/assay/team is a symbolic link"));
	error_clear(&err);

	snprintf(link, sizeof(link), "%s/.cache", (char *)*state);
	assert_int_equal(mkdir(link, 0755), 0);
	snprintf(link, sizeof(link), "%s/.cache/assay", (char *)*state);
	assert_int_equal(mkdir(link, 0755), 0);
	snprintf(link, sizeof(link), "%s/.cache/assay/team", (char *)*state);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(secret_write_file(path, "j", "0123456789abcdef", &env, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "is a symbolic link"));
	error_clear(&err);

	assert_int_equal(stat(target, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0755);
	assert_int_equal(stat(victim, &about), 0);
	assert_int_equal(about.st_size, 4);

	/* A link in the place of the file itself is replaced, and nothing is written through it. */
	assert_int_equal(unlink(link), 0);
	assert_int_equal(mkdir(link, 0755), 0);
	snprintf(path, sizeof(path), "%s/j", link);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(secret_write_file(path, "j", "0123456789abcdef", &env, &err), STATUS_OK);
	assert_int_equal(lstat(path, &about), 0);
	assert_true(S_ISREG(about.st_mode));
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_int_equal(stat(victim, &about), 0);
	assert_int_equal(about.st_size, 4);
	assert_int_equal(stat(link, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0700);
}

/* A file system of a network may show it late; what is there and is open to others never gets better. */
static void test_secret__a_laid_file_may_come_late(void **state)
{
	char path[300], told[400], *rows[] = {told, NULL};
	struct environment env = team_env((const char *const *)rows);
	struct error err = {0};
	struct secret s;

	snprintf(path, sizeof(path), "%s/laid", (char *)*state);
	snprintf(told, sizeof(told), "ASSAY_TEAM_SECRET_FILE=%s", path);
	assert_int_equal(secret_find(&s, NULL, &one, &env, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_TEAM_LATE);
	assert_non_null(strstr(err.text, "share no home"));
	error_clear(&err);
	write_mode(path, "", 0600);
	assert_int_equal(secret_find(&s, NULL, &zero, &env, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_TEAM_LATE);
	error_clear(&err);
	write_mode(path, "0123456789abcdef", 0600);
	assert_int_equal(secret_find(&s, NULL, &one, &env, &err), STATUS_OK);
	assert_string_equal(s.text, "0123456789abcdef");
	write_mode(path, "0123456789abcdef", 0644);
	assert_int_not_equal(secret_find(&s, NULL, &one, &env, &err), STATUS_OK);
	assert_int_equal(err.cause, CAUSE_TEAM_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_secret__a_file_is_ours_alone),
		scratch_test(test_secret__from_the_environment),
		scratch_test(test_secret__rank_0_lays_one_for_the_job),
		scratch_test(test_secret__one_node_has_it_where_nobody_else_looks),
		scratch_test(test_secret__a_planted_link_is_refused_and_its_target_stays),
		scratch_test(test_secret__a_laid_file_may_come_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
