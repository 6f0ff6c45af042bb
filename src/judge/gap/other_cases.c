/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a case with the same work elsewhere in the run: alone, from another NUMA node, or measured again.
 */
#include "judge/gap/gap.h"
#include <math.h>

#define RUNS_ERROR 0.01 /* relative error of a ratio of two rates */

/* Finds the next comparable case after *at with the same work: all options alike except `but`. */
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

/* True if the other GPUs worked at the same time. */
static bool crowded(const struct record_case *c)
{
	return c->together || c->lockstep;
}

/* Finds the same work in another window of the run, alone or together with others as the case was. */
static bool measured_again(const struct subject *s, struct subject *again)
{
	size_t at = 0;

	while (next_peer(s, NULL, &at, again))
		if (crowded(again->c) == crowded(s->c))
			return true;
	return false;
}

/* Finds the same work done alone. A case with a search also counts, because a search times its first
 * candidate in the same phases. */
static bool measured_alone(const struct subject *s, struct subject *alone)
{
	size_t at = 0;

	while (next_peer(s, "search", &at, alone))
		if (!crowded(alone->c))
			return true;
	return false;
}

/* Only host links have no signal of their own for these factors. A ratio that contains the case's own rate
 * would explain any rate. */
static bool multiplies(const struct subject *s, const struct subject *from)
{
	return from->c != s->c && s->gpu && !strncmp(s->c->limit, "link", 4);
}

static void add_run(struct factor *f, bool multiplied)
{
	if (f)
		f->shown_only = !multiplied;
}

/* Returns whether the factor is multiplied. It then contains what this node loses to the others. */
static bool siblings(struct judgement *out, const struct subject *s, const struct subject *from)
{
	const struct record *r = s->ctx->record;
	struct subject alone;
	unsigned others = 0;
	char again[40] = "";
	bool multiplied = multiplies(s, from);

	for (size_t i = 0; crowded(s->c) && i < r->case_count; i++)
		others += &r->cases[i] != s->c && r->cases[i].step == s->c->step && !r->cases[i].skipped &&
			  (s->c->together || !strcmp(r->cases[i].key, s->c->key));
	if (!others || !measured_alone(s, &alone))
		return false;
	if (multiplied)
		snprintf(again, sizeof(again), ", measured again as case %u,", from->c->id);
	add_run(gap_add(out, "siblings", from->figure / alone.figure, RUNS_ERROR,
			"with %u others at once%s over alone (case %u of this run)", others, again,
			alone.c->id),
		multiplied);
	return multiplied;
}

/* "0", "1"; NULL for "auto". */
static const char *node_of(const struct record_case *c)
{
	const char *node = record_option(c, "numa");

	return node && *node >= '0' && *node <= '9' ? node : NULL;
}

/* Finds the fastest of `from` and the same work on other nodes. False: no other node did it. */
static bool best_node(const struct subject *from, struct subject *best)
{
	struct subject other;
	bool any = false;
	size_t at = 0;

	*best = *from;
	while (next_peer(from, "numa", &at, &other)) {
		if (!node_of(other.c) || crowded(other.c) != crowded(from->c) ||
		    !strcmp(node_of(other.c), node_of(from->c)))
			continue;
		any = true;
		if (other.figure > best->figure)
			*best = other;
	}
	return any;
}

/* For a case that ran together with others it takes the loss of this node alone, so that the cost of siblings
 * is not included. */
static void numa(struct judgement *out, const struct subject *s, const struct subject *again,
		 bool siblings_multiplied)
{
	struct subject alone, best;
	const struct subject *from = again;

	if (!node_of(s->c))
		return;
	if (crowded(s->c) && measured_alone(s, &alone) && best_node(&alone, &best))
		from = &alone;
	else if (!best_node(from, &best))
		return;
	add_run(gap_add(out, "numa", from->figure / best.figure, RUNS_ERROR,
			"node %s%s (case %u) over the best node %s (case %u of this run)", node_of(s->c),
			from == &alone ? " alone" : "", from->c->id, node_of(best.c), best.c->id),
		multiplies(s, from) && (from == &alone || !siblings_multiplied));
}

void gap_runs(struct judgement *out, const struct subject *s)
{
	struct subject again;
	bool multiplied;

	if (!(s->figure > 0) || !strcmp(s->unit, "ns"))
		return;
	if (!measured_again(s, &again))
		again = *s;
	multiplied = siblings(out, s, &again);
	numa(out, s, &again, multiplied);
}
