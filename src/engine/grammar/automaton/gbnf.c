/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/gbnf.h"
#include "engine/grammar/automaton/scan.h"

enum { NESTING_MOST = 64, NAME_MOST = 64, REPEAT_MOST = SCAN_NUMBER_MOST };

struct named_rule {
	struct named_rule *next;
	uint32_t rule;
	bool defined;
	size_t line; /* of its first use */
	char name[NAME_MOST + 1];
};

struct parser {
	struct builder *b;
	const char *at, *begin, *end;
	struct named_rule *rules[256]; /* hash table */
	unsigned nesting;
};

static size_t line_of(const struct parser *p)
{
	size_t line = 1;

	for (const char *at = p->begin; at < p->at; at++)
		line += *at == '\n';
	return line;
}

static void fail(struct parser *p, enum status status, const char *what)
{
	builder_fail(p->b, status, "grammar, line %zu: %s", line_of(p), what);
}

/* Skips blanks and comments, and newlines if they mean nothing here. */
static void skip(struct parser *p, bool newlines)
{
	while (p->at < p->end) {
		if (*p->at == '#')
			while (p->at < p->end && *p->at != '\n')
				p->at++;
		else if (*p->at == ' ' || *p->at == '\t' || (newlines && (*p->at == '\n' || *p->at == '\r')))
			p->at++;
		else
			break;
	}
}

static bool take(struct parser *p, char c)
{
	return scan_char(&p->at, p->end, c);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_';
}

static struct named_rule *read_name(struct parser *p)
{
	char name[NAME_MOST + 1];
	struct named_rule *r;
	size_t size = 0;
	unsigned hash = 0;

	for (; p->at < p->end && is_name_char(*p->at); p->at++) {
		if (size == NAME_MOST) {
			fail(p, STATUS_NO_RESOURCE, "a name has more than 64 characters");
			return NULL;
		}
		hash = hash * 31 + (unsigned char)*p->at;
		name[size++] = *p->at;
	}
	name[size] = '\0';
	if (!size) {
		fail(p, STATUS_BAD_INPUT, "expected the name of a rule");
		return NULL;
	}
	for (r = p->rules[hash % 256]; r; r = r->next)
		if (builder_step(p->b, 1) && !strcmp(r->name, name))
			return r;
	r = builder_alloc(p->b, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct named_rule){.next = p->rules[hash % 256], .rule = build_rule(p->b), .line = line_of(p)};
	memcpy(r->name, name, size + 1);
	p->rules[hash % 256] = r;
	return r;
}

static bool hex(struct parser *p, unsigned digits, uint32_t *code)
{
	if (!scan_hex(&p->at, p->end, digits, code)) {
		fail(p, STATUS_BAD_INPUT, "expected a hexadecimal digit");
		return false;
	}
	if (*code > CHAR_LAST || (*code >= 0xd800 && *code < 0xe000)) {
		fail(p, STATUS_BAD_INPUT, "an escape is no Unicode character");
		return false;
	}
	return true;
}

/* One character of a literal or class. */
static bool read_char(struct parser *p, uint32_t *code)
{
	static const char from[] = "nrt\\\"[]-^/", to[] = "\n\r\t\\\"[]-^/";
	const char *found;

	if (!take(p, '\\')) {
		if (char_read(&p->at, p->end, code) && *code != '\n')
			return true;
		fail(p, STATUS_BAD_INPUT, "a text or class does not end, or is not UTF-8");
		return false;
	}
	if (take(p, 'x'))
		return hex(p, 2, code);
	if (take(p, 'u'))
		return hex(p, 4, code);
	if (take(p, 'U'))
		return hex(p, 8, code);
	found = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;
	if (!found) {
		fail(p, STATUS_BAD_INPUT, "unknown escape");
		return false;
	}
	p->at++;
	*code = (uint32_t)to[found - from];
	return true;
}

static struct expr *read_literal(struct parser *p)
{
	struct expr *e = expr_group(p->b, EXPR_SEQUENCE);
	uint32_t code;

	while (!take(p, '"')) {
		if (!read_char(p, &code) || !expr_add(p->b, e, expr_range(p->b, code, code, ENCODE_RAW)))
			return NULL;
	}
	return e;
}

static struct expr *read_class(struct parser *p)
{
	struct char_set set = {0};
	bool inverted = take(p, '^');
	uint32_t low, high;

	while (!take(p, ']')) {
		if (!read_char(p, &low))
			return NULL;
		high = low;
		if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
			p->at++;
			if (!read_char(p, &high))
				return NULL;
			if (high < low) {
				fail(p, STATUS_BAD_INPUT, "a range of a class is reversed");
				return NULL;
			}
		}
		char_set_add(&set, low, high);
		if (!builder_step(p->b, 1))
			return NULL;
	}
	if (inverted)
		char_set_invert(&set);
	return expr_class(p->b, &set, ENCODE_RAW);
}

static struct expr *read_choice(struct parser *p);

static struct expr *read_group(struct parser *p)
{
	struct expr *inside;

	if (++p->nesting > NESTING_MOST) {
		fail(p, STATUS_NO_RESOURCE, "groups are nested more than 64 deep");
		return NULL;
	}
	inside = read_choice(p);
	p->nesting--;
	if (inside && !take(p, ')')) {
		fail(p, STATUS_BAD_INPUT, "a group has no closing )");
		return NULL;
	}
	return inside;
}

/* NULL without an error: no item begins here. */
static struct expr *read_item(struct parser *p)
{
	struct named_rule *r;

	if (take(p, '"'))
		return read_literal(p);
	if (take(p, '['))
		return read_class(p);
	if (take(p, '('))
		return read_group(p);
	if (take(p, '.'))
		return expr_range(p->b, 0, CHAR_LAST, ENCODE_RAW);
	if (p->at == p->end || !is_name_char(*p->at))
		return NULL;
	r = read_name(p);
	return r ? expr_rule(p->b, r->rule) : NULL;
}

/* {n}, {n,}, {,m} or {n,m} behind the brace. */
static void read_braces(struct parser *p, uint32_t *min, uint32_t *max)
{
	bool low = (skip(p, false), scan_number(&p->at, p->end, min)), high = low;

	*max = *min;
	skip(p, false);
	if (take(p, ',')) {
		skip(p, false);
		high = scan_number(&p->at, p->end, max);
		if (!high)
			*max = REPEAT_FOREVER;
		skip(p, false);
	}
	if (!take(p, '}') || (!low && !high) || (*max < *min))
		fail(p, STATUS_BAD_INPUT, "a repetition is not {n}, {n,} or {n,m}");
	else if (*min > REPEAT_MOST || (*max > REPEAT_MOST && *max != REPEAT_FOREVER))
		fail(p, STATUS_NO_RESOURCE, "more than 1,000,000 repetitions");
}

static struct expr *repeated(struct parser *p, struct expr *e)
{
	uint32_t min = 0, max = REPEAT_FOREVER;

	skip(p, p->nesting > 0);
	if (take(p, '+'))
		min = 1;
	else if (take(p, '?'))
		max = 1;
	else if (take(p, '{'))
		read_braces(p, &min, &max);
	else if (!take(p, '*'))
		return e;
	return expr_repeat(p->b, e, min, max);
}

static struct expr *read_sequence(struct parser *p)
{
	struct expr *sequence = expr_group(p->b, EXPR_SEQUENCE), *item;

	skip(p, p->nesting > 0);
	while (!p->b->status && (item = read_item(p))) {
		expr_add(p->b, sequence, repeated(p, item));
		skip(p, p->nesting > 0);
	}
	return p->b->status ? NULL : sequence;
}

static struct expr *read_choice(struct parser *p)
{
	struct expr *choice = expr_group(p->b, EXPR_CHOICE);

	expr_add(p->b, choice, read_sequence(p));
	while (!p->b->status && take(p, '|')) {
		skip(p, true);
		expr_add(p->b, choice, read_sequence(p));
	}
	return p->b->status ? NULL : choice;
}

static void read_rule(struct parser *p)
{
	struct named_rule *r = read_name(p);
	struct expr *body;
	uint32_t end;

	skip(p, false);
	if (!r)
		return;
	if (r->defined) {
		fail(p, STATUS_BAD_INPUT, "a rule is defined twice");
		return;
	}
	if (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0) {
		fail(p, STATUS_BAD_INPUT, "expected ::= behind the name of a rule");
		return;
	}
	p->at += 3;
	r->defined = true;
	skip(p, true);
	body = read_choice(p);
	end = build_node(p->b);
	if (!body)
		return;
	build_expr(p->b, body, rule_start(p->b, r->rule), end);
	build_end(p->b, end);
	if (p->at < p->end && *p->at != '\n' && *p->at != '\r')
		fail(p, STATUS_BAD_INPUT, "expected an item, | or the end of the line");
}

uint32_t gbnf_parse(struct builder *b, const char *text, size_t size)
{
	struct parser p = {.b = b, .at = text, .begin = text, .end = text + size};
	uint32_t root = 0;

	for (skip(&p, true); p.at < p.end && !b->status; skip(&p, true))
		read_rule(&p);
	for (size_t i = 0; i < 256; i++) {
		for (const struct named_rule *r = p.rules[i]; r; r = r->next) {
			if (!r->defined)
				builder_fail(b, STATUS_BAD_INPUT,
					     "grammar, line %zu: rule \"%s\" is not defined", r->line,
					     r->name);
			if (!strcmp(r->name, "root"))
				root = r->rule;
		}
	}
	if (!root)
		builder_fail(b, STATUS_BAD_INPUT, "the grammar has no rule \"root\"");
	return b->status ? 0 : root;
}
