/* SPDX-License-Identifier: Apache-2.0 */
#include "core/json/file.h"

#include <limits.h>
#include "core/file/file.h"
#include "core/json/read.h"

enum status json_file_read(json_t **out, const char *path, size_t size_max, struct error *err)
{
	struct json_wrong why;
	size_t size = 0;
	char *data = NULL;
	enum status st = file_read(&data, &size, path, size_max, err);

	*out = NULL;
	if (st)
		return st;
	*out = json_read(data, size, JSON_REJECT_DUPLICATES, &why);
	free(data);
	if (!*out)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s", path, why.line, why.text);
	return STATUS_OK;
}

enum status json_file_write(const char *dir, const char *name, json_t *j, size_t flags, struct error *err)
{
	char path[PATH_MAX], *text = j ? json_dumps(j, flags) : NULL;
	enum status st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		st = error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", dir);
	else if (!text)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", path);
	else
		st = file_write(path, text, strlen(text), err);
	free(text);
	json_decref(j);
	return st;
}

const json_t *json_keys_value(const struct json_keys *k, const char *key)
{
	const json_t *value = json_object_get(k->map, key);

	return json_is_null(value) ? NULL : value;
}

enum status json_keys_number(const struct json_keys *k, const char *key, double *out)
{
	const json_t *value = json_keys_value(k, key);

	if (!value)
		return STATUS_OK;
	if (!json_is_number(value))
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s is not a number", k->path, key);
	*out = json_number_value(value);
	return STATUS_OK;
}
