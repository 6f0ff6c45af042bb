/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/place.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"

enum { FILE_MAX = 4096, PATH = 320, NAME = 96 };

enum argument { NO_FILE, DESCRIPTOR };
/* System calls in which a process can wait, if this architecture has them. */
static const struct call {
	long number;
	const char *name;
	enum argument first;
} calls[] = {
	{SYS_read, "read", DESCRIPTOR},
	{SYS_pread64, "pread", DESCRIPTOR},
	{SYS_readv, "readv", DESCRIPTOR},
	{SYS_preadv, "preadv", DESCRIPTOR},
	{SYS_write, "write", DESCRIPTOR},
	{SYS_pwrite64, "pwrite", DESCRIPTOR},
	{SYS_writev, "writev", DESCRIPTOR},
	{SYS_fsync, "fsync", DESCRIPTOR},
	{SYS_fdatasync, "fdatasync", DESCRIPTOR},
	{SYS_flock, "flock", DESCRIPTOR},
	{SYS_fcntl, "fcntl", DESCRIPTOR},
	{SYS_ioctl, "ioctl", DESCRIPTOR},
	{SYS_recvfrom, "recvfrom", DESCRIPTOR},
	{SYS_recvmsg, "recvmsg", DESCRIPTOR},
	{SYS_sendto, "sendto", DESCRIPTOR},
	{SYS_sendmsg, "sendmsg", DESCRIPTOR},
	{SYS_connect, "connect", DESCRIPTOR},
	{SYS_accept4, "accept4", DESCRIPTOR},
	{SYS_close, "close", DESCRIPTOR},
	{SYS_openat, "openat", NO_FILE},
	{SYS_fstat, "fstat", DESCRIPTOR},
	{SYS_futex, "futex", NO_FILE},
	{SYS_ppoll, "ppoll", NO_FILE},
	{SYS_pselect6, "pselect", NO_FILE},
	{SYS_epoll_pwait, "epoll_pwait", NO_FILE},
	{SYS_nanosleep, "nanosleep", NO_FILE},
	{SYS_clock_nanosleep, "clock_nanosleep", NO_FILE},
	{SYS_wait4, "wait4", NO_FILE},
	{SYS_sched_yield, "sched_yield", NO_FILE},
	{SYS_munmap, "munmap", NO_FILE},
	{SYS_mmap, "mmap", NO_FILE},
#ifdef SYS_poll
	{SYS_poll, "poll", NO_FILE},
#endif
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, "epoll_wait", NO_FILE},
#endif
#ifdef SYS_select
	{SYS_select, "select", NO_FILE},
#endif
#ifdef SYS_pause
	{SYS_pause, "pause", NO_FILE},
#endif
};

struct thread {
	const char *root;
	pid_t pid, tid;
};

/* What stands in a file of the thread, without the line's end. False: errno says why. */
static bool read_word(const struct thread *t, const char *file, char *out, size_t size)
{
	char path[PATH], *text = NULL;
	size_t read;

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", t->root, (int)t->pid, (int)t->tid, file);
	if (file_read(&text, &read, path, FILE_MAX, NULL))
		return false;
	snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
	return true;
}

static char state_of(const struct thread *t)
{
	char stat[NAME];
	const char *at;

	if (!read_word(t, "stat", stat, sizeof(stat)))
		return '\0';
	at = strrchr(stat, ')');
	return at && at[1] == ' ' ? at[2] : '\0';
}

/* "rows.jsonl", "a pipe", "a socket", "/dev/nvidia0"; files have no folders, which may be private. */
static void name_file(char out[NAME], const struct thread *t, long descriptor)
{
	char path[PATH], link[PATH];
	ssize_t size;
	const char *slash;

	snprintf(path, sizeof(path), "%s/%d/fd/%ld", t->root, (int)t->pid, descriptor);
	size = readlink(path, link, sizeof(link) - 1);
	if (size < 0) {
		snprintf(out, NAME, "descriptor %ld", descriptor);
		return;
	}
	link[size] = '\0';
	slash = strrchr(link, '/');
	if (!strncmp(link, "pipe:", 5) || !strncmp(link, "socket:", 7))
		snprintf(out, NAME, "a %.6s", *link == 'p' ? "pipe" : "socket");
	else
		snprintf(out, NAME, "%.90s", slash && strncmp(link, "/dev/", 5) ? slash + 1 : link);
}

static const struct call *call_of(long number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

/* The wait's name in the kernel, where the system call is not readable. */
static void name_wait(char *out, size_t size, const struct thread *t)
{
	char wait[NAME];

	if (read_word(t, "wchan", wait, sizeof(wait)) && *wait && strcmp(wait, "0"))
		snprintf(out, size, "waits in the kernel's %.60s", wait);
	else
		snprintf(out, size, "waits, and its system call cannot be read");
}

/* *file: it waits in a call that has a file. */
static void name_call(char *out, size_t size, const struct thread *t, bool *futex, bool *file)
{
	char words[200], name[NAME], *end;
	const struct call *call;
	long number, first;

	*futex = *file = false;
	if (!read_word(t, "syscall", words, sizeof(words))) {
		name_wait(out, size, t);
		return;
	}
	number = strtol(words, &end, 10);
	if (end == words || number < 0) { /* "running" */
		snprintf(out, size, "computes");
		return;
	}
	first = strtol(end, NULL, 16);
	call = call_of(number);
	*futex = number == SYS_futex;
	if (!call) {
		snprintf(out, size, "waits in system call %ld", number);
	} else if (call->first == DESCRIPTOR) {
		*file = true;
		name_file(name, t, first);
		snprintf(out, size, "waits in %s() of %s", call->name, name);
	} else if (*futex) {
		snprintf(out, size, "waits for another of its threads");
	} else {
		snprintf(out, size, "waits in %s()", call->name);
	}
}

/* Adds the first other thread that waits for a file, disk or device. */
static void add_other(char *out, size_t size, const struct thread *main_thread)
{
	char path[PATH], wait[160];
	struct thread t = *main_thread;
	struct dirent *entry;
	bool futex, file = false;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%d/task", t.root, (int)t.pid);
	d = opendir(path);
	while (d && !file && (entry = readdir(d))) {
		t.tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (t.tid > 0 && t.tid != t.pid)
			name_call(wait, sizeof(wait), &t, &futex, &file);
	}
	if (d)
		closedir(d);
	if (file)
		snprintf(out + strlen(out), size - strlen(out), ", and thread %d %s", (int)t.tid, wait);
}

void process_place_text(char *out, size_t size, const char *root, pid_t pid, char *state)
{
	const struct thread t = {.root = root, .pid = pid, .tid = pid};
	const char is = state_of(&t);
	bool futex = false, file;

	if (state)
		*state = is;
	if (is == 'T' || is == 't')
		snprintf(out, size, "is stopped (SIGSTOP)");
	else if (is == 'Z' || is == 'X')
		snprintf(out, size, "has ended");
	else if (!is)
		snprintf(out, size, "cannot be read");
	else
		name_call(out, size, &t, &futex, &file);
	if (is == 'D')
		snprintf(out + strlen(out), size - strlen(out), " (a disk or another device)");
	if (futex)
		add_other(out, size, &t);
}
