/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/fields.h"

const json_t *field_value(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_null(value) ? NULL : value;
}

const char *field_type_name(const json_t *value)
{
	if (!value)
		return "nothing";
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a text";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number";
	case JSON_NULL:
		return "null";
	default:
		return "a boolean";
	}
}

static bool wrong_type(const char *name, const char *want, const json_t *value, struct api_error *err)
{
	return api_wrong(err, name, "%s must be %s, not %s", name, want, field_type_name(value));
}

static bool check_range(const struct field *f, double value, struct api_error *err)
{
	/* written so that NaN is outside */
	if (value <= f->most && (f->above ? value > f->least : value >= f->least))
		return true;
	return api_wrong(err, f->name, "%s is %.10g; it must be %s %.10g and at most %.10g", f->name, value,
			 f->above ? "above" : "at least", f->least, f->most);
}

static bool read_one(const json_t *value, const struct field *f, char *at, struct api_error *err)
{
	double number = json_number_value(value);
	bool whole = json_is_integer(value) || (json_is_real(value) && number >= -9.0e15 &&
						number <= 9.0e15 && number == (double)(int64_t)number);

	switch (f->kind) {
	case FIELD_BOOL:
		if (!json_is_boolean(value))
			return wrong_type(f->name, "true or false", value, err);
		*(bool *)(void *)at = json_is_true(value);
		return true;
	case FIELD_INT:
		if (!whole)
			return wrong_type(f->name, "an integer", value, err);
		*(int64_t *)(void *)at = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
		return check_range(f, number, err);
	case FIELD_NUMBER:
		break;
	}
	if (!json_is_number(value))
		return wrong_type(f->name, "a number", value, err);
	*(double *)(void *)at = number;
	return check_range(f, number, err);
}

bool fields_read(const json_t *object, const struct field *fields, size_t count, void *out,
		 struct api_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = field_value(object, fields[i].name);

		if (value && !read_one(value, &fields[i], (char *)out + fields[i].offset, err))
			return false;
	}
	return true;
}

bool field_text(const json_t *object, const char *name, const char **out, struct api_error *err)
{
	const json_t *value = field_value(object, name);

	if (value && !json_is_string(value))
		return wrong_type(name, "a text", value, err);
	if (value)
		*out = json_string_value(value);
	return true;
}

bool field_bool(const json_t *object, const char *name, bool *out, struct api_error *err)
{
	const struct field f = {.name = name, .kind = FIELD_BOOL};

	return fields_read(object, &f, 1, out, err);
}

bool field_text_in(const json_t *object, const char *place, const char *name, const char **out,
		   struct api_error *err)
{
	const json_t *value = field_value(object, name);
	char whole[96];

	snprintf(whole, sizeof(whole), "%s.%s", place, name);
	if (value && !json_is_string(value))
		return wrong_type(whole, "a text", value, err);
	if (value)
		*out = json_string_value(value);
	return true;
}

bool field_bool_in(const json_t *object, const char *place, const char *name, bool *out,
		   struct api_error *err)
{
	const json_t *value = field_value(object, name);
	char whole[96];

	snprintf(whole, sizeof(whole), "%s.%s", place, name);
	if (value && !json_is_boolean(value))
		return wrong_type(whole, "true or false", value, err);
	if (value)
		*out = json_is_true(value);
	return true;
}

bool field_array(const json_t *object, const char *name, const json_t **out, size_t most,
		 struct api_error *err)
{
	const json_t *value = field_value(object, name);

	if (value && !json_is_array(value))
		return wrong_type(name, "an array", value, err);
	if (value && json_array_size(value) > most)
		return api_wrong(err, name, "%s has %zu entries; %zu is the most", name,
				 json_array_size(value), most);
	if (value)
		*out = value;
	return true;
}

bool field_object(const json_t *object, const char *name, const json_t **out, struct api_error *err)
{
	const json_t *value = field_value(object, name);

	if (value && !json_is_object(value))
		return wrong_type(name, "an object", value, err);
	if (value)
		*out = value;
	return true;
}
