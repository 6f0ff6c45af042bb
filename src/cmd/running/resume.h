/* SPDX-License-Identifier: Apache-2.0 */
/* --resume DIR reads the command that began the run from the run's journal, so that nobody has to repeat
 * it. */
#ifndef CMD_RUNNING_RESUME_H
#define CMD_RUNNING_RESUME_H
#include <jansson.h>
#include <stdbool.h>
#include "cmd/command.h"

struct resume {
	void *values; /* the original options, overridden by the options given now */
	json_t *words;
	char **argv; /* points into words; values point into both */
	bool team;   /* the run had several ranks */
};

/* Reads the original command of a run. An option that is given now and differs is an error that names it,
 * except options that change neither plan nor figures (--format, --json, --plan, --wait); --out may only
 * name DIR itself. The caller calls resume_release. */
enum status resume_read(struct resume *a, const struct command_context *c, const struct command *command,
			const char *dir, struct error *err);
void resume_release(struct resume *a);
#endif
