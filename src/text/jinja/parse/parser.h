/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: statements in parse_statement.c, expressions in parse_expression.c. Functions return NULL after
 * they have recorded an error. */
#ifndef TEXT_JINJA_PARSE_PARSER_H
#define TEXT_JINJA_PARSE_PARSER_H
#include "text/jinja/ast.h"
#include "text/jinja/parse/lexer.h"

struct parser {
	struct jinja *j;
	const struct token *at;
	size_t nodes;
	int depth, loops;     /* nested constructs; loops around this place */
	bool varargs, kwargs; /* the macro around this place reads these variables */
	struct error *err;
};

/* A list of nodes that grows in the arena. */
struct node_list {
	const struct node **items;
	size_t count, room;
};

void *parse_take(struct parser *p, size_t size);
/* `at`: the token that gives line and column. */
struct node *parse_node(struct parser *p, enum node_kind kind, const struct token *at);
bool parse_add(struct parser *p, struct node_list *l, const struct node *n);
/* Always NULL. */
struct node *parse_fail(struct parser *p, const struct token *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct node *parse_unsupported(struct parser *p, const struct token *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails if the token is of another type, else moves on. */
bool parse_expect(struct parser *p, enum token_type type);
bool parse_skip(struct parser *p, enum token_type type);
bool parse_is_name(const struct parser *p, const char *name);
bool parse_skip_name(struct parser *p, const char *name);
bool parse_enter(struct parser *p);
/* A node for the variable at the present token. */
struct node *parse_variable(struct parser *p);

const struct node *parse_expression(struct parser *p);
/* An expression, or several separated by commas, which are a tuple. `stop`: a name that ends them; NULL:
 * none. `conditions`: a if b is allowed. */
const struct node *parse_tuple(struct parser *p, bool conditions, const char *stop, bool parentheses);
/* Filters applied to `input`, which is NULL for the text of a block. `begun`: the first one stands here
 * without a bar. */
const struct node *parse_filters(struct parser *p, const struct node *input, bool begun);
/* The whole template. */
const struct node *parse_template(struct parser *p);
#endif
