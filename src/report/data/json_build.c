/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/json_build.h"
#include <math.h>
#include "core/text/width.h"

void json_put(struct json_build *b, json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value))
		b->failed = true;
}

void json_push(struct json_build *b, json_t *array, json_t *value)
{
	if (!value || json_array_append_new(array, value))
		b->failed = true;
}

/* Bytes that are not UTF-8 become U+FFFD, because JSON does not allow them. */
json_t *json_shown(const struct json_build *b, const char *s)
{
	struct text t = {0};
	json_t *value;

	pseudonym_map_add(&b->v->names, &t, s);
	value = json_text(text_str(&t));
	text_release(&t);
	return value;
}

void json_put_text(struct json_build *b, json_t *object, const char *key, const char *s)
{
	if (s && s[0])
		json_put(b, object, key, json_shown(b, s));
}

void json_put_number(struct json_build *b, json_t *object, const char *key, double value)
{
	if (isfinite(value))
		json_put(b, object, key, json_real(value));
}

void json_put_count(struct json_build *b, json_t *object, const char *key, double value)
{
	if (value == trunc(value) && fabs(value) < 0x1p53)
		json_put(b, object, key, json_integer((json_int_t)value));
	else
		json_put_number(b, object, key, value);
}

json_t *json_text(const char *s)
{
	json_t *value = json_string(s);
	struct text t = {0};
	size_t size;

	if (value)
		return value;
	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		if (code == 0xfffd)
			text_add(&t, "\xef\xbf\xbd");
		else
			text_add_bytes(&t, s, size);
	}
	value = json_string(text_str(&t));
	text_release(&t);
	return value;
}

enum status json_dump(struct text *out, json_t *root, struct error *err)
{
	char *dumped = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;

	json_decref(root);
	if (!dumped)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the results as JSON");
	utf8_add_json(out, dumped);
	text_add(out, "\n");
	free(dumped);
	return out->failed ? error_set(err, STATUS_NO_RESOURCE, "no memory for the results as JSON")
			   : STATUS_OK;
}
