/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory while a run works in it: others may remove, move or replace it, or forbid to write there.
 */
#ifndef JOURNAL_HOME_H
#define JOURNAL_HOME_H
#include <limits.h>
#include <sys/types.h>

enum home_state {
	HOME_HERE,    /* or it cannot be known: that costs nobody his run */
	HOME_REMOVED, /* whatever stands at its path now is not it */
	HOME_MOVED,   /* it stands elsewhere, and can be written to there */
	HOME_SHUT     /* it stands where it stood, and cannot be written to */
};

struct home {
	int fd; /* of the directory; -1: not known */
	char path[PATH_MAX];
};

/* Remembers the directory that stands at `path` now. Owner: caller, home_close. */
void home_open(struct home *h, const char *path);
/* now: the path where it is to be found; of one that was removed, where it was. *why: errno of HOME_SHUT. */
enum home_state home_look(const struct home *h, char now[PATH_MAX], int *why);
void home_close(struct home *h);
#endif
