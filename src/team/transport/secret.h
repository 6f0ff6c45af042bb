/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that the ranks of a team share. Every team has one. */
#ifndef TEAM_TRANSPORT_SECRET_H
#define TEAM_TRANSPORT_SECRET_H
#include <stdbool.h>
#include "team/launcher/place.h"

enum { SECRET_MIN = 16, SECRET_MAX = 128 };

#define SECRET_VARIABLE "ASSAY_TEAM_SECRET"
#define SECRET_FILE_VARIABLE "ASSAY_TEAM_SECRET_FILE"

struct secret {
	char text[SECRET_MAX + 1];
	char file[4096]; /* the job's file, or the launcher's; "": from the option or the environment */
};

/*
 * Takes the secret from the first of: `file` (a regular file of this user that no other user can read),
 * ASSAY_TEAM_SECRET, the file that ASSAY_TEAM_SECRET_FILE names, the job's file below XDG_RUNTIME_DIR (all
 * ranks on one node) or HOME/.cache. Rank 0 makes the job's file anew each time (128 random bits, mode 0600,
 * O_EXCL). UNAVAILABLE with TEAM_LATE: the job's file, or the one that the variable names, does not exist
 * yet; call again. BAD_INPUT: a further call cannot succeed.
 */
enum status secret_find(struct secret *s, const char *file, const struct team_place *p,
			const struct environment *env, struct error *err);
/* Wipes the text. With `remove_file` (rank 0, once all ranks have joined) also removes the job's file. */
void secret_forget(struct secret *s, bool remove_file);

/* Writes `text` to HOME/.cache/assay/team/NAME for ranks that another launcher starts, so that the launcher
 * does not carry the secret. *path: the file; the caller removes it once the ranks have ended. */
enum status secret_write_file(char path[4096], const char *name, const char *text,
			      const struct environment *env, struct error *err);

/* Moves ASSAY_TEAM_SECRET and ASSAY_TEAM_SECRET_FILE out of the environment, before a child process could
 * inherit them. */
void secret_take_env(void);
/* Puts them back, for ranks that are about to start. */
void secret_restore_env(void);
/* As getenv, for secret_find; also finds the variables that secret_take_env moved out. */
const char *secret_environment(void *arg, const char *name);
/* Wipes the moved variables, after the team has joined or without a team. */
void secret_forget_env(void);
#endif
