/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/bnb4/bnb4_file.h"

#include <inttypes.h>
#include <math.h>
#include "core/json/file.h"
#include "model/tensor/dtype.h"

enum { STATE_SIZE_MAX = 4096 };

struct reading {
	const json_t *j;
	const char *path, *name;
	struct error *err;
};

static const struct {
	const char *word;
	enum dtype dtype;
} dtypes[] = {{"float32", DTYPE_F32}, {"bfloat16", DTYPE_BF16}, {"float16", DTYPE_F16}};

static enum status bad(const struct reading *r, const char *key)
{
	return error_set(r->err, STATUS_BAD_INPUT, "%s: %s: \"%s\" is missing or has a wrong value", r->path,
			 r->name, key);
}

static enum status read_type(const struct reading *r, struct bnb4_state *out)
{
	const char *word = json_string_value(json_object_get(r->j, "quant_type"));

	for (int i = 0; word && i < BNB4_TYPE_COUNT; i++) {
		if (!strcmp(word, bnb4_type_name((enum bnb4_type)i))) {
			out->type = (enum bnb4_type)i;
			return STATUS_OK;
		}
	}
	return bad(r, "quant_type");
}

static enum status read_dtype(const struct reading *r, struct bnb4_state *out)
{
	const char *word = json_string_value(json_object_get(r->j, "dtype"));

	for (size_t i = 0; word && i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (!strcmp(word, dtypes[i].word)) {
			out->dtype = dtypes[i].dtype;
			return STATUS_OK;
		}
	}
	return bad(r, "dtype");
}

static enum status read_shape(const struct reading *r, struct bnb4_state *out)
{
	const json_t *shape = json_object_get(r->j, "shape");

	out->rows = json_integer_value(json_array_get(shape, 0));
	out->cols = json_integer_value(json_array_get(shape, 1));
	if (json_array_size(shape) != 2 || out->rows < 1 || out->cols < 1 || out->rows > INT32_MAX ||
	    out->cols > INT32_MAX)
		return bad(r, "shape");
	return STATUS_OK;
}

static enum status read_block(const struct reading *r, const char *key, json_int_t supported)
{
	const json_t *size = json_object_get(r->j, key);

	if (!json_is_integer(size))
		return bad(r, key);
	if (json_integer_value(size) != supported)
		return error_set(r->err, STATUS_UNSUPPORTED, "%s: %s: %s %lld is not supported, only %lld",
				 r->path, r->name, key, (long long)json_integer_value(size),
				 (long long)supported);
	return STATUS_OK;
}

static enum status read_nested(const struct reading *r, struct bnb4_state *out)
{
	const json_t *offset = json_object_get(r->j, "nested_offset");
	const char *dtype = json_string_value(json_object_get(r->j, "nested_dtype"));
	enum status st;

	out->nested = offset || dtype || json_object_get(r->j, "nested_blocksize");
	if (!out->nested)
		return STATUS_OK;
	st = read_block(r, "nested_blocksize", BNB4_GROUP);
	if (st)
		return st;
	if (!dtype || strcmp(dtype, "float32"))
		return bad(r, "nested_dtype");
	out->offset = (float)json_number_value(offset);
	return json_is_number(offset) && isfinite(out->offset) ? STATUS_OK : bad(r, "nested_offset");
}

static enum status check_keys(const struct reading *r)
{
	static const char *const known[] = {"quant_type",	"blocksize",	"dtype",	"shape",
					    "nested_blocksize", "nested_dtype", "nested_offset"};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)r->j, key, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known |= !strcmp(key, known[i]);
		if (!is_known)
			return error_set(r->err, STATUS_UNSUPPORTED, "%s: %s: key \"%.40s\" is unknown",
					 r->path, r->name, key);
	}
	return STATUS_OK;
}

enum status bnb4_state_parse(struct bnb4_state *out, const void *json, size_t size, const char *path,
			     const char *name, struct error *err)
{
	json_error_t why;
	json_t *j = size <= STATE_SIZE_MAX ? json_loadb(json, size, JSON_REJECT_DUPLICATES, &why) : NULL;
	const struct reading r = {j, path, name, err};
	enum status st;

	*out = (struct bnb4_state){0};
	if (!json_is_object(j)) {
		json_decref(j);
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is not a JSON object of at most %d bytes",
				 path, name, STATE_SIZE_MAX);
	}
	st = check_keys(&r);
	if (!st)
		st = read_type(&r, out);
	if (!st)
		st = read_block(&r, "blocksize", BNB4_BLOCK);
	if (!st)
		st = read_dtype(&r, out);
	if (!st)
		st = read_shape(&r, out);
	if (!st)
		st = read_nested(&r, out);
	json_decref(j);
	return st;
}

/* The text of Python's json.dumps, except for the offset: 17 digits give every F32 back exactly, and as the
 * exponent of an F32 has two digits, the length is always the same. */
void bnb4_state_text(struct text *out, const struct bnb4_state *s)
{
	const char *dtype = "";

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		dtype = dtypes[i].dtype == s->dtype ? dtypes[i].word : dtype;
	text_addf(out,
		  "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"%s\", \"shape\": [%" PRId64
		  ", %" PRId64 "]",
		  bnb4_type_name(s->type), BNB4_BLOCK, dtype, s->rows, s->cols);
	if (s->nested)
		text_addf(
			out,
			", \"nested_blocksize\": %d, \"nested_dtype\": \"float32\", \"nested_offset\": %.16e",
			BNB4_GROUP, (double)s->offset);
	text_add(out, "}");
}
