/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/manifest.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include "core/file/file.h"
#include "model/tensor/dtype.h"

enum { MANIFEST_MAX = 64 << 20, STEP_MAX_BITS = 53 };

static enum status add_file(json_t *files, const char *dir, const char *name, struct error *err)
{
	char path[PATH_MAX + 300], hex[65];
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	st = file_sha256_of(hex, path, err);
	if (!st && json_object_set_new(files, name, json_string(hex)))
		st = error_errno(err, ENOMEM, "%s", path);
	return st;
}

static enum status add_files(json_t *files, const char *dir, struct error *err)
{
	DIR *d = opendir(dir);
	enum status st = STATUS_OK;

	if (!d)
		return error_errno(err, errno, "cannot read %s", dir);
	for (struct dirent *e; !st && (e = readdir(d));)
		if (*e->d_name != '.' && strcmp(e->d_name, CHECKPOINT_MANIFEST))
			st = add_file(files, dir, e->d_name, err);
	closedir(d);
	return st;
}

static bool is_f32(const struct params *p)
{
	return p->format.moments == MOMENTS_F32 && p->format.master == MASTER_F32;
}

/* [{"name": "master", "dtype": "BF16", "offset": 0, "count": 100}, ..], in the order of the file. */
static json_t *states_json(const struct params *p)
{
	struct params copy = *p;
	json_t *list = json_array();
	json_int_t offset = 0;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const struct mat *m = params_state(&copy, (enum params_state)i);

		if (!m->rows)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name",
						      params_state_name((enum params_state)i), "dtype",
						      dtype_word(m->dtype), "offset", offset, "count",
						      (json_int_t)m->cols));
		offset += (json_int_t)params_state_bytes(p, (enum params_state)i);
	}
	return list;
}

enum status manifest_make(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  struct error *err)
{
	json_t *files = json_object(), *parameters = json_array(), *shard;
	enum status st = add_files(files, dir, err);

	for (int i = 0; i < p->count; i++) {
		const struct param *one = &p->table[i];

		json_t *entry =
			json_pack("{s:s, s:I, s:I, s:I}", "name", one->name, "rows", (json_int_t)one->rows,
				  "cols", (json_int_t)one->cols, "offset", (json_int_t)one->offset);

		if (p->format.moments == MOMENTS_8BIT)
			json_object_set_new(entry, "state", json_integer((json_int_t)one->state));
		json_array_append_new(parameters, entry);
	}
	shard = json_pack("[{s:s, s:I, s:I}]", "file", CHECKPOINT_OPTIMIZER, "begin", (json_int_t)0, "count",
			  (json_int_t)p->length);
	*out = json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "schema",
			 is_f32(p) ? CHECKPOINT_SCHEMA : CHECKPOINT_SCHEMA_STATES, "step", (json_int_t)step,
			 "length", (json_int_t)p->length, "shards", shard, "parameters", parameters, "files",
			 files);
	if (*out && !is_f32(p)) {
		json_object_set_new(*out, "moments", json_string(moments_name(p->format.moments)));
		json_object_set_new(*out, "master_weights", json_string(master_name(p->format.master)));
		json_object_set_new(*out, "states", states_json(p));
	}
	if (!*out && !st)
		st = error_errno(err, ENOMEM, "%s", dir);
	if (st) {
		json_decref(*out);
		*out = NULL;
	}
	return st;
}

/* Reads a non-negative integer member below 2^53. */
static bool whole(const json_t *map, const char *key, json_int_t *out)
{
	const json_t *v = json_object_get(map, key);

	*out = json_integer_value(v);
	return json_is_integer(v) && *out >= 0 && *out >> STEP_MAX_BITS == 0;
}

static enum status bad(const char *path, const char *what, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "%s: %s", path, what);
}

static bool is_plain_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 256;
}

static enum status check_files(const json_t *files, const char *path, struct error *err)
{
	const char *name;
	const json_t *sum;

	if (!json_is_object(files) || !json_object_size(files) ||
	    json_object_size(files) > CHECKPOINT_FILES_MAX)
		return bad(path, "it lists no files, or too many", err);
	json_object_foreach((json_t *)files, name,
			    sum) if (!is_plain_name(name) || !json_is_string(sum) ||
				     json_string_length(sum) !=
					     64) return bad(path, "a file has no plain name or no SHA-256",
							    err);
	return STATUS_OK;
}

static enum status check_parameters(const json_t *list, json_int_t length, const char *path,
				    struct error *err)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(list))
		return bad(path, "it lists no parameters", err);
	json_array_foreach((json_t *)list, i, one)
	{
		json_int_t rows, cols, offset;

		if (!json_is_string(json_object_get(one, "name")) || !whole(one, "rows", &rows) ||
		    !whole(one, "cols", &cols) || !whole(one, "offset", &offset) || !rows || !cols)
			return bad(path, "a parameter lacks name, rows, cols or offset", err);
		if (cols > length || rows > length / cols || offset > length - rows * cols)
			return bad(path, "a parameter exceeds the vector", err);
	}
	return STATUS_OK;
}

/* Checks that the shards cover the vector in order, without gap or overlap. */
static enum status check_shards(const json_t *list, const json_t *files, json_int_t length, const char *path,
				struct error *err)
{
	json_int_t end = 0;
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *file = json_string_value(json_object_get(one, "file"));
		json_int_t begin, count;

		if (!file || !json_object_get(files, file) || !whole(one, "begin", &begin) ||
		    !whole(one, "count", &count) || begin != end || count > length - begin)
			return bad(path, "its shards do not cover the vector exactly", err);
		end = begin + count;
	}
	return end == length ? STATUS_OK : bad(path, "its shards do not cover the vector exactly", err);
}

/* Checks the form of the states of schema 2, which has one shard. checkpoint_load checks that the parameters
 * lie within them. */
static enum status check_states(const json_t *j, json_int_t length, const char *path, struct error *err)
{
	const json_t *list = json_object_get(j, "states"), *one;
	json_int_t offset, count;
	enum dtype dtype;
	size_t i;

	if (!json_is_string(json_object_get(j, "moments")) ||
	    !json_is_string(json_object_get(j, "master_weights")) || !json_is_array(list) ||
	    json_array_size(json_object_get(j, "shards")) != 1)
		return bad(path, "it lacks moments, master_weights or states, or has several shards", err);
	json_array_foreach((json_t *)list, i, one)
	{
		const char *word = json_string_value(json_object_get(one, "dtype"));

		if (!json_is_string(json_object_get(one, "name")) || !word || !dtype_of_word(&dtype, word) ||
		    !whole(one, "offset", &offset) || !whole(one, "count", &count) || count > length)
			return bad(path, "a state lacks name, dtype, offset or count", err);
	}
	json_array_foreach(json_object_get(j, "parameters"), i, one)
	{
		if (json_object_get(one, "state") && !whole(one, "state", &offset))
			return bad(path, "a parameter has a wrong state", err);
	}
	return STATUS_OK;
}

bool manifest_state(struct manifest_state *out, const json_t *manifest, enum params_state which)
{
	const json_t *list = json_object_get(manifest, "states"), *one;
	const uint64_t length = (uint64_t)json_integer_value(json_object_get(manifest, "length"));
	size_t i;

	*out = (struct manifest_state){0};
	if (!list) { /* schema 1: master, m, v */
		*out = (struct manifest_state){DTYPE_F32, (uint64_t)which * length * sizeof(float), length};
		return which <= PARAMS_STATE_v;
	}
	json_array_foreach((json_t *)list, i, one)
	{
		if (strcmp(json_string_value(json_object_get(one, "name")), params_state_name(which)))
			continue;
		out->offset = (uint64_t)json_integer_value(json_object_get(one, "offset"));
		out->count = (uint64_t)json_integer_value(json_object_get(one, "count"));
		return dtype_of_word(&out->dtype, json_string_value(json_object_get(one, "dtype")));
	}
	return false;
}

const char *manifest_moments(const json_t *manifest)
{
	const char *word = json_string_value(json_object_get(manifest, "moments"));

	return word ? word : moments_name(MOMENTS_F32);
}

const char *manifest_master(const json_t *manifest)
{
	const char *word = json_string_value(json_object_get(manifest, "master_weights"));

	return word ? word : master_name(MASTER_F32);
}

enum status manifest_parse(json_t **out, const char *path, const char *text, size_t size, struct error *err)
{
	json_error_t why;
	json_t *j = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why),
	       *files = json_object_get(j, "files");
	json_int_t schema, step, length = 0;
	enum status st;

	*out = NULL;
	if (!j)
		return error_set(err, STATUS_BAD_INPUT, "%s: not JSON: %s at byte %d", path, why.text,
				 why.position);
	if (!whole(j, "schema", &schema) ||
	    (schema != CHECKPOINT_SCHEMA && schema != CHECKPOINT_SCHEMA_STATES))
		st = bad(path, "unknown checkpoint schema", err);
	else if (!whole(j, "step", &step) || !whole(j, "length", &length))
		st = bad(path, "it has no step or no length", err);
	else
		st = check_files(files, path, err);
	if (!st)
		st = check_parameters(json_object_get(j, "parameters"), length, path, err);
	if (!st)
		st = check_shards(json_object_get(j, "shards"), files, length, path, err);
	if (!st && schema == CHECKPOINT_SCHEMA_STATES)
		st = check_states(j, length, path, err);
	else if (!st && json_object_get(j, "states"))
		st = bad(path, "its schema has no states", err);
	if (st)
		json_decref(j);
	else
		*out = j;
	return st;
}

static enum status check_sum(const char *dir, const char *name, const char *expected, struct error *err)
{
	char path[PATH_MAX + 300], hex[65];
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	st = file_sha256_of(hex, path, err);
	if (!st && strcmp(hex, expected))
		st = error_set(err, STATUS_BAD_INPUT, "%s: its SHA-256 differs from the one in %s", path,
			       CHECKPOINT_MANIFEST);
	return st;
}

enum status manifest_check(json_t **out, const char *dir, struct error *err)
{
	char path[PATH_MAX + 64], *text = NULL;
	const char *name;
	const json_t *sum;
	size_t size;
	enum status st;

	*out = NULL;
	snprintf(path, sizeof(path), "%s/" CHECKPOINT_MANIFEST, dir);
	st = file_read(&text, &size, path, MANIFEST_MAX, err);
	if (!st)
		st = manifest_parse(out, path, text, size, err);
	free(text);
	json_object_foreach(json_object_get(*out, "files"), name, sum) if (!st) st =
		check_sum(dir, name, json_string_value(sum), err);
	if (st) {
		json_decref(*out);
		*out = NULL;
	}
	return st;
}
