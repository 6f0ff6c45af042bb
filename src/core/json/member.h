/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the members of a JSON object. */
#ifndef CORE_JSON_MEMBER_H
#define CORE_JSON_MEMBER_H
#include <jansson.h>
#include <math.h>
#include <stdbool.h>

/* The text of a member; "" if there is no such member or it is no text. */
static inline const char *json_member_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The number of a member; NaN if there is no such member or it is no number. */
static inline double json_member_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* False, with *out unchanged: the member is no integer from 0 to `most`. */
static inline bool json_member_count(unsigned *out, const json_t *object, const char *key, json_int_t most)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > most)
		return false;
	*out = (unsigned)json_integer_value(value);
	return true;
}
#endif
