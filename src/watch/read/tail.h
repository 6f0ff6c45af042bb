/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file that another process appends to. */
#ifndef WATCH_READ_TAIL_H
#define WATCH_READ_TAIL_H
#include <stddef.h>
#include <sys/types.h>
#include "core/text/text.h"

struct tail {
	int fd; /* -1: there is no file */
	off_t at;
	struct text line; /* the beginning of a line whose end is not read yet */
};

/* Opens dir/name, from `back` bytes before its present end on. Without such a file, t->fd is -1. */
void tail_open(struct tail *t, const char *dir, const char *name, off_t back);
void tail_close(struct tail *t);
/* Calls `take` for each new line that is complete and not empty, without its newline. The first line of a
 * file may lack its beginning. A line is left out if there is no memory for it. */
void tail_read(struct tail *t, void (*take)(void *arg, const char *line, size_t size), void *arg);
#endif
