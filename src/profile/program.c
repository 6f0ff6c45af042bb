/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/program.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { STEP_MS = 20, LEFT_SHOWN = 3, ENVIRONMENT_MAX = 1 << 22, LEFT_LOOKS = 5 };

/* If assay runs in the foreground of a terminal, the command takes its place. Then Ctrl-C and Ctrl-Z reach
 * the command, and it may read from the terminal. */
static void give_terminal(struct program *t)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;

	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp())
		return;
	sigaction(SIGTTOU, &ignore, &old);
	t->terminal = !tcsetpgrp(STDIN_FILENO, t->process.pid);
	sigaction(SIGTTOU, &old, NULL);
}

static void take_terminal(struct program *t)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;

	if (!t->terminal)
		return;
	sigaction(SIGTTOU, &ignore, &old);
	tcsetpgrp(STDIN_FILENO, getpgrp());
	sigaction(SIGTTOU, &old, NULL);
	t->terminal = false;
}

enum status program_start(struct program *t, const char *const *command, const char *const *env,
			  struct error *err)
{
	const struct process_spec spec = {.argv = command, .env = env, .cpu_numa = -1};
	sigset_t set;
	enum status st;

	*t = (struct program){.signals = -1, .end = -1};
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &t->before); /* blocked before the start, so that no signal is lost */
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	st = process_start(&t->process, &spec, err);
	if (st) {
		program_release(t);
		return st;
	}
#ifdef SYS_pidfd_open
	t->end = (int)syscall(SYS_pidfd_open, t->process.pid, 0);
#endif
	give_terminal(t);
	return STATUS_OK;
}

/* INT, QUIT and HUP go to the whole process group, as a terminal sends them. The other signals go to the
 * command alone. A stopped process reacts to KILL only, so signals that should end it are followed by CONT.
 */
static void pass_signals(struct program *t)
{
	struct signalfd_siginfo got;

	while (read(t->signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
		int number = (int)got.ssi_signo;
		bool all = number == SIGINT || number == SIGQUIT || number == SIGHUP;
		pid_t whom = all ? -t->process.pid : t->process.pid;

		kill(whom, number);
		if (all || number == SIGTERM) {
			t->end_requested = true;
			kill(whom, SIGCONT);
		}
	}
}

/* Ctrl-Z stopped the command. assay stops too, so that the waiting shell notices. When the shell continues
 * assay, assay continues the command. */
static void stop_with_it(struct program *t)
{
	take_terminal(t);
	kill(getpid(), SIGSTOP);
	give_terminal(t);
	kill(-t->process.pid, SIGCONT);
}

/* Processes that the command left running in its group are not ended: the user decides about them. */
static bool has_ended(struct program *t)
{
	pid_t got = waitpid(t->process.pid, &t->wait_status, WNOHANG | (t->terminal ? WUNTRACED : 0));

	if (got > 0 && WIFSTOPPED(t->wait_status)) {
		stop_with_it(t);
		return false;
	}
	if (!got || (got < 0 && errno == EINTR))
		return false;
	if (got < 0)
		t->wait_status = 127 << 8;
	t->process.ended = true;
	return true;
}

bool program_wait(struct program *t, int also, int wait_ms)
{
	/* Polls in short steps if there is no pidfd, or if Ctrl-Z may stop the command: a pidfd does not
	 * report a stop. */
	bool short_steps = t->end < 0 || t->terminal;

	while (!t->process.ended && !has_ended(t)) {
		struct pollfd in[3] = {{.fd = t->signals, .events = POLLIN},
				       {.fd = also, .events = POLLIN},
				       {.fd = t->end, .events = POLLIN}};
		int step = short_steps && wait_ms > STEP_MS ? STEP_MS : wait_ms;

		if (poll(in, 3, step) > 0) {
			pass_signals(t);
			if (in[1].revents)
				return has_ended(t);
		}
		wait_ms -= step;
		if (wait_ms <= 0)
			return has_ended(t);
	}
	return true;
}

void program_release(struct program *t)
{
	take_terminal(t);
	process_release(&t->process);
	if (t->signals >= 0) {
		close(t->signals);
		sigprocmask(SIG_SETMASK, &t->before, NULL);
	}
	if (t->end >= 0)
		close(t->end);
	t->signals = t->end = -1;
}

int program_code(const struct program *t)
{
	return WIFSIGNALED(t->wait_status) ? 128 + WTERMSIG(t->wait_status) : WEXITSTATUS(t->wait_status);
}

/* The content of /proc/PID/`name`; NULL: the process is gone or may not be read. The caller frees it. */
static char *file_of(const char *pid, const char *name, size_t *size)
{
	char path[300], *text = NULL;
	struct error none = {0};

	snprintf(path, sizeof(path), "/proc/%.240s/%s", pid, name);
	if (file_read(&text, size, path, ENVIRONMENT_MAX, &none))
		return NULL;
	return text;
}

static bool has_mark(const char *pid, const char *mark)
{
	size_t size = 0, n = strlen(mark);
	char *text = file_of(pid, "environ", &size);
	bool found = false;

	for (size_t at = 0; text && at < size && !found; at += strlen(text + at) + 1)
		found = !strncmp(text + at, mark, n) && !text[at + n];
	free(text);
	return found;
}

static int is_process(const struct dirent *entry)
{
	return entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
}

static size_t look_for_left(struct text *out, const char *mark)
{
	struct dirent **entry = NULL;
	int count = scandir("/proc", &entry, is_process, versionsort);
	size_t left = 0, size;

	for (int i = 0; i < count; i++) {
		const char *pid = entry[i]->d_name;
		char *name;

		if (has_mark(pid, mark) && left++ < LEFT_SHOWN) {
			name = file_of(pid, "comm", &size);
			text_addf(out, "%spid %s, %.*s", left > 1 ? "; " : "", pid,
				  name ? (int)strcspn(name, "\n") : 1, name ? name : "?");
			free(name);
		}
		free(entry[i]);
	}
	if (left > LEFT_SHOWN)
		text_addf(out, "; %zu more", left - LEFT_SHOWN);
	free(entry);
	return left;
}

size_t program_left_behind(struct text *out, const char *mark)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
	size_t left = look_for_left(out, mark);

	/* Worker processes that end with their parent need a little longer. */
	for (unsigned i = 1; left && i < LEFT_LOOKS; i++) {
		nanosleep(&step, NULL);
		text_release(out);
		left = look_for_left(out, mark);
	}
	return left;
}
