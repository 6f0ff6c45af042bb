/* SPDX-License-Identifier: Apache-2.0 */
/* The user's commands that drain and resume the node. No shell reads them.
 * docs/explanation/design/health.md, "Draining". */
#ifndef CMD_HEALTH_HOOK_H
#define CMD_HEALTH_HOOK_H
#include <signal.h>
#include "cmd/health/gate.h"
#include "core/error.h"
#include "launch/command_words.h"

enum { HOOK_MS = 10000, HOOK_NODE = 256 };

struct hook_values {
	char node[HOOK_NODE];
	char reason[GATE_REASON];
	enum cause cause;
};

/* Writes the reason: "assay health: " and the line, printable ASCII only, cut to its room. */
void hook_reason(char out[GATE_REASON], const char *line);
/* Splits a command into words at blanks. '..', ".." and \ group as in a shell; nothing is expanded. Then %n
 * in a word becomes the node, %r the reason, %% a percent sign. BAD_INPUT: no word, an open quote, another %
 * sign. `option` names the command in messages. The caller calls command_words_release. */
enum status hook_words(struct command_words *out, const char *option, const char *command,
		       const struct hook_values *values, struct error *err);
/* Runs the command to its end, at most HOOK_MS. The values are also in ASSAY_HEALTH_NODE, ASSAY_HEALTH_REASON
 * and ASSAY_HEALTH_CAUSE. An exit code other than 0 is an error (VENDOR). */
enum status hook_run(const char *option, const char *command, const struct hook_values *values,
		     const volatile sig_atomic_t *stop, struct error *err);
#endif
