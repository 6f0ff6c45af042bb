/* SPDX-License-Identifier: Apache-2.0 */
/* `assay info` by several launched ranks: the nodes side by side, and in what they differ. */
#ifndef CMD_INFO_TEAM_H
#define CMD_INFO_TEAM_H
#include "cmd/shared/judged.h"
#include "cmd/running/team.h"

/* The facts of all nodes on rank 0; nothing on the others, which wait until it has told them. */
struct info_team {
	struct running_team team;
	struct judged judged; /* a run in which nothing was measured; rank 0's */
	char dir[PATH_MAX];   /* of this rank, for as long as that takes; "" none */
};

/* Joins the others and gathers what `m` is on each. Where the ranks do not come together, the sentence that
 * names who is missing. Owner: caller, info_team_release, also after an error. */
enum status info_team_gather(struct info_team *t, const struct command_context *c,
			     const struct running_opts *o, const struct machine *m, struct error *err);
void info_team_release(struct info_team *t);

/* Rank 0: a row a node; then a row a fact in which they differ, with "!" where that hurts a team. */
enum status info_team_nodes(struct text *out, const struct info_team *t, struct error *err);
enum status info_team_differences(struct text *out, const struct info_team *t, struct error *err);
/* "team" of results.json: nodes and differences. Owner: caller; NULL: *err. */
json_t *info_team_json(const struct info_team *t, struct error *err);
/* Every node's journals have come. */
bool info_team_whole(const struct info_team *t);
#endif
