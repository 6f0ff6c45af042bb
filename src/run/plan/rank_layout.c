/* SPDX-License-Identifier: Apache-2.0 */
#include "run/plan/rank_layout.h"
#include <stdlib.h>
#include "run/suite/target_team.h"
#include "team/control/control.h"

/* One node's part of the case. */
struct part {
	unsigned ranks, next;
	bool counted;
};

static unsigned next_member(const struct target *t, const struct team_shape *s, unsigned rank)
{
	do
		rank = (rank + 1) % s->size;
	while (!target_takes(t, rank));
	return rank;
}

/* Counts the nodes that take part, and fills in their parts. */
static unsigned parts_of(struct part *part, const struct target *t, const struct team_shape *s)
{
	unsigned nodes = 0;

	for (unsigned r = 0; r < s->size; r++) {
		struct part *p = &part[s->rank[r].node];

		if (!target_takes(t, r))
			continue;
		nodes += !p->ranks;
		p->ranks++;
		p->next += s->rank[next_member(t, s, r)].node != s->rank[r].node;
	}
	return nodes;
}

static json_t *gpus_of(const struct target *t, const struct team_shape *s)
{
	json_t *gpus = json_array();

	for (unsigned r = 0; r < s->size; r++) {
		if (!target_takes(t, r))
			continue;
		if (s->rank[r].gpu_count != 1) {
			json_decref(gpus);
			return NULL;
		}
		json_array_append_new(gpus, json_string(s->rank[r].pci[0]));
	}
	return json_pack("{s:o}", "gpus", gpus);
}

/* Several nodes on one machine (containers, or names given by hand) share its ports, or do not use them. */
static bool on_one_machine(const struct part *part, const struct team_shape *s)
{
	for (unsigned a = 0; a < s->nodes; a++)
		for (unsigned b = 0; b < a; b++)
			if (part[a].ranks && part[b].ranks && !strcmp(s->node[a].boot, s->node[b].boot))
				return true;
	return false;
}

static bool alike(const struct team_shape *s, const struct part *part, unsigned a, unsigned b)
{
	const struct team_node *x = &s->node[a], *y = &s->node[b];

	return part[a].ranks == part[b].ranks && part[a].next == part[b].next && x->gpus == y->gpus &&
	       !(x->network < y->network) && !(x->network > y->network);
}

static json_t *nodes_of(struct part *part, const struct team_shape *s)
{
	bool untold = on_one_machine(part, s);
	json_t *kinds = json_array();

	for (unsigned n = 0; n < s->nodes; n++) {
		unsigned count = 0;

		if (!part[n].ranks || part[n].counted)
			continue;
		for (unsigned k = n; k < s->nodes; k++)
			if (alike(s, part, n, k)) {
				part[k].counted = true;
				count++;
			}
		json_array_append_new(kinds, json_pack("{s:i, s:i, s:i, s:i, s:f}", "nodes", (int)count,
						       "ranks", (int)part[n].ranks, "gpus",
						       (int)s->node[n].gpus, "next", (int)part[n].next,
						       "network", untold ? 0.0 : s->node[n].network));
	}
	return json_pack("{s:o}", "nodes", kinds);
}

json_t *rank_layout_json(const struct target *t, const struct plan_options *wishes)
{
	const struct team_shape *s = wishes ? wishes->team : NULL;
	struct part *part;
	json_t *layout;
	unsigned nodes;

	if (t->kind != TARGET_TEAM || t->ranks < 2 || !s || s->size < 2)
		return NULL;
	part = calloc(s->nodes, sizeof(*part));
	if (!part)
		return NULL;
	nodes = parts_of(part, t, s);
	layout = nodes > 1 ? nodes_of(part, s) : gpus_of(t, s);
	free(part);
	return layout;
}
