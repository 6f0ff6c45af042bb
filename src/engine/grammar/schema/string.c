/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/regex.h"
#include "engine/grammar/schema/schema.h"

static struct expr *quoted(struct builder *b, struct expr *inside)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "\""));

	return expr_add(b, expr_add(b, e, inside), expr_words(b, "\""));
}

/* Groups of one child mean the child. */
static struct expr *unwrap(struct expr *e)
{
	while ((e->kind == EXPR_SEQUENCE || e->kind == EXPR_CHOICE) && e->first && e->first == e->last)
		e = e->first;
	return e;
}

/* Adapts the only part of variable length, if it repeats single characters. False: the shape is another one.
 */
static bool limit_length(struct expr *e, uint32_t min, uint32_t max)
{
	struct expr *child, *variable = NULL;
	uint32_t fixed = 0, least, most;

	e = unwrap(e);
	for (child = e->kind == EXPR_SEQUENCE ? e->first : e; child;
	     child = e->kind == EXPR_SEQUENCE ? child->next : NULL) {
		struct expr *part = unwrap(child);

		expr_lengths(part, &least, &most);
		if (least == most) {
			fixed += least;
			continue;
		}
		if (variable || part->kind != EXPR_REPEAT)
			return false;
		variable = part;
		expr_lengths(part->first, &least, &most);
		if (least != 1 || most != 1)
			return false;
	}
	if (!variable || fixed > max)
		return false;
	if (min > fixed && min - fixed > variable->min)
		variable->min = min - fixed;
	if (max != REPEAT_FOREVER && max - fixed < variable->max)
		variable->max = max - fixed;
	/* The estimate of nodes decides how the repetition is built. */
	variable->nodes = UINT32_MAX / 4;
	return variable->min <= variable->max;
}

/* Texts of a pattern with min to max characters. */
static struct expr *limited(struct builder *b, struct expr *e, const char *keyword, uint32_t min,
			    uint32_t max)
{
	uint32_t least, most;

	if (!e)
		return NULL;
	expr_lengths(e, &least, &most);
	if (least > max || most < min)
		return expr_group(b, EXPR_CHOICE);
	if ((least < min || most > max) && !limit_length(e, min, max))
		builder_unenforced(b, "\"minLength\" and \"maxLength\" beside this \"%s\" are not enforced",
				   keyword);
	return quoted(b, e);
}

static const char *text_of(struct builder *b, const json_t *schema, const char *keyword)
{
	const json_t *value = json_object_get(schema, keyword);

	if (value && !json_is_string(value))
		builder_fail(b, STATUS_BAD_INPUT, "\"%s\" is not a text", keyword);
	return json_string_value(value);
}

struct expr *schema_string(struct schemas *s, const json_t *schema)
{
	struct builder *b = s->b;
	const char *pattern = text_of(b, schema, "pattern"), *format = text_of(b, schema, "format"), *known;
	uint32_t min = schema_count(b, schema, "minLength", 0);
	uint32_t max = schema_count(b, schema, "maxLength", REPEAT_FOREVER);

	if (b->status)
		return NULL;
	if (min > max)
		return expr_group(b, EXPR_CHOICE);
	if (pattern) {
		size_t old = builder_path(b, "pattern");
		struct expr *e =
			regex_parse(b, pattern, strlen(pattern), ENCODE_JSON, false, json_character(b));

		builder_path_end(b, old);
		if (format)
			builder_unenforced(b, "\"format\" beside \"pattern\" is not enforced");
		return limited(b, e, "pattern", min, max);
	}
	known = format ? schema_format_pattern(format) : NULL;
	if (known)
		return limited(b, json_pattern(b, known), "format", min, max);
	if (format)
		builder_unenforced(b, "format \"%.60s\" is not known and not enforced", format);
	if (!min && max == REPEAT_FOREVER)
		return json_any_string(b);
	return quoted(b, expr_repeat(b, json_character(b), min, max));
}
