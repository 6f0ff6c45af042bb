/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/gguf/gguf.h"

#include <inttypes.h>
#include "core/file/mapped.h"
#include "model/files/gguf/read.h"

static enum status parse_head(struct gguf *g, struct gguf_cursor *c, uint64_t *tensors, uint64_t *values)
{
	const uint8_t *magic = NULL;
	enum status st;

	st = gguf_take(c, 4, &magic, "its head");
	if (!st && memcmp(magic, "GGUF", 4))
		return error_set(c->err, STATUS_BAD_INPUT, "%s: does not begin with GGUF", g->path);
	if (!st)
		st = gguf_take_u32(c, &g->version, "its head");
	if (st)
		return st;
	if (g->version != 2 && g->version != 3)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: GGUF version %" PRIu32 " is not supported; 2 and 3 are%s", g->path,
				 g->version,
				 g->version > 0xffff ? " (it may have the other byte order)" : "");
	st = gguf_take_u64(c, tensors, "its head");
	return st ? st : gguf_take_u64(c, values, "its head");
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct gguf_value *)a)->key, ((const struct gguf_value *)b)->key);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static enum status parse_values(struct gguf *g, struct gguf_cursor *c, uint64_t count)
{
	enum { LEAST = 8 + 4 + 1 }; /* size of the smallest entry: an empty key, its type, one byte */
	enum status st = STATUS_OK;

	if (count > c->left / LEAST)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " keys in %" PRIu64
				 " bytes: the file is truncated or corrupt",
				 g->path, count, c->left);
	g->values = calloc(count + 1, sizeof(*g->values));
	if (!g->values)
		return error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: no memory for %" PRIu64 " keys", g->path, count);
	for (; g->value_count < count && !st; g->value_count++)
		st = gguf_take_value(c, &g->values[g->value_count]);
	if (st)
		return st;
	qsort(g->values, g->value_count, sizeof(*g->values), by_key);
	for (size_t i = 1; i < g->value_count; i++) {
		if (!by_key(&g->values[i - 1], &g->values[i]))
			return error_set(c->err, STATUS_BAD_INPUT, "%s: key %.100s occurs twice", g->path,
					 g->values[i].key);
	}
	return STATUS_OK;
}

static int by_place(const void *a_, const void *b_)
{
	const struct tensor *a = a_, *b = b_;

	return (a->data > b->data) - (a->data < b->data);
}

/* Checks the tensors' data, in file order: each must begin at the next multiple of `align` after the one
 * before. */
static enum status check_places(struct gguf *g, const uint8_t *data, uint64_t left, uint64_t align,
				struct error *err)
{
	uint64_t end = 0;

	qsort(g->tensors, g->tensor_count, sizeof(*g->tensors), by_place);
	for (size_t i = 0; i < g->tensor_count; i++) {
		const struct tensor *t = &g->tensors[i];
		uint64_t begin = (uint64_t)(t->data - data), due = (end + align - 1) / align * align;

		if (begin < due)
			return error_set(err, STATUS_BAD_INPUT, "%s: %.100s overlaps the data before it",
					 g->path, t->name);
		if (begin > due)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %" PRIu64 " bytes before %.100s belong to no tensor", g->path,
					 begin - due, t->name);
		end = begin + t->size;
	}
	if (left - end >= align)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " bytes after the last tensor belong to none", g->path,
				 left - end);
	return STATUS_OK;
}

/* Offsets count from the next multiple of `align` after the table of tensors. */
static enum status place_tensors(struct gguf *g, struct gguf_cursor *c, const uint64_t *offsets,
				 uint64_t align)
{
	uint64_t skip = (align - (uint64_t)(c->at - c->begin) % align) % align;

	if (skip > c->left) /* a file without tensors has no padding */
		skip = c->left;
	c->at += skip;
	c->left -= skip;
	for (size_t i = 0; i < g->tensor_count; i++) {
		struct tensor *t = &g->tensors[i];

		if (offsets[i] > c->left || t->size > c->left - offsets[i])
			return error_set(c->err, STATUS_BAD_INPUT,
					 "%s: %.100s ends beyond the file, which is truncated or corrupt",
					 g->path, t->name);
		t->data = c->at + offsets[i];
	}
	return check_places(g, c->at, c->left, align, c->err);
}

static enum status parse_tensors(struct gguf *g, struct gguf_cursor *c, uint64_t count, uint64_t align)
{
	/* Size of the smallest entry: an empty name, number of dimensions, one dimension, type, offset. */
	enum { LEAST = 8 + 4 + 8 + 4 + 8 };
	uint64_t *offsets = NULL;
	enum status st;

	if (count > c->left / LEAST)
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " tensors in %" PRIu64
				 " bytes: the file is truncated or corrupt",
				 g->path, count, c->left);
	g->tensors = calloc(count + 1, sizeof(*g->tensors));
	offsets = calloc(count + 1, sizeof(*offsets));
	st = g->tensors && offsets ? STATUS_OK
				   : error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						     "%s: no memory for %" PRIu64 " tensors", g->path, count);
	for (uint64_t i = 0; i < count && !st; i++, g->tensor_count++)
		st = gguf_take_tensor(c, &g->tensors[i], &offsets[i]);
	if (!st)
		st = place_tensors(g, c, offsets, align);
	free(offsets);
	if (st)
		return st;
	qsort(g->tensors, g->tensor_count, sizeof(*g->tensors), by_name);
	for (size_t i = 1; i < g->tensor_count; i++) {
		if (!by_name(&g->tensors[i - 1], &g->tensors[i]))
			return error_set(c->err, STATUS_BAD_INPUT, "%s: tensor %.100s occurs twice", g->path,
					 g->tensors[i].name);
	}
	return STATUS_OK;
}

enum { ALIGN = 32, ALIGN_MAX = 65536 };

enum status gguf_parse(struct gguf *g, const char *path, const void *data, uint64_t size, struct error *err)
{
	struct gguf_cursor c = {.begin = data, .at = data, .left = size, .path = path, .err = err};
	uint64_t tensors = 0, values = 0;
	int64_t align = ALIGN;
	enum status st;

	*g = (struct gguf){.path = strdup(path)};
	if (!g->path)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", path);
	st = parse_head(g, &c, &tensors, &values);
	if (!st)
		st = parse_values(g, &c, values);
	if (!st)
		st = gguf_i64(g, "general.alignment", 1, ALIGN_MAX, &align, err);
	if (!st && (align & (align - 1)))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s: general.alignment %" PRId64 " is not a power of two", path, align);
	if (!st)
		st = parse_tensors(g, &c, tensors, (uint64_t)align);
	if (st)
		gguf_release(g);
	return st;
}

enum status gguf_open(struct gguf *g, const char *path, struct error *err)
{
	enum status st;
	uint64_t size;
	void *map;

	*g = (struct gguf){0};
	st = mapped_open(&map, &size, path, err);
	if (st)
		return st;
	st = gguf_parse(g, path, map, size, err);
	g->map = map;
	g->map_size = size;
	st = mapped_check(st, err);
	if (st)
		gguf_release(g);
	return st;
}

void gguf_release(struct gguf *g)
{
	for (size_t i = 0; i < g->value_count; i++) {
		free((char *)g->values[i].key);
		free((struct gguf_text *)g->values[i].texts);
	}
	for (size_t i = 0; i < g->tensor_count; i++)
		free((char *)g->tensors[i].name);
	free(g->values);
	free(g->tensors);
	mapped_close(g->map, g->map_size);
	free(g->path);
	*g = (struct gguf){0};
}
