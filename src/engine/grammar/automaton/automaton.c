/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/automaton.h"

enum { BLOCK = 16 << 10, PATH_MOST = 400, PATH_SHOWN = 100, EDGES_PER_NODE = 8 };

struct arena_block {
	struct arena_block *next;
	size_t used, room;
	char data[];
};

void builder_release(struct builder *b)
{
	struct arena_block *block;

	while ((block = b->blocks)) {
		b->blocks = block->next;
		free(block);
	}
	for (size_t i = 0; i < GRAMMAR_WARNINGS_MOST; i++)
		free(b->warnings[i]);
	text_release(&b->path);
	automaton_release(&b->a);
	*b = (struct builder){0};
}

void automaton_release(struct automaton *a)
{
	free(a->nodes);
	free(a->edges);
	free(a->starts);
	*a = (struct automaton){0};
}

/* The place of an error. A deep place must leave room for the error itself. */
static void add_place(struct text *out, const struct builder *b)
{
	if (b->path.size)
		text_addf(out, "%.*s%s: ", PATH_SHOWN, text_str(&b->path),
			  b->path.size > PATH_SHOWN ? ".." : "");
}

void builder_fail(struct builder *b, enum status status, const char *format, ...)
{
	struct text line = {0};
	va_list args;

	if (b->status)
		return;
	add_place(&line, b);
	va_start(args, format);
	text_addv(&line, format, args);
	va_end(args);
	b->status = error_set(b->err, status, "%s", text_str(&line));
	text_release(&line);
}

void builder_no_memory(struct builder *b)
{
	if (!b->status)
		b->status = error_set_cause(b->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					    "out of memory for the grammar");
}

void builder_unenforced(struct builder *b, const char *format, ...)
{
	struct text line = {0};
	va_list args;

	add_place(&line, b);
	va_start(args, format);
	text_addv(&line, format, args);
	va_end(args);
	if (line.failed) {
		builder_no_memory(b);
	} else if (b->strict) {
		if (!b->status)
			b->status = error_set(b->err, STATUS_UNSUPPORTED,
					      "%s; remove it, or set \"strict\" to false", text_str(&line));
	} else if (b->warning_count++ < GRAMMAR_WARNINGS_MOST) {
		b->warnings[b->warning_count - 1] = line.data;
		return;
	}
	text_release(&line);
}

bool builder_step(struct builder *b, size_t steps)
{
	b->steps += steps;
	if (b->steps > b->limits.steps)
		builder_fail(
			b, STATUS_NO_RESOURCE,
			"the grammar needs more than %zu steps to compile (limit: steps); make it simpler",
			b->limits.steps);
	return !b->status;
}

void *builder_alloc(struct builder *b, size_t bytes)
{
	struct arena_block *block = b->blocks;
	size_t room = bytes > BLOCK ? bytes : BLOCK;
	void *out;

	bytes = (bytes + 15) & ~(size_t)15;
	if (b->status)
		return NULL;
	if (!block || block->used + bytes > block->room) {
		room = (room + 15) & ~(size_t)15;
		block = calloc(1, sizeof(*block) + room);
		if (!block) {
			builder_no_memory(b);
			return NULL;
		}
		block->room = room;
		block->next = b->blocks;
		b->blocks = block;
	}
	out = (char *)block->data + block->used;
	block->used += bytes;
	builder_step(b, 1 + bytes / 16);
	return b->status ? NULL : out;
}

size_t builder_path(struct builder *b, const char *name)
{
	size_t old = b->path.size;

	if (old < PATH_MOST)
		text_addf(&b->path, "%s%.60s", old ? "." : "", name);
	return old;
}

size_t builder_path_index(struct builder *b, size_t index)
{
	size_t old = b->path.size;

	if (old < PATH_MOST)
		text_addf(&b->path, "[%zu]", index);
	return old;
}

void builder_path_end(struct builder *b, size_t old)
{
	if (!b->path.data)
		return;
	b->path.size = old;
	b->path.data[old] = '\0';
}

/* Makes room for one more element. False after an error. */
static bool grow(struct builder *b, void **array, size_t count, size_t *room, size_t each)
{
	size_t want = *room ? *room * 2 : 256;
	void *grown;

	if (b->status)
		return false;
	if (count < *room)
		return true;
	grown = realloc(*array, want * each);
	if (!grown) {
		builder_no_memory(b);
		return false;
	}
	*array = grown;
	*room = want;
	return true;
}

uint32_t build_node(struct builder *b)
{
	void *nodes = b->a.nodes;

	if (b->a.node_count >= b->limits.nodes) {
		builder_fail(b, STATUS_NO_RESOURCE,
			     "the grammar needs more than %zu nodes (limit: nodes); make it simpler",
			     b->limits.nodes);
		return 0;
	}
	if (!grow(b, &nodes, b->a.node_count, &b->node_room, sizeof(*b->a.nodes)))
		return 0;
	b->a.nodes = nodes;
	b->a.nodes[b->a.node_count] = (struct node){.first = EDGE_NONE};
	return (uint32_t)b->a.node_count++;
}

static void add_edge(struct builder *b, uint32_t from, struct edge edge)
{
	void *edges = b->a.edges;

	if (b->a.edge_count >= b->limits.nodes * EDGES_PER_NODE)
		builder_fail(b, STATUS_NO_RESOURCE,
			     "the grammar needs more than %zu edges (limit: %d times nodes); make it simpler",
			     b->a.edge_count, EDGES_PER_NODE);
	if (!builder_step(b, 1) || !grow(b, &edges, b->a.edge_count, &b->edge_room, sizeof(*b->a.edges)))
		return;
	b->a.edges = edges;
	edge.next = b->a.nodes[from].first;
	b->a.edges[b->a.edge_count] = edge;
	b->a.nodes[from].first = (uint32_t)b->a.edge_count++;
}

void build_byte(struct builder *b, uint32_t from, unsigned low, unsigned high, uint32_t to)
{
	add_edge(b, from,
		 (struct edge){.kind = EDGE_BYTE, .low = (uint8_t)low, .high = (uint8_t)high, .target = to});
}

void build_empty(struct builder *b, uint32_t from, uint32_t to)
{
	add_edge(b, from, (struct edge){.kind = EDGE_EMPTY, .target = to});
}

void build_call(struct builder *b, uint32_t from, uint32_t rule, uint32_t min, uint32_t max, uint32_t to)
{
	if (!min)
		build_empty(b, from, to);
	if (max)
		add_edge(b, from,
			 (struct edge){.kind = EDGE_CALL,
				       .rule = rule,
				       .min = min ? min : 1,
				       .max = max,
				       .target = to});
}

void build_end(struct builder *b, uint32_t node)
{
	if (!b->status)
		b->a.nodes[node].end = true;
}

uint32_t build_rule(struct builder *b)
{
	void *starts = b->a.starts;
	uint32_t start;

	if (!b->a.rule_count && grow(b, &starts, 0, &b->rule_room, sizeof(*b->a.starts))) {
		b->a.starts = starts;
		b->a.starts[b->a.rule_count++] = build_node(b);
	}
	start = build_node(b);
	starts = b->a.starts;
	if (!grow(b, &starts, b->a.rule_count, &b->rule_room, sizeof(*b->a.starts)))
		return 0;
	b->a.starts = starts;
	b->a.starts[b->a.rule_count] = start;
	return (uint32_t)b->a.rule_count++;
}

void build_text(struct builder *b, uint32_t from, const char *bytes, size_t size, uint32_t to)
{
	if (!size)
		build_empty(b, from, to);
	for (size_t i = 0; i < size && !b->status; i++) {
		uint32_t next = i + 1 < size ? build_node(b) : to;

		build_byte(b, from, (uint8_t)bytes[i], (uint8_t)bytes[i], next);
		from = next;
	}
}
