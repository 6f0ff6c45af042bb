/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON's lexical rules. A text without a schema is any JSON value.
 *
 * White space is nothing, one space, or a newline and at most 64 spaces or tabs. It may follow {, [, "," and
 * ":", and precede } and ]. Compact texts have none. Numbers have at most 18 digits before the point, 25
 * behind it and an exponent of two digits. So every parser can hold them. Strings are any UTF-8 with JSON's
 * escapes, but not U+0000.
 */
#ifndef ENGINE_GRAMMAR_SCHEMA_JSON_RULES_H
#define ENGINE_GRAMMAR_SCHEMA_JSON_RULES_H
#include <jansson.h>
#include "engine/grammar/automaton/expr.h"

struct expr *json_space(struct builder *b);
struct expr *json_character(struct builder *b); /* one character of a string */
struct expr *json_any_string(struct builder *b);
struct expr *json_any_number(struct builder *b);
struct expr *json_any_integer(struct builder *b);
struct expr *json_any_object(struct builder *b);
struct expr *json_any_array(struct builder *b);
struct expr *json_any_value(struct builder *b);
/* A regular expression over raw bytes that this program wrote itself. */
struct expr *json_pattern(struct builder *b, const char *pattern);
/* One value, with white space of any allowed kind; strings as JSON_ENCODE writes them. */
struct expr *json_literal(struct builder *b, const json_t *value);
/* The contents of a string between its quotes, as the program writes them. Appends. */
void json_add_escaped(struct text *out, const char *bytes, size_t size);
#endif
