/* SPDX-License-Identifier: Apache-2.0 */
/* A validator of the part of JSON Schema that docs/schema uses. */
#ifndef TESTS_UNIT_SCHEMA_H
#define TESTS_UNIT_SCHEMA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool schema_is_type(const json_t *value, const char *type)
{
	return (!strcmp(type, "object") && json_is_object(value)) ||
	       (!strcmp(type, "array") && json_is_array(value)) ||
	       (!strcmp(type, "string") && json_is_string(value)) ||
	       (!strcmp(type, "number") && json_is_number(value)) ||
	       (!strcmp(type, "integer") && json_is_integer(value)) ||
	       (!strcmp(type, "boolean") && json_is_boolean(value));
}

static bool schema_any_type(const json_t *value, const json_t *type)
{
	json_t *item;
	size_t i;

	if (json_is_string(type))
		return schema_is_type(value, json_string_value(type));
	json_array_foreach((json_t *)type, i,
			   item) if (schema_is_type(value, json_string_value(item))) return true;
	return false;
}

static bool schema_in_list(const json_t *value, const json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item) if (json_equal((json_t *)value, item)) return true;
	return false;
}

static bool schema_valid_at(const json_t *root, const json_t *schema, const json_t *value, char *why,
			    size_t size);

static bool schema_valid_object(const json_t *root, const json_t *schema, const json_t *value, char *why,
				size_t size)
{
	const json_t *rest = json_object_get(schema, "additionalProperties");
	json_t *item;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i,
			   item) if (!json_object_get(value, json_string_value(item)))
	{
		snprintf(why, size, "%s is missing", json_string_value(item));
		return false;
	}
	json_object_foreach((json_t *)value, key, item)
	{
		const json_t *one = json_object_get(json_object_get(schema, "properties"), key);
		char below[256] = "";

		if (!one && json_is_false(rest)) {
			snprintf(why, size, "%s is not in the schema", key);
			return false;
		}
		one = one ? one : rest;
		if (one && !schema_valid_at(root, one, item, below, sizeof(below))) {
			snprintf(why, size, "%.60s: %.180s", key, below);
			return false;
		}
	}
	return true;
}

static bool schema_valid_at(const json_t *root, const json_t *schema, const json_t *value, char *why,
			    size_t size)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	const json_t *least = json_object_get(schema, "minimum"), *items = json_object_get(schema, "items");
	json_t *item;
	size_t i;

	if (ref) {
		assert_int_equal(strncmp(ref, "#/$defs/", 8), 0);
		schema = json_object_get(json_object_get(root, "$defs"), ref + 8);
		assert_non_null(schema);
		return schema_valid_at(root, schema, value, why, size);
	}
	snprintf(why, size, "is not what the schema says");
	if (json_object_get(schema, "type") && !schema_any_type(value, json_object_get(schema, "type")))
		return false;
	if (json_object_get(schema, "enum") && !schema_in_list(value, json_object_get(schema, "enum")))
		return false;
	if (json_object_get(schema, "const") &&
	    !json_equal((json_t *)value, json_object_get(schema, "const")))
		return false;
	if (least && json_number_value(value) < json_number_value(least))
		return false;
	if (json_is_array(value) && items)
		json_array_foreach((json_t *)value, i,
				   item) if (!schema_valid_at(root, items, item, why, size)) return false;
	return !json_is_object(value) || schema_valid_object(root, schema, value, why, size);
}

/* Where it is not valid, `why` names the place. */
static inline bool schema_valid(const json_t *schema, const json_t *value, char *why, size_t size)
{
	return schema_valid_at(schema, schema, value, why, size);
}
#endif
