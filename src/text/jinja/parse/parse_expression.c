/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, with the precedence that jinja2's parser gives them. */
#include <string.h>
#include "text/jinja/parse/parser.h"
#include "text/jinja/run.h"

static const struct node *parse_or(struct parser *p);
static const struct node *parse_unary(struct parser *p, bool filters);

static const struct node *binary(struct parser *p, enum node_kind kind, const struct token *at,
				 const struct node *a, const struct node *b)
{
	struct node *n = a && b ? parse_node(p, kind, at) : NULL;

	if (!n)
		return NULL;
	n->a = a;
	n->b = b;
	return n;
}

static const struct node *unary(struct parser *p, enum node_kind kind, const struct token *at,
				const struct node *a)
{
	struct node *n = a ? parse_node(p, kind, at) : NULL;

	if (n)
		n->a = a;
	return n;
}

static struct value text_value(const struct token *t)
{
	return value_string(t->bytes, t->size, JINJA_TEMPLATE);
}

static const struct node *constant(struct parser *p, struct value v)
{
	struct node *n = parse_node(p, NODE_CONSTANT, p->at);

	p->at++;
	if (n)
		n->value = v;
	return n;
}

static const struct node *name(struct parser *p)
{
	if (parse_is_name(p, "true") || parse_is_name(p, "True"))
		return constant(p, value_bool(true));
	if (parse_is_name(p, "false") || parse_is_name(p, "False"))
		return constant(p, value_bool(false));
	if (parse_is_name(p, "none") || parse_is_name(p, "None"))
		return constant(p, value_none());
	return parse_variable(p);
}

/* Strings that follow each other are one. */
static const struct node *strings(struct parser *p)
{
	const struct token *first = p->at;
	size_t size = 0;
	char *all;

	if (first[1].type != TOKEN_STRING)
		return constant(p, text_value(first));
	for (const struct token *t = first; t->type == TOKEN_STRING; t++)
		size += t->size;
	all = parse_take(p, size + 1);
	if (!all)
		return NULL;
	size = 0;
	for (; p->at->type == TOKEN_STRING; p->at++) {
		memcpy(all + size, p->at->bytes, p->at->size);
		size += p->at->size;
	}
	p->at--;
	return constant(p, value_string(all, size, JINJA_TEMPLATE));
}

/* [a, b] or {a: b}, after the bracket. */
static const struct node *display(struct parser *p, const struct token *begin, enum token_type close)
{
	bool pairs = close == TOKEN_CLOSE_DICT;
	struct node *n = parse_node(p, pairs ? NODE_DICT : NODE_LIST, begin);
	struct node_list items = {0};

	while (n && p->at->type != close) {
		if (items.count && !parse_expect(p, TOKEN_COMMA))
			return NULL;
		if (p->at->type == close)
			break;
		if (!parse_add(p, &items, parse_expression(p)))
			return NULL;
		if (pairs && (!parse_expect(p, TOKEN_COLON) || !parse_add(p, &items, parse_expression(p))))
			return NULL;
	}
	if (!n || !parse_expect(p, close))
		return NULL;
	n->items = items.items;
	n->count = items.count;
	return n;
}

static const struct node *primary(struct parser *p)
{
	const struct token *at = p->at;
	const struct node *n;

	switch (at->type) {
	case TOKEN_NAME:
		return name(p);
	case TOKEN_STRING:
		return strings(p);
	case TOKEN_INTEGER:
		return constant(p, value_int(at->integer));
	case TOKEN_FLOAT:
		return constant(p, value_float(at->real));
	case TOKEN_OPEN:
		p->at++;
		n = parse_tuple(p, true, NULL, true);
		return n && parse_expect(p, TOKEN_CLOSE) ? n : NULL;
	case TOKEN_OPEN_LIST:
		p->at++;
		return display(p, at, TOKEN_CLOSE_LIST);
	case TOKEN_OPEN_DICT:
		p->at++;
		return display(p, at, TOKEN_CLOSE_DICT);
	default:
		return parse_fail(p, at, "expected an expression, but found %s", token_text(at->type));
	}
}

/* a:b:c or an expression; *slice says which. */
static const struct node *subscript_part(struct parser *p, const struct token *begin)
{
	const struct node *parts[3] = {0};
	struct node *n;
	size_t at = 0;

	if (p->at->type != TOKEN_COLON) {
		parts[0] = parse_expression(p);
		if (!parts[0] || p->at->type != TOKEN_COLON)
			return parts[0];
	}
	while (at < 2 && parse_skip(p, TOKEN_COLON)) {
		at++;
		if (p->at->type == TOKEN_COLON || p->at->type == TOKEN_CLOSE_LIST ||
		    p->at->type == TOKEN_COMMA)
			continue;
		parts[at] = parse_expression(p);
		if (!parts[at])
			return NULL;
	}
	n = parse_node(p, NODE_SLICE, begin);
	if (!n)
		return NULL;
	n->items = parse_take(p, sizeof(parts));
	if (!n->items)
		return NULL;
	memcpy(n->items, parts, sizeof(parts));
	n->count = 3;
	return n;
}

static const struct node *subscript(struct parser *p, const struct node *object)
{
	const struct token *at = p->at++;
	const struct node *part = subscript_part(p, at);
	struct node_list parts = {0};
	struct node *tuple;

	if (!part)
		return NULL;
	if (part->kind == NODE_SLICE) {
		((struct node *)part)->a = object;
		return parse_expect(p, TOKEN_CLOSE_LIST) ? part : NULL;
	}
	if (p->at->type != TOKEN_COMMA)
		return parse_expect(p, TOKEN_CLOSE_LIST) ? binary(p, NODE_ITEM, at, object, part) : NULL;
	if (!parse_add(p, &parts, part))
		return NULL;
	while (parse_skip(p, TOKEN_COMMA) && p->at->type != TOKEN_CLOSE_LIST)
		if (!parse_add(p, &parts, parse_expression(p)))
			return NULL;
	tuple = parse_expect(p, TOKEN_CLOSE_LIST) ? parse_node(p, NODE_TUPLE, at) : NULL;
	if (!tuple)
		return NULL;
	tuple->items = parts.items;
	tuple->count = parts.count;
	return binary(p, NODE_ITEM, at, object, tuple);
}

static const struct node *attribute(struct parser *p, const struct node *object)
{
	const struct token *at = ++p->at;
	struct node *n;

	if (at->type == TOKEN_INTEGER) {
		const struct node *index = constant(p, value_int(at->integer));

		return binary(p, NODE_ITEM, at, object, index);
	}
	if (at->type != TOKEN_NAME)
		return parse_fail(p, at, "expected a name or a number after the dot, but found %s",
				  token_text(at->type));
	n = parse_node(p, NODE_ATTRIBUTE, at);
	if (!n)
		return NULL;
	n->a = object;
	n->value = text_value(at);
	p->at++;
	return n;
}

static bool argument(struct parser *p, struct node *call, struct node_list *positional,
		     struct node_list *named, struct value **names)
{
	struct value *grown;

	if (p->at->type == TOKEN_MULTIPLY || p->at->type == TOKEN_POWER) {
		const struct node **many = p->at->type == TOKEN_MULTIPLY ? &call->b : &call->c;

		if (*many)
			return parse_fail(p, p->at, "%s can stand before one argument only",
					  token_text(p->at->type)) != NULL;
		p->at++;
		*many = parse_expression(p);
		return *many != NULL;
	}
	if (p->at->type != TOKEN_NAME || p->at[1].type != TOKEN_ASSIGN) {
		if (named->count)
			return parse_fail(p, p->at, "an argument without a name follows one with a name") !=
			       NULL;
		return parse_add(p, positional, parse_expression(p));
	}
	grown = parse_take(p, (named->count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	for (size_t i = 0; i < named->count; i++) {
		grown[i] = (*names)[i];
		if (grown[i].string.size == p->at->size &&
		    !memcmp(grown[i].string.bytes, p->at->bytes, p->at->size))
			return parse_fail(p, p->at, "the argument %.*s is given twice", (int)p->at->size,
					  p->at->bytes) != NULL;
	}
	grown[named->count] = text_value(p->at);
	*names = grown;
	p->at += 2;
	return parse_add(p, named, parse_expression(p));
}

static bool parse_arguments(struct parser *p, struct node *call)
{
	struct node_list positional = {0}, named = {0};
	struct value *names = NULL;

	if (!parse_expect(p, TOKEN_OPEN))
		return false;
	while (p->at->type != TOKEN_CLOSE) {
		if ((positional.count + named.count || call->b || call->c) && !parse_expect(p, TOKEN_COMMA))
			return false;
		if (p->at->type == TOKEN_CLOSE)
			break;
		if (named.count == NAMED_MAX)
			return parse_fail(p, p->at, "more than %d named arguments", NAMED_MAX) != NULL;
		if (!argument(p, call, &positional, &named, &names))
			return false;
	}
	call->items = positional.items;
	call->count = positional.count;
	call->others = named.items;
	call->other_count = named.count;
	call->names = names;
	return parse_expect(p, TOKEN_CLOSE);
}

static const struct node *call(struct parser *p, const struct node *callee)
{
	struct node *n = parse_node(p, NODE_CALL, p->at);

	if (!n)
		return NULL;
	n->a = callee;
	n->line = callee->line;
	n->column = callee->column;
	return parse_arguments(p, n) ? n : NULL;
}

static const struct node *postfix(struct parser *p, const struct node *n)
{
	while (n) {
		if (p->at->type == TOKEN_DOT)
			n = attribute(p, n);
		else if (p->at->type == TOKEN_OPEN_LIST)
			n = subscript(p, n);
		else if (p->at->type == TOKEN_OPEN)
			n = call(p, n);
		else
			break;
	}
	return n;
}

static const struct node *filter(struct parser *p, const struct node *input)
{
	const struct token *at = p->at;
	struct node *n;

	if (at->type != TOKEN_NAME)
		return parse_fail(p, at, "expected the name of a filter, but found %s", token_text(at->type));
	n = parse_node(p, NODE_FILTER, at);
	if (!n)
		return NULL;
	n->a = input;
	n->function = filter_find(at->bytes, at->size);
	if (!n->function)
		return parse_unsupported(p, at, "the filter \"%.*s\" is not supported",
					 (int)(at->size < 60 ? at->size : 60), at->bytes);
	p->at++;
	return p->at->type != TOKEN_OPEN || parse_arguments(p, n) ? n : NULL;
}

const struct node *parse_filters(struct parser *p, const struct node *input, bool begun)
{
	const struct node *n = begun ? filter(p, input) : input;

	while ((n || !(input || begun)) && parse_skip(p, TOKEN_PIPE)) {
		n = filter(p, n);
		begun = true;
	}
	return n;
}

/* Whether a test's argument without parentheses begins here. */
static bool test_argument_begins(const struct parser *p)
{
	switch (p->at->type) {
	case TOKEN_STRING:
	case TOKEN_INTEGER:
	case TOKEN_FLOAT:
	case TOKEN_OPEN_LIST:
	case TOKEN_OPEN_DICT:
		return true;
	case TOKEN_NAME:
		return !parse_is_name(p, "else") && !parse_is_name(p, "or") && !parse_is_name(p, "and");
	default:
		return false;
	}
}

static const struct node *test(struct parser *p, const struct node *tested)
{
	const struct token *begin = p->at++, *at;
	bool negated = parse_skip_name(p, "not");
	struct node_list arguments = {0};
	struct node *n;

	at = p->at;
	if (at->type != TOKEN_NAME)
		return parse_fail(p, at, "expected the name of a test, but found %s", token_text(at->type));
	n = parse_node(p, NODE_TEST, begin);
	if (!n)
		return NULL;
	n->a = tested;
	n->test = test_find(at->bytes, at->size);
	if (!n->test)
		return parse_unsupported(p, at, "the test \"%.*s\" is not supported",
					 (int)(at->size < 60 ? at->size : 60), at->bytes);
	p->at++;
	if (p->at->type == TOKEN_OPEN) {
		if (!parse_arguments(p, n))
			return NULL;
	} else if (test_argument_begins(p)) {
		if (parse_is_name(p, "is"))
			return parse_fail(p, p->at,
					  "a test cannot follow a test; put the first one in parentheses");
		if (!parse_add(p, &arguments, postfix(p, primary(p))))
			return NULL;
		n->items = arguments.items;
		n->count = arguments.count;
	}
	return negated ? unary(p, NODE_NOT, begin, n) : n;
}

static const struct node *filters_and_tests(struct parser *p, const struct node *n)
{
	while (n) {
		if (p->at->type == TOKEN_PIPE)
			n = parse_filters(p, n, false);
		else if (parse_is_name(p, "is"))
			n = test(p, n);
		else if (p->at->type == TOKEN_OPEN)
			n = call(p, n);
		else
			break;
	}
	return n;
}

static const struct node *parse_unary(struct parser *p, bool filters)
{
	const struct token *at = p->at;
	const struct node *n;

	if (!parse_enter(p))
		return NULL;
	if (parse_skip(p, TOKEN_SUBTRACT))
		n = unary(p, NODE_NEGATE, at, parse_unary(p, false));
	else if (parse_skip(p, TOKEN_ADD))
		n = unary(p, NODE_PLUS, at, parse_unary(p, false));
	else
		n = primary(p);
	n = postfix(p, n);
	if (filters)
		n = filters_and_tests(p, n);
	p->depth--;
	return n;
}

static bool operator_of(enum token_type type, enum operator* out)
{
	switch (type) {
#define OPERATOR(token, op)                                                                                  \
	case TOKEN_##token:                                                                                  \
		*out = OP_##op;                                                                              \
		return true;
		OPERATOR(ADD, ADD)
		OPERATOR(SUBTRACT, SUBTRACT)
		OPERATOR(MULTIPLY, MULTIPLY)
		OPERATOR(DIVIDE, DIVIDE)
		OPERATOR(FLOOR, FLOOR)
		OPERATOR(MODULO, MODULO)
		OPERATOR(POWER, POWER)
		OPERATOR(EQUAL, EQUAL)
		OPERATOR(UNEQUAL, UNEQUAL)
		OPERATOR(LESS, LESS)
		OPERATOR(LESS_EQUAL, LESS_EQUAL)
		OPERATOR(GREATER, GREATER)
		OPERATOR(GREATER_EQUAL, GREATER_EQUAL)
#undef OPERATOR
	default:
		return false;
	}
}

/* Operators [first, last] from left to right, over operands of `parse`. */
static const struct node *from_left(struct parser *p, enum operator first, enum operator last,
				    const struct node *(*parse)(struct parser *p))
{
	const struct node *n = parse(p);
	enum operator op;

	while (n && operator_of(p->at->type, &op) && op >= first && op <= last) {
		const struct token *at = p->at++;

		n = binary(p, NODE_BINARY, at, n, parse(p));
		if (n)
			((struct node *)n)->op = op;
	}
	return n;
}

static const struct node *operand(struct parser *p)
{
	return parse_unary(p, true);
}

static const struct node *power(struct parser *p)
{
	return from_left(p, OP_POWER, OP_POWER, operand);
}

static const struct node *product(struct parser *p)
{
	return from_left(p, OP_MULTIPLY, OP_MODULO, power);
}

static const struct node *concat(struct parser *p)
{
	const struct token *at = p->at;
	const struct node *first = product(p);
	struct node_list items = {0};
	struct node *n;

	if (!first || p->at->type != TOKEN_TILDE)
		return first;
	if (!parse_add(p, &items, first))
		return NULL;
	while (parse_skip(p, TOKEN_TILDE))
		if (!parse_add(p, &items, product(p)))
			return NULL;
	n = parse_node(p, NODE_CONCAT, at);
	if (!n)
		return NULL;
	n->items = items.items;
	n->count = items.count;
	return n;
}

static const struct node *sum(struct parser *p)
{
	return from_left(p, OP_ADD, OP_SUBTRACT, concat);
}

static const struct node *comparison(struct parser *p)
{
	const struct token *begin = p->at;
	const struct node *first = sum(p);
	struct node_list operands = {0};
	struct node *n;

	while (first) {
		const struct token *at = p->at;
		enum operator op;
		const struct node *part;

		if (parse_skip_name(p, "in")) {
			op = OP_IN;
		} else if (parse_is_name(p, "not") && at[1].type == TOKEN_NAME && at[1].size == 2 &&
			   !memcmp(at[1].bytes, "in", 2)) {
			p->at += 2;
			op = OP_NOT_IN;
		} else if (operator_of(at->type, &op) && op >= OP_EQUAL) {
			p->at++;
		} else {
			break;
		}
		part = unary(p, NODE_OPERAND, at, sum(p));
		if (!parse_add(p, &operands, part))
			return NULL;
		((struct node *)part)->op = op;
	}
	if (!first || !operands.count)
		return first;
	n = parse_node(p, NODE_COMPARE, begin);
	if (!n)
		return NULL;
	n->a = first;
	n->items = operands.items;
	n->count = operands.count;
	return n;
}

static const struct node *parse_not(struct parser *p)
{
	const struct token *at = p->at;
	const struct node *n;

	if (!parse_skip_name(p, "not"))
		return comparison(p);
	if (!parse_enter(p))
		return NULL;
	n = unary(p, NODE_NOT, at, parse_not(p));
	p->depth--;
	return n;
}

static const struct node *parse_and(struct parser *p)
{
	const struct node *n = parse_not(p);

	while (n && parse_is_name(p, "and")) {
		const struct token *at = p->at++;

		n = binary(p, NODE_AND, at, n, parse_not(p));
	}
	return n;
}

static const struct node *parse_or(struct parser *p)
{
	const struct node *n = parse_and(p);

	while (n && parse_is_name(p, "or")) {
		const struct token *at = p->at++;

		n = binary(p, NODE_OR, at, n, parse_and(p));
	}
	return n;
}

const struct node *parse_expression(struct parser *p)
{
	const struct node *n;

	if (!parse_enter(p))
		return NULL;
	n = parse_or(p);
	while (n && parse_is_name(p, "if")) {
		const struct token *at = p->at++;
		const struct node *condition = parse_or(p), *otherwise = NULL;
		struct node *choice;

		if (condition && parse_skip_name(p, "else")) {
			otherwise = parse_expression(p);
			if (!otherwise)
				return NULL;
		}
		choice = condition ? parse_node(p, NODE_CONDITION, at) : NULL;
		if (choice) {
			choice->a = n;
			choice->b = condition;
			choice->c = otherwise;
		}
		n = choice;
	}
	p->depth--;
	return n;
}

static bool tuple_ends(const struct parser *p, const char *stop)
{
	return p->at->type == TOKEN_PRINT_END || p->at->type == TOKEN_BLOCK_END ||
	       p->at->type == TOKEN_CLOSE || (stop && parse_is_name(p, stop));
}

const struct node *parse_tuple(struct parser *p, bool conditions, const char *stop, bool parentheses)
{
	const struct token *begin = p->at;
	struct node_list items = {0};
	bool several = false;
	struct node *n;

	while (!tuple_ends(p, stop)) {
		if (!parse_add(p, &items, conditions ? parse_expression(p) : parse_or(p)))
			return NULL;
		if (!parse_skip(p, TOKEN_COMMA))
			break;
		several = true;
	}
	if (!several && items.count)
		return items.items[0];
	if (!several && !parentheses)
		return parse_fail(p, p->at, "expected an expression, but found %s", token_text(p->at->type));
	n = parse_node(p, NODE_TUPLE, begin);
	if (!n)
		return NULL;
	n->items = items.items;
	n->count = items.count;
	return n;
}
