/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pushdown automaton and its builder. A rule is a set of nodes with a start. An edge reads a byte, reads
 * nothing, or calls a rule a number of times. A node that ends its rule returns to the caller.
 *
 * The builder keeps the first error. After an error its functions do nothing useful but stay safe, so callers
 * look at the error once, at the end.
 */
#ifndef ENGINE_GRAMMAR_AUTOMATON_AUTOMATON_H
#define ENGINE_GRAMMAR_AUTOMATON_AUTOMATON_H
#include "engine/grammar/grammar.h"

enum edge_kind { EDGE_BYTE, EDGE_EMPTY, EDGE_CALL };

#define EDGE_NONE UINT32_MAX
#define REPEAT_FOREVER UINT32_MAX

struct edge {
	uint32_t next; /* of the same node; EDGE_NONE: the last */
	uint32_t target;
	/* CALL: the rule is called `min` to `max` times (min at least 1), and then the automaton goes to
	 * target. */
	uint32_t rule, min, max;
	uint8_t kind, low, high; /* BYTE: low to high */
	bool tail; /* CALL: returning would only return again, so nothing needs to be remembered */
};

struct node {
	uint32_t first;	 /* edge */
	uint16_t height; /* least nesting of calls that a text from here to the end of the rule needs */
	bool end;	 /* ends its rule */
};
enum { HEIGHT_NONE = UINT16_MAX }; /* no text leads from here to the end of the rule */

struct automaton {
	struct node *nodes;
	struct edge *edges;
	uint32_t *starts; /* per rule: its first node */
	size_t node_count, edge_count, rule_count;
	uint32_t root;	       /* rule */
	size_t depth;	       /* most nested calls */
	uint8_t class_of[256]; /* bytes of one class lead to the same nodes everywhere */
	uint8_t byte_of[256];  /* per class: one of its bytes */
	unsigned classes;
};

/* One warning per line in `warnings`; see grammar_warnings. */
struct builder {
	struct automaton a;
	size_t node_room, edge_room, rule_room;
	struct grammar_limits limits;
	size_t steps;
	enum status status;
	struct error *err;
	struct text path; /* place in the source, for messages: "schema.properties.a" */
	struct arena_block *blocks;
	size_t block_bytes;
	bool strict, compact;
	char *warnings[GRAMMAR_WARNINGS_MOST];
	size_t warning_count;
	uint32_t shared[16]; /* rules that several places use (json_rules.c); 0: not built yet */
};

void builder_release(struct builder *b);
/* Sets the builder's first error: "PATH: message". */
void builder_fail(struct builder *b, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for a lack of memory, whose cause is NO_MEMORY. */
void builder_no_memory(struct builder *b);
/* A keyword or construct that cannot be enforced: an error in strict mode, otherwise a warning. */
void builder_unenforced(struct builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts work. False once the limit is exceeded or an error is set. */
bool builder_step(struct builder *b, size_t steps);
/* Zeroed memory that lives as long as the builder; NULL after an error. */
void *builder_alloc(struct builder *b, size_t bytes);
/* Extends the path; returns its old length for builder_path_end. Long names are cut. */
size_t builder_path(struct builder *b, const char *name);
size_t builder_path_index(struct builder *b, size_t index);
void builder_path_end(struct builder *b, size_t old);

uint32_t build_node(struct builder *b);
void build_byte(struct builder *b, uint32_t from, unsigned low, unsigned high, uint32_t to);
void build_empty(struct builder *b, uint32_t from, uint32_t to);
/* `min` may be 0. */
void build_call(struct builder *b, uint32_t from, uint32_t rule, uint32_t min, uint32_t max, uint32_t to);
void build_end(struct builder *b, uint32_t node);
/* A new rule with a start node. Rule 0 is reserved, so 0 may stand for none. */
uint32_t build_rule(struct builder *b);
static inline uint32_t rule_start(const struct builder *b, uint32_t rule)
{
	return b->a.starts[rule];
}
/* The bytes of a text, one after the other. */
void build_text(struct builder *b, uint32_t from, const char *bytes, size_t size, uint32_t to);
/* Completes the automaton: heights, tail calls, classes. Errors: a rule that calls itself before it reads a
 * byte; a root without any text. Moves it to *out; owner: caller, automaton_release. */
enum status builder_finish(struct builder *b, uint32_t root, struct automaton *out);
void automaton_release(struct automaton *a);
#endif
