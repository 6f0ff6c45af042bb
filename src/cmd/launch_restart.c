/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/launch_restart.h"
#include <stdlib.h>
#include <string.h>
#include "cmd/launch_command.h"
#include "core/process/process.h"
#include "launch/ssh_command.h"

enum { ANSWER_MS = 20000 }; /* for a host */

enum status launch_restart_words(struct launch_plan *p, unsigned restarts,
				 const char *words[COMMAND_WORDS_MAX + 2], struct error *err)
{
	const char *again = p->again;
	size_t n = 0;

	if (!restarts)
		return STATUS_OK;
	if (!launch_words_saves(&p->words))
		return error_set(err, STATUS_BAD_INPUT, "--restarts works only with train, not with %s",
				 p->words.word[0]);
	if (p->how == LAUNCH_SLURM)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--restarts does not work with --how slurm: Slurm queues the job again by itself");
	if (!again)
		return error_set(err, STATUS_BAD_INPUT,
				 "--restarts does not work with these options of train");
	if (strstr(again, "--out"))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--restarts needs a run directory: give train --out DIR, or training: output_dir");
	if (p->words.count >= COMMAND_WORDS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "more than %d words after --", COMMAND_WORDS_MAX - 1);
	for (size_t i = 0; i < p->words.count; i++)
		words[n++] = p->words.word[i];
	again += strspn(again, " ");
	if (*again)
		words[n++] = again;
	p->words = (struct opt_words){words, n};
	return STATUS_OK;
}

/* Whether ssh reaches a host. */
static bool answers(const struct launch_plan *p, const char *host, const volatile sig_atomic_t *stop)
{
	struct command_words w = {0};
	struct process_spec spec = {.cpu_numa = -1, .stop = stop};
	char *out = NULL;
	int code = -1;

	ssh_command_words(&w,
			  &(struct ssh_command){.config = p->ssh_config, .host = host, .remote = "exit 0"});
	spec.argv = (const char *const *)w.word;
	if (w.failed || process_run(&spec, ANSWER_MS, 1 << 16, &out, NULL, &code, NULL))
		code = -1;
	free(out);
	command_words_release(&w);
	return !code;
}

/* Takes hosts that do not answer out of the plan. False: none is left. */
static bool drop_lost_hosts(struct launch_plan *p, const struct command_context *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->hosts.count; i++) {
		if (answers(p, p->hosts.name[i], c->stop)) {
			p->hosts.name[kept++] = p->hosts.name[i];
		} else {
			log_warn(c->log, LOG_TOPIC_RUN, "%s does not answer; the run continues without it",
				 p->hosts.name[i]);
			free(p->hosts.name[i]);
		}
	}
	if (!p->hosts.count)
		return true;
	p->hosts.count = kept;
	p->nodes = kept < p->nodes ? (unsigned)kept : p->nodes;
	return kept > 0;
}

/* The ranks or their launcher were lost, or they were preempted: not by a request to this process. */
static bool may_restart(const struct command_context *c, enum status st, int code)
{
	if (*c->stop)
		return false;
	return st ? st != STATUS_BAD_INPUT && st != STATUS_CANCELLED && st != STATUS_UNSUPPORTED
		  : code == EXIT_INCONCLUSIVE || code == EXIT_SAVED;
}

/* Starts the ranks again, with one node less each time, until the step's packs can be divided among them. */
static enum status start_fewer(const struct launch_restart *r, unsigned before, int *code, struct error *err)
{
	struct launch_plan *p = r->plan;
	enum status st = r->start(r->arg, code, err);

	while (!st && *code == EXIT_USAGE && p->nodes < before && p->nodes > 1 && !*r->c->stop) {
		before = p->nodes--;
		log_warn(r->c->log, LOG_TOPIC_RUN, "the run refuses this number of ranks: trying %u nodes",
			 p->nodes);
		st = r->start(r->arg, code, err);
	}
	return st;
}

enum status launch_restart(const struct launch_restart *r, int *code, struct error *err)
{
	enum status st = r->start(r->arg, code, err);

	for (unsigned i = 0; i < r->restarts && may_restart(r->c, st, *code); i++) {
		const unsigned before = r->plan->nodes;

		if (st)
			log_warn(r->c->log, LOG_TOPIC_RUN, "%s", err->text);
		error_clear(err);
		if (!drop_lost_hosts(r->plan, r->c))
			return error_set(err, STATUS_UNAVAILABLE, "no host answers any more");
		log_warn(r->c->log, LOG_TOPIC_RUN, "restart %u of %u: the ranks start again", i + 1,
			 r->restarts);
		st = start_fewer(r, before, code, err);
	}
	return st;
}
