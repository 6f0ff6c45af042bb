/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the members of a JSON object. */
#ifndef CORE_TEXT_JSON_MEMBER_H
#define CORE_TEXT_JSON_MEMBER_H
#include <jansson.h>

/* The text of a member; "" if there is no such member or it is no text. */
static inline const char *json_member_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}
#endif
