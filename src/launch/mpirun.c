/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "launch/process_group.h"
#include "launch/start.h"
#include "launch/rank_exit.h"
#include "team/transport/secret.h"

enum { VERSION_MS = 10000, VERSION_MAX = 1 << 16 };

enum status mpirun_is_mpich(bool *mpich, const volatile sig_atomic_t *stop, struct error *err)
{
	static const char *const argv[] = {"mpirun", "--version", NULL};
	const struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stop = stop};
	char *out = NULL;
	int code = 0;
	enum status st = process_run(&spec, VERSION_MS, VERSION_MAX, &out, NULL, &code, err);
	bool open;

	if (st)
		return st;
	open = strstr(out, "Open MPI") || strstr(out, "OpenRTE");
	*mpich = strstr(out, "HYDRA") || strstr(out, "MPICH") || strstr(out, "Intel(R) MPI");
	if (!open && !*mpich)
		st = error_set(err, STATUS_UNSUPPORTED,
			       "mpirun is neither Open MPI's nor MPICH's: mpirun --version prints \"%.*s\"",
			       (int)strcspn(out, "\n") < 80 ? (int)strcspn(out, "\n") : 80, out);
	free(out);
	return st;
}

/* Sets the variables that the ranks inherit from mpirun. The secret itself is in a file, because mpirun sends
 * the ranks' environment unencrypted over the network to its daemons. */
static enum status fill_environment(const struct launch_plan *p, const struct starting *s, char laid[4096],
				    struct error *err)
{
	const struct environment env = {.get = secret_environment};
	enum status st = secret_write_file(laid, s->team->job, s->team->secret, &env, err);

	if (st)
		return st;
	setenv(SECRET_FILE_VARIABLE, laid, 1);
	setenv("ASSAY_JOB", s->team->job, 1);
	if (!isatty(STDOUT_FILENO)) /* Open MPI gives the ranks a terminal of their own */
		setenv("NO_COLOR", "1", 1);
	for (size_t i = 0; i < p->env.count && p->mpich; i++) {
		const char *equals = strchr(p->env.word[i], '=');
		char *name = strndup(p->env.word[i], (size_t)(equals - p->env.word[i]));

		if (name)
			setenv(name, equals + 1, 1);
		free(name);
	}
	return STATUS_OK;
}

/* Exit codes that ranks other than the first printed: mpirun's own code is that of rank 0 only. */
struct others {
	int told;
};

static void hear_line(void *arg, const char *line)
{
	struct others *o = arg;
	const char *at = strstr(line, "rank ");
	unsigned rank;
	int code, told;

	if (at && sscanf(at, RANKS_ENDED, &rank, &code) == 2 && rank) {
		rank_exit_by(&told, code);
		o->told = told > o->told ? told : o->told;
	}
}

/* Rank 0's code, or inconclusive, because a failure of mpirun itself says nothing about the machine. */
static int told_by_mpirun(const struct member *m, const struct log *log)
{
	int code = WIFEXITED(m->process.wait_status) ? WEXITSTATUS(m->process.wait_status) : -1, told;
	char how[64];

	if (!code || (code >= 100 && rank_exit_by(&told, code)))
		return code;
	process_wait_text(m->process.wait_status, how, sizeof(how));
	log_warn(log, LOG_TOPIC_RUN, "mpirun itself failed (%s), not a rank; see its message above", how);
	return rank_exit_of(2, false);
}

enum status start_mpirun(const struct launch_plan *p, const struct starting *s, int *exit_code,
			 struct error *err)
{
	struct member member = {.name = "mpirun"};
	struct others others = {0};
	struct process_group c = {.member = &member,
				  .count = 1,
				  .hears = hear_line,
				  .arg = &others,
				  .lifeline = -1,
				  .stop = s->stop,
				  .preempted = s->preempted,
				  .saves = s->saves,
				  .log = s->log};
	int told;
	struct command_words w = {0};
	char laid[4096] = "";
	enum status st;

	script_mpirun(&w, p);
	member.argv = (const char *const *)w.word;
	st = w.failed ? error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					"no memory for mpirun's arguments")
		      : fill_environment(p, s, laid, err);
	if (!st)
		st = process_group_run(&c, err);
	if (*laid)
		unlink(laid); /* rank 0 has removed it already if the ranks joined */
	if (!st) {
		told = told_by_mpirun(&member, s->log);
		*exit_code = rank_exit_code(told > others.told ? told : others.told);
	}
	command_words_release(&w);
	return st;
}
