/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/safetensors/safetensors.h"

#include <inttypes.h>
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"
#include "core/json/members.h"

/* The header's members are parsed one at a time. A tensor's entry takes no more than a page, and metadata
 * with many entries is refused, as no model has it. So parsing needs only a few times the header's size. */
enum {
	HEADER_MAX = 100000000,
	LENGTH_BYTES = 8,
	ENTRY_LEAST = 40,
	ENTRY_MAX = 4096,
	FEW = 64,
	METADATA_ENTRIES_MAX = 65536
};

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | p[i];
	return value;
}

struct header {
	const char *text;
	size_t size;
};

/* Finds the header. On return *data is the beginning of the numbers, and *left their size. */
static enum status find_header(struct safetensors *s, struct header *header, const uint8_t **data,
			       uint64_t *left, struct error *err)
{
	uint64_t length;

	if (*left < LENGTH_BYTES)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " bytes are too few for a safetensors file", s->path, *left);
	length = u64_at(*data);
	*data += LENGTH_BYTES;
	*left -= LENGTH_BYTES;
	if (length > HEADER_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: a header of %" PRIu64
				 " bytes exceeds the maximum of 100 MB; this may not be a safetensors file",
				 s->path, length);
	if (length > *left)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: a header of %" PRIu64 " bytes, but only %" PRIu64
				 " bytes follow: the file is truncated",
				 s->path, length, *left);
	*header = (struct header){(const char *)*data, length};
	*data += length;
	*left -= length;
	return STATUS_OK;
}

/* Parses part of the header. NULL: *err names the place. Owner: caller. */
static json_t *load(const struct safetensors *s, const struct header *h, const char *text, size_t size,
		    struct error *err)
{
	json_error_t why;
	json_t *j = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);

	if (!j)
		error_set(err, STATUS_BAD_INPUT, "%s: its header is not JSON: %s (byte %zu)", s->path,
			  why.text, (size_t)(text - h->text) + (size_t)(why.position > 0 ? why.position : 0));
	return j;
}

/* Length of the name to show, without quotes. */
static int name_shown(const struct json_members *m)
{
	return m->name_size < 102 ? (int)m->name_size - 2 : 100;
}

static enum status parse_metadata(struct safetensors *s, const struct header *h, const struct json_members *m,
				  struct error *err)
{
	struct json_members inner;
	size_t count = 0;
	const char *key;
	json_t *value;

	if (s->metadata)
		return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__ occurs twice", s->path);
	json_members_begin(&inner, m->value, m->value_size);
	if (inner.bad)
		return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__ is not an object", s->path);
	while (json_members_next(&inner)) {
		if (++count > METADATA_ENTRIES_MAX)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: __metadata__ has more than %d entries, which no model has",
					 s->path, METADATA_ENTRIES_MAX);
		if (*inner.value != '"') /* checked before parsing, which could need much memory */
			return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__: %.*s is not a text",
					 s->path, name_shown(&inner), inner.name + 1);
	}
	s->metadata = load(s, h, m->value, m->value_size, err);
	if (!s->metadata)
		return STATUS_BAD_INPUT;
	json_object_foreach(s->metadata, key, value)
	{
		if (!json_is_string(value))
			return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__: %.100s is not a text",
					 s->path, key);
	}
	return STATUS_OK;
}

static enum status parse_shape(const struct safetensors *s, struct tensor *t, const json_t *shape,
			       struct error *err)
{
	size_t rank = json_array_size(shape);

	if (!json_is_array(shape) || rank > TENSOR_RANK_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s: \"shape\" is not a list of up to %d numbers", s->path, t->name,
				 TENSOR_RANK_MAX);
	t->rank = (int)rank;
	for (size_t i = 0; i < rank; i++) {
		const json_t *n = json_array_get(shape, i);

		t->dim[i] = json_integer_value(n);
		if (!json_is_integer(n) || t->dim[i] < 0)
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s: %.100s: \"shape\" has an item that is not a non-negative integer",
				s->path, t->name);
	}
	if (!dtype_measure(t))
		return error_set(err, STATUS_BAD_INPUT, "%s: %.100s: its shape is too large for any memory",
				 s->path, t->name);
	return STATUS_OK;
}

static enum status parse_tensor(const struct safetensors *s, struct tensor *t, const json_t *entry,
				const uint8_t *data, uint64_t left, struct error *err)
{
	const json_t *type = json_object_get(entry, "dtype"), *span = json_object_get(entry, "data_offsets");
	const json_t *first = json_array_get(span, 0), *last = json_array_get(span, 1);
	json_int_t begin = json_integer_value(first), end = json_integer_value(last);
	enum status st;

	if (!json_is_string(type) || !dtype_of_word(&t->dtype, json_string_value(type)))
		return error_set(err, STATUS_BAD_INPUT, "%s: %.100s: dtype \"%.20s\" is unknown", s->path,
				 t->name, json_is_string(type) ? json_string_value(type) : "");
	st = parse_shape(s, t, json_object_get(entry, "shape"), err);
	if (st)
		return st;
	if (json_array_size(span) != 2 || !json_is_integer(first) || !json_is_integer(last) || begin < 0 ||
	    end < begin)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s: \"data_offsets\" is not a pair of begin and end", s->path,
				 t->name);
	if ((uint64_t)end > left)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s ends at byte %lld of %" PRIu64
				 ": the file is truncated or corrupt",
				 s->path, t->name, (long long)end, left);
	if ((uint64_t)(end - begin) != t->size)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s: %lld bytes, but its shape needs %" PRIu64 " as %s", s->path,
				 t->name, (long long)(end - begin), t->size, dtype_name(t->dtype));
	t->data = data + begin;
	return STATUS_OK;
}

static int by_place(const void *a_, const void *b_)
{
	const struct tensor *a = a_, *b = b_;

	if (a->data != b->data)
		return a->data < b->data ? -1 : 1;
	return (a->size > b->size) - (a->size < b->size);
}

/* Checks that each tensor begins where the one before ends, and that the last one ends with the file. */
static enum status check_places(const struct safetensors *s, const uint8_t *data, uint64_t left,
				struct error *err)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < s->count; i++) {
		const struct tensor *t = &s->tensors[i];

		if (t->data < at)
			return error_set(err, STATUS_BAD_INPUT, "%s: %.100s and %.100s overlap", s->path,
					 s->tensors[i - 1].name, t->name);
		if (t->data > at)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %zu bytes before %.100s belong to no tensor", s->path,
					 (size_t)(t->data - at), t->name);
		at += t->size;
	}
	if (at != data + left)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %zu bytes after the last tensor%s%.100s belong to none", s->path,
				 (size_t)(data + left - at), s->count ? ", " : "",
				 s->count ? s->tensors[s->count - 1].name : "");
	return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static enum status check_names(const struct safetensors *s, struct error *err)
{
	qsort(s->tensors, s->count, sizeof(*s->tensors), by_name);
	for (size_t i = 1; i < s->count; i++)
		if (!strcmp(s->tensors[i - 1].name, s->tensors[i].name))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: its header is not JSON: duplicate object key near '\"%.100s\"'",
					 s->path, s->tensors[i].name);
	return STATUS_OK;
}

static enum status parse_entry(struct safetensors *s, const struct header *h, const struct json_members *m,
			       const uint8_t *data, uint64_t left, struct error *err)
{
	struct tensor *t = &s->tensors[s->count];
	enum status st = STATUS_BAD_INPUT;
	json_t *entry;

	if (m->value_size > ENTRY_MAX)
		return error_set(err, st, "%s: %.100s: its entry has %zu bytes; the maximum is %d", s->path,
				 t->name, m->value_size, ENTRY_MAX);
	entry = load(s, h, m->value, m->value_size, err);
	if (!entry)
		return st;
	st = parse_tensor(s, t, entry, data, left, err);
	json_decref(entry);
	s->count++;
	return st;
}

/* Appends the member's decoded name to s->names; it is never longer than its JSON text. */
static enum status take_name(struct safetensors *s, const struct header *h, const struct json_members *m,
			     size_t *used, struct error *err)
{
	json_t *name = load(s, h, m->name, m->name_size, err);

	if (!name)
		return STATUS_BAD_INPUT;
	s->tensors[s->count].name =
		memcpy(s->names + *used, json_string_value(name), json_string_length(name) + 1);
	*used += json_string_length(name) + 1;
	json_decref(name);
	return STATUS_OK;
}

/* Counts the members and the bytes of their names. */
static enum status count_members(const struct safetensors *s, const struct header *h, size_t *count,
				 size_t *bytes, struct error *err)
{
	struct json_members m;

	*count = *bytes = 0;
	json_members_begin(&m, h->text, h->size);
	if (m.bad)
		return error_set(err, STATUS_BAD_INPUT, "%s: its header is not a JSON object", s->path);
	while (json_members_next(&m)) {
		++*count;
		*bytes += m.name_size;
	}
	if (m.bad)
		return error_set(err, STATUS_BAD_INPUT, "%s: its header is not JSON (byte %zu)", s->path,
				 m.at);
	if (*count > FEW && *count > h->size / ENTRY_LEAST)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %zu entries in a header of %zu bytes are too many to be tensors",
				 s->path, *count, h->size);
	return STATUS_OK;
}

static enum status parse_tensors(struct safetensors *s, const struct header *h, const uint8_t *data,
				 uint64_t left, struct error *err)
{
	size_t count, bytes, used = 0;
	struct json_members m;
	enum status st = count_members(s, h, &count, &bytes, err);

	if (st)
		return st;
	s->tensors = calloc(count + 1, sizeof(*s->tensors));
	s->names = malloc(bytes + 1);
	if (!s->tensors || !s->names)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: no memory for its header", s->path);
	for (json_members_begin(&m, h->text, h->size); !st && json_members_next(&m);) {
		st = take_name(s, h, &m, &used, err);
		if (!st && !strcmp(s->tensors[s->count].name, "__metadata__"))
			st = parse_metadata(s, h, &m, err);
		else if (!st)
			st = parse_entry(s, h, &m, data, left, err);
	}
	if (!st)
		st = check_names(s, err);
	if (st)
		return st;
	qsort(s->tensors, s->count, sizeof(*s->tensors), by_place);
	return check_places(s, data, left, err);
}

enum status safetensors_parse(struct safetensors *s, const char *path, const void *data, uint64_t size,
			      struct error *err)
{
	const uint8_t *at = data;
	struct header header = {0};
	enum status st;

	*s = (struct safetensors){.path = strdup(path)};
	if (!s->path)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", path);
	st = find_header(s, &header, &at, &size, err);
	if (!st)
		st = parse_tensors(s, &header, at, size, err);
	if (st)
		safetensors_release(s);
	return st;
}

enum status safetensors_open(struct safetensors *s, const char *path, struct error *err)
{
	enum status st;
	uint64_t size;
	void *map;

	*s = (struct safetensors){0};
	st = mapped_open(&map, &size, path, err);
	if (st)
		return st;
	st = safetensors_parse(s, path, map, size, err);
	s->map = map;
	s->map_size = size;
	st = mapped_check(st, err);
	if (st)
		safetensors_release(s);
	return st;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
	const char *text = json_string_value(json_object_get(s->metadata, key));

	return text ? text : "";
}

void safetensors_release(struct safetensors *s)
{
	free(s->tensors);
	free(s->names);
	json_decref(s->metadata);
	mapped_close(s->map, s->map_size);
	free(s->path);
	*s = (struct safetensors){0};
}
