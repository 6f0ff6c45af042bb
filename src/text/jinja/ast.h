/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a compiled template. */
#ifndef TEXT_JINJA_AST_H
#define TEXT_JINJA_AST_H
#include "text/jinja/value/value.h"

enum node_kind {
	/* expressions */
	NODE_CONSTANT,	/* value */
	NODE_NAME,	/* name */
	NODE_TUPLE,	/* items */
	NODE_LIST,	/* items */
	NODE_DICT,	/* items: key, value, key, .. */
	NODE_CONDITION, /* a if b else c; c may be NULL */
	NODE_AND,	/* a, b */
	NODE_OR,	/* a, b */
	NODE_NOT,	/* a */
	NODE_COMPARE,	/* a, items: OPERAND */
	NODE_OPERAND,	/* op, a */
	NODE_BINARY,	/* op, a, b */
	NODE_CONCAT,	/* items */
	NODE_NEGATE,	/* a */
	NODE_PLUS,	/* a */
	NODE_ATTRIBUTE, /* a, value: name */
	NODE_ITEM,	/* a, b */
	NODE_SLICE,	/* a[items 0 : 1 : 2]; items may be NULL */
	NODE_CALL,	/* a, arguments */
	NODE_FILTER,	/* a (NULL: the text of a block), function, arguments */
	NODE_TEST,	/* a, test, arguments */
	/* statements */
	NODE_BODY,	 /* items */
	NODE_TEXT,	 /* value */
	NODE_PRINT,	 /* a */
	NODE_FOR,	 /* a: target, b: iterable, c: condition or NULL, body, otherwise or NULL */
	NODE_IF,	 /* items: condition, body, condition, body, ..; otherwise or NULL */
	NODE_SET,	 /* a: target, b */
	NODE_SET_BLOCK,	 /* a: target, b: filters or NULL, body */
	NODE_MACRO,	 /* name, items: parameters (NAME), others: defaults of the last ones, body */
	NODE_CALL_BLOCK, /* a: call, b: MACRO */
	NODE_FILTERED,	 /* a: filters, body */
	NODE_WITH,	 /* items: target, value, target, value, ..; body */
	NODE_SCOPE,	 /* body: block and generation */
	NODE_BREAK,
	NODE_CONTINUE,
	NODE_NAMESPACE, /* target of set: name, value: attribute */
};

enum operator{
	OP_ADD,
	OP_SUBTRACT,
	OP_MULTIPLY,
	OP_DIVIDE,
	OP_FLOOR,
	OP_MODULO,
	OP_POWER,
	OP_EQUAL,
	OP_UNEQUAL,
	OP_LESS,
	OP_LESS_EQUAL,
	OP_GREATER,
	OP_GREATER_EQUAL,
	OP_IN,
	OP_NOT_IN
};

struct node {
	enum node_kind kind;
	enum operator op;
	int line, column; /* 1-based */
	int name;	  /* index in the template's names */
	struct value value;
	const struct node *a, *b, *c, *body, *otherwise;
	const struct node **items, **others;
	size_t count, other_count;
	/* CALL, FILTER, TEST: positional arguments are `items` and the items of b (*b); named ones are
	 * `others` with these names, and the entries of c (**c) */
	const struct value *names;
	const struct function *function;
	const struct test *test;
	bool reads_varargs, reads_kwargs; /* MACRO */
};

struct jinja {
	char *name;
	struct jinja_arena arena;
	const char **names; /* of variables */
	int name_count, name_room;
	int loop, caller, varargs, kwargs; /* these names */
	const struct node *body;
};

/* The index of a variable's name, -1: no memory, or too many names. */
int jinja_name(struct jinja *j, const char *bytes, size_t size);
#endif
