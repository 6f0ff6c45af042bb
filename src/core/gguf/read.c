/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gguf/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const size_t type_bytes[] = {
#define X(name, bytes) [GGUF_##name] = bytes,
	GGUF_TYPES(X)
#undef X
};

enum status gguf_take(struct gguf_cursor *c, uint64_t size, const uint8_t **out, const char *what)
{
	if (size > c->left)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: ends inside %.100s: %" PRIu64 " bytes are needed, %" PRIu64 " are left",
				 c->path, what, size, c->left);
	*out = c->at;
	c->at += size;
	c->left -= size;
	return STATUS_OK;
}

static uint64_t little(const uint8_t *p, int bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | p[bytes];
	return value;
}

enum status gguf_take_u32(struct gguf_cursor *c, uint32_t *out, const char *what)
{
	const uint8_t *p = NULL;
	enum status st = gguf_take(c, sizeof(*out), &p, what);

	if (!st)
		*out = (uint32_t)little(p, sizeof(*out));
	return st;
}

enum status gguf_take_u64(struct gguf_cursor *c, uint64_t *out, const char *what)
{
	const uint8_t *p = NULL;
	enum status st = gguf_take(c, sizeof(*out), &p, what);

	if (!st)
		*out = little(p, sizeof(*out));
	return st;
}

static enum status take_text(struct gguf_cursor *c, struct gguf_text *out, const char *what)
{
	const uint8_t *data = NULL;
	uint64_t size = 0;
	enum status st = gguf_take_u64(c, &size, what);

	if (!st)
		st = gguf_take(c, size, &data, what);
	*out = (struct gguf_text){(const char *)data, st ? 0 : size};
	return st;
}

enum status gguf_take_name(struct gguf_cursor *c, const char **out, const char *what)
{
	enum { NAME_MAX_BYTES = 65535 };
	struct gguf_text text;
	enum status st = take_text(c, &text, what);

	if (st)
		return st;
	if (text.size > NAME_MAX_BYTES || memchr(text.data, '\0', text.size))
		return error_set(c->err, STATUS_BAD_INPUT, "%s: %s is not a valid name", c->path, what);
	*out = strndup(text.data, text.size);
	return *out ? STATUS_OK
		    : error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", c->path);
}

static enum status take_type(struct gguf_cursor *c, enum gguf_type *out, const char *key)
{
	uint32_t type = 0;
	enum status st = gguf_take_u32(c, &type, key);

	if (!st && type >= GGUF_TYPE_COUNT)
		st = error_set(c->err, STATUS_BAD_INPUT, "%s: %.100s: type %" PRIu32 " is unknown", c->path,
			       key, type);
	*out = st ? GGUF_U8 : (enum gguf_type)type;
	return st;
}

/* Reads v->count texts. Each takes at least the bytes of its length. */
static enum status take_texts(struct gguf_cursor *c, struct gguf_value *v)
{
	struct gguf_text *texts;
	enum status st = STATUS_OK;

	if (v->count > c->left / sizeof(uint64_t))
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %.100s: %" PRIu64 " texts in %" PRIu64
				 " bytes: the file is truncated or corrupt",
				 c->path, v->key, v->count, c->left);
	texts = calloc(v->count + 1, sizeof(*texts));
	if (!texts)
		return error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: %.100s: no memory for %" PRIu64 " texts", c->path, v->key,
				       v->count);
	v->texts = texts;
	for (uint64_t i = 0; i < v->count && !st; i++)
		st = take_text(c, &texts[i], v->key);
	return st;
}

static enum status take_numbers(struct gguf_cursor *c, struct gguf_value *v, enum gguf_type type)
{
	if (v->count > c->left / type_bytes[type])
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %.100s: %" PRIu64 " numbers in %" PRIu64
				 " bytes: the file is truncated or corrupt",
				 c->path, v->key, v->count, c->left);
	return gguf_take(c, v->count * type_bytes[type], &v->data, v->key);
}

enum status gguf_take_value(struct gguf_cursor *c, struct gguf_value *v)
{
	enum gguf_type type;
	enum status st;

	v->count = 1;
	st = gguf_take_name(c, &v->key, "a key");
	if (!st)
		st = take_type(c, &v->type, v->key);
	type = v->type;
	if (!st && type == GGUF_ARRAY) {
		st = take_type(c, &v->item, v->key);
		if (!st)
			st = gguf_take_u64(c, &v->count, v->key);
		type = v->item;
	}
	if (st)
		return st;
	if (type == GGUF_ARRAY)
		return error_set(c->err, STATUS_BAD_INPUT, "%s: %.100s: arrays of arrays are not supported",
				 c->path, v->key);
	return type == GGUF_TEXT ? take_texts(c, v) : take_numbers(c, v, type);
}
