/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a GGUF by key, with a check of the type. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/gguf/metadata.h"

static int key_is(const void *key, const void *value)
{
	return strcmp(key, ((const struct gguf_value *)value)->key);
}

const struct gguf_value *gguf_find(const struct gguf_metadata *m, const char *key)
{
	if (!m->value_count)
		return NULL;
	return bsearch(key, m->values, m->value_count, sizeof(*m->values), key_is);
}

/* Reads an item as an integer of its own size. False: not an integer, or beyond int64_t. */
static bool whole(enum gguf_type type, const uint8_t *data, uint64_t index, int64_t *out)
{
	uint64_t u = 0;

	switch (type) {
#define WHOLE(name, ctype)                                                                                   \
	case GGUF_##name: {                                                                                  \
		ctype value;                                                                                 \
		memcpy(&value, data + index * sizeof(value), sizeof(value));                                 \
		*out = value;                                                                                \
		return true;                                                                                 \
	}
		WHOLE(U8, uint8_t)
		WHOLE(I8, int8_t)
		WHOLE(U16, uint16_t)
		WHOLE(I16, int16_t)
		WHOLE(U32, uint32_t)
		WHOLE(I32, int32_t)
		WHOLE(I64, int64_t)
#undef WHOLE
	case GGUF_U64:
		memcpy(&u, data + index * sizeof(u), sizeof(u));
		*out = (int64_t)u;
		return u <= INT64_MAX;
	default:
		return false;
	}
}

int64_t gguf_item(const struct gguf_value *v, uint64_t index)
{
	int64_t out = 0;

	whole(v->type == GGUF_ARRAY ? v->item : v->type, v->data, index, &out);
	return out;
}

enum status gguf_i64(const struct gguf_metadata *m, const char *key, int64_t min, int64_t max, int64_t *out,
		     struct error *err)
{
	const struct gguf_value *v = gguf_find(m, key);
	int64_t value = 0;

	if (!v)
		return STATUS_OK;
	if (!whole(v->type, v->data, 0, &value))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is not an integer", m->path, key);
	if (value < min || value > max)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s is %" PRId64 "; it must be %" PRId64 " to %" PRId64, m->path, key,
				 value, min, max);
	*out = value;
	return STATUS_OK;
}

enum status gguf_f64(const struct gguf_metadata *m, const char *key, double *out, struct error *err)
{
	const struct gguf_value *v = gguf_find(m, key);
	double value = NAN;
	float single;

	if (!v)
		return STATUS_OK;
	if (v->type == GGUF_F32) {
		memcpy(&single, v->data, sizeof(single));
		value = (double)single;
	} else if (v->type == GGUF_F64) {
		memcpy(&value, v->data, sizeof(value));
	}
	if (!isfinite(value))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is not a finite number", m->path, key);
	*out = value;
	return STATUS_OK;
}

enum status gguf_bool(const struct gguf_metadata *m, const char *key, bool *out, struct error *err)
{
	const struct gguf_value *v = gguf_find(m, key);

	if (!v)
		return STATUS_OK;
	if (v->type != GGUF_BOOL || v->data[0] > 1)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is neither true nor false", m->path, key);
	*out = v->data[0];
	return STATUS_OK;
}

enum status gguf_string(const struct gguf_metadata *m, const char *key, struct gguf_text *out,
			struct error *err)
{
	const struct gguf_value *v = gguf_find(m, key);

	if (!v)
		return STATUS_OK;
	if (v->type != GGUF_TEXT)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is not a text", m->path, key);
	*out = v->texts[0];
	return STATUS_OK;
}
