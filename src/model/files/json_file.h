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
#endif
