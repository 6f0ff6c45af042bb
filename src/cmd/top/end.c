/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a process of this machine, after a question. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cmd/top/top.h"
#include "watch/screen/lists.h"

/* Reads a small file of /proc; the text is empty if it cannot be read. Zero bytes become spaces. */
static void read_proc(char *out, size_t size, uint64_t pid, const char *name)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/%s", (unsigned long long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, size - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!out[i] || out[i] == '\n')
			out[i] = ' ';
	for (size_t i = strlen(out); i && out[i - 1] == ' '; i--)
		out[i - 1] = '\0';
}

static int open_process(struct screen_view *v, const struct screen_process *p)
{
	char comm[64];
	const char *known = screen_label(p->entity, "comm");
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0);

	if (fd < 0) {
		snprintf(v->message, sizeof(v->message), "process %s cannot be ended: %s", p->pid_text,
			 errno == ESRCH ? "it has ended already" : strerror(errno));
		return -1;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	read_proc(comm, sizeof(comm), p->pid, "comm");
	/* The driver may count processes of another namespace. */
	if (!*known)
		snprintf(
			v->message, sizeof(v->message),
			"process %s is not ended: its name is not known here, so the number may be another's",
			p->pid_text);
	else if (strcmp(known, comm) != 0)
		snprintf(v->message, sizeof(v->message),
			 "process %s is not ended: here it is \"%.20s\", but the GPU's is \"%.20s\"",
			 p->pid_text, comm, known);
	else if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0))
		snprintf(v->message, sizeof(v->message), "process %s cannot be ended: %s", p->pid_text,
			 errno == EPERM ? "it is another user's" : strerror(errno));
	else
		return fd;
	close(fd);
	return -1;
}

/* The process that is selected; false: none. */
static bool selected(struct screen_process *out, const struct screen_view *v, const struct screen_node *n)
{
	struct screen_processes l;
	bool found;

	screen_processes_make(&l, v, n);
	found = v->on_processes && v->process_at < l.count && !l.row[v->process_at].heading;
	if (found)
		*out = l.row[v->process_at];
	screen_processes_release(&l);
	return found;
}

int top_end_ask(struct screen_view *v, const struct screen_node *n)
{
	struct screen_process p;
	char command[160];
	int fd;

	if (!n->local) {
		snprintf(v->message, sizeof(v->message), "only processes of this machine can be ended");
		return -1;
	}
	if (!selected(&p, v, n)) {
		snprintf(v->message, sizeof(v->message), "select a process first: Tab, then the arrow keys");
		return -1;
	}
	if (p.pid < 2 || p.pid > 4194304) {
		snprintf(v->message, sizeof(v->message), "process \"%.20s\" has no number that can be ended",
			 p.pid_text);
		return -1;
	}
	fd = open_process(v, &p);
	if (fd < 0)
		return -1;
	read_proc(command, sizeof(command), p.pid, "cmdline");
	snprintf(v->question, sizeof(v->question), "end process %s of %.32s with TERM? y/n  (%.150s)",
		 p.pid_text, *p.user ? p.user : "?", command);
	return fd;
}

void top_end(struct screen_view *v, int pidfd)
{
	if (pidfd < 0)
		return;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0))
		snprintf(v->message, sizeof(v->message), "the process was not ended: %s", strerror(errno));
	else
		snprintf(v->message, sizeof(v->message), "TERM was sent");
	close(pidfd);
}
