/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/program.h"
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { STEP_MS = 20 };

/* Where we are in the foreground of a terminal, the command is: Ctrl-C and Ctrl-Z reach it, and it may read.
 */
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
	sigprocmask(SIG_BLOCK, &set, &t->before); /* before it starts: none is lost */
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

/* INT, QUIT and HUP go to all of its group, as a terminal sends them; the others to itself alone. */
static void pass_signals(struct program *t)
{
	struct signalfd_siginfo got;

	while (read(t->signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
		int number = (int)got.ssi_signo;
		bool all = number == SIGINT || number == SIGQUIT || number == SIGHUP;

		t->told_to_end |= all || number == SIGTERM;
		kill(all ? -t->process.pid : t->process.pid, number);
	}
}

/* Ctrl-Z stopped it: the shell that waits for us is to see us stopped, and to start both again. */
static void stop_with_it(struct program *t)
{
	take_terminal(t);
	kill(getpid(), SIGSTOP);
	give_terminal(t);
	kill(-t->process.pid, SIGCONT);
}

/* Unlike a helper's, what it left running in its group is the user's business. */
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
	/* Short steps where no descriptor tells its end, and where Ctrl-Z may stop it, which none tells. */
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
