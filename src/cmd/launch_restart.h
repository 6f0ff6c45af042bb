/* SPDX-License-Identifier: Apache-2.0 */
/* assay launch --restarts: starts lost ranks again (docs/explanation/design/launch.md, "Preemption and
 * restarts"). */
#ifndef CMD_LAUNCH_RESTART_H
#define CMD_LAUNCH_RESTART_H
#include "cmd/command.h"
#include "launch/script.h"

struct launch_restart {
	struct launch_plan *plan; /* its hosts and nodes become fewer if some do not answer */
	unsigned restarts;
	const struct command_context *c;
	/* Starts the ranks of the plan and waits for their ends. */
	enum status (*start)(void *arg, int *code, struct error *err);
	void *arg;
};

/* With restarts > 0: makes the plan's command one that continues its run, in `words`. BAD_INPUT: the command
 * or the way to start it does not allow restarts. */
enum status launch_restart_words(struct launch_plan *p, unsigned restarts,
				 const char *words[COMMAND_WORDS_MAX + 2], struct error *err);
/* Starts the ranks, and starts them again if they or their launcher were lost. *code and the status are those
 * of the last start. */
enum status launch_restart(const struct launch_restart *r, int *code, struct error *err);
#endif
