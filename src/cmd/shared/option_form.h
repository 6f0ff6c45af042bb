/* SPDX-License-Identifier: Apache-2.0 */
/* Options with dashes where words are options, and the reverse. */
#ifndef CMD_SHARED_OPTION_FORM_H
#define CMD_SHARED_OPTION_FORM_H
#include "cmd/command.h"

/* BAD_INPUT where an option stands in the form that another command, or another tool, has: "--type bf16" for
 * "type=bf16", "target=gpu0" for "--target gpu0", "-tokens 5" for "--tokens 5". argv as it was given, behind
 * the subcommand. */
enum status option_form_check(const struct command *cmd, int argc, char *const *argv, struct error *err);
#endif
