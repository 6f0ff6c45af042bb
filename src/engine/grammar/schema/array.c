/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/schema/schema.h"

struct array {
	const json_t *prefix, *items;
	uint32_t min, max;
};

static bool read_array(struct schemas *s, const json_t *schema, struct array *a)
{
	const json_t *items = json_object_get(schema, "items");

	a->prefix = json_object_get(schema, "prefixItems");
	a->items = items;
	if (json_is_array(items)) { /* until draft 2019-09 */
		a->prefix = items;
		a->items = json_object_get(schema, "additionalItems");
	}
	if (a->prefix && !json_is_array(a->prefix))
		builder_fail(s->b, STATUS_BAD_INPUT, "\"prefixItems\" is not a list");
	a->min = schema_count(s->b, schema, "minItems", 0);
	a->max = schema_count(s->b, schema, "maxItems", REPEAT_FOREVER);
	if (json_is_false(a->items) && json_array_size(a->prefix) < a->max)
		a->max = (uint32_t)json_array_size(a->prefix);
	return !s->b->status;
}

static struct expr *item(struct schemas *s, const json_t *schema)
{
	return schema ? schema_value_rule(s, schema) : json_any_value(s->b);
}

/* "," and an item */
static struct expr *next_item(struct schemas *s, const json_t *schema)
{
	struct expr *e = expr_add(s->b, expr_group(s->b, EXPR_SEQUENCE), expr_words(s->b, ","));

	return expr_add(s->b, expr_add(s->b, e, json_space(s->b)), item(s, schema));
}

/* Items behind the first `done`, each with its comma. */
static struct expr *items_from(struct schemas *s, const struct array *a, uint32_t done)
{
	uint32_t min = a->min > done ? a->min - done : 0;
	uint32_t max = a->max == REPEAT_FOREVER ? REPEAT_FOREVER : a->max - done;
	struct expr *e;

	if (!max)
		return expr_words(s->b, "");
	if (done >= json_array_size(a->prefix))
		return expr_repeat(s->b, next_item(s, a->items), min, max);
	e = expr_add(s->b, expr_group(s->b, EXPR_SEQUENCE), next_item(s, json_array_get(a->prefix, done)));
	return expr_repeat(s->b, expr_add(s->b, e, items_from(s, a, done + 1)), min > 0, 1);
}

struct expr *schema_array(struct schemas *s, const json_t *schema)
{
	struct builder *b = s->b;
	struct expr *whole = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "[")), *items;
	struct array a;
	size_t old;

	if (!read_array(s, schema, &a))
		return NULL;
	if (json_array_size(a.prefix) > 100) {
		builder_fail(b, STATUS_NO_RESOURCE, "more than 100 \"prefixItems\"");
		return NULL;
	}
	old = builder_path(b, "items");
	expr_add(b, whole, json_space(b));
	if (a.min > a.max) {
		builder_path_end(b, old);
		return expr_group(b, EXPR_CHOICE);
	}
	if (a.max) {
		items = expr_group(b, EXPR_SEQUENCE);
		expr_add(b, items,
			 item(s, json_array_size(a.prefix) ? json_array_get(a.prefix, 0) : a.items));
		expr_add(b, items, items_from(s, &a, 1));
		expr_add(b, items, json_space(b));
		expr_add(b, whole, expr_repeat(b, items, a.min > 0, 1));
	}
	builder_path_end(b, old);
	return expr_add(b, whole, expr_words(b, "]"));
}
