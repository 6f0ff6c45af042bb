/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files of models: configurations and indexes, whole in memory. */
#ifndef MODEL_JSON_FILE_H
#define MODEL_JSON_FILE_H
#include <jansson.h>
#include "core/error.h"

/* At most size_max bytes, no key twice. Owner: caller. */
enum status json_file_read(json_t **out, const char *path, size_t size_max, struct error *err);
/* DIR/NAME; takes j, and NULL is no memory. Numbers are written so that they are read back the same. */
enum status json_file_write(const char *dir, const char *name, json_t *j, size_t flags, struct error *err);

/* An object under reading: where it stands, and who hears what is wrong with it. */
struct json_keys {
	const json_t *map;
	const char *path;
	struct error *err;
};
/* NULL where the key is absent or null: transformers writes null for what is not set. */
const json_t *json_keys_value(const struct json_keys *k, const char *key);
/* Absent: *out untouched. */
enum status json_keys_number(const struct json_keys *k, const char *key, double *out);
#endif
