/* SPDX-License-Identifier: Apache-2.0 */
/* U+0000 belongs to a prompt and to the content of a message: a tokenizer has a token for it, and load
 * generators that choose tokens at random send it. Everywhere else a text ends at its NUL byte, so U+0000 is
 * refused there. */
#include "serve/protocol/body/body.h"

static bool has_null(const json_t *value)
{
	const json_t *one;
	const char *key;
	size_t i;

	if (json_is_string(value))
		return memchr(json_string_value(value), 0, json_string_length(value));
	json_array_foreach(value, i, one) if (has_null(one)) return true;
	json_object_foreach((json_t *)(uintptr_t)value, key, one) if (has_null(one)) return true;
	return false;
}

/* Whether it is in a value of the object, other than texts under `name`. */
static bool has_null_beside(const json_t *object, const char *name)
{
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!(json_is_string(value) && !strcmp(key, name)) && has_null(value))
			return true;
	}
	return false;
}

static bool message_has_null(const json_t *message)
{
	const json_t *content = json_object_get(message, "content"), *part, *value;
	const char *key;
	size_t i;

	if (!json_is_array(content))
		return has_null_beside(message, "content");
	json_object_foreach((json_t *)(uintptr_t)message, key, value)
	{
		if (value != content && has_null(value))
			return true;
	}
	json_array_foreach(content, i, part) if (has_null_beside(part, "text")) return true;
	return false;
}

static bool field_has_null(enum protocol protocol, const char *key, const json_t *value)
{
	bool chat = protocol == PROTOCOL_CHAT || protocol == PROTOCOL_TOKENIZE;
	const json_t *message;
	size_t i;

	if (!strcmp(key, "prompt") && (protocol == PROTOCOL_COMPLETION || protocol == PROTOCOL_TOKENIZE))
		return false;
	if (!chat || strcmp(key, "messages") != 0 || !json_is_array(value))
		return has_null(value);
	json_array_foreach(value, i, message) if (message_has_null(message)) return true;
	return false;
}

bool body_check_null_characters(enum protocol protocol, const json_t *body, struct api_error *err)
{
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		if (field_has_null(protocol, key, value))
			return api_wrong(err, key, "%s contains the character U+0000", key);
	}
	return true;
}
