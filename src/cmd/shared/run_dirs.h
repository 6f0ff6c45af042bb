/* SPDX-License-Identifier: Apache-2.0 */
/* Run directories as commands name them: the next free one, and those among many words. */
#ifndef CMD_SHARED_RUN_DIRS_H
#define CMD_SHARED_RUN_DIRS_H
#include <limits.h>
#include "core/log.h"
#include "core/input/opt.h"

/* "assay-runs/2026-11-21-NAME", or the first of -2, -3 .. that is not there. */
void run_dirs_next(char out[PATH_MAX], const char *name);
/* The same, made: of several that start together each has its own. */
enum status run_dirs_claim(char out[PATH_MAX], const char *name, struct error *err);
/* Whether a journal lies in the folder. */
bool run_dirs_is(const char *dir);
/* BAD_INPUT where the journal is another rank's than 0: the run of all is in rank 0's folder. What cannot be
 * read is for others to say. */
enum status run_dirs_whole(const char *dir, struct error *err);
/* Of several words those that are run directories; what else a pattern brought is said and passed over. One
 * word alone, and nothing but others, are for the caller to read and refuse. Owner of out->word: caller,
 * free(). */
enum status run_dirs_pick(struct opt_words *out, const struct opt_words *given, const struct log *log,
			  struct error *err);
#endif
