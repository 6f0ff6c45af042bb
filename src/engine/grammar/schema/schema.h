/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON schemas. A schema becomes an expression whose texts all satisfy it. Some texts that satisfy it are
 * left out. Properties have the order of the schema. Unlisted properties come last, and only if the schema
 * has additionalProperties or lists none. Keys have no needless escapes.
 */
#ifndef ENGINE_GRAMMAR_SCHEMA_SCHEMA_H
#define ENGINE_GRAMMAR_SCHEMA_SCHEMA_H
#include "engine/grammar/schema/json_rules.h"

struct schema_rule {
	const json_t *schema; /* NULL: an empty place of the table */
	uint32_t rule;
};

struct schemas {
	struct builder *b;
	const json_t *root;	   /* the schema that $ref "#" names */
	struct schema_rule *rules; /* hash table by the address of the schema */
	size_t rule_count, rule_room;
	json_t *merged; /* object: text of a merged schema to itself, so that equal ones are one */
	unsigned nesting;
};

/* The texts that satisfy `root`, as an expression of the builder. NULL: the builder has an error. */
struct expr *schema_parse(struct builder *b, const json_t *root);

/* The rest is for the files of this folder. */
enum schema_type {
	TYPE_NULL = 1,
	TYPE_BOOLEAN = 2,
	TYPE_INTEGER = 4,
	TYPE_NUMBER = 8,
	TYPE_STRING = 16,
	TYPE_ARRAY = 32,
	TYPE_OBJECT = 64,
	TYPE_ALL = 127
};
/* Types that the keyword `type` names, or those that the other keywords are about, or all. 0: error. */
unsigned schema_types(struct builder *b, const json_t *schema);
struct expr *schema_value(struct schemas *s, const json_t *schema);
/* The same as a rule of its own, for several uses. */
struct expr *schema_value_rule(struct schemas *s, const json_t *schema);
struct expr *schema_object(struct schemas *s, const json_t *schema);
struct expr *schema_array(struct schemas *s, const json_t *schema);
struct expr *schema_string(struct schemas *s, const json_t *schema);
struct expr *schema_number(struct schemas *s, const json_t *schema, bool integer);
/* A schema without $ref and allOf at its top: a reference to a schema of the root or of s->merged. NULL:
 * error. */
const json_t *schema_flatten(struct schemas *s, const json_t *schema);
/* A schema that both satisfy; owned by s->merged. */
const json_t *schema_merge(struct schemas *s, const json_t *a, const json_t *b);
/* The schema that a $ref names. */
const json_t *schema_resolve(struct schemas *s, const json_t *schema);
/* Non-negative integer of a keyword; `otherwise` if it is absent. */
uint32_t schema_count(struct builder *b, const json_t *schema, const char *keyword, uint32_t otherwise);
/* The pattern of a format; NULL: unknown. */
const char *schema_format_pattern(const char *format);
#endif
