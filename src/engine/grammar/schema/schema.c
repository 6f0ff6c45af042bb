/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/schema/schema.h"

enum { NESTING_MOST = 100 };

static const char *const type_names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};

static unsigned type_bit(struct builder *b, const json_t *name)
{
	for (unsigned i = 0; json_is_string(name) && i < sizeof(type_names) / sizeof(type_names[0]); i++)
		if (!strcmp(json_string_value(name), type_names[i]))
			return 1u << i;
	builder_fail(b, STATUS_BAD_INPUT,
		     "\"type\" is not null, boolean, integer, number, string, array or object");
	return 0;
}

/* Types by keywords, for schemas without "type". */
static unsigned implied_types(const json_t *schema)
{
	static const struct {
		const char *keyword;
		unsigned type;
	} keywords[] = {
		{"properties", TYPE_OBJECT},
		{"required", TYPE_OBJECT},
		{"additionalProperties", TYPE_OBJECT},
		{"patternProperties", TYPE_OBJECT},
		{"minProperties", TYPE_OBJECT},
		{"maxProperties", TYPE_OBJECT},
		{"items", TYPE_ARRAY},
		{"prefixItems", TYPE_ARRAY},
		{"minItems", TYPE_ARRAY},
		{"maxItems", TYPE_ARRAY},
		{"minLength", TYPE_STRING},
		{"maxLength", TYPE_STRING},
		{"pattern", TYPE_STRING},
		{"format", TYPE_STRING},
		{"minimum", TYPE_NUMBER},
		{"maximum", TYPE_NUMBER},
		{"exclusiveMinimum", TYPE_NUMBER},
		{"exclusiveMaximum", TYPE_NUMBER},
		{"multipleOf", TYPE_NUMBER},
	};
	unsigned types = 0;

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (json_object_get(schema, keywords[i].keyword))
			types |= keywords[i].type;
	return types ? types : TYPE_ALL;
}

unsigned schema_types(struct builder *b, const json_t *schema)
{
	const json_t *type = json_object_get(schema, "type"), *item;
	unsigned types = 0;
	size_t i;

	if (json_is_array(type)) {
		json_array_foreach(type, i, item) types |= type_bit(b, item);
		if (!types)
			builder_fail(b, STATUS_BAD_INPUT, "\"type\" is an empty list");
	} else if (type) {
		types = type_bit(b, type);
	} else {
		types = implied_types(schema);
	}
	if (json_is_true(json_object_get(schema, "nullable")))
		types |= TYPE_NULL;
	return types & TYPE_NUMBER ? types & ~(unsigned)TYPE_INTEGER : types;
}

uint32_t schema_count(struct builder *b, const json_t *schema, const char *keyword, uint32_t otherwise)
{
	const json_t *value = json_object_get(schema, keyword);
	double number = json_number_value(value);

	if (!value)
		return otherwise;
	if (!json_is_number(value) || number < 0 || floor(number) < number) {
		builder_fail(b, STATUS_BAD_INPUT, "\"%s\" is not a whole number of 0 or more", keyword);
		return otherwise;
	}
	return number > 1e9 ? 1000000000 : (uint32_t)number;
}

/* Keywords that change what is valid, but that the automaton does not enforce. */
static void report_unenforced(struct schemas *s, const json_t *schema)
{
	static const char *const keywords[] = {"not",
					       "if",
					       "dependentRequired",
					       "dependentSchemas",
					       "dependencies",
					       "contains",
					       "propertyNames",
					       "unevaluatedProperties",
					       "unevaluatedItems",
					       "$dynamicRef",
					       "$recursiveRef"};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		const json_t *value = json_object_get(schema, keywords[i]);

		if (value && !(json_is_true(value) && !strncmp(keywords[i], "unevaluated", 11)))
			builder_unenforced(s->b, "keyword \"%s\" is not enforced", keywords[i]);
	}
	if (json_is_true(json_object_get(schema, "uniqueItems")))
		builder_unenforced(s->b, "keyword \"uniqueItems\" is not enforced");
}

static bool has_type(unsigned types, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return types & TYPE_OBJECT;
	case JSON_ARRAY:
		return types & TYPE_ARRAY;
	case JSON_STRING:
		return types & TYPE_STRING;
	case JSON_INTEGER:
		return types & (TYPE_INTEGER | TYPE_NUMBER);
	case JSON_REAL:
		return types & TYPE_NUMBER ||
		       (types & TYPE_INTEGER &&
			json_real_value(value) == (double)(int64_t)json_real_value(value));
	case JSON_TRUE:
	case JSON_FALSE:
		return types & TYPE_BOOLEAN;
	default:
		return types & TYPE_NULL;
	}
}

/* Keywords beside enum or const that would have to be checked against each value. */
static void report_beside_enum(struct schemas *s, const json_t *schema)
{
	static const char *const keywords[] = {"properties",
					       "required",
					       "additionalProperties",
					       "patternProperties",
					       "items",
					       "prefixItems",
					       "minItems",
					       "maxItems",
					       "minLength",
					       "maxLength",
					       "pattern",
					       "minimum",
					       "maximum",
					       "exclusiveMinimum",
					       "exclusiveMaximum",
					       "multipleOf",
					       "minProperties",
					       "maxProperties"};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (json_object_get(schema, keywords[i]))
			builder_unenforced(s->b,
					   "keyword \"%s\" beside \"enum\" or \"const\" is not enforced",
					   keywords[i]);
}

/* Scalars become one tree of texts, so that large lists stay small; other values are written out. */
static struct expr *enum_values(struct schemas *s, const json_t *values, unsigned types)
{
	struct builder *b = s->b;
	struct expr *choice = expr_group(b, EXPR_CHOICE), *literal;
	size_t count = json_array_size(values), used = 0, i;
	uint32_t rule = build_rule(b), end = build_node(b);
	struct bytes *texts = builder_alloc(b, (count + 1) * sizeof(*texts));
	const json_t *value;

	json_array_foreach(values, i, value)
	{
		if (!texts || b->status)
			return NULL;
		if (!has_type(types, value))
			continue;
		literal = json_literal(b, value);
		if (literal && literal->kind == EXPR_TEXT)
			texts[used++] = (struct bytes){literal->text, literal->size};
		else
			expr_add(b, choice, literal);
	}
	if (!used)
		return b->status ? NULL : choice;
	build_choice(b, rule_start(b, rule), texts, used, end);
	build_end(b, end);
	return expr_add(b, choice, expr_rule(b, rule));
}

static struct expr *enumeration(struct schemas *s, const json_t *schema)
{
	const json_t *values = json_object_get(schema, "enum"), *value = json_object_get(schema, "const");
	unsigned types = json_object_get(schema, "type") ? schema_types(s->b, schema) : TYPE_ALL;
	struct expr *choice;
	json_t *list;

	if (!value && !json_is_array(values)) {
		builder_fail(s->b, STATUS_BAD_INPUT, "\"enum\" is not a list");
		return NULL;
	}
	report_beside_enum(s, schema);
	if (!value)
		return enum_values(s, values, types);
	list = json_array();
	json_array_append(list, (json_t *)(uintptr_t)value);
	if (values) { /* both: the constant, if it is listed */
		const json_t *item;
		bool listed = false;
		size_t i;

		json_array_foreach(values, i, item) listed |= json_equal(item, value);
		if (!listed)
			json_array_clear(list);
	}
	choice = enum_values(s, list, types);
	json_decref(list);
	return choice;
}

static struct expr *typed(struct schemas *s, const json_t *schema)
{
	static const struct {
		unsigned type;
		struct expr *(*make)(struct schemas *, const json_t *);
	} made[] = {{TYPE_OBJECT, schema_object}, {TYPE_ARRAY, schema_array}, {TYPE_STRING, schema_string}};
	struct expr *choice = expr_group(s->b, EXPR_CHOICE);
	unsigned types = schema_types(s->b, schema);

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		if (types & made[i].type)
			expr_add(s->b, choice, made[i].make(s, schema));
	if (types & (TYPE_NUMBER | TYPE_INTEGER))
		expr_add(s->b, choice, schema_number(s, schema, !(types & TYPE_NUMBER)));
	if (types & TYPE_BOOLEAN)
		expr_add(s->b, choice, json_pattern(s->b, "true|false"));
	if (types & TYPE_NULL)
		expr_add(s->b, choice, expr_words(s->b, "null"));
	return s->b->status ? NULL : choice;
}

/* A property that both schemas require, with constant values that differ. */
static bool differ_by_constant(const json_t *a, const json_t *b)
{
	const json_t *left = json_object_get(a, "properties"), *right = json_object_get(b, "properties"),
		     *name;
	size_t i;

	json_array_foreach(json_object_get(a, "required"), i, name)
	{
		const char *key = json_string_value(name);
		const json_t *x = key ? json_object_get(json_object_get(left, key), "const") : NULL;
		const json_t *y = key ? json_object_get(json_object_get(right, key), "const") : NULL, *other;
		bool required = false;
		size_t k;

		json_array_foreach(json_object_get(b, "required"), k, other) required |=
			json_equal(other, name);
		if (x && y && required && !json_equal(x, y))
			return true;
	}
	return false;
}

static bool are_disjoint(struct schemas *s, const json_t *branches)
{
	for (size_t i = 0; i < json_array_size(branches); i++) {
		for (size_t k = 0; k < i; k++) {
			const json_t *a = schema_flatten(s, json_array_get(branches, i));
			const json_t *b = schema_flatten(s, json_array_get(branches, k));
			unsigned x, y;

			if (!json_is_object(a) || !json_is_object(b) || !builder_step(s->b, 10))
				return false;
			x = schema_types(s->b, a);
			y = schema_types(s->b, b);
			x |= x & TYPE_NUMBER ? TYPE_INTEGER : 0;
			y |= y & TYPE_NUMBER ? TYPE_INTEGER : 0;
			if (!json_object_get(a, "type") || !json_object_get(b, "type"))
				return false;
			if (x & y && ((x & y) != TYPE_OBJECT || !differ_by_constant(a, b)))
				return false;
		}
	}
	return true;
}

/* Keywords that say nothing about what is valid. */
static bool is_annotation(const char *keyword)
{
	static const char *const names[] = {"title",	  "description", "default",	"examples", "example",
					    "deprecated", "readOnly",	 "writeOnly",	"$schema",  "$id",
					    "$comment",	  "$defs",	 "definitions", NULL};

	for (size_t i = 0; names[i]; i++)
		if (!strcmp(keyword, names[i]))
			return true;
	return false;
}

/* The schema without one keyword, or NULL if only annotations are left. */
static json_t *without(struct builder *b, const json_t *schema, const char *keyword)
{
	json_t *rest = json_object(), *value;
	bool any = false;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)schema, key, value)
	{
		if (is_annotation(key) || !strcmp(key, keyword))
			continue;
		any = true;
		if (json_object_set(rest, key, value))
			builder_no_memory(b);
	}
	if (any)
		return rest;
	json_decref(rest);
	return NULL;
}

static struct expr *branches(struct schemas *s, const json_t *schema, const char *keyword)
{
	const json_t *list = json_object_get(schema, keyword), *branch;
	struct expr *choice = expr_group(s->b, EXPR_CHOICE);
	json_t *base = without(s->b, schema, keyword);
	size_t i, old = builder_path(s->b, keyword);

	if (!json_array_size(list))
		builder_fail(s->b, STATUS_BAD_INPUT, "expected a list with at least one schema");
	if (!s->b->status && !strcmp(keyword, "oneOf") && !are_disjoint(s, list))
		builder_unenforced(s->b,
				   "\"oneOf\" is enforced as \"anyOf\": a value may match several branches");
	json_array_foreach(list, i, branch)
	{
		size_t place = builder_path_index(s->b, i);

		expr_add(s->b, choice, schema_value(s, base ? schema_merge(s, base, branch) : branch));
		builder_path_end(s->b, place);
	}
	builder_path_end(s->b, old);
	json_decref(base);
	return s->b->status ? NULL : choice;
}

static struct expr *reference(struct schemas *s, const json_t *schema)
{
	const json_t *target = schema_resolve(s, schema);

	return target ? schema_value_rule(s, target) : NULL;
}

static bool is_reference_alone(struct schemas *s, const json_t *schema)
{
	json_t *rest;

	if (!json_object_get(schema, "$ref"))
		return false;
	rest = without(s->b, schema, "$ref");
	json_decref(rest);
	return !rest;
}

static struct expr *value_of(struct schemas *s, const json_t *schema)
{
	struct builder *b = s->b;

	if (json_is_true(schema))
		return json_any_value(b);
	if (json_is_false(schema))
		return expr_group(b, EXPR_CHOICE);
	if (!json_is_object(schema)) {
		builder_fail(b, STATUS_BAD_INPUT, "a schema is neither an object nor true nor false");
		return NULL;
	}
	if (is_reference_alone(s, schema))
		return reference(s, schema);
	schema = schema_flatten(s, schema);
	if (!schema || !json_is_object(schema))
		return schema ? value_of(s, schema) : NULL;
	report_unenforced(s, schema);
	if (json_object_get(schema, "anyOf"))
		return branches(s, schema, "anyOf");
	if (json_object_get(schema, "oneOf"))
		return branches(s, schema, "oneOf");
	if (json_object_get(schema, "enum") || json_object_get(schema, "const"))
		return enumeration(s, schema);
	if (schema_types(b, schema) == TYPE_ALL)
		return json_any_value(b);
	return typed(s, schema);
}

struct expr *schema_value(struct schemas *s, const json_t *schema)
{
	struct expr *e = NULL;

	if (!schema || !builder_step(s->b, 10))
		return NULL;
	if (++s->nesting > NESTING_MOST)
		builder_fail(s->b, STATUS_NO_RESOURCE, "schemas are nested more than %d deep", NESTING_MOST);
	else
		e = value_of(s, schema);
	s->nesting--;
	return e;
}

static struct schema_rule *find_rule(struct schemas *s, const json_t *schema)
{
	size_t at = ((uintptr_t)schema >> 4) * 0x9e3779b97f4a7c15u >> 20 & (s->rule_room - 1);

	while (s->rules[at].schema && s->rules[at].schema != schema)
		at = (at + 1) & (s->rule_room - 1);
	return &s->rules[at];
}

/* Makes room for one more rule. */
static bool grow_rules(struct schemas *s)
{
	struct schema_rule *old = s->rules;
	size_t room = s->rule_room;

	if (room && s->rule_count * 2 < room)
		return true;
	s->rule_room = room ? room * 2 : 64;
	s->rules = calloc(s->rule_room, sizeof(*s->rules));
	if (!s->rules) {
		s->rules = old;
		s->rule_room = room;
		builder_no_memory(s->b);
		return false;
	}
	for (size_t i = 0; i < room; i++)
		if (old[i].schema)
			*find_rule(s, old[i].schema) = old[i];
	free(old);
	return true;
}

struct expr *schema_value_rule(struct schemas *s, const json_t *schema)
{
	struct schema_rule *known;
	struct expr *body;
	uint32_t rule, end;

	if (!grow_rules(s))
		return NULL;
	known = find_rule(s, schema);
	if (known->schema)
		return expr_rule(s->b, known->rule);
	rule = build_rule(s->b);
	end = build_node(s->b);
	*known = (struct schema_rule){schema, rule};
	s->rule_count++;
	body = schema_value(s, schema);
	if (!body)
		return NULL;
	build_expr(s->b, body, rule_start(s->b, rule), end);
	build_end(s->b, end);
	return expr_rule(s->b, rule);
}

struct expr *schema_parse(struct builder *b, const json_t *root)
{
	struct schemas s = {.b = b, .root = root, .merged = json_object()};
	struct expr *e = NULL;

	if (!s.merged)
		builder_no_memory(b);
	else
		e = schema_value_rule(&s, root);
	free(s.rules);
	json_decref(s.merged);
	return b->status ? NULL : e;
}
