/* SPDX-License-Identifier: Apache-2.0 */
/* Detects options with dashes where options are words, and words where options have dashes. */
#ifndef CMD_SHARED_OPTION_FORM_H
#define CMD_SHARED_OPTION_FORM_H
#include "cmd/command.h"

/* BAD_INPUT if an option has the form of another command or tool: "--type bf16" instead of "type=bf16",
 * "target=gpu0" instead of "--target gpu0", "-tokens 5" instead of "--tokens 5". argv holds the original
 * words after the subcommand. */
enum status option_form_check(const struct command *cmd, int argc, char *const *argv, struct error *err);
#endif
