/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "watch/read/node.h"

enum { TERM_MS = 100, KILL_MS = 300, BLOCK = 16384, BLOCKS_A_TURN = 16, PAGE = 4096 };
#define AGAIN_NS 1000000000ull
/* An end of the output is seen at once. A process can also end while another one has its output open. */
#define ASK_NS 3000000000ull
#define AGAIN_MAX 30

/* A process of this user, of the same name as our reader of GPUs, that waits inside the kernel. 0: none. */
static pid_t stuck_reader(const char *proc)
{
	struct dirent *entry;
	DIR *all = opendir(proc);
	pid_t found = 0;

	while (all && !found && (entry = readdir(all))) {
		char text[256], path[PATH_MAX], *state;
		struct stat info;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !reader_text(text, sizeof(text), "%s/%s/stat", proc, entry->d_name) ||
		    !strstr(text, "(" READER_GPU_NAME ")"))
			continue;
		state = strrchr(text, ')');
		snprintf(path, sizeof(path), "%s/%s", proc, entry->d_name);
		if (state && state[1] == ' ' && state[2] == 'D' && !stat(path, &info) &&
		    info.st_uid == getuid())
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (all)
		closedir(all);
	return found;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void make_page(struct child *c)
{
	void *page;

	if (c->page || strcmp(c->name, "gpu"))
		return;
	c->page_fd = memfd_create("assay-watch", MFD_CLOEXEC);
	if (c->page_fd < 0 || ftruncate(c->page_fd, PAGE))
		return;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, c->page_fd, 0);
	c->page = page == MAP_FAILED ? NULL : page;
}

static void again_later(struct child *c)
{
	unsigned seconds = c->failures < 5 ? 1u << c->failures : AGAIN_MAX;

	c->failures++;
	c->start_ns = clock_now_ns(clock_monotonic()) + seconds * AGAIN_NS;
}

void reader_child_start(struct child *c, const struct reader_spec *spec, const char *proc)
{
	char interval[32], slow[32];
	const char *argv[] = {NULL,
			      "__watch",
			      c->name,
			      "--interval",
			      interval,
			      "--slow",
			      slow,
			      "--sys",
			      spec->sys,
			      "--proc",
			      spec->proc,
			      "--kmsg",
			      spec->kmsg,
			      "--skip",
			      *c->skip ? c->skip : "none",
			      spec->runs ? "--runs" : NULL,
			      spec->runs,
			      NULL};
	int in[2] = {-1, -1}, errors[2] = {-1, -1};
	struct process_spec p = {.argv = argv,
				 .capture_output = true,
				 .stderr_apart = true,
				 .input = &in[0],
				 .errors = &errors[1],
				 .cpu_numa = -1};
	struct error err = {0};
	pid_t stranger = strcmp(c->name, "gpu") ? 0 : stuck_reader(proc);

	if (stranger) {
		/* a moment in the kernel is normal; a second later it is stuck */
		if (c->stranger == stranger)
			snprintf(c->error, sizeof(c->error),
				 "an earlier reader (process %d) is stuck in the driver", (int)stranger);
		c->stranger = stranger;
		c->start_ns = clock_now_ns(clock_monotonic()) + AGAIN_NS;
		return;
	}
	c->stranger = 0;
	make_page(c);
	if (c->page) {
		memset(c->page, 0, PAGE);
		p.shared = c->page_fd;
	}
	snprintf(interval, sizeof(interval), "%.9g", spec->interval);
	snprintf(slow, sizeof(slow), "%.9g", spec->slow);
	if (pipe2(in, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		error_errno(&err, errno, "cannot start the reader %s", c->name);
	else if (!process_start(&c->process, &p, &err))
		c->running = set_nonblocking(c->process.output) && set_nonblocking(in[1]) &&
			     set_nonblocking(errors[0]);
	close_end(&in[0]);
	close_end(&errors[1]);
	c->input = in[1];
	c->errors = errors[0];
	*c->error = '\0';
	if (!c->running) {
		text_copy(c->error, sizeof(c->error), err.text);
		again_later(c);
	}
	c->heard_ns = clock_now_ns(clock_monotonic());
	for (size_t i = 0; i < WATCH_ENTITIES_MAX; i++)
		c->map[i] = OUT_NONE;
}

static void read_errors(struct child *c)
{
	char block[512], *end;
	ssize_t n;

	while (c->errors >= 0 && (n = read(c->errors, block, sizeof(block) - 1)) > 0) {
		block[n] = '\0';
		end = strrchr(block, '\n');
		if (!end)
			continue;
		*end = '\0';
		end = strrchr(block, '\n');
		text_copy(c->error, sizeof(c->error), end ? end + 1 : block);
	}
}

static void closed(struct child *c)
{
	process_release(&c->process);
	close_end(&c->input);
	close_end(&c->errors);
	text_release(&c->line);
	c->running = c->stuck = false;
}

static void take_lines(struct child *c, bool (*take)(void *, const char *, size_t), void *arg)
{
	size_t at = 0;
	char *end;

	while (at < c->line.size && (end = memchr(c->line.data + at, '\n', c->line.size - at))) {
		size_t size = (size_t)(end - c->line.data) - at;

		c->line.data[at + size] = '\0';
		take(arg, c->line.data + at, size);
		at += size + 1;
	}
	if (at) {
		memmove(c->line.data, c->line.data + at, c->line.size - at + 1);
		c->line.size -= at;
	}
	if (c->line.size > WATCH_LINE_MAX)
		text_release(&c->line);
}

bool reader_child_read(struct child *c, bool (*take)(void *arg, const char *line, size_t size), void *arg)
{
	uint64_t now_ns = clock_now_ns(clock_monotonic());
	char block[BLOCK];
	ssize_t n = 0;

	for (int i = 0; i < BLOCKS_A_TURN && (n = read(c->process.output, block, sizeof(block))) > 0; i++) {
		text_add_bytes(&c->line, block, (size_t)n);
		c->heard_ns = now_ns;
		take_lines(c, take, arg);
		if ((size_t)n < sizeof(block))
			break; /* the pipe is empty */
	}
	if (n && now_ns < c->asked_ns + ASK_NS)
		return true;
	c->asked_ns = now_ns;
	read_errors(c);
	if (!process_poll(&c->process))
		return true;
	read_errors(c);
	if (!*c->error) {
		char how[64];

		process_wait_text(c->process.wait_status, how, sizeof(how));
		snprintf(c->error, sizeof(c->error), "its reader ended with %s", how);
	}
	closed(c);
	again_later(c);
	return false;
}

void reader_child_stop(struct child *c)
{
	if (!c->running)
		return;
	if (!process_stop(&c->process, TERM_MS, KILL_MS)) {
		c->stuck = true;
		return;
	}
	closed(c);
	c->start_ns = clock_now_ns(clock_monotonic());
}

void reader_child_release(struct child *c)
{
	reader_child_stop(c);
	if (c->page)
		munmap(c->page, PAGE);
	if (c->page_fd >= 0)
		close(c->page_fd);
	text_release(&c->line);
}
