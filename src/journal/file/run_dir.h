/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory while a run works in it: others may remove, move or replace it, or forbid to write there.
 */
#ifndef JOURNAL_FILE_RUN_DIR_H
#define JOURNAL_FILE_RUN_DIR_H
#include <limits.h>
#include <sys/types.h>

enum run_dir_state {
	RUN_DIR_HERE,	 /* or it cannot be known: that costs nobody his run */
	RUN_DIR_REMOVED, /* whatever stands at its path now is not it */
	RUN_DIR_MOVED,	 /* it stands elsewhere, and can be written to there */
	RUN_DIR_SHUT	 /* it stands where it stood, and cannot be written to */
};

struct run_dir {
	int fd; /* of the directory; -1: not known */
	char path[PATH_MAX];
};

/* Remembers the directory that stands at `path` now. Owner: caller, run_dir_close. */
void run_dir_open(struct run_dir *h, const char *path);
/* now: the path where it is to be found; of one that was removed, where it was. *why: errno of RUN_DIR_SHUT.
 */
enum run_dir_state run_dir_look(const struct run_dir *h, char now[PATH_MAX], int *why);
void run_dir_close(struct run_dir *h);
#endif
