/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/gguf/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include "core/file/mapped.h"
#include "core/gguf/read.h"
#include "model/tensor/dtype.h"

enum { DIMENSIONS_MAX = 4 };

/* The file lists the innermost dimension first. */
static enum status take_dimensions(struct gguf_cursor *c, struct tensor *t)
{
	uint32_t count = 0;
	enum status st = gguf_take_u32(c, &count, t->name);

	if (!st && (count < 1 || count > DIMENSIONS_MAX))
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %.100s: %" PRIu32 " dimensions; 1 to %d are supported", c->path,
				 t->name, count, DIMENSIONS_MAX);
	t->rank = (int)count;
	for (int i = t->rank - 1; i >= 0 && !st; i--) {
		uint64_t n = 0;

		st = gguf_take_u64(c, &n, t->name);
		if (!st && (!n || n > INT64_MAX))
			return error_set(c->err, STATUS_BAD_INPUT,
					 "%s: %.100s: a dimension of %" PRIu64 " elements", c->path, t->name,
					 n);
		t->dim[i] = (int64_t)n;
	}
	return st;
}

/* Reads name (freed by gguf_release), type, dimensions and size. *offset: place of the data, not yet checked.
 */
static enum status take_tensor(struct gguf_cursor *c, struct tensor *t, uint64_t *offset)
{
	uint32_t type = 0;
	enum status st;

	st = gguf_take_name(c, &t->name, "a tensor's name");
	if (!st)
		st = take_dimensions(c, t);
	if (!st)
		st = gguf_take_u32(c, &type, t->name);
	if (!st)
		st = gguf_take_u64(c, offset, t->name);
	if (st)
		return st;
	if (!dtype_of_ggml(&t->dtype, type))
		return error_set(c->err, STATUS_BAD_INPUT, "%s: %.100s: type %" PRIu32 " is unknown", c->path,
				 t->name, type);
	if (!dtype_measure(t))
		return error_set(c->err, STATUS_BAD_INPUT,
				 "%s: %.100s: rows of %" PRId64 " elements, or more than any memory, as %s",
				 c->path, t->name, t->dim[t->rank - 1], dtype_name(t->dtype));
	return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
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
					 g->metadata.path, t->name);
		if (begin > due)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %" PRIu64 " bytes before %.100s belong to no tensor",
					 g->metadata.path, begin - due, t->name);
		end = begin + t->size;
	}
	if (left - end >= align)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " bytes after the last tensor belong to none",
				 g->metadata.path, left - end);
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
					 g->metadata.path, t->name);
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
				 g->metadata.path, count, c->left);
	g->tensors = calloc(count + 1, sizeof(*g->tensors));
	offsets = calloc(count + 1, sizeof(*offsets));
	st = g->tensors && offsets
		     ? STATUS_OK
		     : error_set_cause(c->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: no memory for %" PRIu64 " tensors", g->metadata.path, count);
	for (uint64_t i = 0; i < count && !st; i++, g->tensor_count++)
		st = take_tensor(c, &g->tensors[i], &offsets[i]);
	if (!st)
		st = place_tensors(g, c, offsets, align);
	free(offsets);
	if (st)
		return st;
	qsort(g->tensors, g->tensor_count, sizeof(*g->tensors), by_name);
	for (size_t i = 1; i < g->tensor_count; i++) {
		if (!by_name(&g->tensors[i - 1], &g->tensors[i]))
			return error_set(c->err, STATUS_BAD_INPUT, "%s: tensor %.100s occurs twice",
					 g->metadata.path, g->tensors[i].name);
	}
	return STATUS_OK;
}

enum { ALIGN = 32, ALIGN_MAX = 65536 };

/* Reads the tensors of a file whose metadata have been read. */
static enum status read_tensors(struct gguf *g, const uint8_t *data, uint64_t size, struct error *err)
{
	const struct gguf_metadata *m = &g->metadata;
	struct gguf_cursor c = {
		.begin = data, .at = data + m->end, .left = size - m->end, .path = m->path, .err = err};
	int64_t align = ALIGN;
	enum status st = gguf_i64(m, "general.alignment", 1, ALIGN_MAX, &align, err);

	if (!st && (align & (align - 1)))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s: general.alignment %" PRId64 " is not a power of two", m->path, align);
	return st ? st : parse_tensors(g, &c, m->tensors, (uint64_t)align);
}

enum status gguf_parse(struct gguf *g, const char *path, const void *data, uint64_t size, struct error *err)
{
	enum status st;

	*g = (struct gguf){0};
	st = gguf_metadata_parse(&g->metadata, path, data, size, err);
	if (!st)
		st = read_tensors(g, data, size, err);
	if (st)
		gguf_release(g);
	return st;
}

enum status gguf_open(struct gguf *g, const char *path, struct error *err)
{
	enum status st;

	*g = (struct gguf){0};
	st = gguf_metadata_open(&g->metadata, path, err);
	if (st)
		return st;
	st = mapped_check(read_tensors(g, g->metadata.map, g->metadata.map_size, err), err);
	if (st)
		gguf_release(g);
	return st;
}

void gguf_release(struct gguf *g)
{
	for (size_t i = 0; i < g->tensor_count; i++)
		free((char *)g->tensors[i].name);
	free(g->tensors);
	gguf_metadata_release(&g->metadata);
	*g = (struct gguf){0};
}

static int name_is(const void *name, const void *tensor)
{
	return strcmp(name, ((const struct tensor *)tensor)->name);
}

const struct tensor *gguf_tensor(const struct gguf *g, const char *name)
{
	if (!g->tensor_count)
		return NULL;
	return bsearch(name, g->tensors, g->tensor_count, sizeof(*g->tensors), name_is);
}
