/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions over characters and rules as trees, and their translation to nodes of an automaton. All
 * memory belongs to the builder. Functions return NULL after an error, and take NULL. */
#ifndef ENGINE_GRAMMAR_AUTOMATON_EXPR_H
#define ENGINE_GRAMMAR_AUTOMATON_EXPR_H
#include "engine/grammar/automaton/automaton.h"
#include "engine/grammar/automaton/char_set.h"

/* How a character of a text appears in the output. */
enum encoding {
	ENCODE_RAW,  /* UTF-8 */
	ENCODE_JSON, /* within a JSON string: UTF-8, or an escape if JSON requires one */
};

enum expr_kind { EXPR_TEXT, EXPR_CLASS, EXPR_SEQUENCE, EXPR_CHOICE, EXPR_REPEAT, EXPR_RULE };

struct expr {
	enum expr_kind kind;
	struct expr *first, *last, *next; /* children of SEQUENCE, CHOICE and REPEAT; sibling */
	const char *text;		  /* TEXT: raw bytes */
	size_t size;
	const struct char_range *ranges; /* CLASS */
	unsigned range_count;
	enum encoding encoding;
	uint32_t rule, min, max; /* RULE; REPEAT */
	uint32_t nodes;		 /* estimate of its nodes, saturated */
	bool nullable;		 /* RULE: assumed not nullable; callers of nullable rules set it */
};

struct expr *expr_text(struct builder *b, const char *bytes, size_t size); /* copied */
struct expr *expr_words(struct builder *b, const char *text);
struct expr *expr_class(struct builder *b, struct char_set *set, enum encoding encoding); /* sorts */
struct expr *expr_range(struct builder *b, uint32_t low, uint32_t high, enum encoding encoding);
struct expr *expr_rule(struct builder *b, uint32_t rule);
struct expr *expr_repeat(struct builder *b, struct expr *child, uint32_t min, uint32_t max);
struct expr *expr_group(struct builder *b, enum expr_kind kind); /* empty SEQUENCE or CHOICE */
/* Appends a child. Returns the group. */
struct expr *expr_add(struct builder *b, struct expr *group, struct expr *child);
/* Builds paths from one node to another. `to` may have edges; `from` may have edges to elsewhere. */
void build_expr(struct builder *b, const struct expr *e, uint32_t from, uint32_t to);
/* A new rule with this body. */
uint32_t expr_make_rule(struct builder *b, const struct expr *e);
#endif
