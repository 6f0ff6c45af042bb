/* SPDX-License-Identifier: Apache-2.0 */
#include "core/json/text.h"

/* Characters that JSON must escape. */
static bool is_escaped(char c)
{
	return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

static void add_string(struct text *out, const char *s, size_t size)
{
	static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	size_t at = 0, plain;

	text_add(out, "\"");
	while (at < size) {
		const char *name;

		for (plain = at; plain < size && !is_escaped(s[plain]);)
			plain++;
		text_add_bytes(out, s + at, plain - at);
		if (plain == size)
			break;
		name = s[plain] ? strchr(named, s[plain]) : NULL;
		if (name)
			text_addf(out, "\\%c", letters[name - named]);
		else
			text_addf(out, "\\u%04x", (unsigned)s[plain]);
		at = plain + 1;
	}
	text_add(out, "\"");
}

void json_text_add_real(struct text *out, double value)
{
	char digits[40], *e;
	int precision, exponent, places;

	for (precision = 0; precision < 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*e", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	e = strchr(digits, 'e');
	exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
	if (exponent < -4 || exponent >= 16) {
		text_addf(out, "%s", digits);
		return;
	}
	places = precision - exponent;
	text_addf(out, "%.*f", places > 1 ? places : 1, value);
}

static void add_line(struct text *out, unsigned indent, unsigned depth)
{
	if (indent)
		text_addf(out, "\n%*s", (int)(indent * depth), "");
}

static void add_value(struct text *out, const json_t *value, unsigned indent, unsigned depth)
{
	const char *comma = indent ? "," : ", ", *key;
	size_t i = 0;
	json_t *item;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		text_add(out, "{");
		json_object_foreach((json_t *)value, key, item)
		{
			text_add(out, i++ ? comma : "");
			add_line(out, indent, depth + 1);
			add_string(out, key, strlen(key));
			text_add(out, ": ");
			add_value(out, item, indent, depth + 1);
		}
		if (i)
			add_line(out, indent, depth);
		text_add(out, "}");
		return;
	case JSON_ARRAY:
		text_add(out, "[");
		json_array_foreach(value, i, item)
		{
			text_add(out, i ? comma : "");
			add_line(out, indent, depth + 1);
			add_value(out, item, indent, depth + 1);
		}
		if (json_array_size(value))
			add_line(out, indent, depth);
		text_add(out, "]");
		return;
	case JSON_STRING:
		add_string(out, json_string_value(value), json_string_length(value));
		return;
	case JSON_INTEGER:
		text_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return;
	case JSON_REAL:
		json_text_add_real(out, json_real_value(value));
		return;
	case JSON_TRUE:
	case JSON_FALSE:
		text_add(out, json_is_true(value) ? "true" : "false");
		return;
	case JSON_NULL:
		text_add(out, "null");
		return;
	}
}

void json_text_add(struct text *out, const json_t *value, unsigned indent)
{
	add_value(out, value, indent, 0);
}
