/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/safetensors.h"

#include <inttypes.h>
#include "model/dtype.h"
#include "model/files/mapped.h"

enum { HEADER_MAX = 100000000, LENGTH_BYTES = 8 };

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | p[i];
	return value;
}

/* The header as JSON; *data is where the numbers begin and *left how many bytes of them there are. */
static enum status parse_header(struct safetensors *s, const uint8_t **data, uint64_t *left,
				struct error *err)
{
	uint64_t length;
	json_error_t why;

	if (*left < LENGTH_BYTES)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %" PRIu64 " bytes are too few for a safetensors file", s->path, *left);
	length = u64_at(*data);
	*data += LENGTH_BYTES;
	*left -= LENGTH_BYTES;
	if (length > HEADER_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: a header of %" PRIu64 " bytes, of which 100 MB is the most: is it a "
				 "safetensors file?",
				 s->path, length);
	if (length > *left)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: a header of %" PRIu64 " bytes in a file with %" PRIu64
				 " more: it is cut",
				 s->path, length, *left);
	s->header = json_loadb((const char *)*data, length, JSON_REJECT_DUPLICATES, &why);
	if (!s->header)
		return error_set(err, STATUS_BAD_INPUT, "%s: its header is no JSON: %s (byte %d)", s->path,
				 why.text, why.position);
	if (!json_is_object(s->header))
		return error_set(err, STATUS_BAD_INPUT, "%s: its header is no JSON object", s->path);
	*data += length;
	*left -= length;
	return STATUS_OK;
}

static enum status parse_metadata(const struct safetensors *s, const json_t *metadata, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(metadata))
		return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__ is no object", s->path);
	json_object_foreach((json_t *)metadata, key, value)
	{
		if (!json_is_string(value))
			return error_set(err, STATUS_BAD_INPUT, "%s: __metadata__: %.100s is no text",
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
				 "%s: %.100s: \"shape\" is no list of up to %d numbers", s->path, t->name,
				 TENSOR_RANK_MAX);
	t->rank = (int)rank;
	for (size_t i = 0; i < rank; i++) {
		const json_t *n = json_array_get(shape, i);

		t->dim[i] = json_integer_value(n);
		if (!json_is_integer(n) || t->dim[i] < 0)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %.100s: \"shape\" has what is no whole number from 0 on",
					 s->path, t->name);
	}
	if (!dtype_measure(t))
		return error_set(err, STATUS_BAD_INPUT, "%s: %.100s: its shape is larger than any memory",
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
		return error_set(err, STATUS_BAD_INPUT, "%s: %.100s: dtype \"%.20s\" is not known", s->path,
				 t->name, json_is_string(type) ? json_string_value(type) : "");
	st = parse_shape(s, t, json_object_get(entry, "shape"), err);
	if (st)
		return st;
	if (json_array_size(span) != 2 || !json_is_integer(first) || !json_is_integer(last) || begin < 0 ||
	    end < begin)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s: \"data_offsets\" is not where it begins and where it ends",
				 s->path, t->name);
	if ((uint64_t)end > left)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.100s ends at byte %lld of %" PRIu64 ": the file is cut, or lies",
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

/* Each begins where the one before ends, and the last ends with the file. */
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
				 "%s: %zu bytes behind the last tensor%s%.100s belong to none", s->path,
				 (size_t)(data + left - at), s->count ? ", " : "",
				 s->count ? s->tensors[s->count - 1].name : "");
	return STATUS_OK;
}

static enum status parse_tensors(struct safetensors *s, const uint8_t *data, uint64_t left, struct error *err)
{
	enum status st = STATUS_OK;
	const char *key;
	json_t *entry;

	s->tensors = calloc(json_object_size(s->header) + 1, sizeof(*s->tensors));
	if (!s->tensors)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: no memory for its header", s->path);
	json_object_foreach(s->header, key, entry)
	{
		if (!strcmp(key, "__metadata__")) {
			st = parse_metadata(s, entry, err);
		} else {
			s->tensors[s->count].name = key;
			st = parse_tensor(s, &s->tensors[s->count++], entry, data, left, err);
		}
		if (st)
			return st;
	}
	qsort(s->tensors, s->count, sizeof(*s->tensors), by_place);
	return check_places(s, data, left, err);
}

enum status safetensors_parse(struct safetensors *s, const char *path, const void *data, uint64_t size,
			      struct error *err)
{
	const uint8_t *at = data;
	enum status st;

	*s = (struct safetensors){.path = strdup(path)};
	if (!s->path)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", path);
	st = parse_header(s, &at, &size, err);
	if (!st)
		st = parse_tensors(s, at, size, err);
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
	if (st) {
		mapped_close(map, size);
		return st;
	}
	s->map = map;
	s->map_size = size;
	return STATUS_OK;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(s->header, "__metadata__"), key));

	return text ? text : "";
}

void safetensors_release(struct safetensors *s)
{
	free(s->tensors);
	json_decref(s->header);
	mapped_close(s->map, s->map_size);
	free(s->path);
	*s = (struct safetensors){0};
}
