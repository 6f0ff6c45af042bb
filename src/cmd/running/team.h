/* SPDX-License-Identifier: Apache-2.0 */
/* A run as one of several ranks that a launcher started (torchrun, srun, mpirun, assay launch). */
#ifndef CMD_RUNNING_TEAM_H
#define CMD_RUNNING_TEAM_H
#include <limits.h>
#include "cmd/running/running.h"
#include "machine/machine.h"
#include "report/report.h"
#include "team/control/control.h"

struct running_team { /* zeroed: no other ranks */
	struct control *control;
	struct team_place place;
	json_t *about;
	bool looks_only; /* measures nothing: ranks may see the same GPUs */
};

/* Refuses options that do not work with several ranks. */
enum status running_team_check(const struct running_team *t, const struct running_opts *o, struct error *err);
/* Finds the number of this rank. No team if no launcher started several ranks, or if nothing is measured. */
enum status running_team_place(struct running_team *t, const struct running_opts *o, struct error *err);
/* Joins the other ranks, once. Does nothing without a team. */
enum status running_team_join(struct running_team *t, const struct command_context *c,
			      const struct running_opts *o, const struct machine *m, struct error *err);
/* Sends rank 0's directory to all ranks. Each other rank uses its own directory next to it, whose name
 * goes to `dir`. */
enum status running_team_dir(struct running_team *t, char dir[PATH_MAX], struct error *err);
/* Collects the journals of all ranks in rank 0's directory. A missing journal is logged and is not an
 * error here. On a rank other than 0, true means that rank 0 has a complete copy of this rank's files. */
bool running_team_collect(struct running_team *t, const struct command_context *c, const char *dir);
/* Removes the files of a run in a rank's own directory, after rank 0 has copied them, and the folder
 * itself if it is empty. */
void running_team_clear(const char *dir);
/* The real names of nodes that have pseudonyms in the journals, for display on a terminal. The caller
 * frees the result; NULL and 0 if there are none. */
struct report_called *running_team_called(const struct running_team *t, size_t *count);
/* A rank other than 0 waits until rank 0 has written its report. */
void running_team_await(struct running_team *t);
/* The exit code with which this process should end. If a launcher asked for it, the code is encoded for
 * the launcher; rank 0's code has more weight if the team met. Call it before running_team_leave. */
int running_team_code(const struct running_team *t, const struct command_context *c, int code);
void running_team_leave(struct running_team *t);
#endif
