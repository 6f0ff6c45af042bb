/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "launch/crowd.h"
#include "launch/start.h"

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
			       "mpirun is neither Open MPI's nor MPICH's: mpirun --version says \"%.*s\"",
			       (int)strcspn(out, "\n") < 80 ? (int)strcspn(out, "\n") : 80, out);
	free(out);
	return st;
}

/* What the ranks inherit from mpirun; the secret is on no command line. */
static void fill_environment(const struct launch_plan *p, const struct starting *s)
{
	ranks_tell(s->team->secret, s->team->job);
	for (size_t i = 0; i < p->env.count && p->mpich; i++) {
		const char *equals = strchr(p->env.word[i], '=');
		char *name = strndup(p->env.word[i], (size_t)(equals - p->env.word[i]));

		if (name)
			setenv(name, equals + 1, 1);
		free(name);
	}
}

enum status start_mpirun(const struct launch_plan *p, const struct starting *s, int *exit_code,
			 struct error *err)
{
	struct member member = {.name = "mpirun"};
	struct crowd c = {.member = &member, .count = 1, .lifeline = -1, .stop = s->stop, .log = s->log};
	struct words w = {0};
	enum status st;

	script_mpirun(&w, p);
	member.argv = (const char *const *)w.word;
	fill_environment(p, s);
	st = w.failed ? error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					"no memory for mpirun's words")
		      : crowd_run(&c, err);
	if (!st)
		*exit_code = crowd_exit_code(&c);
	words_release(&w);
	return st;
}
