/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "launch/start.h"
#include "launch/rank_exit.h"

enum { AT_ONCE = 32 };

enum status start_ssh(const struct launch_plan *p, const struct starting *s, int *exit_code,
		      struct error *err)
{
	struct command_words *node = calloc(p->nodes, sizeof(*node));
	struct member *member = calloc(p->nodes, sizeof(*member));
	char greeting[sizeof(struct ranks_team) + 2];
	struct process_group c = {.member = member,
				  .count = p->nodes,
				  .greeting = greeting,
				  .begins = RANKS_BEGIN,
				  .starting = AT_ONCE,
				  .lifeline = -1,
				  .alone_ends_all = true,
				  .stop = s->stop,
				  .preempted = s->preempted,
				  .saves = s->saves,
				  .log = s->log};
	enum status st = STATUS_OK;

	if (!node || !member) {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %u hosts",
				     p->nodes);
		goto out;
	}
	snprintf(greeting, sizeof(greeting), "%s %s\n", s->team->secret, s->team->job);
	for (unsigned i = 0; i < p->nodes; i++) {
		script_ssh(&node[i], p, i, true);
		if (node[i].failed)
			st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					     "no memory for the arguments of ssh");
		member[i].argv = (const char *const *)node[i].word;
		text_copy(member[i].name, sizeof(member[i].name), p->hosts.name[i]);
	}
	if (!st)
		st = process_group_run(&c, err);
	if (!st)
		*exit_code = rank_exit_code(process_group_exit(&c));
out:
	for (unsigned i = 0; node && i < p->nodes; i++)
		command_words_release(&node[i]);
	free(node);
	free(member);
	return st;
}
