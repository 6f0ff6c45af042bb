/* SPDX-License-Identifier: Apache-2.0 */
/* Run directories on command lines: the next free one, and those in a list of words. */
#ifndef CMD_SHARED_RUN_DIRS_H
#define CMD_SHARED_RUN_DIRS_H
#include <limits.h>
#include "core/log.h"
#include "core/input/opt.h"

/* Makes the name "assay-runs/2026-11-21-NAME", or the first of NAME-2, NAME-3 .. that does not exist. */
void run_dirs_next(char out[PATH_MAX], const char *name);
/* Like run_dirs_next, but also creates the directory. Of several processes that start together, each gets
 * its own. */
enum status run_dirs_claim(char out[PATH_MAX], const char *name, struct error *err);
/* Creates the folder that a user gave, or claims the next free one for `given` NULL. BAD_INPUT: the path is
 * too long, or it already holds a run. */
enum status run_dirs_make(char out[PATH_MAX], const char *given, const char *name, struct error *err);
/* Creates an empty folder for several runs, or accepts one: `given`, or the next free one for NULL.
 * BAD_INPUT: the path is too long, or something is in it. */
enum status run_dirs_fresh(char out[PATH_MAX], const char *given, const char *name, struct error *err);
/* True if the folder contains a journal. */
bool run_dirs_is(const char *dir);
/* BAD_INPUT if the journal belongs to a rank other than 0: rank 0's folder has the run of all ranks. An
 * unreadable journal is not an error here; its reader will report it. */
enum status run_dirs_whole(const char *dir, struct error *err);
/* Selects the run directories among several words, for example from a shell pattern. Other words are
 * logged and skipped. If there is only one word, or none is a run directory, the words are left for the
 * caller to check. The caller frees out->word with free(). */
enum status run_dirs_pick(struct opt_words *out, const struct opt_words *given, const struct log *log,
			  struct error *err);
#endif
