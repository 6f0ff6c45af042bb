/* SPDX-License-Identifier: Apache-2.0 */
/* The children are this program again: `test_core_process child WHAT`. No assertion is on how long a thing
 * took. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/process.h"

static struct process_spec self(const char *const *argv)
{
	return (struct process_spec){.argv = argv, .cpu_numa = -1};
}

static void test_process__a_child_answers_on_descriptor_three(void **state)
{
	static const char *const argv[] = {NULL, "child", "echo", NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	struct process p;
	char reply[5] = "";

	(void)state;
	spec.channel = true;
	assert_int_equal(process_start(&p, &spec, &err), STATUS_OK);
	assert_int_equal(write(p.channel, "ping", 4), 4);
	assert_int_equal(recv(p.channel, reply, 4, MSG_WAITALL), 4);
	assert_string_equal(reply, "PING");
	while (!process_poll(&p))
		usleep(1000);
	assert_true(WIFEXITED(p.wait_status) && WEXITSTATUS(p.wait_status) == 0);
	assert_true(process_stop(&p, 0, 0));
	process_release(&p);
	process_release(&p);
}

static void test_process__stdin_and_stderr_can_be_the_callers(void **state)
{
	static const char *const argv[] = {"sh", "-c", "read word; echo \"$word\" >&2", NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	int in[2], out[2];
	struct process p;
	char said[16] = "";

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	spec.input = &in[0];
	spec.errors = &out[1];
	assert_int_equal(process_start(&p, &spec, &err), STATUS_OK);
	close(in[0]);
	close(out[1]);
	assert_int_equal(write(in[1], "ping\n", 5), 5);
	assert_int_equal(read(out[0], said, sizeof(said) - 1), 5);
	assert_string_equal(said, "ping\n");
	assert_int_equal(read(out[0], said, 1), 0); /* nobody else holds it open */
	close(in[1]);
	close(out[0]);
	while (!process_poll(&p))
		usleep(1000);
	process_release(&p);
}

static void test_process__run_takes_output_and_exit_code(void **state)
{
	static const char *const argv[] = {NULL, "child", "speak", NULL}, *const env[] = {
										  "ASSAY_TEST_WORD=hello",
										  NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	int code = -1;
	char *out;
	size_t size;

	(void)state;
	spec.env = env;
	assert_int_equal(process_run(&spec, 60000, 4096, &out, &size, &code, &err), STATUS_OK);
	assert_int_equal(code, 3);
	assert_string_equal(out, "hello\n");
	assert_int_equal(size, 6);
	free(out);
}

static void test_process__run_refuses_a_flood(void **state)
{
	static const char *const argv[] = {NULL, "child", "flood", NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	char *out = NULL;
	int code;

	(void)state;
	assert_int_equal(process_run(&spec, 60000, 4096, &out, NULL, &code, &err), STATUS_VENDOR);
	assert_string_equal(err.text, "child wrote more than 4096 bytes");
	assert_null(out);
}

static void test_process__run_tells_hanging_from_crashing(void **state)
{
	static const char *const hang[] = {NULL, "child", "hang", NULL}, *const crash[] = {NULL, "child",
											   "crash", NULL};
	struct process_spec spec = self(hang);
	struct error err = {0};
	char *out = NULL;
	int code;

	(void)state;
	assert_int_equal(process_run(&spec, 200, 4096, &out, NULL, &code, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_TIMED_OUT);
	error_clear(&err);
	spec = self(crash);
	assert_int_equal(process_run(&spec, 60000, 4096, &out, NULL, &code, &err), STATUS_VENDOR);
	assert_int_equal(err.cause, CAUSE_CRASHED);
	assert_string_equal(err.text, "child was ended by signal 6 (Aborted)");
}

static void test_process__knows_when_it_was_started(void **state)
{
	uint64_t started = process_started_ns(), now = clock_now_ns(clock_monotonic()), apart = UINT64_MAX;

	(void)state;
	assert_true(started > 0 && started <= now);
	assert_true(now - started < 300000000000u); /* this program has not run for minutes */
	for (unsigned i = 0; i < 1000 && apart > 20000000u;
	     i++) { /* who is put off between two clocks asks again */
		uint64_t again = process_started_ns();

		apart = again > started ? again - started : started - again;
		started = again;
	}
	assert_true(apart <= 20000000u);
}

/* What binutils read of the same file. */
static void test_process__knows_which_build_it_is(void **state)
{
	char build[PROCESS_BUILD], exe[4096] = "";
	const char *const argv[] = {"readelf", "-n", exe, NULL};
	const struct process_spec spec = {.argv = argv, .cpu_numa = -1};
	struct error err = {0};
	int code = -1;
	char *out;

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	process_build(build);
	assert_int_equal(strlen(build), PROCESS_BUILD - 1);
	if (process_run(&spec, 60000, 65536, &out, NULL, &code, &err))
		skip();
	assert_int_equal(code, 0);
	assert_non_null(strstr(strstr(out, "Build ID:"), build));
	free(out);
}

static void test_process__a_command_that_is_not_there_is_an_error(void **state)
{
	static const char *const argv[] = {"/nowhere/tool", NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	struct process p;

	(void)state;
	assert_int_equal(process_start(&p, &spec, &err), STATUS_UNAVAILABLE);
	assert_string_equal(err.text, "cannot start /nowhere/tool: No such file or directory");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left to reap */
	error_clear(&err);
	spec.cpu_numa = 4096;
	assert_int_equal(process_start(&p, &spec, &err), STATUS_UNAVAILABLE);
}

static void test_process__term_is_enough_for_the_well_behaved(void **state)
{
	static const char *const argv[] = {NULL, "child", "hang", NULL};
	struct process_spec spec = self(argv);
	struct process p;
	char how[64];

	(void)state;
	spec.channel = true;
	assert_int_equal(process_start(&p, &spec, NULL), STATUS_OK);
	assert_false(process_poll(&p));
	assert_true(process_stop(&p, 60000, 0));
	process_wait_text(p.wait_status, how, sizeof(how));
	assert_string_equal(how, "signal 15 (Terminated)");
	process_release(&p);
}

/* The child ignores TERM and has a child of its own, which must go too; that one's end closes its pipe. */
static void test_process__kill_takes_the_whole_group(void **state)
{
	static const char *const argv[] = {NULL, "child", "stubborn", NULL};
	struct process_spec spec = self(argv);
	struct process p;
	char byte;

	(void)state;
	spec.channel = true;
	assert_int_equal(process_start(&p, &spec, NULL), STATUS_OK);
	assert_int_equal(read(p.channel, &byte, 1), 1); /* both are up */
	assert_true(process_stop(&p, 20, 60000));
	assert_true(WIFSIGNALED(p.wait_status) && WTERMSIG(p.wait_status) == SIGKILL);
	assert_int_equal(read(p.channel, &byte, 1), 0);
	process_release(&p);
}

static void test_process__what_cannot_be_killed_is_left_behind(void **state)
{
	static const char *const argv[] = {NULL, "child", "hang", NULL};
	struct process_spec spec = self(argv);
	struct process p;

	(void)state;
	assert_int_equal(process_start(&p, &spec, NULL), STATUS_OK);
	/* A stopped process is as far from TERM as one inside the kernel; with no time for KILL it counts as
	 * stuck. */
	kill(p.pid, SIGSTOP);
	assert_false(process_stop(&p, 0, 0));
	assert_true(process_stop(&p, 60000, 60000));
	process_release(&p);
}

/* A child that dies ends its own children: the grandchild's end of the pipe closes. */
static void test_process__children_die_with_their_parent(void **state)
{
	static const char *const argv[] = {NULL, "child", "parent", NULL};
	struct process_spec spec = self(argv);
	struct process p;
	char byte;

	(void)state;
	spec.channel = true;
	assert_int_equal(process_start(&p, &spec, NULL), STATUS_OK);
	assert_int_equal(read(p.channel, &byte, 1), 1);
	kill(p.pid, SIGKILL); /* the leader alone; its child leads a group of its own */
	assert_int_equal(read(p.channel, &byte, 1), 0);
	assert_true(process_stop(&p, 60000, 60000));
	process_release(&p);
}

static void test_process__a_child_can_be_bound_to_a_node(void **state)
{
	static const char *const argv[] = {NULL, "child", "speak", NULL};
	struct process_spec spec = self(argv);
	struct error err = {0};
	char *out = NULL;
	int code = -1;

	(void)state;
	if (access("/sys/devices/system/node/node0/cpulist", R_OK))
		skip();
	spec.cpu_numa = 0;
	assert_int_equal(process_run(&spec, 60000, 4096, &out, NULL, &code, &err), STATUS_OK);
	assert_int_equal(code, 3);
	free(out);
}

static _Noreturn void hang(void)
{
	for (;;)
		pause();
}

static int child_echo(void)
{
	char word[4];
	int i;

	if (recv(3, word, 4, MSG_WAITALL) != 4)
		return 1;
	for (i = 0; i < 4; i++)
		word[i] &= ~0x20;
	return write(3, word, 4) != 4;
}

static int child_speak(void)
{
	const char *word = getenv("ASSAY_TEST_WORD");

	printf("%s\n", word ? word : "nothing");
	return 3;
}

static int child_flood(void)
{
	for (;;)
		if (puts("more and more and more") < 0)
			return 0;
}

static int child_stubborn(void)
{
	signal(SIGTERM, SIG_IGN);
	if (!fork())
		hang();
	if (write(3, "+", 1) != 1)
		return 1;
	hang();
}

static int child_parent(void)
{
	static const char *const argv[] = {NULL, "child", "heir", NULL};
	struct process_spec spec = self(argv);
	struct process p;
	char fd[32];
	const char *env[] = {fd, NULL};
	int inherited = dup(3); /* without CLOEXEC */

	snprintf(fd, sizeof(fd), "ASSAY_TEST_FD=%d", inherited);
	spec.env = env;
	if (process_start(&p, &spec, NULL))
		return 1;
	hang();
}

static int child_heir(void)
{
	const char *fd = getenv("ASSAY_TEST_FD");

	if (!fd || write((int)strtol(fd, NULL, 10), "+", 1) != 1)
		return 1;
	hang();
}

static int child_main(const char *what)
{
	alarm(120); /* whatever goes wrong, nothing stays */
	if (!strcmp(what, "echo"))
		return child_echo();
	if (!strcmp(what, "speak"))
		return child_speak();
	if (!strcmp(what, "flood"))
		return child_flood();
	if (!strcmp(what, "hang"))
		hang();
	if (!strcmp(what, "stubborn"))
		return child_stubborn();
	if (!strcmp(what, "parent"))
		return child_parent();
	if (!strcmp(what, "heir"))
		return child_heir();
	abort();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process__a_child_answers_on_descriptor_three),
		cmocka_unit_test(test_process__run_takes_output_and_exit_code),
		cmocka_unit_test(test_process__run_refuses_a_flood),
		cmocka_unit_test(test_process__run_tells_hanging_from_crashing),
		cmocka_unit_test(test_process__knows_when_it_was_started),
		cmocka_unit_test(test_process__knows_which_build_it_is),
		cmocka_unit_test(test_process__a_command_that_is_not_there_is_an_error),
		cmocka_unit_test(test_process__term_is_enough_for_the_well_behaved),
		cmocka_unit_test(test_process__kill_takes_the_whole_group),
		cmocka_unit_test(test_process__what_cannot_be_killed_is_left_behind),
		cmocka_unit_test(test_process__children_die_with_their_parent),
		cmocka_unit_test(test_process__a_child_can_be_bound_to_a_node),
		cmocka_unit_test(test_process__stdin_and_stderr_can_be_the_callers),
	};

	if (argc == 3 && !strcmp(argv[1], "child"))
		return child_main(argv[2]);
	return cmocka_run_group_tests_name("core_process", tests, NULL, NULL);
}
