/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the command that ranks are to run, before anything is started. */
#ifndef CMD_LAUNCH_COMMAND_H
#define CMD_LAUNCH_COMMAND_H
#include "core/input/opt.h"

/* BAD_INPUT if every rank would refuse the command: it is not a command for ranks, has unknown options, or
 * names a suite or probe that is not built in. A file may exist only on the nodes, so missing files are
 * left to the ranks. `who` begins the message: "launch". */
enum status launch_command_check(const struct opt_words *words, const char *who, struct error *err);
/* BAD_INPUT if the command runs as one process only and more than one rank is requested. */
enum status launch_words_single(const struct opt_words *words, unsigned ranks, struct error *err);
/* Whether the command's ranks communicate by MPI if they have no GPU. */
bool launch_words_mpi(const struct opt_words *words);
/* Whether its ranks save on TERM and USR1, so that the command can be continued. */
bool launch_words_saves(const struct opt_words *words);
/* struct command's again, of words that launch_command_check accepted. */
const char *launch_words_again(const struct opt_words *words);
#endif
