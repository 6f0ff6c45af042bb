/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a team share and nobody else knows. There is no team without one. */
#ifndef TEAM_SECRET_H
#define TEAM_SECRET_H
#include <stdbool.h>
#include "team/place.h"

enum { SECRET_MIN = 16, SECRET_MAX = 128 };

struct secret {
	char text[SECRET_MAX + 1];
	char file[4096]; /* the job's file; "": told by option or environment */
};

/*
 * First of: `file` (regular, ours, readable by nobody else), ASSAY_TEAM_SECRET, the job's file below
 * XDG_RUNTIME_DIR (all ranks on one node) or HOME/.cache. The job's file rank 0 makes, anew each time (128
 * random bits, 0600, O_EXCL); for the others it may not be there yet: UNAVAILABLE, ask again. BAD_INPUT where
 * it never will do.
 */
enum status secret_find(struct secret *s, const char *file, const struct team_place *p,
			const struct environment *env, struct error *err);
/* Rank 0, once all have joined: the job's file away. Wipes the text. */
void secret_forget(struct secret *s, bool remove_file);
#endif
