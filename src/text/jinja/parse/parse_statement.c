/* SPDX-License-Identifier: Apache-2.0 */
/* Statements, and the template as a whole. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "text/jinja/parse/parser.h"
#include "text/jinja/run.h"

void *parse_take(struct parser *p, size_t size)
{
	void *taken = jinja_arena_take(&p->j->arena, size);

	if (!taken)
		error_set_cause(p->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				"%.200s: no memory for the template", p->j->name);
	return taken;
}

struct node *parse_node(struct parser *p, enum node_kind kind, const struct token *at)
{
	struct node *n;

	if (p->nodes++ == JINJA_NODES_MAX)
		return parse_fail(p, at, "the template has more than %d nodes", JINJA_NODES_MAX);
	n = parse_take(p, sizeof(*n));
	if (!n)
		return NULL;
	n->kind = kind;
	n->line = at->line;
	n->column = at->column;
	return n;
}

bool parse_add(struct parser *p, struct node_list *l, const struct node *n)
{
	const struct node **grown;
	size_t room = l->room ? l->room * 2 : 4;

	if (!n)
		return false;
	if (l->count == l->room) {
		grown = parse_take(p, room * sizeof(*grown));
		if (!grown)
			return false;
		if (l->count)
			memcpy(grown, l->items, l->count * sizeof(*grown));
		l->items = grown;
		l->room = room;
	}
	l->items[l->count++] = n;
	return true;
}

static void fail_at(struct parser *p, enum status st, const struct token *at, const char *format,
		    va_list args)
{
	char what[256];

	vsnprintf(what, sizeof(what), format, args);
	error_set(p->err, st, "%.200s:%d:%d: %s", p->j->name, at->line, at->column, what);
}

struct node *parse_fail(struct parser *p, const struct token *at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail_at(p, STATUS_BAD_INPUT, at, format, args);
	va_end(args);
	return NULL;
}

struct node *parse_unsupported(struct parser *p, const struct token *at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail_at(p, STATUS_UNSUPPORTED, at, format, args);
	va_end(args);
	return NULL;
}

bool parse_skip(struct parser *p, enum token_type type)
{
	if (p->at->type != type)
		return false;
	p->at++;
	return true;
}

bool parse_expect(struct parser *p, enum token_type type)
{
	const struct token *t = p->at;

	if (parse_skip(p, type))
		return true;
	if (t->type == TOKEN_NAME)
		return parse_fail(p, t, "expected %s, but found \"%.*s\"", token_text(type),
				  (int)(t->size < 60 ? t->size : 60), t->bytes) != NULL;
	return parse_fail(p, t, "expected %s, but found %s", token_text(type), token_text(t->type)) != NULL;
}

bool parse_is_name(const struct parser *p, const char *name)
{
	return p->at->type == TOKEN_NAME && p->at->size == strlen(name) &&
	       !memcmp(p->at->bytes, name, p->at->size);
}

bool parse_skip_name(struct parser *p, const char *name)
{
	bool is = parse_is_name(p, name);

	p->at += is;
	return is;
}

bool parse_enter(struct parser *p)
{
	if (p->depth == JINJA_NESTING_MAX)
		return parse_fail(p, p->at, "more than %d constructs are nested", JINJA_NESTING_MAX) != NULL;
	p->depth++;
	return true;
}

struct node *parse_variable(struct parser *p)
{
	struct node *n = parse_node(p, NODE_NAME, p->at);

	if (!n)
		return NULL;
	n->name = jinja_name(p->j, p->at->bytes, p->at->size);
	if (n->name < 0)
		return parse_fail(p, p->at, "the template has more than %d variables", JINJA_NAMES_MAX);
	p->varargs |= n->name == p->j->varargs;
	p->kwargs |= n->name == p->j->kwargs;
	p->at++;
	return n;
}

static const struct node *statements(struct parser *p, const char *const *ends);

/* The statements of a block up to one of its end tags, whose name stays the present token. */
static const struct node *body_until(struct parser *p, const struct token *begin, const char *const *ends)
{
	const struct node *body;

	parse_skip(p, TOKEN_COLON);
	if (!parse_expect(p, TOKEN_BLOCK_END) || !parse_enter(p))
		return NULL;
	body = statements(p, ends);
	p->depth--;
	if (body && p->at->type == TOKEN_END)
		return parse_fail(p, begin, "{%% %.*s %%} has no {%% %s %%}", (int)begin->size, begin->bytes,
				  ends[0]);
	return body;
}

/* The same for a block with one end tag, which is skipped. */
static const struct node *body_of(struct parser *p, const struct token *begin, const char *end)
{
	const struct node *body = body_until(p, begin, (const char *const[]){end, NULL});

	if (body)
		p->at++;
	return body;
}

static const struct node *variable(struct parser *p)
{
	if (p->at->type != TOKEN_NAME)
		return parse_fail(p, p->at, "expected the name of a variable, but found %s",
				  token_text(p->at->type));
	for (const char *const *word =
		     (const char *const[]){"true", "True", "false", "False", "none", "None", NULL};
	     *word; word++)
		if (parse_is_name(p, *word))
			return parse_fail(p, p->at, "cannot assign to %s", *word);
	return parse_variable(p);
}

/* A variable, or several separated by commas. `attributes`: also the attribute of a namespace. */
static const struct node *target(struct parser *p, bool attributes)
{
	const struct token *begin = p->at;
	struct node_list names = {0};
	bool several = false, open = parse_skip(p, TOKEN_OPEN);
	struct node *n;

	if (attributes && !open && begin->type == TOKEN_NAME && begin[1].type == TOKEN_DOT) {
		n = (struct node *)variable(p);
		p->at++;
		if (!n)
			return NULL;
		if (p->at->type != TOKEN_NAME)
			return parse_fail(p, p->at, "expected the name of an attribute, but found %s",
					  token_text(p->at->type));
		n->kind = NODE_NAMESPACE;
		n->value = value_string(p->at->bytes, p->at->size, JINJA_TEMPLATE);
		p->at++;
		return n;
	}
	do {
		if (names.count && p->at->type != TOKEN_NAME)
			break;
		if (!parse_add(p, &names, variable(p)))
			return NULL;
		several |= p->at->type == TOKEN_COMMA;
	} while (parse_skip(p, TOKEN_COMMA));
	if (open && !parse_expect(p, TOKEN_CLOSE))
		return NULL;
	if (!several)
		return names.items[0];
	n = parse_node(p, NODE_TUPLE, begin);
	if (!n)
		return NULL;
	n->items = names.items;
	n->count = names.count;
	return n;
}

static const struct node *parse_for(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_FOR, begin);

	if (!n || !(n->a = target(p, false)))
		return NULL;
	if (!parse_skip_name(p, "in"))
		return parse_fail(p, p->at, "expected \"in\" after the variable of the loop");
	n->b = parse_tuple(p, false, "recursive", false);
	if (!n->b)
		return NULL;
	if (parse_skip_name(p, "if") && !(n->c = parse_expression(p)))
		return NULL;
	if (parse_is_name(p, "recursive"))
		return parse_unsupported(p, p->at, "recursive loops are not supported");
	p->loops++;
	n->body = body_until(p, begin, (const char *const[]){"endfor", "else", NULL});
	p->loops--;
	if (!n->body)
		return NULL;
	if (parse_skip_name(p, "endfor"))
		return n;
	p->at++;
	n->otherwise = body_of(p, begin, "endfor");
	return n->otherwise ? n : NULL;
}

static const struct node *parse_if(struct parser *p, const struct token *begin)
{
	static const char *const ends[] = {"endif", "elif", "else", NULL};
	struct node *n = parse_node(p, NODE_IF, begin);
	struct node_list parts = {0};

	do {
		if (!n || !parse_add(p, &parts, parse_tuple(p, false, NULL, false)) ||
		    !parse_add(p, &parts, body_until(p, begin, ends)))
			return NULL;
	} while (parse_skip_name(p, "elif"));
	n->items = parts.items;
	n->count = parts.count;
	if (parse_skip_name(p, "endif"))
		return n;
	p->at++;
	n->otherwise = body_of(p, begin, "endif");
	return n->otherwise ? n : NULL;
}

static const struct node *parse_set(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_SET, begin);

	if (!n || !(n->a = target(p, true)))
		return NULL;
	if (parse_skip(p, TOKEN_ASSIGN)) {
		n->b = parse_tuple(p, true, NULL, false);
		return n->b ? n : NULL;
	}
	n->kind = NODE_SET_BLOCK;
	if (p->at->type == TOKEN_PIPE && !(n->b = parse_filters(p, NULL, false)))
		return NULL;
	n->body = body_of(p, begin, "endset");
	return n->body ? n : NULL;
}

static bool parse_parameters(struct parser *p, struct node *macro)
{
	struct node_list names = {0}, defaults = {0};

	if (!parse_expect(p, TOKEN_OPEN))
		return false;
	while (p->at->type != TOKEN_CLOSE) {
		if (names.count && !parse_expect(p, TOKEN_COMMA))
			return false;
		if (!parse_add(p, &names, variable(p)))
			return false;
		if (parse_skip(p, TOKEN_ASSIGN)) {
			if (!parse_add(p, &defaults, parse_expression(p)))
				return false;
		} else if (defaults.count) {
			return parse_fail(p, p->at,
					  "a parameter without a default follows one with a default") != NULL;
		}
	}
	p->at++;
	macro->items = names.items;
	macro->count = names.count;
	macro->others = defaults.items;
	macro->other_count = defaults.count;
	return true;
}

/* The body of a macro or call block is no part of the loops around it. */
static bool macro_body(struct parser *p, const struct token *begin, struct node *macro, const char *end)
{
	bool varargs = p->varargs, kwargs = p->kwargs;
	int loops = p->loops;

	p->varargs = p->kwargs = false;
	p->loops = 0;
	macro->body = body_of(p, begin, end);
	p->loops = loops;
	macro->reads_varargs = p->varargs;
	macro->reads_kwargs = p->kwargs;
	p->varargs |= varargs;
	p->kwargs |= kwargs;
	return macro->body != NULL;
}

static const struct node *parse_macro(struct parser *p, const struct token *begin)
{
	const struct node *name = variable(p);
	struct node *n = name ? parse_node(p, NODE_MACRO, begin) : NULL;

	if (!n)
		return NULL;
	n->name = name->name;
	return parse_parameters(p, n) && macro_body(p, begin, n, "endmacro") ? n : NULL;
}

static const struct node *parse_call_block(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_CALL_BLOCK, begin), *macro = parse_node(p, NODE_MACRO, begin);

	if (!n || !macro)
		return NULL;
	macro->name = p->j->caller;
	if (p->at->type == TOKEN_OPEN && !parse_parameters(p, macro))
		return NULL;
	n->b = macro;
	n->a = parse_expression(p);
	if (n->a && n->a->kind != NODE_CALL)
		return parse_fail(p, begin, "a call block needs a call, such as {%% call name() %%}");
	return n->a && macro_body(p, begin, macro, "endcall") ? n : NULL;
}

static const struct node *parse_filter_block(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_FILTERED, begin);

	if (!n || !(n->a = parse_filters(p, NULL, true)))
		return NULL;
	n->body = body_of(p, begin, "endfilter");
	return n->body ? n : NULL;
}

static const struct node *parse_with(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_WITH, begin);
	struct node_list pairs = {0};

	while (n && p->at->type != TOKEN_BLOCK_END) {
		if (pairs.count && !parse_expect(p, TOKEN_COMMA))
			return NULL;
		if (!parse_add(p, &pairs, variable(p)) || !parse_expect(p, TOKEN_ASSIGN) ||
		    !parse_add(p, &pairs, parse_expression(p)))
			return NULL;
	}
	if (!n)
		return NULL;
	n->items = pairs.items;
	n->count = pairs.count;
	n->body = body_of(p, begin, "endwith");
	return n->body ? n : NULL;
}

/* {% block name %} shows its content in place. {% generation %} marks an assistant's text for training, which
 * assay marks itself. */
static const struct node *parse_scope(struct parser *p, const struct token *begin)
{
	struct node *n = parse_node(p, NODE_SCOPE, begin);
	bool block = begin->bytes[0] == 'b';

	if (!n || (block && !variable(p)))
		return NULL;
	n->body = body_of(p, begin, block ? "endblock" : "endgeneration");
	if (n->body && block && p->at->type == TOKEN_NAME)
		p->at++;
	return n->body ? n : NULL;
}

static const struct node *parse_jump(struct parser *p, const struct token *begin)
{
	if (!p->loops)
		return parse_fail(p, begin, "%.*s is outside a loop", (int)begin->size, begin->bytes);
	return parse_node(p, begin->bytes[0] == 'b' ? NODE_BREAK : NODE_CONTINUE, begin);
}

static const struct {
	const char *name;
	const struct node *(*parse)(struct parser *p, const struct token *begin);
} tags[] = {
	{"for", parse_for},	{"if", parse_if},	    {"set", parse_set},
	{"macro", parse_macro}, {"call", parse_call_block}, {"filter", parse_filter_block},
	{"with", parse_with},	{"block", parse_scope},	    {"generation", parse_scope},
	{"break", parse_jump},	{"continue", parse_jump},
};

static const struct node *statement(struct parser *p)
{
	const struct token *begin = p->at;

	if (begin->type != TOKEN_NAME)
		return parse_fail(p, begin, "expected the name of a statement, but found %s",
				  token_text(begin->type));
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (!parse_is_name(p, tags[i].name))
			continue;
		p->at++;
		return tags[i].parse(p, begin);
	}
	if (begin->size > 3 && !memcmp(begin->bytes, "end", 3))
		return parse_fail(p, begin, "{%% %.*s %%} closes nothing",
				  (int)(begin->size < 60 ? begin->size : 60), begin->bytes);
	return parse_unsupported(p, begin, "the statement \"%.*s\" is not supported",
				 (int)(begin->size < 60 ? begin->size : 60), begin->bytes);
}

static bool at_end(const struct parser *p, const char *const *ends)
{
	for (; ends && *ends; ends++)
		if (parse_is_name(p, *ends))
			return true;
	return false;
}

static const struct node *text(struct parser *p)
{
	struct node *n = parse_node(p, NODE_TEXT, p->at);

	if (n)
		n->value = value_string(p->at->bytes, p->at->size, JINJA_TEMPLATE);
	p->at++;
	return n;
}

static const struct node *print(struct parser *p)
{
	struct node *n = parse_node(p, NODE_PRINT, p->at++);

	if (!n || !(n->a = parse_tuple(p, true, NULL, false)) || !parse_expect(p, TOKEN_PRINT_END))
		return NULL;
	return n;
}

static const struct node *statements(struct parser *p, const char *const *ends)
{
	struct node *n = parse_node(p, NODE_BODY, p->at);
	struct node_list items = {0};

	while (n && p->at->type != TOKEN_END) {
		const struct node *one;

		if (p->at->type == TOKEN_TEXT) {
			one = text(p);
		} else if (p->at->type == TOKEN_PRINT_BEGIN) {
			one = print(p);
		} else {
			p->at++;
			if (at_end(p, ends))
				break;
			one = statement(p);
			if (one && !parse_expect(p, TOKEN_BLOCK_END))
				return NULL;
		}
		if (!parse_add(p, &items, one))
			return NULL;
	}
	if (!n)
		return NULL;
	n->items = items.items;
	n->count = items.count;
	return n;
}

const struct node *parse_template(struct parser *p)
{
	return statements(p, NULL);
}
