/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/math/random.h"
#include "core/text/text.h"
#include "launch/rank_exit.h"

enum { ROWS = 7, ROW = 300 };

/* "NAME=value" rows of one rank. */
struct rank_env {
	char text[ROWS][ROW];
	const char *row[ROWS + 1];
};

static void fill(struct rank_env *e, const struct team_place *p, bool tells)
{
	size_t n = 0;

	snprintf(e->text[n++], ROW, "ASSAY_RANK=%u", p->rank);
	snprintf(e->text[n++], ROW, "ASSAY_SIZE=%u", p->size);
	if (p->local_size) {
		snprintf(e->text[n++], ROW, "ASSAY_LOCAL_RANK=%u", p->local_rank);
		snprintf(e->text[n++], ROW, "ASSAY_LOCAL_SIZE=%u", p->local_size);
	}
	snprintf(e->text[n++], ROW, "ASSAY_HOST=%s", p->host);
	if (p->port)
		snprintf(e->text[n++], ROW, "ASSAY_PORT=%u", p->port);
	if (tells)
		snprintf(e->text[n++], ROW, RANK_EXIT_VARIABLE "=1");
	for (size_t i = 0; i < n; i++)
		e->row[i] = e->text[i];
	e->row[n] = NULL;
}

/* `program`, then the words, then NULL. Owner: caller, free(). */
static const char **command_line(const char *program, const char *const *words)
{
	size_t count = 0;
	const char **argv;

	while (words[count])
		count++;
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[0] = program;
	memcpy(argv + 1, words, count * sizeof(*argv));
	return argv;
}

enum status ranks_run(const struct ranks *r, int *told, struct error *err)
{
	const char **argv = command_line(NULL, r->words);
	struct member *member = calloc(r->count, sizeof(*member));
	struct rank_env *env = calloc(r->count, sizeof(*env));
	struct process_group c = {.member = member,
				  .count = r->count,
				  .lifeline = r->lifeline,
				  .stop = r->stop,
				  .preempted = r->preempted,
				  .saves = r->saves,
				  .log = r->log};
	enum status st;

	if (!argv || !member || !env) {
		st = error_errno(err, ENOMEM, "no memory for %u ranks", r->count);
		goto out;
	}
	for (unsigned i = 0; i < r->count; i++) {
		struct team_place p = {.rank = r->first + i,
				       .size = r->size,
				       .local_rank = r->local_first + i,
				       .local_size = r->local_size ? r->local_size : r->count,
				       .port = r->port};

		text_copy(p.host, sizeof(p.host), r->host);
		fill(&env[i], &p, true);
		snprintf(member[i].name, sizeof(member[i].name), "rank %u", p.rank);
		member[i].argv = argv;
		member[i].env = env[i].row;
	}
	st = process_group_run(&c, err);
	*told = process_group_exit(&c);
out:
	free(argv);
	free(member);
	free(env);
	return st;
}

enum status ranks_become(const struct team_place *p, const char *const *words, bool tells, struct error *err)
{
	const char **argv = command_line("assay", words);
	struct rank_env env;

	if (!argv)
		return error_errno(err, ENOMEM, "no memory for the rank's arguments");
	fill(&env, p, tells);
	for (const char **row = env.row; *row; row++) {
		char *equals = strchr(*row, '=');

		*equals = '\0';
		setenv(*row, equals + 1, 1);
		*equals = '=';
	}
	execv("/proc/self/exe", (char **)(uintptr_t)argv);
	free(argv);
	return error_errno(err, errno, "cannot execute the rank");
}

enum status ranks_team(struct ranks_team *t, struct error *err)
{
	char name[9];

	if (!random_hex(t->secret, sizeof(t->secret)) || !random_hex(name, sizeof(name)))
		return error_errno(err, errno, "cannot read random bytes for the team's secret");
	snprintf(t->job, sizeof(t->job), "launch-%s", name);
	return STATUS_OK;
}

void ranks_report(const char *secret, const char *job)
{
	setenv("ASSAY_TEAM_SECRET", secret, 1);
	if (*job)
		setenv("ASSAY_JOB", job, 1);
}
