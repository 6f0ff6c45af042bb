/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the same advice for many targets: the first entry speaks for all of them. */
#include "report/view/build.h"

enum {
	APART = 3, /* up to so many targets have an entry each, with their cases */
	NAMED = 3,
};

typedef struct view_spread *spread_at(const struct view *v, size_t i);
typedef bool spread_same(const struct view *v, size_t i, size_t k);

static struct view_spread *todo_at(const struct view *v, size_t i)
{
	return &v->todos[i].spread;
}

/* Without an action the reasons must agree too: then the reason says what to do. */
static bool todo_same(const struct view *v, size_t i, size_t k)
{
	const struct view_todo *a = &v->todos[i], *b = &v->todos[k];

	return a->verdict == b->verdict && a->cause == b->cause && !strcmp(a->action, b->action) &&
	       (*a->action || !strcmp(a->reason, b->reason));
}

static struct view_spread *knob_at(const struct view *v, size_t i)
{
	return &v->knobs[i].spread;
}

static bool knob_same(const struct view *v, size_t i, size_t k)
{
	return !strcmp(v->knobs[i].knob, v->knobs[k].knob);
}

/* Writes "512 targets on 64 nodes, such as n0/gpu0, n0/gpu1, n0/gpu2"; in a run of one process without the
 * nodes. */
static void name_many(const struct view *v, struct view_spread *s, unsigned targets, unsigned nodes,
		      const struct text *some)
{
	const unsigned known = (unsigned)v->in->record->node_count;

	if (known)
		snprintf(s->where, sizeof(s->where), "%u targets on %u node%s, such as %s", targets, nodes,
			 nodes == 1 ? "" : "s", text_str(some));
	else
		snprintf(s->where, sizeof(s->where), "%u targets, such as %s", targets, text_str(some));
}

/* True for targets of one kind: "node-a/gpu0" and "node-b/gpu7" are, "cpu" is another kind. Advice for one
 * kind does not apply to another. */
static bool same_kind(const char *a, const char *b)
{
	static const char which[] = "0123456789,";
	const char *own_a = strchr(a, '/'), *own_b = strchr(b, '/');

	a = own_a ? own_a + 1 : a;
	b = own_b ? own_b + 1 : b;
	do {
		a += strspn(a, which);
		b += strspn(b, which);
		if (*a != *b)
			return false;
	} while (*a++ && *b++);
	return true;
}

static bool same_advice(const struct view *v, size_t lead, size_t i, spread_at *at, spread_same *same)
{
	return same_kind(at(v, lead)->target, at(v, i)->target) && same(v, lead, i);
}

/* Joins the entries from `lead` on that give the same advice. If there are more than APART, only the first is
 * shown. */
static void fold(const struct view *v, size_t count, size_t lead, spread_at *at, spread_same *same,
		 unsigned char *on_node)
{
	struct view_spread *first = at(v, lead);
	unsigned targets = 0, nodes = 0;
	struct text some = {0};

	memset(on_node, 0, v->in->record->node_count + 1);
	for (size_t i = lead; i < count; i++) {
		if (!same_advice(v, lead, i, at, same))
			continue;
		if (targets++ < NAMED)
			text_addf(&some, "%s%s", targets > 1 ? ", " : "", at(v, i)->target);
		nodes += !on_node[at(v, i)->node];
		on_node[at(v, i)->node] = 1;
	}
	if (targets > APART) {
		name_many(v, first, targets, nodes, &some);
		for (size_t i = lead + 1; i < count; i++)
			at(v, i)->joined = at(v, i)->joined || same_advice(v, lead, i, at, same);
	}
	text_release(&some);
}

static void fold_all(const struct view *v, size_t count, spread_at *at, spread_same *same,
		     unsigned char *on_node)
{
	for (size_t i = 0; i < count; i++) {
		struct view_spread *s = at(v, i);

		if (s->joined)
			continue;
		text_copy(s->where, sizeof(s->where), s->target);
		fold(v, count, i, at, same, on_node);
	}
}

enum status view_spread_build(struct view *v, struct error *err)
{
	unsigned char *on_node = calloc(v->in->record->node_count + 1, 1);

	if (!on_node)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the advice of %zu cases",
				 v->row_count);
	fold_all(v, v->todo_count, todo_at, todo_same, on_node);
	fold_all(v, v->knob_count, knob_at, knob_same, on_node);
	free(on_node);
	return STATUS_OK;
}
