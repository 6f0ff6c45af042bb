/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/command.h"

int command_code(enum status st)
{
	return !st ? EXIT_PASS : st == STATUS_BAD_INPUT ? EXIT_USAGE : EXIT_INCONCLUSIVE;
}

int command_complain(const struct command_context *c, const struct error *err)
{
	log_error(c->log, LOG_TOPIC_RUN, "%s", err->text);
	return command_code(err->status);
}
