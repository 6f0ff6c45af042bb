/* SPDX-License-Identifier: Apache-2.0 */
/* --resume DIR: the command that began the run, read from its journal, so that nobody repeats its words. */
#ifndef CMD_RUNNING_RESUME_H
#define CMD_RUNNING_RESUME_H
#include <jansson.h>
#include <stdbool.h>
#include "cmd/command.h"

struct resume {
	void *values; /* the command's options as they were, with the words of now over them */
	json_t *words;
	char **argv; /* lent from words; values point into both */
	bool team;   /* the run is a launched team's */
};

/* Options that are given now and differ are refused by name, but for those that change neither plan nor
 * figures
 * (--format, --json, --plan, --wait; --out may name DIR alone). Owner: caller, resume_release. */
enum status resume_read(struct resume *a, const struct command_context *c, const struct command *command,
			const char *dir, struct error *err);
void resume_release(struct resume *a);
#endif
