/* SPDX-License-Identifier: Apache-2.0 */
/* The words of assay that ranks are to run, before anything is started for them. */
#ifndef CMD_LAUNCH_COMMAND_H
#define CMD_LAUNCH_COMMAND_H
#include "core/input/opt.h"

/* BAD_INPUT where the ranks could only refuse them: no command of theirs, options that it has not, a suite or
 * a probe that is not built in. A file that they name may lie on their nodes alone: that is for them to say.
 */
enum status launch_command_check(const struct opt_words *words, struct error *err);
/* BAD_INPUT: they are of a command that works as one process, and there are more ranks than one. */
enum status launch_words_single(const struct opt_words *words, unsigned ranks, struct error *err);
#endif
