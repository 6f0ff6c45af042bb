/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a run directory during the run: other programs may remove, move or replace it, or make it
 * read-only. */
#ifndef JOURNAL_FILE_RUN_DIR_H
#define JOURNAL_FILE_RUN_DIR_H
#include <limits.h>
#include <sys/types.h>

enum run_dir_state {
	RUN_DIR_HERE,	 /* also if the state cannot be determined, so that the run goes on */
	RUN_DIR_REMOVED, /* its path is gone, or leads to another directory */
	RUN_DIR_MOVED,	 /* it has another path now, and is writable there */
	RUN_DIR_SHUT	 /* it has the same path, and is not writable */
};

struct run_dir {
	int fd; /* of the directory; -1: not known */
	char path[PATH_MAX];
};

/* Opens the directory at `path`. Owner: caller, run_dir_close. */
void run_dir_open(struct run_dir *h, const char *path);
/* Finds the state of the directory. now: its present path, or the former one if it was removed. *why: the
 * errno of RUN_DIR_SHUT. */
enum run_dir_state run_dir_look(const struct run_dir *h, char now[PATH_MAX], int *why);
void run_dir_close(struct run_dir *h);
#endif
