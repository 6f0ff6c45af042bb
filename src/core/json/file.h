/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes JSON files of models: configurations and indexes, completely in memory. */
#ifndef CORE_JSON_FILE_H
#define CORE_JSON_FILE_H
#include <jansson.h>
#include "core/error.h"

/* Reads at most size_max bytes; duplicate keys are errors. Owner: caller. */
enum status json_file_read(json_t **out, const char *path, size_t size_max, struct error *err);
/* Writes DIR/NAME and takes ownership of j; NULL means that memory ran out. Numbers are written so that
 * reading gives the same values. */
enum status json_file_write(const char *dir, const char *name, json_t *j, size_t flags, struct error *err);

/* An object being read: its path for messages, and the place for errors. */
struct json_keys {
	const json_t *map;
	const char *path;
	struct error *err;
};
/* NULL if the key is absent or null, because transformers writes null for unset values. */
const json_t *json_keys_value(const struct json_keys *k, const char *key);
/* If the key is absent, *out is unchanged. */
enum status json_keys_number(const struct json_keys *k, const char *key, double *out);
#endif
