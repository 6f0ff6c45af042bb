/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a process from the screen: only what was asked for, here, with permission, and only after yes. */
#include "screen_bed.h"

#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/top/top.h"

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("sleep", "sleep", "600", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	for (int i = 0; i < 1000; i++) { /* until it is sleep, not yet this program */
		char path[64], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		f = fopen(path, "r");
		if (f && !fgets(comm, sizeof(comm), f))
			comm[0] = '\0';
		if (f)
			fclose(f);
		if (!strncmp(comm, "sleep", 5))
			return pid;
		usleep(10000);
	}
	fail_msg("sleep does not start");
	return -1;
}

static void make(struct bed *b, long pid, const char *comm)
{
	char labels[200];

	bed_begin(b, "here");
	bed_entity(b, 0, METRIC_SCOPE_GPU, BED_GPU, 0, "{\"gpu\":\"0\",\"pci_bus_id\":\"0000:10:00.0\"}");
	snprintf(labels, sizeof(labels),
		 "{\"gpu\":\"0\",\"pci_bus_id\":\"0000:10:00.0\",\"pid\":\"%ld\",\"user\":\"me\",\"comm\":\"%s\"}", pid, comm);
	bed_entity(b, 1, METRIC_SCOPE_PROCESS, BED_GPU, 0, labels);
}

static int ask(struct screen_view *v, const struct bed *b, bool local)
{
	struct screen_node n = bed_node(b, "");

	n.local = local;
	*v = (struct screen_view){.on_processes = true};
	return top_end_ask(v, &n);
}

static void refused(long pid, const char *comm, bool local, const char *why)
{
	struct screen_view v;
	struct bed b;

	make(&b, pid, comm);
	assert_int_equal(ask(&v, &b, local), -1);
	assert_string_equal(v.question, "");
	if (!strstr(v.message, why))
		fail_msg("%s", v.message);
	bed_release(&b);
}

static void test_top_end__yes_sends_term(void **state)
{
	pid_t pid = start_sleeper();
	struct screen_view v;
	struct bed b;
	int fd, status;

	(void)state;
	make(&b, pid, "sleep");
	fd = ask(&v, &b, true);
	assert_true(fd >= 0);
	assert_non_null(strstr(v.question, "with TERM? y/n  (sleep 600)"));
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* asking has not ended it */
	top_end(&v, fd);
	assert_string_equal(v.message, "TERM was sent");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	top_end(&v, -1); /* there was nothing to end */
	bed_release(&b);
}

static void test_top_end__what_is_not_that_process_is_left_alone(void **state)
{
	pid_t pid = start_sleeper();
	int status;

	(void)state;
	refused(pid, "python", true, "here it is \"sleep\", but the GPU's is \"python\"");
	refused(pid, "", true, "its name is not known here");
	refused(pid, "sleep", false, "only processes of this machine");
	refused(1L << 40, "sleep", true, "has no number that can be ended");
	refused(1, "init", true, "has no number that can be ended");
	refused(-5, "sleep", true, "has no number that can be ended");
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	refused(pid, "sleep", true, "it has ended already");
}

static void test_top_end__a_process_that_ends_meanwhile_is_told(void **state)
{
	pid_t pid = start_sleeper();
	struct screen_view v;
	struct bed b;
	int fd, status;

	(void)state;
	make(&b, pid, "sleep");
	fd = ask(&v, &b, true);
	assert_true(fd >= 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	top_end(&v, fd);
	assert_non_null(strstr(v.message, "was not ended"));
	bed_release(&b);
}

static void test_top_end__nothing_is_selected(void **state)
{
	struct screen_view v = {0};
	struct screen_node n;
	struct bed b;

	(void)state;
	make(&b, getpid(), "x");
	n = bed_node(&b, "");
	assert_int_equal(top_end_ask(&v, &n), -1);
	assert_non_null(strstr(v.message, "select a process first"));
	bed_release(&b);
}

/* Only where this is root, which can become somebody else. */
static void test_top_end__another_users_process_is_refused(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");
	pid_t sleeper, asker;
	int status;

	(void)state;
	if (geteuid() || !nobody)
		skip();
	sleeper = start_sleeper();
	asker = fork();
	if (!asker) {
		struct screen_view v;
		struct bed b;

		make(&b, sleeper, "sleep");
		if (setuid(nobody->pw_uid))
			_exit(2);
		_exit(ask(&v, &b, true) == -1 && strstr(v.message, "another user's") ? 0 : 1);
	}
	assert_int_equal(waitpid(asker, &status, 0), asker);
	assert_int_equal(waitpid(sleeper, NULL, WNOHANG), 0);
	kill(sleeper, SIGKILL);
	waitpid(sleeper, NULL, 0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top_end__yes_sends_term),
		cmocka_unit_test(test_top_end__what_is_not_that_process_is_left_alone),
		cmocka_unit_test(test_top_end__a_process_that_ends_meanwhile_is_told),
		cmocka_unit_test(test_top_end__nothing_is_selected),
		cmocka_unit_test(test_top_end__another_users_process_is_refused),
	};

	return cmocka_run_group_tests_name("top_end", tests, NULL, NULL);
}
