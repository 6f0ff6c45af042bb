/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/regex.h"
#include "engine/grammar/automaton/scan.h"

enum { NESTING_MOST = 64, REPEAT_MOST = SCAN_NUMBER_MOST };

struct parser {
	struct builder *b;
	const char *at, *begin, *end;
	enum encoding encoding;
	bool whole;
	unsigned nesting;
};

static void fail(struct parser *p, enum status status, const char *what)
{
	builder_fail(p->b, status, "regular expression, byte %zu: %s", (size_t)(p->at - p->begin), what);
}

static bool at_char(const struct parser *p, char c)
{
	return p->at < p->end && *p->at == c;
}

static bool take(struct parser *p, char c)
{
	return scan_char(&p->at, p->end, c);
}

static void add_all(struct char_set *set, const struct char_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		char_set_add(set, ranges[i].low, ranges[i].high);
}

static void add_ascii_except(struct char_set *set, const struct char_range *ranges, size_t count)
{
	struct char_set out = {0};

	add_all(&out, ranges, count);
	char_set_invert(&out);
	for (unsigned i = 0; i < out.count; i++)
		if (out.range[i].low < 0x80)
			char_set_add(set, out.range[i].low,
				     out.range[i].high < 0x7f ? out.range[i].high : 0x7f);
}

/* \d \D \w \W \s \S; false: another letter. */
static bool add_named(struct char_set *set, char name)
{
	static const struct char_range digit[] = {{'0', '9'}},
				       word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
				       space[] = {{9, 13}, {' ', ' '}},
				       any_space[] = {{9, 13},		{0x1c, 0x20},	  {0x85, 0x85},
						      {0xa0, 0xa0},	{0x1680, 0x1680}, {0x2000, 0x200a},
						      {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
						      {0x3000, 0x3000}, {0xfeff, 0xfeff}};
	struct char_set out = {0};

	switch (name) {
	case 'd':
		add_all(set, digit, 1);
		return true;
	case 'w':
		add_all(set, word, 4);
		return true;
	case 's':
		add_all(set, space, 2);
		return true;
	case 'D':
		add_ascii_except(set, digit, 1);
		return true;
	case 'W':
		add_ascii_except(set, word, 4);
		return true;
	case 'S':
		add_all(&out, any_space, sizeof(any_space) / sizeof(any_space[0]));
		char_set_invert(&out);
		add_all(set, out.range, out.count);
		return true;
	default:
		return false;
	}
}

static bool hex(struct parser *p, unsigned digits, uint32_t *code)
{
	if (scan_hex(&p->at, p->end, digits, code))
		return true;
	fail(p, STATUS_BAD_INPUT, "expected a hexadecimal digit");
	return false;
}

/* \uXXXX or \u{..}, with a pair of surrogates as one character. */
static bool unicode_escape(struct parser *p, uint32_t *code)
{
	uint32_t low;

	if (take(p, '{')) {
		const char *close = memchr(p->at, '}', (size_t)(p->end - p->at));
		unsigned digits = close && close - p->at <= 6 ? (unsigned)(close - p->at) : 0;

		if (!digits || !hex(p, digits, code) || !take(p, '}') || *code > CHAR_LAST) {
			fail(p, STATUS_BAD_INPUT, "malformed \\u{..}");
			return false;
		}
		return true;
	}
	if (!hex(p, 4, code))
		return false;
	if (*code >= 0xd800 && *code < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
		p->at += 2;
		if (!hex(p, 4, &low))
			return false;
		if (low >= 0xdc00 && low < 0xe000)
			*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	}
	if (*code >= 0xd800 && *code < 0xe000) {
		fail(p, STATUS_BAD_INPUT, "a lone surrogate is no character");
		return false;
	}
	return true;
}

/* Behind a backslash: one character, or a named class (*named). */
static bool escape(struct parser *p, bool in_set, struct char_set *set, uint32_t *code, bool *named)
{
	static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v\0";
	const char *found;

	*named = false;
	if (p->at == p->end) {
		fail(p, STATUS_BAD_INPUT, "it ends with a backslash");
		return false;
	}
	if (add_named(set, *p->at)) {
		*named = true;
		p->at++;
		return true;
	}
	if ((found = strchr(from, *p->at)) && *found) {
		*code = (uint32_t)to[found - from];
		p->at++;
		return true;
	}
	if (take(p, 'x'))
		return hex(p, 2, code);
	if (take(p, 'u'))
		return unicode_escape(p, code);
	if (in_set && take(p, 'b')) {
		*code = '\b';
		return true;
	}
	if ((*p->at >= '0' && *p->at <= '9') || ((*p->at | 32) >= 'a' && (*p->at | 32) <= 'z')) {
		fail(p, STATUS_UNSUPPORTED, "this escape is not supported");
		return false;
	}
	if (!char_read(&p->at, p->end, code)) {
		fail(p, STATUS_BAD_INPUT, "not UTF-8");
		return false;
	}
	return true;
}

/* One character or named class of a set. */
static bool set_item(struct parser *p, struct char_set *set, uint32_t *code, bool *named)
{
	*named = false;
	if (take(p, '\\'))
		return escape(p, true, set, code, named);
	if (!char_read(&p->at, p->end, code)) {
		fail(p, STATUS_BAD_INPUT, p->at == p->end ? "a class has no closing ]" : "not UTF-8");
		return false;
	}
	return true;
}

/* A class within [^..] must hold each character that one of the dialects puts there, since the complement
 * must hold none of them. */
static void widen(struct char_set *set, char name)
{
	static const struct char_range not_ascii[] = {{0x80, CHAR_LAST}}, digit[] = {{'0', '9'}},
				       word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
				       space[] = {{9, 13}, {' ', ' '}};
	struct char_set out = {0};

	if (name == 'd' || name == 'w') {
		add_all(set, not_ascii, 1);
		return;
	}
	if (name == 's') { /* all that \S leaves out */
		add_named(&out, 'S');
	} else if (name == 'D') {
		add_all(&out, digit, 1);
	} else if (name == 'W') {
		add_all(&out, word, 4);
	} else {
		add_all(&out, space, 2);
	}
	char_set_invert(&out);
	add_all(set, out.range, out.count);
}

static struct expr *parse_set(struct parser *p)
{
	struct char_set set = {0};
	bool inverted = take(p, '^'), named, last_named;
	uint32_t low, high;

	if (at_char(p, ']')) {
		fail(p, STATUS_UNSUPPORTED, "] as the first character of a class needs a backslash");
		return NULL;
	}
	while (!take(p, ']')) {
		if (p->end - p->at >= 2 && p->at[0] == '[' && (p->at[1] == ':' || p->at[1] == '=')) {
			fail(p, STATUS_UNSUPPORTED, "POSIX classes are not supported");
			return NULL;
		}
		if (!set_item(p, &set, &low, &named))
			return NULL;
		if (named && inverted)
			widen(&set, p->at[-1]);
		high = low;
		if (!named && p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
			p->at++;
			if (!set_item(p, &set, &high, &last_named))
				return NULL;
			if (last_named || high < low) {
				fail(p, STATUS_BAD_INPUT, "a range of a class is reversed or has no end");
				return NULL;
			}
		}
		if (!named)
			char_set_add(&set, low, high);
		if (!builder_step(p->b, 1))
			return NULL;
	}
	if (inverted)
		char_set_invert(&set);
	return expr_class(p->b, &set, p->encoding);
}

static struct expr *any_but_line_ends(struct parser *p)
{
	struct char_set set = {.range = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, .count = 3};

	char_set_invert(&set);
	return expr_class(p->b, &set, p->encoding);
}

static struct expr *parse_choice(struct parser *p);

static struct expr *parse_group(struct parser *p)
{
	struct expr *inside;

	if (take(p, '?')) {
		bool name = p->end - p->at >= 2 && ((p->at[0] == '<' && p->at[1] != '=' && p->at[1] != '!') ||
						    (p->at[0] == 'P' && p->at[1] == '<'));

		if (name) {
			const char *close = memchr(p->at, '>', (size_t)(p->end - p->at));

			p->at = close ? close + 1 : p->end;
		} else if (!take(p, ':')) {
			fail(p, STATUS_UNSUPPORTED, "lookaround and flags are not supported");
			return NULL;
		}
	}
	if (++p->nesting > NESTING_MOST) {
		fail(p, STATUS_NO_RESOURCE, "groups are nested too deeply (at most 64)");
		return NULL;
	}
	inside = parse_choice(p);
	p->nesting--;
	if (inside && !take(p, ')'))
		fail(p, STATUS_BAD_INPUT, "a group has no closing )");
	return inside;
}

static struct expr *parse_atom(struct parser *p)
{
	struct char_set set = {0};
	uint32_t code;
	bool named;

	if (take(p, '('))
		return parse_group(p);
	if (take(p, '['))
		return parse_set(p);
	if (take(p, '.'))
		return any_but_line_ends(p);
	if (at_char(p, '^') || at_char(p, '$')) {
		fail(p, STATUS_UNSUPPORTED,
		     "^ and $ are supported only at the ends of a top-level alternative");
		return NULL;
	}
	if (at_char(p, '*') || at_char(p, '+') || at_char(p, '?')) {
		fail(p, STATUS_BAD_INPUT, "there is nothing to repeat");
		return NULL;
	}
	if (take(p, '\\')) {
		if (!escape(p, false, &set, &code, &named))
			return NULL;
		if (named)
			return expr_class(p->b, &set, p->encoding);
		return expr_range(p->b, code, code, p->encoding);
	}
	if (!char_read(&p->at, p->end, &code)) {
		fail(p, STATUS_BAD_INPUT, "not UTF-8");
		return NULL;
	}
	return expr_range(p->b, code, code, p->encoding);
}

/* {n}, {n,} or {n,m}. False without an error: it is no quantifier, so { is a character. */
static bool braces(struct parser *p, uint32_t *min, uint32_t *max)
{
	const char *begin = p->at;

	if (p->end - p->at >= 2 && p->at[0] == '{' && p->at[1] == ',')
		fail(p, STATUS_UNSUPPORTED, "{,n} differs between dialects; write {0,n}");
	if (take(p, '{') && scan_number(&p->at, p->end, min)) {
		*max = *min;
		if (take(p, ',') && !scan_number(&p->at, p->end, max))
			*max = REPEAT_FOREVER;
		if (take(p, '}')) {
			if (*min > REPEAT_MOST || (*max > REPEAT_MOST && *max != REPEAT_FOREVER))
				fail(p, STATUS_NO_RESOURCE, "more than 1,000,000 repetitions");
			else if (*max < *min)
				fail(p, STATUS_BAD_INPUT, "the bounds of a repetition are reversed");
			return true;
		}
	}
	p->at = begin;
	return false;
}

static bool quantifier(struct parser *p, uint32_t *min, uint32_t *max)
{
	*min = 0;
	*max = REPEAT_FOREVER;
	if (take(p, '*'))
		return true;
	if (take(p, '+')) {
		*min = 1;
		return true;
	}
	if (take(p, '?')) {
		*max = 1;
		return true;
	}
	return braces(p, min, max);
}

static struct expr *parse_repeated(struct parser *p)
{
	struct expr *atom = parse_atom(p);
	uint32_t min, max;

	if (!atom || !quantifier(p, &min, &max))
		return atom;
	if (take(p, '+'))
		fail(p, STATUS_UNSUPPORTED, "possessive quantifiers are not supported");
	take(p, '?'); /* lazy: the same texts match */
	if (at_char(p, '*') || at_char(p, '+') || at_char(p, '?'))
		fail(p, STATUS_BAD_INPUT, "there is nothing to repeat");
	return expr_repeat(p->b, atom, min, max);
}

static bool at_end_mark(const struct parser *p)
{
	return at_char(p, '$') && (p->at + 1 == p->end || p->at[1] == '|');
}

static struct expr *parse_sequence(struct parser *p)
{
	struct expr *sequence = expr_group(p->b, EXPR_SEQUENCE);

	while (p->at < p->end && *p->at != '|' && !(*p->at == ')' && p->nesting) &&
	       !(!p->nesting && at_end_mark(p)) && !p->b->status) {
		if (*p->at == ')')
			fail(p, STATUS_BAD_INPUT, "a ) closes no group");
		else
			expr_add(p->b, sequence, parse_repeated(p));
	}
	return p->b->status ? NULL : sequence;
}

static struct expr *parse_choice(struct parser *p)
{
	struct expr *choice = expr_group(p->b, EXPR_CHOICE);

	do
		expr_add(p->b, choice, parse_sequence(p));
	while (take(p, '|'));
	return p->b->status ? NULL : choice;
}

struct expr *regex_parse(struct builder *b, const char *pattern, size_t size, enum encoding encoding,
			 bool whole, struct expr *any)
{
	struct parser p = {.b = b,
			   .at = pattern,
			   .begin = pattern,
			   .end = pattern + size,
			   .encoding = encoding,
			   .whole = whole};
	struct expr *choice = expr_group(b, EXPR_CHOICE);

	do {
		struct expr *sequence = expr_group(b, EXPR_SEQUENCE);

		if (!take(&p, '^') && !whole)
			expr_add(b, sequence, expr_repeat(b, any, 0, REPEAT_FOREVER));
		expr_add(b, sequence, parse_sequence(&p));
		if (!take(&p, '$') && !whole)
			expr_add(b, sequence, expr_repeat(b, any, 0, REPEAT_FOREVER));
		expr_add(b, choice, sequence);
	} while (take(&p, '|'));
	if (!b->status && p.at != p.end)
		fail(&p, STATUS_BAD_INPUT, "a ) closes no group");
	return b->status ? NULL : choice;
}

static uint32_t add_lengths(uint32_t a, uint32_t b)
{
	return a == REPEAT_FOREVER || b == REPEAT_FOREVER || (uint64_t)a + b >= REPEAT_FOREVER
		       ? REPEAT_FOREVER
		       : a + b;
}

static uint32_t times(uint32_t a, uint32_t b)
{
	if (!a || !b)
		return 0;
	return a == REPEAT_FOREVER || b == REPEAT_FOREVER || (uint64_t)a * b >= REPEAT_FOREVER
		       ? REPEAT_FOREVER
		       : a * b;
}

void expr_lengths(const struct expr *e, uint32_t *least, uint32_t *most)
{
	uint32_t child_least, child_most;

	*least = *most = e->kind == EXPR_CLASS || e->kind == EXPR_RULE;
	if (e->kind == EXPR_TEXT)
		*least = *most = (uint32_t)e->size;
	if (e->kind == EXPR_CHOICE)
		*least = REPEAT_FOREVER;
	for (const struct expr *child = e->first; child; child = child->next) {
		expr_lengths(child, &child_least, &child_most);
		if (e->kind == EXPR_REPEAT) {
			*least = times(child_least, e->min);
			*most = times(child_most, e->max);
		} else if (e->kind == EXPR_SEQUENCE) {
			*least = add_lengths(*least, child_least);
			*most = add_lengths(*most, child_most);
		} else {
			*least = child_least < *least ? child_least : *least;
			*most = child_most > *most ? child_most : *most;
		}
	}
}
