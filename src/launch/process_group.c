/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/process_group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/text/text.h"
#include "launch/rank_exit.h"

enum { LOOK_MS = 50, END_MS = 10000, KILL_MS = 2000 };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static enum status make_pipe(int *read_end, int *write_end, struct error *err)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC))
		return error_errno(err, errno, "cannot make a pipe to a child process");
	*read_end = pair[0];
	*write_end = pair[1];
	return STATUS_OK;
}

/* Never waits, because a pipe holds more than a greeting. */
static enum status greet(const struct process_group *c, struct member *m, struct error *err)
{
	size_t size = strlen(c->greeting);

	/* A member that has ended already is reported later, with its last line. */
	if (write(m->input, c->greeting, size) == (ssize_t)size || errno == EPIPE)
		return STATUS_OK;
	return error_errno(err, errno, "cannot write to %s of %s", m->argv[0], m->name);
}

static enum status start(const struct process_group *c, struct member *m, struct error *err)
{
	int input = -1, errors = -1;
	struct process_spec spec = {.argv = m->argv, .env = m->env, .cpu_numa = -1};
	enum status st = STATUS_OK;

	if (c->greeting) {
		st = make_pipe(&input, &m->input, err);
		spec.input = &input;
	}
	if (!st && (c->greeting || c->hears)) {
		st = make_pipe(&m->errors, &errors, err);
		spec.errors = &errors;
	}
	if (!st)
		st = process_start(&m->process, &spec, err);
	m->started = !st;
	close_fd(&input);
	close_fd(&errors);
	return st || !c->greeting ? st : greet(c, m, err);
}

/* Members that are starting: neither begun nor ended. */
static unsigned on_the_way(const struct process_group *c)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->member[i].started && !c->member[i].begun && !c->member[i].ended;
	return n;
}

static enum status start_more(struct process_group *c, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < c->count && !st; i++) {
		if (c->member[i].started)
			continue;
		if (c->starting && on_the_way(c) >= c->starting)
			break;
		st = start(c, &c->member[i], err);
	}
	return st;
}

/* Always passed on: --quiet suppresses only this program's own lines. */
static void pass_on(const struct process_group *c, const struct member *m)
{
	char line[2 * PROCESS_GROUP_LINE];

	snprintf(line, sizeof(line), "%s: %s", m->name, m->part);
	if (c->log && c->log->sink)
		c->log->sink(c->log->arg, LOG_INFO, LOG_TOPIC_RUN, line);
}

static void whole_line(const struct process_group *c, struct member *m)
{
	m->part[m->part_size] = '\0';
	m->part_size = 0;
	if (c->begins && !strcmp(m->part, c->begins)) {
		m->begun = true;
		return;
	}
	if (c->hears) {
		c->hears(c->arg, m->part);
		return;
	}
	if (*m->part)
		text_copy(m->last, sizeof(m->last), m->part);
	if (m->begun) /* earlier lines come from ssh; the last one is used in the message if it fails */
		pass_on(c, m);
}

static void take(const struct process_group *c, struct member *m)
{
	char block[1024];
	ssize_t n = read(m->errors, block, sizeof(block));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		if (m->part_size)
			whole_line(c, m);
		close_fd(&m->errors);
		return;
	}
	if (c->hears)
		(void)!write(STDERR_FILENO, block, (size_t)n);
	for (ssize_t i = 0; i < n; i++) {
		if (block[i] == '\r')
			continue;
		if (block[i] == '\n' || m->part_size + 1 == sizeof(m->part))
			whole_line(c, m);
		if (block[i] != '\n')
			m->part[m->part_size++] = block[i];
	}
}

/* Waits a moment for output of the members, and takes it. */
static void listen(struct process_group *c, struct pollfd *set)
{
	nfds_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		set[n++] = (struct pollfd){.fd = c->member[i].errors, .events = POLLIN};
	set[n++] = (struct pollfd){.fd = c->lifeline, .events = POLLIN};
	if (poll(set, n, LOOK_MS) <= 0)
		return;
	for (size_t i = 0; i < c->count; i++)
		if (set[i].revents)
			take(c, &c->member[i]);
}

/* Ignores all bytes on the lifeline but a request to save. */
static bool lifeline_cut(struct process_group *c, const struct pollfd *seen)
{
	char block[256];

	ssize_t n;

	if (c->lifeline < 0 || !seen->revents)
		return false;
	n = read(c->lifeline, block, sizeof(block));
	c->asked_to_save = c->asked_to_save || (n > 0 && memchr(block, *PROCESS_GROUP_SAVE, (size_t)n));
	if (n > 0)
		return false;
	c->lifeline = -1;
	return true;
}

/* Whether a member still runs. Takes the remaining output of those that ended. */
static bool any_left(const struct process_group *c)
{
	bool left = false;

	for (size_t i = 0; i < c->count; i++) {
		struct member *m = &c->member[i];

		if (m->started && !m->ended && process_poll(&m->process)) {
			m->ended = true;
			close_fd(&m->input);
			if (m->errors >=
			    0) { /* its output is in the pipe, which a child of it may still hold open */
				fcntl(m->errors, F_SETFL, O_NONBLOCK);
				for (int k = 0; k < 64 && m->errors >= 0; k++)
					take(c, m);
				close_fd(&m->errors);
			}
		}
		left = left || !m->ended;
	}
	return left;
}

static const struct member *fell_early(const struct process_group *c)
{
	for (size_t i = 0; i < c->count && c->alone_ends_all; i++)
		if (c->member[i].ended && !c->member[i].begun)
			return &c->member[i];
	return NULL;
}

static enum status complain(const struct member *m, struct error *err)
{
	char how[64];

	process_wait_text(m->process.wait_status, how, sizeof(how));
	return error_set(err, STATUS_UNAVAILABLE, "%s cannot be used: %s (%s)", m->name,
			 *m->last ? m->last : "it printed nothing", how);
}

static void tell_to_end(const struct process_group *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct member *m = &c->member[i];

		if (c->greeting)
			close_fd(&m->input);
		else if (m->started && !m->ended)
			kill(-m->process.pid, SIGTERM);
	}
}

/* Asks all running members to end. Kills them after ten seconds or at a second request. */
static void end_all(struct process_group *c, struct pollfd *set)
{
	uint64_t end = clock_now_ns(clock_monotonic()) + END_MS * 1000000ull;

	for (size_t i = 0; i < c->count; i++)
		if (!c->member[i].started)
			c->member[i].ended = true;
	tell_to_end(c);
	while (any_left(c) && clock_now_ns(clock_monotonic()) < end && !(c->stop && *c->stop > 1))
		listen(c, set);
	for (size_t i = 0; i < c->count; i++)
		if (c->member[i].started && !c->member[i].ended &&
		    !process_stop(&c->member[i].process, 0, KILL_MS))
			log_warn(c->log, LOG_TOPIC_RUN, "%s cannot be ended", c->member[i].name);
	any_left(c);
}

/* Passes a preemption on, once. */
static void tell_to_save(struct process_group *c)
{
	c->saving_ns = clock_now_ns(clock_monotonic());
	for (size_t i = 0; i < c->count; i++) {
		struct member *m = &c->member[i];

		if (c->greeting && m->input >= 0)
			(void)!write(m->input, PROCESS_GROUP_SAVE, strlen(PROCESS_GROUP_SAVE));
		else if (m->started && !m->ended)
			kill(m->process.pid, SIGUSR1);
	}
}

/* Whether the members are to end now. */
static bool stops(struct process_group *c)
{
	const bool asked = c->stop && *c->stop,
		   preempted = c->asked_to_save || (asked && c->preempted && *c->preempted);

	if (!c->saves || !preempted)
		return asked;
	if (!c->saving_ns)
		tell_to_save(c);
	return (c->stop && *c->stop > 1) ||
	       clock_now_ns(clock_monotonic()) - c->saving_ns > PROCESS_GROUP_SAVE_MS * 1000000ull;
}

static enum status attend(struct process_group *c, struct pollfd *set, struct error *err)
{
	enum status st;

	for (;;) {
		st = start_more(c, err);
		if (st || !any_left(c))
			break;
		if (fell_early(c))
			break;
		listen(c, set);
		if (stops(c))
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request");
		if (lifeline_cut(c, &set[c->count]))
			return error_set_cause(
				err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				"the program that started these ranks asked them to end, or the connection to it was lost");
	}
	return st || !fell_early(c) ? st : complain(fell_early(c), err);
}

enum status process_group_run(struct process_group *c, struct error *err)
{
	struct pollfd *set = calloc(c->count + 1, sizeof(*set));
	enum status st;

	for (size_t i = 0; i < c->count; i++) {
		c->member[i].process = (struct process){.channel = -1, .output = -1};
		c->member[i].input = c->member[i].errors = -1;
	}
	st = set ? attend(c, set, err) : error_errno(err, ENOMEM, "no memory for %zu processes", c->count);
	if (set && st)
		end_all(c, set);
	for (size_t i = 0; i < c->count; i++) {
		close_fd(&c->member[i].input);
		close_fd(&c->member[i].errors);
		process_release(&c->member[i].process);
	}
	free(set);
	return st;
}

int process_group_exit(const struct process_group *c)
{
	int most = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct member *m = &c->member[i];
		int told = rank_exit_of(2, false), status = m->process.wait_status;
		char how[64];

		if (WIFEXITED(status) && !rank_exit_by(&told, WEXITSTATUS(status))) {
			log_warn(c->log, LOG_TOPIC_RUN, "%s ended with exit code %d%s%s", m->name,
				 WEXITSTATUS(status), *m->last ? ": " : "", m->last);
		} else if (!WIFEXITED(status)) {
			process_wait_text(status, how, sizeof(how));
			log_warn(c->log, LOG_TOPIC_RUN, "%s died of %s", m->name, how);
		}
		most = told > most ? told : most;
	}
	return most;
}
