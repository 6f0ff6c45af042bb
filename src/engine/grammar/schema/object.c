/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects. The listed properties come in their order; the others follow. Two nodes stand between properties:
 * `need` (a property must follow: behind "{" or a comma) and `have` (a property came last). Both exist once
 * per property and, if the number of properties is bounded, once per number of properties so far.
 */
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/automaton/regex.h"
#include "engine/grammar/schema/schema.h"

enum { COUNTED_MOST = 64, SMALL_VALUE = 16 };

struct property {
	const char *name;
	struct expr *key; /* the key's text, colon and space */
	struct expr *value;
	bool required;
};

struct object {
	struct property *properties;
	size_t count, required;
	const json_t *others; /* schema of other properties; NULL: there are none */
	uint32_t other_key;   /* rule of their keys */
	struct expr *other_value;
	uint32_t min, max, levels; /* levels: 1 if properties need not be counted */
	uint32_t *need, *have;
	uint32_t close; /* "}" follows */
};

static bool is_required(const json_t *schema, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i,
			   item) if (json_is_string(item) &&
				     !strcmp(json_string_value(item), name)) return true;
	return false;
}

static void add_property(struct schemas *s, struct object *o, const char *name, const json_t *schema,
			 bool required)
{
	struct builder *b = s->b;
	struct property *p = &o->properties[o->count++];
	struct text key = {0};
	size_t old = builder_path(b, name);

	text_add(&key, "\"");
	json_add_escaped(&key, name, strlen(name));
	text_add(&key, "\":");
	*p = (struct property){.name = name, .required = required};
	p->key = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_text(b, text_str(&key), key.size));
	expr_add(b, p->key, json_space(b));
	p->value = schema_value(s, schema);
	if (p->value && p->value->nodes > SMALL_VALUE && o->levels > 1)
		p->value = expr_rule(b, expr_make_rule(b, p->value));
	o->required += required;
	if (key.failed)
		builder_no_memory(b);
	text_release(&key);
	builder_path_end(b, old);
}

/* Number of properties that the schema lists or requires. */
static size_t count_names(struct builder *b, const json_t *schema)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *required = json_object_get(schema, "required");
	size_t count = json_object_size(properties) + json_array_size(required);

	if (properties && !json_is_object(properties))
		builder_fail(b, STATUS_BAD_INPUT, "\"properties\" is not an object");
	if (required && !json_is_array(required))
		builder_fail(b, STATUS_BAD_INPUT, "\"required\" is not a list");
	return count;
}

/* Properties that are required but not listed have the schema of the others. */
static void add_unlisted(struct schemas *s, struct object *o, const json_t *schema, const json_t *additional)
{
	const json_t *properties = json_object_get(schema, "properties"), *item;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, item)
	{
		const char *name = json_string_value(item);
		bool known = name && json_object_get(properties, name);

		for (size_t k = 0; name && k < o->count && !known && builder_step(s->b, 1); k++)
			known = !strcmp(o->properties[k].name, name);
		if (!name)
			builder_fail(s->b, STATUS_BAD_INPUT, "\"required\" holds something else than names");
		else if (!known && !s->b->status)
			add_property(s, o, name, additional ? additional : json_true(), true);
	}
}

/* Keys that match the only pattern, if nothing else is said about keys. False: not enforced. */
static bool read_pattern(struct schemas *s, struct object *o, const json_t *schema)
{
	json_t *patterns = json_object_get(schema, "patternProperties"), *value;
	const json_t *additional = json_object_get(schema, "additionalProperties");
	struct builder *b = s->b;
	const char *pattern;

	if (!patterns)
		return true;
	if (json_object_size(patterns) != 1 || o->count || (additional && !json_is_false(additional))) {
		builder_unenforced(
			b, "\"patternProperties\" is enforced only as one pattern without \"properties\", "
			   "\"required\" and \"additionalProperties\"");
		return false;
	}
	json_object_foreach(patterns, pattern, value)
	{
		struct expr *key = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, "\""));

		expr_add(b, key,
			 regex_parse(b, pattern, strlen(pattern), ENCODE_JSON, false,
				     expr_range(b, 1, CHAR_LAST, ENCODE_JSON)));
		o->other_key = expr_make_rule(b, expr_add(b, key, expr_words(b, "\"")));
		o->others = value;
	}
	return true;
}

static void read_others(struct schemas *s, struct object *o, const json_t *schema)
{
	const json_t *additional = json_object_get(schema, "additionalProperties");
	struct builder *b = s->b;
	struct bytes *names = builder_alloc(b, (o->count + 1) * sizeof(*names));
	uint32_t end;
	size_t old;

	if (!names || !read_pattern(s, o, schema))
		return;
	if (!o->other_key && !json_is_false(additional) &&
	    (additional || (!json_object_size(json_object_get(schema, "properties"))))) {
		o->others = additional ? additional : json_true();
		for (size_t i = 0; i < o->count; i++)
			names[i] = (struct bytes){o->properties[i].name, strlen(o->properties[i].name)};
		o->other_key = build_rule(b);
		end = build_node(b);
		if (b->status)
			return;
		build_other_string(b, rule_start(b, o->other_key), names, o->count, end);
		build_end(b, end);
	}
	if (!o->others)
		return;
	old = builder_path(b, "additionalProperties");
	o->other_value = schema_value_rule(s, o->others);
	builder_path_end(b, old);
}

/* Decides whether properties must be counted. A key may be repeated among the others, so they count at most
 * once for the lower bound. */
static void read_bounds(struct schemas *s, struct object *o, const json_t *schema, size_t names)
{
	bool closed = json_is_false(json_object_get(schema, "additionalProperties")) ||
		      (json_object_size(json_object_get(schema, "properties")) &&
		       !json_object_get(schema, "additionalProperties"));

	o->min = schema_count(s->b, schema, "minProperties", 0);
	o->max = schema_count(s->b, schema, "maxProperties", REPEAT_FOREVER);
	o->levels = 1;
	if (o->min <= json_array_size(json_object_get(schema, "required")))
		o->min = 0;
	if (closed && o->max >= names)
		o->max = REPEAT_FOREVER;
	if (o->min > 1 && !closed) {
		builder_unenforced(s->b, "\"minProperties\" beside additional properties is not enforced");
		o->min = 0;
	}
	if ((o->min > COUNTED_MOST && o->min <= names) ||
	    (o->max > COUNTED_MOST && o->max != REPEAT_FOREVER)) {
		builder_unenforced(s->b,
				   "\"minProperties\" and \"maxProperties\" of more than %d are not enforced",
				   COUNTED_MOST);
		o->min = 0;
		o->max = REPEAT_FOREVER;
	}
	if (o->min || o->max != REPEAT_FOREVER)
		o->levels = 1 + (o->max != REPEAT_FOREVER ? o->max
				 : o->min > names + 1	  ? (uint32_t)names + 1
							  : o->min);
}

/* True if all properties from i on may be left out. */
static bool may_close(const struct object *o, size_t i)
{
	for (; i < o->count; i++)
		if (o->properties[i].required)
			return false;
	return true;
}

static uint32_t place(const struct object *o, size_t i, uint32_t level)
{
	return (uint32_t)(i * o->levels + level);
}

/* Paths of one property or of another one from `need` to the next `have`. */
static void build_member(struct builder *b, struct object *o, size_t i, uint32_t level)
{
	uint32_t from = o->need[place(o, i, level)], next = level + 1 < o->levels ? level + 1 : level, key,
		 value;

	if (o->max != REPEAT_FOREVER && level == o->max)
		return;
	if (i < o->count) {
		value = build_node(b);
		build_expr(b, o->properties[i].key, from, value);
		build_expr(b, o->properties[i].value, value, o->have[place(o, i + 1, next)]);
		if (!o->properties[i].required)
			build_empty(b, from, o->need[place(o, i + 1, level)]);
	} else if (o->others) {
		key = build_node(b);
		value = build_node(b);
		build_call(b, from, o->other_key, 1, 1, key);
		key = (build_text(b, key, ":", 1, value), value);
		value = build_node(b);
		build_expr(b, json_space(b), key, value);
		build_expr(b, o->other_value, value, o->have[place(o, i, next)]);
	}
}

static void build_members(struct builder *b, struct object *o, uint32_t start)
{
	for (size_t i = 0; i <= o->count; i++) {
		bool close = may_close(o, i);

		for (uint32_t level = 0; level < o->levels && builder_step(b, 4); level++) {
			uint32_t have = o->have[place(o, i, level)], comma = build_node(b);

			build_member(b, o, i, level);
			build_byte(b, have, ',', ',', comma);
			build_expr(b, json_space(b), comma, o->need[place(o, i, level)]);
			if (close && (o->levels == 1 || level >= o->min))
				build_expr(b, json_space(b), have, o->close);
		}
	}
	if (may_close(o, 0) && !o->min)
		build_expr(b, json_space(b), start, o->close);
	build_expr(b, json_space(b), start, o->need[0]);
}

static struct expr *build_object(struct builder *b, struct object *o)
{
	size_t places = (o->count + 1) * o->levels;
	uint32_t rule = build_rule(b), open = build_node(b), end = build_node(b);

	o->need = builder_alloc(b, places * sizeof(*o->need));
	o->have = builder_alloc(b, places * sizeof(*o->have));
	if (!o->need || !o->have || b->status)
		return NULL;
	for (size_t i = 0; i < places; i++) {
		o->need[i] = build_node(b);
		o->have[i] = build_node(b);
	}
	o->close = build_node(b);
	build_byte(b, rule_start(b, rule), '{', '{', open);
	build_byte(b, o->close, '}', '}', end);
	build_end(b, end);
	build_members(b, o, open);
	return expr_rule(b, rule);
}

struct expr *schema_object(struct schemas *s, const json_t *schema)
{
	static const char *const keywords[] = {"properties",	    "required",	     "additionalProperties",
					       "patternProperties", "minProperties", "maxProperties"};
	struct builder *b = s->b;
	struct object o = {0};
	const char *name;
	json_t *value;
	bool plain = true;
	size_t names = count_names(b, schema), old;

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		plain &= !json_object_get(schema, keywords[i]);
	if (plain)
		return json_any_object(b);
	o.properties = builder_alloc(b, (names + 1) * sizeof(*o.properties));
	if (!o.properties)
		return NULL;
	read_bounds(s, &o, schema, names);
	old = builder_path(b, "properties");
	json_object_foreach(json_object_get(schema, "properties"), name, value)
	{
		if (b->status)
			return NULL;
		add_property(s, &o, name, value, is_required(schema, name));
	}
	add_unlisted(s, &o, schema, json_object_get(schema, "additionalProperties"));
	builder_path_end(b, old);
	read_others(s, &o, schema);
	return b->status ? NULL : build_object(b, &o);
}
