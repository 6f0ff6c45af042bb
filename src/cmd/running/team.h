/* SPDX-License-Identifier: Apache-2.0 */
/* A run as one rank of several that a launcher started (torchrun, srun, mpirun, assay launch). */
#ifndef CMD_RUNNING_TEAM_H
#define CMD_RUNNING_TEAM_H
#include <limits.h>
#include "cmd/running/running.h"
#include "machine/machine.h"
#include "report/report.h"
#include "team/control/control.h"

struct running_team { /* zeroed: alone */
	struct control *control;
	struct team_place place;
	json_t *about;
	bool looks_only; /* measures nothing: ranks may see the same GPUs */
};

/* What the command asks that a team cannot do. */
enum status running_team_check(const struct running_team *t, const struct running_opts *o, struct error *err);
/* Which rank this is; alone where nobody launched several, and where nothing is measured. */
enum status running_team_place(struct running_team *t, const struct running_opts *o, struct error *err);
/* Joins the others, once; alone: nothing. */
enum status running_team_join(struct running_team *t, const struct command_context *c,
			      const struct running_opts *o, const struct machine *m, struct error *err);
/* Rank 0's directory to all; each other has one of its own beside it, whose name goes to `dir`. */
enum status running_team_dir(struct running_team *t, char dir[PATH_MAX], struct error *err);
/* The journals of all into rank 0's directory. What did not come is told, and is no error here. True: of
 * another rank than 0, rank 0 has all that this one kept. */
bool running_team_collect(struct running_team *t, const struct command_context *c, const char *dir);
/* Another rank's own directory, of which rank 0 has a copy: what a run writes there, and the folder where
 * nothing else lies in it. */
void running_team_clear(const char *dir);
/* Names of nodes that the journals call otherwise: for a terminal. Owner: caller, free(); NULL, 0: none. */
struct report_called *running_team_called(const struct running_team *t, size_t *count);
/* Another rank than 0 ends after rank 0 has written its report. */
void running_team_await(struct running_team *t);
/* The exit code as this process is to end with it: told, where it is a rank that who started it asked, and
 * with rank 0's weight where the team met. Call it before running_team_leave. */
int running_team_code(const struct running_team *t, const struct command_context *c, int code);
void running_team_leave(struct running_team *t);
#endif
