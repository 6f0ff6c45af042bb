/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that differ between machines, or on one machine over time. With several nodes each node is compared
 * with its own counterpart. */
#include "judge/compare/compare.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"
#include "judge/compare/facts_difference.h"

enum { DIFFERENCES_MAX = 200 };

struct into {
	struct comparison *out;
	const char *run, *node;
	bool other_layer; /* one of the two runs read less of its machine than the other */
};

/* A fact that one run did not read is no difference. Each run reads only what its cases need, and queries
 * only their libraries. A library that was queried and is missing has a reason in its place. */
static bool not_read(const struct into *into, const char *path, const json_t *a, const json_t *b)
{
	return !strcmp(path, "layer") || ((!a || !b) && (into->other_layer || !strncmp(path, "software", 8)));
}

/* Counts the same difference on another node in the existing row. */
static bool counted(const struct into *into, const struct compare_difference *d)
{
	for (size_t i = 0; i < into->out->difference_count; i++) {
		struct compare_difference *other = &into->out->difference[i];

		if (other->run != d->run || strcmp(other->path, d->path) ||
		    strcmp(other->before, d->before) || strcmp(other->after, d->after))
			continue;
		other->nodes++;
		return true;
	}
	return false;
}

static enum status add(const struct into *into, struct compare_difference *d, struct error *err)
{
	struct compare_difference *more;

	d->run = into->run;
	d->nodes = 1;
	text_copy(d->node, sizeof(d->node), into->node);
	if (counted(into, d) || into->out->difference_count == DIFFERENCES_MAX)
		return STATUS_OK;
	more = expect_push(&into->out->difference, &into->out->difference_count, sizeof(*more), err);
	if (!more)
		return STATUS_NO_RESOURCE;
	*more = *d;
	return STATUS_OK;
}

static enum status differ(void *arg, const char *path, const json_t *a, const json_t *b, struct error *err)
{
	struct compare_difference d = {.path = ""};

	if (not_read(arg, path, a, b))
		return STATUS_OK;
	text_copy(d.path, sizeof(d.path), path);
	facts_difference_two(a, b, d.before, d.after, sizeof(d.before));
	return add(arg, &d, err);
}

/* Adds a node that one of the two runs does not have, or whose facts it does not have. */
static enum status lacks(const struct into *into, const char *before, const char *after, struct error *err)
{
	struct compare_difference d = {.path = "node", .before = "", .after = ""};

	text_copy(d.before, sizeof(d.before), before);
	text_copy(d.after, sizeof(d.after), after);
	return add(into, &d, err);
}

static const char *known(const json_t *facts)
{
	return facts ? "there" : "there, its facts not known";
}

/* Compares every node of the first run with its counterpart, then adds the nodes that only the other run has.
 */
static enum status between(struct into *into, const struct record *first, const struct record *other,
			   struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < compare_nodes(first) && !st; i++) {
		size_t k = compare_node_of(first, i, other);
		const json_t *a = compare_node_facts(first, i),
			     *b = k == COMPARE_NO_NODE ? NULL : compare_node_facts(other, k);

		into->node = compare_node_name(first, i);
		into->other_layer =
			a && b && !json_equal(json_object_get(a, "layer"), json_object_get(b, "layer"));
		if (k == COMPARE_NO_NODE)
			st = lacks(into, known(a), "absent", err);
		else if (a && b)
			st = facts_difference_walk("", a, b, differ, into, err);
		else if (a || b)
			st = lacks(into, known(a), known(b), err);
	}
	for (size_t k = 0; k < compare_nodes(other) && !st; k++) {
		if (compare_node_of(other, k, first) != COMPARE_NO_NODE)
			continue;
		into->node = compare_node_name(other, k);
		st = lacks(into, "absent", known(compare_node_facts(other, k)), err);
	}
	return st;
}

enum status compare_inventory(struct comparison *out, const struct compare_run *runs, size_t count,
			      struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 1; i < count && !st; i++) {
		struct into into = {.out = out, .run = runs[i].name};

		st = between(&into, runs[0].record, runs[i].record, err);
	}
	return st;
}
