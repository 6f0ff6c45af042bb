/* SPDX-License-Identifier: Apache-2.0 */
/* Completes an automaton: which nodes can reach the end of their rule, at which nesting, which calls need no
 * return, which bytes are alike; and refuses left recursion. */
#include "engine/grammar/automaton/automaton.h"

enum { EMPTY_REPEATS_MOST = 64 };

/* Edges by the node that they lead to. A call appears twice: at its target and at the start of its rule. */
struct reverse {
	uint32_t *at; /* node_count + 1 */
	uint32_t *edge, *from;
};

static void reverse_release(struct reverse *r)
{
	free(r->at);
	free(r->edge);
	free(r->from);
}

static void reverse_put(struct reverse *r, uint32_t node, uint32_t edge, uint32_t from)
{
	r->edge[r->at[node]] = edge;
	r->from[r->at[node]++] = from;
}

static bool reverse_make(struct reverse *r, const struct automaton *a)
{
	size_t total = 0;

	r->at = calloc(a->node_count + 2, sizeof(*r->at));
	r->edge = malloc((2 * a->edge_count + 1) * sizeof(*r->edge));
	r->from = malloc((2 * a->edge_count + 1) * sizeof(*r->from));
	if (!r->at || !r->edge || !r->from)
		return false;
	for (size_t i = 0; i < a->edge_count; i++) {
		r->at[a->edges[i].target + 1]++;
		if (a->edges[i].kind == EDGE_CALL)
			r->at[a->starts[a->edges[i].rule] + 1]++;
	}
	for (size_t i = 0; i <= a->node_count; i++)
		r->at[i] = (uint32_t)(total += r->at[i]);
	for (uint32_t n = 0; n < a->node_count; n++) {
		for (uint32_t e = a->nodes[n].first; e != EDGE_NONE; e = a->edges[e].next) {
			reverse_put(r, a->edges[e].target, e, n);
			if (a->edges[e].kind == EDGE_CALL)
				reverse_put(r, a->starts[a->edges[e].rule], e, n);
		}
	}
	/* reverse_put moved each begin to the next node's begin. */
	memmove(r->at + 1, r->at, a->node_count * sizeof(*r->at));
	r->at[0] = 0;
	return true;
}

/* The height of a node through one edge; HEIGHT_NONE while it is unknown. */
static uint16_t height_through(const struct automaton *a, const struct edge *e)
{
	uint16_t behind = a->nodes[e->target].height, within;

	if (e->kind != EDGE_CALL || behind == HEIGHT_NONE)
		return behind;
	within = a->nodes[a->starts[e->rule]].height;
	if (within == HEIGHT_NONE || within + 1 > behind)
		return within == HEIGHT_NONE ? within : (uint16_t)(within + 1);
	return behind;
}

/* Heights rise in the order of discovery, so each node is final when it is first reached at the present
 * height. Nodes that become higher wait for their own round. */
static bool find_heights(struct automaton *a, const struct reverse *r)
{
	uint32_t *queue = malloc((a->node_count + 1) * sizeof(*queue));
	uint32_t *later = malloc((2 * a->edge_count + 1) * sizeof(*later));
	size_t used = 0, done = 0, later_count = 0;

	if (!queue || !later) {
		free(queue);
		free(later);
		return false;
	}
	for (uint32_t n = 0; n < a->node_count; n++) {
		a->nodes[n].height = a->nodes[n].end ? 0 : HEIGHT_NONE;
		if (a->nodes[n].end)
			queue[used++] = n;
	}
	for (uint16_t height = 0; height <= a->depth; height++) {
		size_t waiting = later_count;

		later_count = 0;
		for (size_t i = 0; i < waiting; i++) {
			struct node *node = &a->nodes[later[i]];

			if (node->height != HEIGHT_NONE)
				continue;
			node->height = height;
			queue[used++] = later[i];
		}
		for (; done < used; done++) {
			for (uint32_t i = r->at[queue[done]]; i < r->at[queue[done] + 1]; i++) {
				struct node *node = &a->nodes[r->from[i]];
				uint16_t found = height_through(a, &a->edges[r->edge[i]]);

				if (node->height != HEIGHT_NONE || found == HEIGHT_NONE)
					continue;
				if (found > height) {
					later[later_count++] = r->from[i];
				} else {
					node->height = height;
					queue[used++] = r->from[i];
				}
			}
		}
		if (!later_count)
			break;
	}
	free(queue);
	free(later);
	return true;
}

static void mark_tails(struct automaton *a)
{
	for (size_t i = 0; i < a->edge_count; i++) {
		struct edge *e = &a->edges[i];
		const struct node *target = &a->nodes[e->target];

		e->tail = e->kind == EDGE_CALL && e->min == 1 && e->max == 1 && target->end &&
			  target->first == EDGE_NONE;
	}
}

/* Marks each node from which the end of its rule is reached without a byte. */
static bool *find_nullable(const struct automaton *a, const struct reverse *r)
{
	bool *nullable = calloc(a->node_count + 1, sizeof(*nullable));
	uint32_t *queue = malloc((a->node_count + 1) * sizeof(*queue));
	size_t used = 0;

	if (!nullable || !queue) {
		free(nullable);
		free(queue);
		return NULL;
	}
	for (uint32_t n = 0; n < a->node_count; n++)
		if (a->nodes[n].end) {
			nullable[n] = true;
			queue[used++] = n;
		}
	for (size_t done = 0; done < used; done++) {
		for (uint32_t i = r->at[queue[done]]; i < r->at[queue[done] + 1]; i++) {
			const struct edge *e = &a->edges[r->edge[i]];

			if (nullable[r->from[i]] || e->kind == EDGE_BYTE || !nullable[e->target] ||
			    (e->kind == EDGE_CALL && !nullable[a->starts[e->rule]]))
				continue;
			nullable[r->from[i]] = true;
			queue[used++] = r->from[i];
		}
	}
	free(queue);
	return nullable;
}

/* Depth-first search without recursion for a cycle that reads no byte and calls a rule. Nodes of one strongly
 * connected component get one number (Tarjan's algorithm). */
struct tarjan {
	const struct automaton *a;
	const bool *nullable;
	uint32_t *index, *low, *stack, *calls, *edge; /* edge: the next one to look at, times 2 plus half */
	uint32_t *component;
	size_t stacked, depth;
	uint32_t next, components;
};

/* The next node that is reached without a byte. False: no more. */
static bool tarjan_next(struct tarjan *t, uint32_t node, uint32_t *to)
{
	while (t->edge[node] / 2 < t->a->edge_count) {
		uint32_t half = t->edge[node] % 2, e = t->edge[node] / 2;
		const struct edge *edge = &t->a->edges[e];

		t->edge[node] = half ? (edge->next == EDGE_NONE ? EDGE_NONE : edge->next * 2) : e * 2 + 1;
		if (!half && edge->kind == EDGE_CALL) {
			*to = t->a->starts[edge->rule];
			return true;
		}
		if (half && (edge->kind == EDGE_EMPTY ||
			     (edge->kind == EDGE_CALL && t->nullable[t->a->starts[edge->rule]]))) {
			*to = edge->target;
			return true;
		}
	}
	return false;
}

static void tarjan_enter(struct tarjan *t, uint32_t node)
{
	t->index[node] = t->low[node] = ++t->next;
	t->stack[t->stacked++] = node;
	t->calls[t->depth++] = node;
	t->edge[node] = t->a->nodes[node].first == EDGE_NONE ? EDGE_NONE : t->a->nodes[node].first * 2;
}

static void tarjan_leave(struct tarjan *t)
{
	uint32_t node = t->calls[--t->depth], member;

	if (t->depth && t->low[node] < t->low[t->calls[t->depth - 1]])
		t->low[t->calls[t->depth - 1]] = t->low[node];
	if (t->low[node] != t->index[node])
		return;
	t->components++;
	do {
		member = t->stack[--t->stacked];
		t->component[member] = t->components;
	} while (member != node);
}

static void tarjan_run(struct tarjan *t, uint32_t root)
{
	uint32_t to;

	tarjan_enter(t, root);
	while (t->depth) {
		uint32_t node = t->calls[t->depth - 1];

		if (!tarjan_next(t, node, &to))
			tarjan_leave(t);
		else if (!t->index[to])
			tarjan_enter(t, to);
		else if (!t->component[to] && t->index[to] < t->low[node])
			t->low[node] = t->index[to];
	}
}

static bool is_left_recursive(const struct tarjan *t)
{
	for (uint32_t n = 0; n < t->a->node_count; n++)
		for (uint32_t e = t->a->nodes[n].first; e != EDGE_NONE; e = t->a->edges[e].next)
			if (t->a->edges[e].kind == EDGE_CALL &&
			    t->component[n] == t->component[t->a->starts[t->a->edges[e].rule]])
				return true;
	return false;
}

/* A counted call of a rule that may be empty would be tried once per count without reading a byte. */
static bool repeats_empty(const struct automaton *a, const bool *nullable)
{
	for (size_t i = 0; i < a->edge_count; i++) {
		const struct edge *e = &a->edges[i];

		if (e->kind == EDGE_CALL && nullable[a->starts[e->rule]] &&
		    (e->min > EMPTY_REPEATS_MOST ||
		     (e->max > EMPTY_REPEATS_MOST && e->max != REPEAT_FOREVER)))
			return true;
	}
	return false;
}

static bool refuse_empty_loops(struct builder *b, const struct reverse *r)
{
	const struct automaton *a = &b->a;
	bool *nullable = find_nullable(a, r), fine = false;
	uint32_t *memory = calloc(6 * (a->node_count + 1), sizeof(*memory));
	size_t n = a->node_count + 1;

	if (nullable && memory) {
		struct tarjan t = {.a = a,
				   .nullable = nullable,
				   .index = memory,
				   .low = memory + n,
				   .stack = memory + 2 * n,
				   .calls = memory + 3 * n,
				   .edge = memory + 4 * n,
				   .component = memory + 5 * n};

		for (uint32_t i = 0; i < a->node_count; i++)
			if (!t.index[i])
				tarjan_run(&t, i);
		if (is_left_recursive(&t))
			builder_fail(b, STATUS_UNSUPPORTED,
				     "a rule or $ref leads back to itself before it reads a character; "
				     "remove this left recursion");
		if (repeats_empty(a, nullable))
			builder_fail(
				b, STATUS_UNSUPPORTED,
				"a part that may be empty is repeated more than %d times; make it not empty",
				EMPTY_REPEATS_MOST);
		fine = true;
	}
	free(nullable);
	free(memory);
	return fine;
}

static void find_classes(struct automaton *a)
{
	bool cut[257] = {true};

	for (size_t i = 0; i < a->edge_count; i++) {
		if (a->edges[i].kind != EDGE_BYTE)
			continue;
		cut[a->edges[i].low] = true;
		cut[a->edges[i].high + 1] = true;
	}
	a->classes = 0;
	for (unsigned byte = 0; byte < 256; byte++) {
		if (cut[byte])
			a->byte_of[a->classes++] = (uint8_t)byte;
		a->class_of[byte] = (uint8_t)(a->classes - 1);
	}
}

enum status builder_finish(struct builder *b, uint32_t root, struct automaton *out)
{
	struct reverse r = {0};

	builder_path_end(b, 0);
	if (b->status)
		return b->status;
	b->a.root = root;
	b->a.depth = b->limits.depth;
	mark_tails(&b->a);
	if (!reverse_make(&r, &b->a) || !find_heights(&b->a, &r) || !refuse_empty_loops(b, &r))
		builder_no_memory(b);
	else if (!b->status && b->a.nodes[b->a.starts[root]].height == HEIGHT_NONE)
		builder_fail(b, STATUS_BAD_INPUT,
			     "no text of nesting %zu or less satisfies the grammar; remove the contradiction",
			     b->limits.depth);
	reverse_release(&r);
	if (b->status)
		return b->status;
	find_classes(&b->a);
	*out = b->a;
	b->a = (struct automaton){0};
	return STATUS_OK;
}
