/* SPDX-License-Identifier: Apache-2.0 */
/* `assay info` on several launched ranks: one row per node, and the facts in which the nodes differ. */
#ifndef CMD_INFO_TEAM_H
#define CMD_INFO_TEAM_H
#include "cmd/shared/judged.h"
#include "cmd/running/team.h"

/* On rank 0, the facts of all nodes. On the other ranks it is empty, and they wait until rank 0 has them. */
struct info_team {
	struct running_team team;
	struct judged judged; /* rank 0: a run without measurements */
	char dir[PATH_MAX];   /* this rank's temporary folder; "": none */
};

/* Joins the other ranks and collects the facts `m` of each. If the ranks do not join, the error names the
 * missing ones. The caller calls info_team_release, also after an error. */
enum status info_team_gather(struct info_team *t, const struct command_context *c,
			     const struct running_opts *o, const struct machine *m, struct error *err);
void info_team_release(struct info_team *t);

/* Rank 0: appends one row per node, then one row per fact in which they differ. "!" marks differences that
 * hurt runs on several ranks. */
enum status info_team_nodes(struct text *out, const struct info_team *t, struct error *err);
enum status info_team_differences(struct text *out, const struct info_team *t, struct error *err);
/* The "team" object of results.json: nodes and differences. The caller owns it. NULL: *err is set. */
json_t *info_team_json(const struct info_team *t, struct error *err);
/* True if the journals of every node have arrived. */
bool info_team_whole(const struct info_team *t);
#endif
