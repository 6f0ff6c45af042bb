/* SPDX-License-Identifier: Apache-2.0 */
#include "text/generation_config.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include "core/json/file.h"

enum { FILE_MAX = 1 << 20 };

static enum status read_id(const struct json_keys *k, const char *key, const json_t *value, int32_t *out)
{
	json_int_t id = json_integer_value(value);

	if (!json_is_integer(value) || id < 0 || id > INT32_MAX)
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s is not a token id", k->path, key);
	*out = (int32_t)id;
	return STATUS_OK;
}

static enum status read_token(const struct json_keys *k, const char *key, int32_t *out)
{
	const json_t *value = json_keys_value(k, key);

	return value ? read_id(k, key, value, out) : STATUS_OK;
}

/* One id, or a list of them. */
static enum status read_eos(const struct json_keys *k, struct generation_config *c)
{
	static const char key[] = "eos_token_id";
	const json_t *value = json_keys_value(k, key), *entry;
	enum status st = STATUS_OK;
	size_t i;

	if (!value)
		return STATUS_OK;
	if (!json_is_array(value)) {
		c->eos_count = 1;
		return read_id(k, key, value, &c->eos[0]);
	}
	if (json_array_size(value) > GENERATION_EOS_MAX)
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s has %zu ids; at most %d are supported",
				 k->path, key, json_array_size(value), GENERATION_EOS_MAX);
	json_array_foreach(value, i, entry)
	{
		if (!st)
			st = read_id(k, key, entry, &c->eos[i]);
	}
	c->eos_count = json_array_size(value);
	return st;
}

/* A number from `least` to `most`; `open`: not `least` itself. */
static enum status read_number(const struct json_keys *k, const char *key, double least, double most,
			       bool open, double *out)
{
	enum status st = json_keys_number(k, key, out);

	if (st || isnan(*out))
		return st;
	if (*out > most)
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s is %g; it must be at most %g", k->path,
				 key, *out, most);
	if (*out < least || (open && *out == least))
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s is %g; it must be %s %g", k->path, key,
				 *out, open ? "above" : "at least", least);
	return STATUS_OK;
}

static enum status read_whole(const struct json_keys *k, const char *key, int64_t *out)
{
	const json_t *value = json_keys_value(k, key);

	if (!value)
		return STATUS_OK;
	if (!json_is_integer(value) || json_integer_value(value) < -1)
		return error_set(k->err, STATUS_BAD_INPUT, "%s: %s is not a count", k->path, key);
	*out = json_integer_value(value);
	return STATUS_OK;
}

static enum status read_all(const struct json_keys *k, struct generation_config *c)
{
	const json_t *sample = json_keys_value(k, "do_sample");
	enum status st = read_eos(k, c);

	if (!st)
		st = read_token(k, "bos_token_id", &c->bos);
	if (!st)
		st = read_token(k, "pad_token_id", &c->pad);
	if (!st)
		st = read_number(k, "temperature", 0, FLT_MAX, false, &c->temperature);
	if (!st)
		st = read_number(k, "top_p", 0, 1, true, &c->top_p);
	if (!st)
		st = read_number(k, "min_p", 0, 1, false, &c->min_p);
	if (!st)
		st = read_number(k, "repetition_penalty", 0, FLT_MAX, true, &c->repetition_penalty);
	if (!st)
		st = read_whole(k, "top_k", &c->top_k);
	if (!st)
		st = read_whole(k, "max_new_tokens", &c->max_new_tokens);
	if (!st && sample && !json_is_boolean(sample))
		st = error_set(k->err, STATUS_BAD_INPUT, "%s: do_sample is neither true nor false", k->path);
	c->greedy = json_is_false(sample);
	return st;
}

enum status generation_config_read(struct generation_config *out, const char *model, struct error *err)
{
	char path[PATH_MAX];
	struct json_keys k = {.path = path, .err = err};
	json_t *map = NULL;
	struct stat about;
	enum status st;

	*out = (struct generation_config){.bos = -1,
					  .pad = -1,
					  .temperature = NAN,
					  .top_p = NAN,
					  .min_p = NAN,
					  .repetition_penalty = NAN,
					  .top_k = -1,
					  .max_new_tokens = -1};
	if (snprintf(path, sizeof(path), "%s/generation_config.json", model) >= (int)sizeof(path))
		return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", model);
	if (stat(path, &about))
		return STATUS_OK;
	st = json_file_read(&map, path, FILE_MAX, err);
	if (st)
		return st;
	k.map = map;
	st = json_is_object(map) ? read_all(&k, out)
				 : error_set(err, STATUS_BAD_INPUT, "%s is not a JSON object", path);
	json_decref(map);
	return st;
}
