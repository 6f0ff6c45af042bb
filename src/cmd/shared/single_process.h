/* SPDX-License-Identifier: Apache-2.0 */
/* For commands that do not support several ranks. */
#ifndef CMD_SHARED_SINGLE_PROCESS_H
#define CMD_SHARED_SINGLE_PROCESS_H
#include "core/error.h"

/* BAD_INPUT if a launcher started this process as one of several ranks, because each rank would do all of
 * the command's work. The message names the command and the launcher. Other errors come from team_place(). */
enum status single_process_check(const char *command, struct error *err);
#endif
