/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that work as one process refuse to be one of several ranks. */
#ifndef CMD_SHARED_SINGLE_PROCESS_H
#define CMD_SHARED_SINGLE_PROCESS_H
#include "core/error.h"

/* BAD_INPUT: a launcher started this process as one of several ranks, each of which would do all of the
 * command's work. The message names the command and the launcher. Other errors are of team_place(). */
enum status single_process_check(const char *command, struct error *err);
#endif
