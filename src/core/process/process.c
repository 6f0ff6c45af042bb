/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file/file.h"
#include "core/text/text.h"

extern char **environ;

enum { CHANNEL_FD = 3, SHARED_FD = 4, SPARE_FD = 64, POLL_MS = 5, STOP_MS = 100 };

/* Everything that the child needs between fork and exec. It is prepared before the fork, because the child
 * must not allocate memory. */
struct launch {
	const char *file;
	char **argv, **env;
	int channel, output, shared,
		report;	   /* the child's pipe ends; -1: none. report: carries the errno of a failed exec */
	int input, errors; /* the caller's descriptors; -1: none */
	pid_t parent;
	bool pin, both; /* both: stderr goes where stdout goes */
	cpu_set_t cpus;
};

/* Parses a CPU list as sysfs writes it, for example "0-3,8-11\n". False if the text has another form. */
static bool cpu_list(const char *text, cpu_set_t *cpus)
{
	char *end;

	CPU_ZERO(cpus);
	while (*text && *text != '\n') {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		if (last >= CPU_SETSIZE || first > last)
			return false;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
		text = *end == ',' ? end + 1 : end;
		if (*end && *end != ',' && *end != '\n')
			return false;
	}
	return CPU_COUNT(cpus) > 0;
}

static enum status node_cpus(int node, cpu_set_t *cpus, struct error *err)
{
	enum status st;
	char path[96];
	char *text;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	st = file_read(&text, NULL, path, 65536, err);
	if (st)
		return st;
	if (!cpu_list(text, cpus))
		st = error_set(err, STATUS_BAD_INPUT, "NUMA node %d has no CPUs: %s", node, path);
	free(text);
	return st;
}

enum status process_bind_thread(int numa, struct error *err)
{
	cpu_set_t cpus;
	enum status st = node_cpus(numa, &cpus, err);

	if (!st && sched_setaffinity(0, sizeof(cpus), &cpus))
		st = error_errno(err, errno, "cannot bind this thread to NUMA node %d", numa);
	return st;
}

/* Builds the child's environment: our variables and spec's. glibc's getenv returns the first match, so
 * spec's come first. */
static char **environment(const char *const *added)
{
	size_t count = 0, own = 0, i;
	char **env;

	while (added && added[count])
		count++;
	while (environ[own])
		own++;
	env = calloc(count + own + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (i = 0; i < count; i++)
		env[i] = (char *)(uintptr_t)added[i];
	count = i;
	for (i = 0; i < own; i++) {
		const char *equals = strchr(environ[i], '=');
		size_t name = equals ? (size_t)(equals - environ[i]) + 1 : strlen(environ[i]), k;

		for (k = 0; added && added[k] && strncmp(added[k], environ[i], name); k++)
			;
		if (!added || !added[k])
			env[count++] = environ[i];
	}
	return env;
}

static _Noreturn void child_fail(const struct launch *l)
{
	int code = errno;

	while (write(l->report, &code, sizeof(code)) < 0 && errno == EINTR)
		;
	_exit(127);
}

void process_follow(pid_t parent)
{
	/* The parent may have died before prctl took effect: then no signal will ever come. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(127);
}

/* Runs between fork and exec: only async-signal-safe calls are allowed. */
static _Noreturn void child(const struct launch *l)
{
	sigset_t none;
	int signum;

	setpgid(0, 0);
	process_follow(l->parent);
	for (signum = 1; signum < NSIG; signum++)
		signal(signum, SIG_DFL); /* exec resets handlers by itself, but not ignored signals */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (l->pin && sched_setaffinity(0, sizeof(l->cpus), &l->cpus))
		child_fail(l);
	if (l->input >= 0 && dup2(l->input, STDIN_FILENO) < 0)
		child_fail(l);
	if (l->output >= 0 && dup2(l->output, STDOUT_FILENO) < 0)
		child_fail(l);
	if (l->output >= 0 && l->both && dup2(l->output, STDERR_FILENO) < 0)
		child_fail(l);
	if (l->errors >= 0 && dup2(l->errors, STDERR_FILENO) < 0)
		child_fail(l);
	if (l->channel >= 0 && dup2(l->channel, CHANNEL_FD) < 0)
		child_fail(l);
	if (l->shared >= 0 && dup2(l->shared, SHARED_FD) < 0)
		child_fail(l);
	execvpe(l->file, l->argv, l->env);
	child_fail(l);
}

/* Moves a child's descriptor above the numbers that the child gets, so that dup2 to 3 overwrites none of
 * them and always clears CLOEXEC. */
static int raise_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, SPARE_FD);

	close(fd);
	return high;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static enum status make_pipes(struct process *p, struct launch *l, int *report,
			      const struct process_spec *spec, struct error *err)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC))
		return error_errno(err, errno, "cannot make a pipe to a child process");
	*report = pair[0];
	l->report = raise_fd(pair[1]);
	if (spec->channel) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return error_errno(err, errno, "cannot make a socket pair to a child process");
		p->channel = pair[0];
		l->channel = raise_fd(pair[1]);
	}
	if (spec->capture_output) {
		if (pipe2(pair, O_CLOEXEC))
			return error_errno(err, errno, "cannot make a pipe to a child process");
		p->output = pair[0];
		l->output = raise_fd(pair[1]);
	}
	if (spec->shared > 0)
		l->shared = fcntl(spec->shared, F_DUPFD_CLOEXEC, SPARE_FD);
	if (l->report < 0 || (spec->shared > 0 && l->shared < 0) || (spec->channel && l->channel < 0) ||
	    (spec->capture_output && l->output < 0))
		return error_errno(err, EMFILE, "cannot make a pipe to a child process");
	return STATUS_OK;
}

/* Waits for exec: the pipe either closes, or delivers the errno that stopped the exec. */
static int exec_errno(int report)
{
	int code = 0;
	ssize_t n;

	do
		n = read(report, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(code) ? code : 0;
}

static enum status launch(struct process *p, struct launch *l, const struct process_spec *spec,
			  struct error *err)
{
	enum status st;
	int report = -1, code;

	st = make_pipes(p, l, &report, spec, err);
	if (st)
		goto out;
	p->pid = fork();
	if (!p->pid)
		child(l);
	if (p->pid < 0) {
		p->pid = 0;
		st = error_errno(err, errno, "cannot start %s", l->argv[0]);
		goto out;
	}
	setpgid(p->pid,
		p->pid); /* done in the parent too, so that the group exists before the first signal to it */
	close_fd(&l->report);
	code = exec_errno(report);
	if (code) {
		waitpid(p->pid, &p->wait_status, 0);
		p->ended = true;
		st = error_errno(err, code, "cannot start %s", l->argv[0]);
	}
out:
	close_fd(&report);
	close_fd(&l->report);
	close_fd(&l->channel);
	close_fd(&l->output);
	close_fd(&l->shared);
	return st;
}

enum status process_start(struct process *p, const struct process_spec *spec, struct error *err)
{
	struct launch l = {.channel = -1,
			   .output = -1,
			   .shared = -1,
			   .report = -1,
			   .input = spec->input ? *spec->input : -1,
			   .errors = spec->errors ? *spec->errors : -1,
			   .parent = getpid()};
	const char *const *word = spec->argv;
	enum status st;
	size_t count;

	*p = (struct process){.channel = -1, .output = -1};
	if (spec->cpu_numa >= 0) {
		st = node_cpus(spec->cpu_numa, &l.cpus, err);
		if (st)
			return st;
		l.pin = true;
	}
	/* argv[0] NULL means this program, so search for the end after it */
	for (count = 1; word[count]; count++)
		;
	l.argv = calloc(count + 1, sizeof(*l.argv));
	l.env = environment(spec->env);
	if (!l.argv || !l.env) {
		st = error_errno(err, ENOMEM, "cannot start a child process");
	} else {
		memcpy(l.argv, word, count * sizeof(*l.argv));
		l.file = word[0] ? word[0] : "/proc/self/exe";
		if (!word[0])
			l.argv[0] = (char *)(uintptr_t) "assay";
		st = launch(p, &l, spec, err);
	}
	free(l.argv);
	free(l.env);
	if (st)
		process_release(p);
	return st;
}

bool process_poll(struct process *p)
{
	siginfo_t seen = {0};
	int got;

	if (p->ended || p->pid <= 0)
		return true;
	do
		got = waitid(P_PID, (id_t)p->pid, &seen, WEXITED | WNOHANG | WNOWAIT);
	while (got && errno == EINTR);
	if (!got && !seen.si_pid)
		return false;
	if (got) { /* another part of the process reaped it (SIGCHLD ignored): its exit status is unknown */
		p->wait_status = 127 << 8;
	} else {
		/* Also kills the processes left in its group. The leader is not reaped yet, so the group's
		 * number is still valid. */
		kill(-p->pid, SIGKILL);
		waitpid(p->pid, &p->wait_status, 0);
	}
	p->ended = true;
	return true;
}

static bool wait_up_to(struct process *p, unsigned limit_ms)
{
	const struct clock *clock = clock_monotonic();
	uint64_t end = clock_now_ns(clock) + (uint64_t)limit_ms * 1000000u;

	while (!process_poll(p)) {
		if (clock_now_ns(clock) >= end)
			return false;
		clock_sleep_ns(clock, POLL_MS * 1000000u);
	}
	return true;
}

bool process_stop(struct process *p, unsigned term_ms, unsigned kill_ms)
{
	if (process_poll(p))
		return true;
	kill(-p->pid, SIGTERM);
	if (wait_up_to(p, term_ms))
		return true;
	kill(-p->pid, SIGKILL);
	return wait_up_to(p, kill_ms);
}

void process_release(struct process *p)
{
	close_fd(&p->channel);
	close_fd(&p->output);
}

static bool told_to_stop(const struct process_spec *spec)
{
	return spec->stop && *spec->stop;
}

/* Reads until the end of the output, the size limit, the deadline or a stop request. */
static enum status take_output(struct process *p, const struct process_spec *spec, uint64_t end_ns,
			       size_t size_max, struct text *out, const char *name, struct error *err)
{
	const struct clock *clock = clock_monotonic();
	struct pollfd wait = {.fd = p->output, .events = POLLIN};
	char block[4096];

	for (;;) {
		uint64_t now = clock_now_ns(clock);
		int wait_ms = (int)((end_ns - now) / 1000000u) + 1;
		ssize_t n;

		if (told_to_stop(spec))
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "%s was stopped",
					       name);
		if (now >= end_ns)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT,
					       "%s did not answer in time", name);
		/* The signal may be delivered to another thread, or just before the wait begins. */
		if (poll(&wait, 1, spec->stop && wait_ms > STOP_MS ? STOP_MS : wait_ms) <= 0)
			continue;
		n = read(p->output, block, sizeof(block));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return error_errno(err, errno, "cannot read the output of %s", name);
		if (!n)
			return STATUS_OK;
		if (out->size + (size_t)n > size_max)
			return error_set(err, STATUS_VENDOR, "%s wrote more than %zu bytes", name, size_max);
		text_add_bytes(out, block, (size_t)n);
		if (out->failed)
			return error_errno(err, ENOMEM, "out of memory for the output of %s", name);
	}
}

enum status process_run(const struct process_spec *spec, unsigned limit_ms, size_t size_max, char **out,
			size_t *size, int *exit_code, struct error *err)
{
	struct process_spec captured = *spec;
	const char *name = spec->argv[0] ? spec->argv[0] : spec->argv[1] ? spec->argv[1] : "assay";
	uint64_t end = clock_now_ns(clock_monotonic()) + (uint64_t)limit_ms * 1000000u, now;
	struct text text = {0};
	struct process p;
	enum status st;
	char how[64];

	if (told_to_stop(spec))
		return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "%s was not started", name);
	captured.capture_output = true;
	captured.stderr_apart = true; /* a library's messages on stderr must not mix with the answer */
	st = process_start(&p, &captured, err);
	if (st)
		return st;
	st = take_output(&p, spec, end, size_max, &text, name, err);
	now = clock_now_ns(clock_monotonic());
	if (!st && !wait_up_to(&p, now < end ? (unsigned)((end - now) / 1000000u) : 0))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT, "%s did not end in time",
				     name);
	if (!process_stop(&p, told_to_stop(spec) && *spec->stop > 1 ? 0 : 500, 1000))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_STUCK, "%s does not end, even after KILL",
				     name);
	process_release(&p);
	if (!st && !WIFEXITED(p.wait_status)) {
		process_wait_text(p.wait_status, how, sizeof(how));
		st = error_set_cause(err, STATUS_VENDOR, CAUSE_CRASHED, "%s was ended by %s", name, how);
	}
	if (!st) {
		text_add(&text, "");
		*exit_code = WEXITSTATUS(p.wait_status);
		*out = text.data;
		if (size)
			*size = text.size;
		return STATUS_OK;
	}
	text_release(&text);
	return st;
}

void process_wait_text(int wait_status, char *out, size_t size)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, size, "signal %d (%s)", WTERMSIG(wait_status),
			 strsignal(WTERMSIG(wait_status)));
	else
		snprintf(out, size, "exit code %d", WEXITSTATUS(wait_status));
}

/* Reads field 22 of /proc/self/stat, in ticks since boot. The process name before it may contain blanks
 * and brackets. */
uint64_t process_started_ns(void)
{
	struct timespec boot, monotonic;
	unsigned long long ticks = 0;
	char *data = NULL, *at;
	size_t size = 0;
	double ago_s;

	if (file_read(&data, &size, "/proc/self/stat", 65536, NULL))
		return 0;
	at = strrchr(data, ')');
	if (!at ||
	    sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) != 1)
		ticks = 0;
	free(data);
	if (!ticks || clock_gettime(CLOCK_BOOTTIME, &boot) || clock_gettime(CLOCK_MONOTONIC, &monotonic))
		return 0;
	ago_s = (double)boot.tv_sec + (double)boot.tv_nsec * 1e-9 -
		(double)ticks / (double)sysconf(_SC_CLK_TCK);
	return (uint64_t)(((double)monotonic.tv_sec - ago_s) * 1e9) + (uint64_t)monotonic.tv_nsec;
}
