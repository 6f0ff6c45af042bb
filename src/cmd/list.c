/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/list.h"
#include "cmd/command.h"

#define X(name) extern const struct command command_##name;
COMMANDS(X)
HIDDEN_COMMANDS(X)
#undef X

#define X(name) &command_##name,
const struct command *const command_list[] = {COMMANDS(X) HIDDEN_COMMANDS(X) NULL};
#undef X
