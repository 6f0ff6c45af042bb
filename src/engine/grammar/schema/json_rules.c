/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/schema/json_rules.h"
#include "engine/grammar/automaton/regex.h"

enum shared_rule { SPACE, CHARACTER, STRING, NUMBER, INTEGER, OBJECT, ARRAY, VALUE };

struct expr *json_pattern(struct builder *b, const char *pattern)
{
	return regex_parse(b, pattern, strlen(pattern), ENCODE_RAW, true, NULL);
}

/* The shared rule; *made is true if its body is still to be built. */
static uint32_t shared_rule(struct builder *b, enum shared_rule which, bool *made)
{
	*made = !b->shared[which] && !b->status;
	if (*made)
		b->shared[which] = build_rule(b);
	return b->shared[which];
}

static void set_body(struct builder *b, uint32_t rule, const struct expr *body)
{
	uint32_t end = build_node(b);

	if (b->status)
		return;
	build_expr(b, body, rule_start(b, rule), end);
	build_end(b, end);
}

static struct expr *pattern_rule(struct builder *b, enum shared_rule which, const char *pattern)
{
	bool made;
	uint32_t rule = shared_rule(b, which, &made);

	if (made)
		set_body(b, rule, json_pattern(b, pattern));
	return expr_rule(b, rule);
}

struct expr *json_space(struct builder *b)
{
	struct expr *e;

	if (b->compact)
		return expr_words(b, "");
	e = pattern_rule(b, SPACE, " ?|\n[ \t]{0,64}");
	if (e)
		e->nullable = true;
	return e;
}

struct expr *json_character(struct builder *b)
{
	return pattern_rule(
		b, CHARACTER,
		"[^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u(000[1-9A-Fa-f]|00[1-9A-Fa-f][0-9A-Fa-f]|"
		"0[1-9A-Fa-f][0-9A-Fa-f]{2}|[1-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}|"
		"[Dd][89ABab][0-9A-Fa-f]{2}\\\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))");
}

struct expr *json_any_string(struct builder *b)
{
	bool made;
	uint32_t rule = shared_rule(b, STRING, &made);
	struct expr *body;

	if (made) {
		body = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "\""));
		expr_add(b, body, expr_repeat(b, json_character(b), 0, REPEAT_FOREVER));
		set_body(b, rule, expr_add(b, body, expr_words(b, "\"")));
	}
	return expr_rule(b, rule);
}

struct expr *json_any_number(struct builder *b)
{
	return pattern_rule(b, NUMBER, "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?");
}

struct expr *json_any_integer(struct builder *b)
{
	return pattern_rule(b, INTEGER, "-?(0|[1-9][0-9]{0,17})");
}

/* open, space, (item, ("," space, item)*, space)?, close */
static struct expr *list(struct builder *b, const char *open, struct expr *(*item)(struct builder *),
			 const char *close)
{
	struct expr *whole = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, open));
	struct expr *more = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, ","));
	struct expr *items = expr_add(b, expr_group(b, EXPR_SEQUENCE), item(b));

	expr_add(b, expr_add(b, more, json_space(b)), item(b));
	expr_add(b, items, expr_repeat(b, more, 0, REPEAT_FOREVER));
	expr_add(b, items, json_space(b));
	expr_add(b, whole, json_space(b));
	expr_add(b, whole, expr_repeat(b, items, 0, 1));
	return expr_add(b, whole, expr_words(b, close));
}

static struct expr *member(struct builder *b)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), json_any_string(b));

	expr_add(b, e, expr_words(b, ":"));
	expr_add(b, e, json_space(b));
	return expr_add(b, e, json_any_value(b));
}

struct expr *json_any_object(struct builder *b)
{
	bool made;
	uint32_t rule = shared_rule(b, OBJECT, &made);

	if (made)
		set_body(b, rule, list(b, "{", member, "}"));
	return expr_rule(b, rule);
}

struct expr *json_any_array(struct builder *b)
{
	bool made;
	uint32_t rule = shared_rule(b, ARRAY, &made);

	if (made)
		set_body(b, rule, list(b, "[", json_any_value, "]"));
	return expr_rule(b, rule);
}

struct expr *json_any_value(struct builder *b)
{
	bool made;
	uint32_t rule = shared_rule(b, VALUE, &made);
	struct expr *e;

	if (made) {
		e = expr_add(b, expr_group(b, EXPR_CHOICE), json_any_object(b));
		expr_add(b, e, json_any_array(b));
		expr_add(b, e, json_any_string(b));
		expr_add(b, e, json_any_number(b));
		expr_add(b, e, json_pattern(b, "true|false|null"));
		set_body(b, rule, e);
	}
	return expr_rule(b, rule);
}

void json_add_escaped(struct text *out, const char *bytes, size_t size)
{
	static const char letters[] = "btn\0fr";

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c == '"' || c == '\\')
			text_addf(out, "\\%c", c);
		else if (c >= 8 && c <= 13 && letters[c - 8])
			text_addf(out, "\\%c", letters[c - 8]);
		else if (c < 0x20)
			text_addf(out, "\\u%04x", c);
		else
			text_add_bytes(out, bytes + i, 1);
	}
}

static struct expr *string_literal(struct builder *b, const char *bytes, size_t size)
{
	struct text out = {0};
	struct expr *e;

	text_add(&out, "\"");
	json_add_escaped(&out, bytes, size);
	text_add(&out, "\"");
	if (out.failed)
		builder_no_memory(b);
	e = expr_text(b, text_str(&out), out.size);
	text_release(&out);
	return e;
}

static struct expr *object_literal(struct builder *b, const json_t *value)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "{"));
	const char *key;
	json_t *item;
	bool first = true;

	json_object_foreach((json_t *)(uintptr_t)value, key, item)
	{
		if (!first)
			expr_add(b, e, expr_words(b, ","));
		first = false;
		expr_add(b, e, json_space(b));
		expr_add(b, e, string_literal(b, key, strlen(key)));
		expr_add(b, e, expr_words(b, ":"));
		expr_add(b, e, json_space(b));
		expr_add(b, e, json_literal(b, item));
	}
	if (!first)
		expr_add(b, e, json_space(b));
	return expr_add(b, e, expr_words(b, "}"));
}

static struct expr *array_literal(struct builder *b, const json_t *value)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "["));
	const json_t *item;
	size_t i;

	json_array_foreach(value, i, item)
	{
		if (i)
			expr_add(b, e, expr_words(b, ","));
		expr_add(b, e, json_space(b));
		expr_add(b, e, json_literal(b, item));
	}
	if (json_array_size(value))
		expr_add(b, e, json_space(b));
	return expr_add(b, e, expr_words(b, "]"));
}

/* The shortest text that reads back as the same number, since that is what writers print. */
static char *scalar_text(const json_t *value)
{
	char *text = NULL;

	for (size_t digits = 15; digits <= 17; digits++) {
		free(text);
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
		if (!text || !json_is_real(value) || strtod(text, NULL) == json_real_value(value))
			break;
	}
	return text;
}

struct expr *json_literal(struct builder *b, const json_t *value)
{
	struct expr *e;
	char *text;

	if (json_is_object(value))
		return object_literal(b, value);
	if (json_is_array(value))
		return array_literal(b, value);
	if (json_is_string(value))
		return string_literal(b, json_string_value(value), json_string_length(value));
	text = scalar_text(value);
	if (!text) {
		builder_no_memory(b);
		return NULL;
	}
	e = expr_words(b, text);
	free(text);
	return e;
}
