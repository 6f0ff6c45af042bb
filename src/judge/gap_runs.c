/* SPDX-License-Identifier: Apache-2.0 */
/* What the same work reached elsewhere in this run: alone, from another NUMA node. */
#include "judge/gap.h"
#include <math.h>

#define RUNS_ERROR 0.01 /* of a ratio of two rates */

/* The next case after *at that did this work, all options but `but` alike, and can be held against it. */
static bool next_peer(const struct subject *s, const char *but, size_t *at, struct subject *peer)
{
	const struct record *r = s->ctx->record;

	while (*at < r->case_count) {
		const struct record_case *c = &r->cases[(*at)++];

		if (c == s->c || !case_sound(c) ||
		    !record_same_but(s->c, c, (const char *const[]){but, NULL}))
			continue;
		subject_of(peer, s->ctx, c);
		if (peer->has_figure && peer->figure > 0 && !strcmp(peer->phase_name, s->phase_name))
			return true;
	}
	return false;
}

static void show(struct factor *f)
{
	if (f)
		f->shown_only = true;
}

/* A search times its first candidate in the same phases: it is the same product, alone. */
static void siblings(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	struct subject alone;
	unsigned others = 0;
	size_t at = 0;

	if (!s->c->together)
		return;
	for (size_t i = 0; i < r->case_count; i++)
		others += &r->cases[i] != s->c && r->cases[i].together && r->cases[i].step == s->c->step &&
			  !r->cases[i].skipped;
	while (others && next_peer(s, "search", &at, &alone)) {
		if (alone.c->together)
			continue;
		show(gap_add(out, "siblings", s->figure / alone.figure, RUNS_ERROR,
			     "with %u others at once over alone, case %u of this run", others, alone.c->id));
		return;
	}
}

/* "0", "1"; not "auto". */
static bool has_node(const struct record_case *c)
{
	const char *node = record_option(c, "numa");

	return node && *node >= '0' && *node <= '9';
}

static void numa(struct judgement *out, const struct subject *s)
{
	const char *node = record_option(s->c, "numa");
	double best = s->figure;
	unsigned nodes = 1;
	struct subject other;
	size_t at = 0;

	if (!has_node(s->c))
		return;
	while (next_peer(s, "numa", &at, &other)) {
		if (!has_node(other.c) || other.c->together != s->c->together ||
		    !strcmp(record_option(other.c, "numa"), record_option(s->c, "numa")))
			continue;
		nodes++;
		if (other.figure > best) {
			best = other.figure;
			node = record_option(other.c, "numa");
		}
	}
	if (nodes > 1)
		show(gap_add(out, "numa", s->figure / best, RUNS_ERROR,
			     "node %s over the best of %u nodes, node %s, this run",
			     record_option(s->c, "numa"), nodes, node));
}

void gap_runs(struct judgement *out, const struct subject *s)
{
	if (!(s->figure > 0) || !strcmp(s->unit, "ns"))
		return;
	siblings(out, s);
	numa(out, s);
}
