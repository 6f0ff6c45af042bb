/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/expr.h"

enum {
	INLINE_NODES = 64, /* a repetition with more nodes than this counts calls of a rule instead */
};

static struct expr *make(struct builder *b, enum expr_kind kind)
{
	struct expr *e = builder_alloc(b, sizeof(*e));

	if (e)
		e->kind = kind;
	return e;
}

static uint32_t saturated(uint64_t n)
{
	return n > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)n;
}

struct expr *expr_text(struct builder *b, const char *bytes, size_t size)
{
	struct expr *e = make(b, EXPR_TEXT);
	char *copy = e ? builder_alloc(b, size + 1) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, bytes, size);
	e->text = copy;
	e->size = size;
	e->nodes = saturated(size);
	e->nullable = !size;
	return e;
}

struct expr *expr_words(struct builder *b, const char *text)
{
	return expr_text(b, text, strlen(text));
}

struct expr *expr_class(struct builder *b, struct char_set *set, enum encoding encoding)
{
	struct expr *e = make(b, EXPR_CLASS);
	struct char_range *copy;

	char_set_sort(set);
	copy = e ? builder_alloc(b, (set->count + 1) * sizeof(*copy)) : NULL;
	if (!copy)
		return NULL;
	if (set->overflow)
		builder_fail(b, STATUS_NO_RESOURCE, "a character class has more than %d ranges",
			     CHAR_RANGES_MOST);
	memcpy(copy, set->range, set->count * sizeof(*copy));
	e->ranges = copy;
	e->range_count = set->count;
	e->encoding = encoding;
	e->nodes = set->count && copy[set->count - 1].high < 0x80 ? 1 : 8 + set->count;
	return e;
}

struct expr *expr_range(struct builder *b, uint32_t low, uint32_t high, enum encoding encoding)
{
	struct char_set set = {.range = {{low, high}}, .count = 1};

	return expr_class(b, &set, encoding);
}

struct expr *expr_rule(struct builder *b, uint32_t rule)
{
	struct expr *e = make(b, EXPR_RULE);

	if (e) {
		e->rule = rule;
		e->nodes = 1;
	}
	return e;
}

struct expr *expr_repeat(struct builder *b, struct expr *child, uint32_t min, uint32_t max)
{
	struct expr *e = make(b, EXPR_REPEAT);

	if (!e || !child)
		return NULL;
	e->first = child;
	e->min = min;
	e->max = max;
	e->nodes = saturated((uint64_t)child->nodes * (max == REPEAT_FOREVER ? (uint64_t)min + 1 : max) + 1);
	e->nullable = !min || child->nullable;
	return e;
}

struct expr *expr_group(struct builder *b, enum expr_kind kind)
{
	struct expr *e = make(b, kind);

	if (e)
		e->nullable = kind == EXPR_SEQUENCE;
	return e;
}

struct expr *expr_add(struct builder *b, struct expr *group, struct expr *child)
{
	if (b->status || !group || !child)
		return NULL;
	if (group->last)
		group->last->next = child;
	else
		group->first = child;
	group->last = child;
	group->nodes = saturated((uint64_t)group->nodes + child->nodes + 1);
	group->nullable = group->kind == EXPR_SEQUENCE ? group->nullable && child->nullable
						       : group->nullable || child->nullable;
	return group;
}

/* One class in the making: nodes from which only continuation bytes lead to `to` are shared. */
struct class_paths {
	struct builder *b;
	uint32_t to, behind[4]; /* behind[n]: n continuation bytes before `to`; 0: not made yet */
};

static uint32_t any_continuation(struct class_paths *p, unsigned n)
{
	if (!n)
		return p->to;
	if (!p->behind[n]) {
		uint32_t next = any_continuation(p, n - 1);

		p->behind[n] = build_node(p->b);
		build_byte(p->b, p->behind[n], 0x80, 0xbf, next);
	}
	return p->behind[n];
}

static unsigned encode(uint32_t code, uint8_t out[4])
{
	if (code < 0x80) {
		out[0] = (uint8_t)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | code >> 6);
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (uint8_t)(0xe0 | code >> 12);
		out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | code >> 18);
	out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (code & 0x3f));
	return 4;
}

static bool all_are(const uint8_t *bytes, unsigned n, uint8_t value)
{
	while (n && bytes[n - 1] == value)
		n--;
	return !n;
}

/* Byte strings of one length n from `low` to `high`, in the order of memcmp. */
static void byte_strings(struct class_paths *p, uint32_t from, const uint8_t *low, const uint8_t *high,
			 unsigned n)
{
	static const uint8_t least[3] = {0x80, 0x80, 0x80}, most[3] = {0xbf, 0xbf, 0xbf};
	unsigned first = low[0], last = high[0];
	uint32_t node;

	if (n == 1) {
		build_byte(p->b, from, first, last, p->to);
		return;
	}
	if (first == last && !(all_are(low + 1, n - 1, 0x80) && all_are(high + 1, n - 1, 0xbf))) {
		node = build_node(p->b);
		build_byte(p->b, from, first, first, node);
		byte_strings(p, node, low + 1, high + 1, n - 1);
		return;
	}
	if (first < last && !all_are(low + 1, n - 1, 0x80)) {
		node = build_node(p->b);
		build_byte(p->b, from, first, first, node);
		byte_strings(p, node, low + 1, most, n - 1);
		first++;
	}
	if (first < last + 1 && !all_are(high + 1, n - 1, 0xbf)) {
		node = build_node(p->b);
		build_byte(p->b, from, last, last, node);
		byte_strings(p, node, least, high + 1, n - 1);
		last--;
	}
	if (first <= last)
		build_byte(p->b, from, first, last, any_continuation(p, n - 1));
}

static void utf8_range(struct class_paths *p, uint32_t from, uint32_t low, uint32_t high)
{
	static const struct char_range lengths[] = {
		{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, CHAR_LAST}};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t l = low > lengths[i].low ? low : lengths[i].low;
		uint32_t h = high < lengths[i].high ? high : lengths[i].high;
		uint8_t first[4], last[4];

		if (l <= h) {
			unsigned n = encode(l, first);

			encode(h, last);
			byte_strings(p, from, first, last, n);
		}
	}
}

static void hex_digit(struct builder *b, uint32_t from, unsigned digit, uint32_t to)
{
	build_byte(b, from, (unsigned)"0123456789abcdef"[digit], (unsigned)"0123456789abcdef"[digit], to);
	if (digit > 9)
		build_byte(b, from, (unsigned)"ABCDEF"[digit - 10], (unsigned)"ABCDEF"[digit - 10], to);
}

/* A character that JSON writes as an escape: ", \ or below U+0020. */
static void escape(struct class_paths *p, uint32_t from, uint32_t code)
{
	static const char letters[] = "btn\0fr"; /* U+0008 to U+000D */
	uint32_t backslash = build_node(p->b), u, zero, zeros, high;

	build_byte(p->b, from, '\\', '\\', backslash);
	if (code >= 0x20) {
		build_byte(p->b, backslash, code, code, p->to);
		return;
	}
	if (code >= 8 && code <= 13 && letters[code - 8])
		build_byte(p->b, backslash, (unsigned char)letters[code - 8],
			   (unsigned char)letters[code - 8], p->to);
	u = build_node(p->b);
	zero = build_node(p->b);
	zeros = build_node(p->b);
	high = build_node(p->b);
	build_byte(p->b, backslash, 'u', 'u', u);
	build_byte(p->b, u, '0', '0', zero);
	build_byte(p->b, zero, '0', '0', zeros);
	hex_digit(p->b, zeros, code >> 4, high);
	hex_digit(p->b, high, code & 15, p->to);
}

static void json_range(struct class_paths *p, uint32_t from, uint32_t low, uint32_t high)
{
	while (low <= high && !p->b->status) {
		uint32_t last;

		if (low < 0x20 || low == '"' || low == '\\') {
			escape(p, from, low++);
			continue;
		}
		last = low < '"' ? '"' - 1 : low < '\\' ? '\\' - 1 : high;
		last = last < high ? last : high;
		utf8_range(p, from, low, last);
		low = last + 1;
	}
}

static void build_class(struct builder *b, const struct expr *e, uint32_t from, uint32_t to)
{
	struct class_paths p = {.b = b, .to = to};

	for (unsigned i = 0; i < e->range_count; i++) {
		if (e->encoding == ENCODE_JSON)
			json_range(&p, from, e->ranges[i].low, e->ranges[i].high);
		else
			utf8_range(&p, from, e->ranges[i].low, e->ranges[i].high);
	}
}

static void build_loop(struct builder *b, const struct expr *child, uint32_t from, uint32_t to)
{
	uint32_t loop = build_node(b), behind = build_node(b);

	build_empty(b, from, loop);
	build_expr(b, child, loop, behind);
	build_empty(b, behind, loop);
	build_empty(b, loop, to);
}

static void build_repeat(struct builder *b, const struct expr *e, uint32_t from, uint32_t to)
{
	const struct expr *child = e->first;
	uint32_t max = e->max;

	if (!max) {
		build_empty(b, from, to);
		return;
	}
	if (e->nodes > INLINE_NODES && !child->nullable && !(max == REPEAT_FOREVER && e->min < 2) &&
	    max > 1) {
		build_call(b, from, expr_make_rule(b, child), e->min, max, to);
		return;
	}
	for (uint32_t i = 0; i < e->min && !b->status; i++) {
		uint32_t next = build_node(b);

		build_expr(b, child, from, next);
		from = next;
	}
	if (max == REPEAT_FOREVER) {
		build_loop(b, child, from, to);
		return;
	}
	for (uint32_t i = e->min; i < max && !b->status; i++) {
		uint32_t next = build_node(b);

		build_empty(b, from, to);
		build_expr(b, child, from, next);
		from = next;
	}
	build_empty(b, from, to);
}

void build_expr(struct builder *b, const struct expr *e, uint32_t from, uint32_t to)
{
	if (!e || b->status)
		return;
	switch (e->kind) {
	case EXPR_TEXT:
		build_text(b, from, e->text, e->size, to);
		break;
	case EXPR_CLASS:
		build_class(b, e, from, to);
		break;
	case EXPR_SEQUENCE:
		for (const struct expr *child = e->first; child; child = child->next) {
			uint32_t next = child->next ? build_node(b) : to;

			build_expr(b, child, from, next);
			from = next;
		}
		if (!e->first)
			build_empty(b, from, to);
		break;
	case EXPR_CHOICE:
		for (const struct expr *child = e->first; child; child = child->next)
			build_expr(b, child, from, to);
		break;
	case EXPR_REPEAT:
		build_repeat(b, e, from, to);
		break;
	case EXPR_RULE:
		build_call(b, from, e->rule, 1, 1, to);
		break;
	}
}

uint32_t expr_make_rule(struct builder *b, const struct expr *e)
{
	uint32_t rule = build_rule(b), end = build_node(b);

	if (b->status)
		return 0;
	build_expr(b, e, rule_start(b, rule), end);
	build_end(b, end);
	return rule;
}
