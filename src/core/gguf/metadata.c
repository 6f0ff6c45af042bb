/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gguf/metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/file/mapped.h"
#include "core/gguf/read.h"

static enum status parse_head(struct gguf_metadata *m, struct gguf_cursor *c, uint64_t *values)
{
	const uint8_t *magic = NULL;
	enum status st;

	st = gguf_take(c, 4, &magic, "its head");
	if (!st && memcmp(magic, "GGUF", 4))
		return error_set(c->err, STATUS_BAD_INPUT, "%s: not a GGUF file: it does not begin with GGUF",
				 m->path);
	if (!st)
		st = gguf_take_u32(c, &m->version, "its head");
	if (st)
		return st;
	if (m->version != 2 && m->version != 3)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: GGUF version %" PRIu32 " is not supported; 2 and 3 are%s", m->path,
				 m->version,
				 m->version > 0xffff ? " (it may have the other byte order)" : "");
	st = gguf_take_u64(c, &m->tensors, "its head");
	return st ? st : gguf_take_u64(c, values, "its head");
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct gguf_value *)a)->key, ((const struct gguf_value *)b)->key);
}

static enum status parse_values(struct gguf_metadata *m, struct gguf_cursor *c, uint64_t count)
{
	enum { LEAST = 8 + 4 + 1 }; /* size of the smallest entry: an empty key, its type, one byte */
	enum status st = STATUS_OK;

	if (count > c->left / LEAST)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " keys in %" PRIu64
				 " bytes: the file is truncated or corrupt",
				 m->path, count, c->left);
	m->values = calloc(count + 1, sizeof(*m->values));
	if (!m->values)
		return error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: no memory for %" PRIu64 " keys", m->path, count);
	for (; m->value_count < count && !st; m->value_count++)
		st = gguf_take_value(c, &m->values[m->value_count]);
	if (st)
		return st;
	qsort(m->values, m->value_count, sizeof(*m->values), by_key);
	for (size_t i = 1; i < m->value_count; i++) {
		if (!by_key(&m->values[i - 1], &m->values[i]))
			return error_set(c->err, STATUS_BAD_INPUT, "%s: key %.100s occurs twice", m->path,
					 m->values[i].key);
	}
	return STATUS_OK;
}

enum status gguf_metadata_parse(struct gguf_metadata *m, const char *path, const void *data, uint64_t size,
				struct error *err)
{
	struct gguf_cursor c = {.begin = data, .at = data, .left = size, .path = path, .err = err};
	uint64_t values = 0;
	enum status st;

	*m = (struct gguf_metadata){.path = strdup(path)};
	if (!m->path)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", path);
	st = parse_head(m, &c, &values);
	if (!st)
		st = parse_values(m, &c, values);
	m->end = (uint64_t)(c.at - c.begin);
	if (st)
		gguf_metadata_release(m);
	return st;
}

enum status gguf_metadata_open(struct gguf_metadata *m, const char *path, struct error *err)
{
	enum status st;
	uint64_t size;
	void *map;

	*m = (struct gguf_metadata){0};
	st = mapped_open(&map, &size, path, err);
	if (st)
		return st;
	st = gguf_metadata_parse(m, path, map, size, err);
	m->map = map;
	m->map_size = size;
	st = mapped_check(st, err);
	if (st)
		gguf_metadata_release(m);
	return st;
}

void gguf_metadata_release(struct gguf_metadata *m)
{
	for (size_t i = 0; i < m->value_count; i++) {
		free((char *)m->values[i].key);
		free((struct gguf_text *)m->values[i].texts);
	}
	free(m->values);
	mapped_close(m->map, m->map_size);
	free(m->path);
	*m = (struct gguf_metadata){0};
}
