/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/read/tail.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "journal/journal.h"

void tail_open(struct tail *t, const char *dir, const char *name, off_t back)
{
	char path[PATH_MAX + 32];
	struct stat info;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->fd >= 0 && (fstat(t->fd, &info) || !S_ISREG(info.st_mode))) {
		close(t->fd);
		t->fd = -1;
	}
	if (t->fd >= 0)
		t->at = info.st_size > back ? info.st_size - back : 0;
}

void tail_close(struct tail *t)
{
	if (t->fd >= 0)
		close(t->fd);
	text_release(&t->line);
	t->fd = -1;
}

/* The end of a line that began in the block before. */
static void end_line(struct tail *t, const char *end, size_t size,
		     void (*take)(void *arg, const char *line, size_t size), void *arg)
{
	text_add_bytes(&t->line, end, size);
	if (!t->line.failed)
		take(arg, text_str(&t->line), t->line.size);
	text_release(&t->line);
}

void tail_read(struct tail *t, void (*take)(void *arg, const char *line, size_t size), void *arg)
{
	char block[1 << 16];
	ssize_t n;

	while (t->fd >= 0 && (n = pread(t->fd, block, sizeof(block), t->at)) > 0) {
		char *at = block, *end;

		t->at += n;
		while ((end = memchr(at, '\n', (size_t)(block + n - at)))) {
			size_t size = (size_t)(end - at);

			if (t->line.size || t->line.failed)
				end_line(t, at, size, take, arg);
			else if (size)
				take(arg, at, size);
			at = end + 1;
		}
		if (at < block + n)
			text_add_bytes(&t->line, at, (size_t)(block + n - at));
		if (t->line.size > JOURNAL_LINE_MAX)
			text_release(&t->line);
	}
}
