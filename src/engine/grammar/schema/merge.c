/* SPDX-License-Identifier: Apache-2.0 */
/* Merges schemas that must hold together: allOf, and keywords beside $ref, anyOf and oneOf. Members of the
 * results are the members of the sources, or allOf of two of them, which is merged when it is reached. */
#include "engine/grammar/schema/schema.h"

enum { NESTING_MOST = 100, PRODUCT_MOST = 256 };

static void out_of_memory(struct schemas *s)
{
	builder_no_memory(s->b);
}

static void set(struct schemas *s, json_t *object, const char *key, const json_t *value)
{
	if (json_object_set(object, key, (json_t *)(uintptr_t)value))
		out_of_memory(s);
}

/* Replaces ~1, ~0 and %XX in a token of a JSON pointer. */
static void unescape(char *token)
{
	char *out = token;

	for (const char *at = token; *at; at++) {
		char two[3] = {0};

		if (at[0] == '~' && (at[1] == '0' || at[1] == '1')) {
			*out++ = *++at == '0' ? '~' : '/';
		} else if (at[0] == '%' && at[1] && at[2]) {
			memcpy(two, at + 1, 2);
			*out++ = (char)strtol(two, NULL, 16);
			at += 2;
		} else {
			*out++ = *at;
		}
	}
	*out = '\0';
}

/* The member or item that one token of a JSON pointer names. */
static const json_t *member_of(const json_t *at, char *token)
{
	char *end;
	unsigned long index;

	unescape(token);
	if (!json_is_array(at))
		return json_object_get(at, token);
	index = strtoul(token, &end, 10);
	return *token && !*end ? json_array_get(at, index) : NULL;
}

const json_t *schema_resolve(struct schemas *s, const json_t *schema)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	const json_t *at = s->root;
	char *copy, *token, *next;

	if (!ref) {
		builder_fail(s->b, STATUS_BAD_INPUT, "\"$ref\" is not a text");
		return NULL;
	}
	if (ref[0] != '#' || (ref[1] && ref[1] != '/')) {
		builder_fail(
			s->b, STATUS_UNSUPPORTED,
			"\"$ref\": \"%.80s\" is not a JSON pointer within the schema, such as #/$defs/name",
			ref);
		return NULL;
	}
	if (!ref[1])
		return at;
	copy = strdup(ref + 2);
	if (!copy) {
		out_of_memory(s);
		return NULL;
	}
	for (token = copy; token && at; token = next) {
		next = strchr(token, '/');
		if (next)
			*next++ = '\0';
		at = member_of(at, token);
	}
	free(copy);
	if (!at)
		builder_fail(s->b, STATUS_BAD_INPUT, "\"$ref\": \"%.80s\" leads to nothing", ref);
	return at;
}

/* The one object with these contents. Takes the reference. */
static const json_t *keep(struct schemas *s, json_t *schema)
{
	char *text = schema ? json_dumps(schema, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	const json_t *known;

	if (!text) {
		json_decref(schema);
		out_of_memory(s);
		return NULL;
	}
	builder_step(s->b, 4 + strlen(text) / 16);
	known = json_object_get(s->merged, text);
	if (known)
		json_decref(schema);
	else if (json_object_set_new(s->merged, text, schema))
		out_of_memory(s);
	else
		known = schema;
	free(text);
	return s->b->status ? NULL : known;
}

/* {"allOf": [a, b]}, or one of them if the other says nothing. New reference. */
static json_t *both(const json_t *a, const json_t *b)
{
	if (!a || json_is_true(a) || json_is_false(b) || a == b)
		return json_incref((json_t *)(uintptr_t)(b ? b : a));
	if (!b || json_is_true(b) || json_is_false(a) || json_equal(a, b))
		return json_incref((json_t *)(uintptr_t)a);
	return json_pack("{s:[OO]}", "allOf", a, b);
}

static unsigned type_set(struct schemas *s, const json_t *schema)
{
	const json_t *type = json_object_get(schema, "type");
	unsigned types = type ? schema_types(s->b, schema) : TYPE_ALL;

	return types & TYPE_NUMBER ? types | TYPE_INTEGER : types;
}

/* False: no value has a type of both. */
static bool merge_types(struct schemas *s, json_t *out, const json_t *a, const json_t *b)
{
	static const char *const names[] = {"null",   "boolean", "integer", "number",
					    "string", "array",	 "object"};
	unsigned types = type_set(s, a) & type_set(s, b);
	json_t *list = json_array();

	if (types & TYPE_NUMBER)
		types &= ~(unsigned)TYPE_INTEGER;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (types >> i & 1)
			json_array_append_new(list, json_string(names[i]));
	set(s, out, "type", list);
	json_decref(list);
	json_object_del(out, "nullable");
	return types;
}

/* What a schema says about a property. NULL: nothing. */
static const json_t *property_of(const json_t *schema, const char *name)
{
	const json_t *listed = json_object_get(json_object_get(schema, "properties"), name);

	return listed ? listed : json_object_get(schema, "additionalProperties");
}

static void merge_properties(struct schemas *s, json_t *out, const json_t *a, const json_t *b)
{
	const json_t *sources[2] = {a, b};
	json_t *properties = json_object(), *value, *merged;
	const char *name;

	for (unsigned i = 0; i < 2; i++) {
		json_object_foreach(json_object_get(sources[i], "properties"), name, value)
		{
			if (json_object_get(properties, name) || !builder_step(s->b, 1))
				continue;
			merged = both(property_of(a, name), property_of(b, name));
			if (!merged || json_object_set_new(properties, name, merged))
				out_of_memory(s);
		}
	}
	if (json_object_get(a, "properties") || json_object_get(b, "properties"))
		set(s, out, "properties", properties);
	json_decref(properties);
	merged = both(json_object_get(a, "additionalProperties"), json_object_get(b, "additionalProperties"));
	if (merged)
		set(s, out, "additionalProperties", merged);
	json_decref(merged);
	if ((json_object_get(a, "patternProperties") &&
	     (json_object_get(b, "properties") || json_object_get(b, "additionalProperties") ||
	      json_object_get(b, "patternProperties"))) ||
	    (json_object_get(b, "patternProperties") &&
	     (json_object_get(a, "properties") || json_object_get(a, "additionalProperties"))))
		builder_fail(s->b, STATUS_UNSUPPORTED,
			     "\"patternProperties\" cannot be merged with other keywords about properties");
}

static const json_t *item_of(const json_t *schema, size_t i)
{
	const json_t *listed = json_array_get(json_object_get(schema, "prefixItems"), i);

	return listed ? listed : json_object_get(schema, "items");
}

static void merge_items(struct schemas *s, json_t *out, const json_t *a, const json_t *b)
{
	size_t left = json_array_size(json_object_get(a, "prefixItems"));
	size_t right = json_array_size(json_object_get(b, "prefixItems"));
	json_t *prefix = json_array(), *items;

	if (json_is_array(json_object_get(a, "items")) || json_is_array(json_object_get(b, "items")))
		builder_fail(s->b, STATUS_UNSUPPORTED,
			     "a list of \"items\" cannot be merged; write \"prefixItems\"");
	for (size_t i = 0; i < left || i < right; i++) {
		json_t *merged = both(item_of(a, i), item_of(b, i));

		if (!merged || json_array_append_new(prefix, merged))
			out_of_memory(s);
	}
	if (json_array_size(prefix))
		set(s, out, "prefixItems", prefix);
	json_decref(prefix);
	items = both(json_object_get(a, "items"), json_object_get(b, "items"));
	if (items)
		set(s, out, "items", items);
	json_decref(items);
}

static json_t *join_lists(const json_t *a, const json_t *b)
{
	json_t *out = json_array(), *item;
	const json_t *lists[2] = {a, b};
	size_t i, k;

	for (unsigned l = 0; l < 2; l++) {
		json_array_foreach(lists[l], i, item)
		{
			bool known = false;

			for (k = 0; l && k < json_array_size(a) && !known; k++)
				known = json_equal(json_array_get(a, k), item);
			if (!known)
				json_array_append(out, item);
		}
	}
	return out;
}

static json_t *common_items(struct schemas *s, const json_t *a, const json_t *b)
{
	json_t *out = json_array(), *item;
	size_t i, k;

	json_array_foreach(a, i, item)
	{
		bool listed = false;

		for (k = 0; k < json_array_size(b) && !listed && builder_step(s->b, 1); k++)
			listed = json_equal(json_array_get(b, k), item);
		if (listed)
			json_array_append(out, item);
	}
	return out;
}

/* Each branch of one with each branch of the other. */
static json_t *product(struct schemas *s, const json_t *a, const json_t *b)
{
	json_t *out = json_array();

	if (json_array_size(a) * json_array_size(b) > PRODUCT_MOST)
		builder_fail(s->b, STATUS_NO_RESOURCE, "merged alternatives have more than %d combinations",
			     PRODUCT_MOST);
	for (size_t i = 0; i < json_array_size(a) && !s->b->status; i++)
		for (size_t k = 0; k < json_array_size(b); k++)
			if (json_array_append_new(out, both(json_array_get(a, i), json_array_get(b, k))))
				out_of_memory(s);
	return out;
}

static bool is_one_of(const char *key, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(key, *names))
			return true;
	return false;
}

/* A keyword that both schemas have, with different values. */
static void merge_keyword(struct schemas *s, json_t *out, const char *key, const json_t *a, const json_t *b)
{
	static const char *const larger[] = {"minimum",	 "exclusiveMinimum", "minLength",
					     "minItems", "minProperties",    NULL};
	static const char *const smaller[] = {"maximum",  "exclusiveMaximum", "maxLength",
					      "maxItems", "maxProperties",    NULL};
	static const char *const alternatives[] = {"anyOf", "oneOf", NULL};
	static const char *const silent[] = {
		"title",     "description", "default", "examples", "example", "deprecated",  "readOnly",
		"writeOnly", "$schema",	    "$id",     "$comment", "$defs",   "definitions", NULL};
	json_t *merged = NULL;

	if (is_one_of(key, silent))
		return;
	if (is_one_of(key, larger) && json_is_number(a) && json_is_number(b))
		set(s, out, key, json_number_value(a) > json_number_value(b) ? a : b);
	else if (is_one_of(key, smaller) && json_is_number(a) && json_is_number(b))
		set(s, out, key, json_number_value(a) < json_number_value(b) ? a : b);
	else if (!strcmp(key, "required"))
		merged = join_lists(a, b);
	else if (!strcmp(key, "enum"))
		merged = common_items(s, a, b);
	else if (is_one_of(key, alternatives))
		merged = product(s, a, b);
	else if (!strcmp(key, "uniqueItems"))
		set(s, out, key, json_true());
	else if (!strcmp(key, "nullable"))
		set(s, out, key, json_false());
	else
		builder_unenforced(s->b, "two schemas with different \"%s\" are merged; only one is enforced",
				   key);
	if (merged)
		set(s, out, key, merged);
	json_decref(merged);
}

static json_t *merge_objects(struct schemas *s, const json_t *a, const json_t *b)
{
	static const char *const joint[] = {"type",	   "properties", "additionalProperties",
					    "prefixItems", "items",	 NULL};
	const json_t *constant = json_object_get(a, "const"), *other_constant = json_object_get(b, "const");
	json_t *out = json_copy((json_t *)(uintptr_t)a), *value;
	const char *key;

	if (constant && other_constant && !json_equal(constant, other_constant)) {
		json_decref(out);
		return json_false();
	}
	if (!out) {
		out_of_memory(s);
		return NULL;
	}
	json_object_foreach((json_t *)(uintptr_t)b, key, value)
	{
		const json_t *other = json_object_get(a, key);

		if (is_one_of(key, joint) || !builder_step(s->b, 1))
			continue;
		if (!other)
			set(s, out, key, value);
		else if (!json_equal(other, value))
			merge_keyword(s, out, key, other, value);
	}
	merge_properties(s, out, a, b);
	merge_items(s, out, a, b);
	if ((json_object_get(a, "type") || json_object_get(b, "type")) && !merge_types(s, out, a, b)) {
		json_decref(out);
		return json_false();
	}
	return out;
}

const json_t *schema_merge(struct schemas *s, const json_t *a, const json_t *b)
{
	a = schema_flatten(s, a);
	b = a ? schema_flatten(s, b) : NULL;
	if (!a || !b)
		return NULL;
	if (json_is_true(a) || json_is_false(b))
		return b;
	if (json_is_true(b) || json_is_false(a))
		return a;
	if (!json_is_object(a) || !json_is_object(b)) {
		builder_fail(s->b, STATUS_BAD_INPUT, "a schema is neither an object nor true nor false");
		return NULL;
	}
	return keep(s, merge_objects(s, a, b));
}

static const json_t *flatten(struct schemas *s, const json_t *schema)
{
	const json_t *list = json_object_get(schema, "allOf"), *part, *out;
	json_t *rest = json_copy((json_t *)(uintptr_t)schema);
	size_t i;

	if (!rest || (list && !json_is_array(list))) {
		json_decref(rest);
		builder_fail(s->b, STATUS_BAD_INPUT, "\"allOf\" is not a list");
		return NULL;
	}
	json_object_del(rest, "allOf");
	json_object_del(rest, "$ref");
	out = keep(s, rest);
	if (out && json_object_get(schema, "$ref")) {
		part = schema_resolve(s, schema);
		out = part ? schema_merge(s, out, part) : NULL;
	}
	json_array_foreach(list, i, part) out = out ? schema_merge(s, out, part) : NULL;
	return out;
}

const json_t *schema_flatten(struct schemas *s, const json_t *schema)
{
	const json_t *out = NULL;

	if (!builder_step(s->b, 2))
		return NULL;
	if (!json_object_get(schema, "allOf") && !json_object_get(schema, "$ref"))
		return schema;
	if (++s->nesting > NESTING_MOST)
		builder_fail(
			s->b, STATUS_NO_RESOURCE,
			"\"allOf\" and \"$ref\" are nested more than %d deep, or lead back to themselves",
			NESTING_MOST);
	else
		out = flatten(s, schema);
	s->nesting--;
	return out;
}
