/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a team share and nobody else knows. There is no team without one. */
#ifndef TEAM_TRANSPORT_SECRET_H
#define TEAM_TRANSPORT_SECRET_H
#include <stdbool.h>
#include "team/launcher/place.h"

enum { SECRET_MIN = 16, SECRET_MAX = 128 };

#define SECRET_VARIABLE "ASSAY_TEAM_SECRET"
#define SECRET_FILE_VARIABLE "ASSAY_TEAM_SECRET_FILE"

struct secret {
	char text[SECRET_MAX + 1];
	char file[4096]; /* the job's file, or that of one start; "": told by option or environment */
};

/*
 * First of: `file` (regular, ours, readable by nobody else), ASSAY_TEAM_SECRET, the file that
 * ASSAY_TEAM_SECRET_FILE names, the job's file below XDG_RUNTIME_DIR (all ranks on one node) or HOME/.cache.
 * The job's file rank 0 makes, anew each time (128 random bits, 0600, O_EXCL). That file, and the one that
 * the variable names, may not be there yet: UNAVAILABLE with TEAM_LATE, ask again. BAD_INPUT where it never
 * will do.
 */
enum status secret_find(struct secret *s, const char *file, const struct team_place *p,
			const struct environment *env, struct error *err);
/* Rank 0, once all have joined: the job's file away. Wipes the text. */
void secret_forget(struct secret *s, bool remove_file);

/* Lays `text` at HOME/.cache/assay/team/NAME for ranks that others start: no launcher of others carries it.
 * *path: where; the caller removes it once the ranks have ended. */
enum status secret_lay(char path[4096], const char *name, const char *text, const struct environment *env,
		       struct error *err);

/* ASSAY_TEAM_SECRET and where its file is out of our environment, before anything is started that would
 * inherit it. */
void secret_take_told(void);
/* Back into it, for ranks that are about to be started. */
void secret_give_told(void);
/* getenv, for secret_find: what was taken out is still told here. */
const char *secret_environment(void *arg, const char *name);
/* The team has met, or there is none. */
void secret_forget_told(void);
#endif
