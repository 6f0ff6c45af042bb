/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/manifest.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "model/tensor/dtype.h"
#include "train/checkpoint/manifest_parts.h"

enum { MANIFEST_MAX = 64 << 20, STEP_MAX_BITS = 53, RANK_MAX = 1 << 20, LOOKS = 30, LOOK_NS = 100000000 };

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
		if (*e->d_name != '.' && strcmp(e->d_name, CHECKPOINT_MANIFEST) &&
		    !json_object_get(files, e->d_name))
			st = add_file(files, dir, e->d_name, err);
	closedir(d);
	return st;
}

static bool is_f32(const struct params *p)
{
	return p->format.moments == MOMENTS_F32 && p->format.master == MASTER_F32;
}

/* [{"name": "master", "dtype": "BF16", "offset": 0, "count": 100}, ..], in the order of the file. Without
 * offsets if the states are in shards. */
static json_t *states_json(const struct params *p, bool shards)
{
	struct params copy = *p;
	json_t *list = json_array();
	json_int_t offset = 0;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const struct mat *m = params_state(&copy, (enum params_state)i);

		if (!m->rows)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:s, s:o*, s:I}", "name",
						      params_state_name((enum params_state)i), "dtype",
						      dtype_word(m->dtype), "offset",
						      shards ? NULL : json_integer(offset), "count",
						      (json_int_t)m->cols));
		offset += (json_int_t)params_state_bytes(p, (enum params_state)i);
	}
	return list;
}

static json_t *parameters_json(const struct params *p)
{
	json_t *list = json_array();

	for (int i = 0; i < p->count; i++) {
		const struct param *one = &p->table[i];

		json_t *entry =
			json_pack("{s:s, s:I, s:I, s:I}", "name", one->name, "rows", (json_int_t)one->rows,
				  "cols", (json_int_t)one->cols, "offset", (json_int_t)one->offset);

		if (p->format.moments == MOMENTS_8BIT)
			json_object_set_new(entry, "state", json_integer((json_int_t)one->state));
		json_array_append_new(list, entry);
	}
	return list;
}

/* Takes ownership of `shards` and `files`. */
static enum status put_together(json_t **out, int schema, const char *dir, uint64_t step,
				const struct params *p, json_t *shards, json_t *files, struct error *err)
{
	*out = json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "schema", schema, "step", (json_int_t)step,
			 "length", (json_int_t)p->length, "shards", shards, "parameters", parameters_json(p),
			 "files", files);
	if (!*out)
		return error_errno(err, ENOMEM, "%s", dir);
	if (schema != CHECKPOINT_SCHEMA) {
		json_object_set_new(*out, "moments", json_string(moments_name(p->format.moments)));
		json_object_set_new(*out, "master_weights", json_string(master_name(p->format.master)));
		json_object_set_new(*out, "states", states_json(p, schema >= CHECKPOINT_SCHEMA_SHARDS));
	}
	return STATUS_OK;
}

enum status manifest_make(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  struct error *err)
{
	json_t *files = json_object(), *shard;
	enum status st = add_files(files, dir, err);

	*out = NULL;
	if (st) {
		json_decref(files);
		return st;
	}
	shard = json_pack("[{s:s, s:I, s:I}]", "file", CHECKPOINT_OPTIMIZER, "begin", (json_int_t)0, "count",
			  (json_int_t)p->length);
	return put_together(out, is_f32(p) ? CHECKPOINT_SCHEMA : CHECKPOINT_SCHEMA_STATES, dir, step, p,
			    shard, files, err);
}

/* -- shards of several ranks -- */

static long long number(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

static const char *file_of(const json_t *shard)
{
	return json_string_value(json_object_get(shard, "file"));
}

/* The size of the file of a shard; -1: there is none. */
static long long size_of(const json_t *shard, const char *dir)
{
	char path[PATH_MAX + 300];
	struct stat about;

	snprintf(path, sizeof(path), "%s/%s", dir, file_of(shard));
	return stat(path, &about) ? -1 : (long long)about.st_size;
}

static enum status is_missing(const json_t *shard, const char *dir, struct error *err)
{
	return error_set(err, STATUS_UNAVAILABLE,
			 "%s/%s is not there; rank %lld wrote it: the run directory must be on a disk that "
			 "all nodes share",
			 dir, file_of(shard), number(shard, "rank"));
}

static enum status check_size(const json_t *shard, const char *dir, struct error *err)
{
	const long long size = size_of(shard, dir);

	if (size < 0)
		return is_missing(shard, dir, err);
	if (size == number(shard, "bytes"))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s/%s is %s: it has %lld bytes, and rank %lld wrote %lld",
			 dir, file_of(shard), size < number(shard, "bytes") ? "cut" : "too long", size,
			 number(shard, "rank"), number(shard, "bytes"));
}

/* A file of another node may become visible late. */
static enum status await_size(const json_t *shard, const char *dir, struct error *err)
{
	for (int i = 0; i < LOOKS && size_of(shard, dir) != number(shard, "bytes"); i++)
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	return check_size(shard, dir, err);
}

static int by_begin(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	const long long part = number(x, "part") - number(y, "part"),
			begin = number(x, "begin") - number(y, "begin"),
			count = number(x, "count") - number(y, "count");

	if (part)
		return (part > 0) - (part < 0);
	return begin ? (begin > 0) - (begin < 0) : (count > 0) - (count < 0);
}

static enum status take_report(json_t *shards, json_t *files, const char *dir, const json_t *one,
			       long long end, struct error *err)
{
	json_t *shard = json_deep_copy(one);
	enum status st = STATUS_OK;

	if (!shard || !file_of(one) || number(one, "begin") != end)
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: rank %lld wrote elements from %lld on, but those of the range before end at "
			"%lld",
			dir, number(one, "rank"), number(one, "begin"), end);
	if (!st)
		st = await_size(one, dir, err);
	if (!st)
		json_object_set(files, file_of(one), json_object_get(one, "sha256"));
	json_object_del(shard, "sha256");
	json_array_append_new(shards, shard);
	return st;
}

/* Takes the shards of one part, of `length` elements. *at: the first of them in the sorted list. */
static enum status take_part(json_t *shards, json_t *files, const char *dir, const json_t *const *sorted,
			     size_t count, size_t *at, size_t length, struct error *err)
{
	const long long part = *at < count ? number(sorted[*at], "part") : 0;
	long long end = 0;
	enum status st = STATUS_OK;

	for (; *at < count && number(sorted[*at], "part") == part && !st; ++*at) {
		st = take_report(shards, files, dir, sorted[*at], end, err);
		end = number(sorted[*at], "begin") + number(sorted[*at], "count");
	}
	if (st || (uint64_t)end == length)
		return st;
	return error_set(err, STATUS_BAD_INPUT, "%s: the ranks wrote %lld of %zu elements", dir, end, length);
}

/* Takes the shards from the ranks' reports: they must divide the vector, or that of each part. Ranks of
 * several shard groups report in another order than that of their ranges. */
static enum status take_reports(json_t *shards, json_t *files, const char *dir, const struct params *p,
				const struct checkpoint_parts *parts, const json_t *reports,
				struct error *err)
{
	const size_t count = json_array_size(reports), length = parts ? parts->local.length : p->length;
	const json_t **sorted = calloc(count + 1, sizeof(*sorted));
	size_t at = 0;
	enum status st = sorted ? STATUS_OK : error_errno(err, ENOMEM, "%s", dir);

	for (size_t i = 0; i < count && !st; i++)
		sorted[i] = json_array_get(reports, i);
	if (!st)
		qsort(sorted, count, sizeof(*sorted), by_begin);
	for (unsigned part = 0; part < (parts ? parts->ranks : 1) && !st; part++)
		st = take_part(shards, files, dir, sorted, count, &at, length, err);
	free(sorted);
	return st;
}

enum status manifest_join(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  const struct checkpoint_parts *parts, const json_t *reports, struct error *err)
{
	json_t *files = json_object(), *shards = json_array();
	enum status st = take_reports(shards, files, dir, p, parts, reports, err);

	*out = NULL;
	if (!st)
		st = add_files(files, dir, err);
	if (st) {
		json_decref(files);
		json_decref(shards);
		return st;
	}
	st = put_together(out, parts ? CHECKPOINT_SCHEMA_PARTS : CHECKPOINT_SCHEMA_SHARDS, dir, step,
			  parts ? &parts->whole : p, shards, files, err);
	if (!st && parts && json_object_set_new(*out, "parts", manifest_parts_json(parts)))
		st = error_errno(err, ENOMEM, "%s", dir);
	return st;
}

/* -- reading -- */

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

	if (!json_is_object(files) || !json_object_size(files))
		return bad(path, "it lists no files", err);
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

/* Checks that the shards of a part cover its vector in order, without gap or overlap. */
static enum status check_shards_of(const json_t *list, const json_t *files, json_int_t part,
				   json_int_t length, const char *path, struct error *err)
{
	json_int_t end = 0;
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *file = json_string_value(json_object_get(one, "file"));
		json_int_t begin, count;

		if (number(one, "part") != part)
			continue;
		if (!file || !json_object_get(files, file) || !whole(one, "begin", &begin) ||
		    !whole(one, "count", &count) || begin != end || count > length - begin)
			return bad(path, "its shards do not cover the vector exactly", err);
		end = begin + count;
	}
	return end == length ? STATUS_OK : bad(path, "its shards do not cover the vector exactly", err);
}

/* The same of each part, without parts of the vector. */
static enum status check_shards(const json_t *j, const json_t *files, bool parts, const char *path,
				struct error *err)
{
	const json_t *list = json_object_get(j, "shards"), *one;
	const size_t count = manifest_parts_count(j);
	enum status st = STATUS_OK;
	json_int_t part;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (parts ? !whole(one, "part", &part) || (uint64_t)part >= count
			  : json_object_get(one, "part") != NULL)
			return bad(path, "a shard is of no part, or of one that is not listed", err);
	}
	for (i = 0; i < count && !st; i++)
		st = check_shards_of(list, files, (json_int_t)i, (json_int_t)manifest_part_length(j, i), path,
				     err);
	return st;
}

/* Checks the form of the states of schemas 2 to 4. checkpoint_load checks that the parameters lie within
 * them.
 */
static enum status check_states(const json_t *j, json_int_t length, bool shards, const char *path,
				struct error *err)
{
	const json_t *list = json_object_get(j, "states"), *one;
	json_int_t offset, count;
	enum dtype dtype;
	size_t i;

	if (!json_is_string(json_object_get(j, "moments")) ||
	    !json_is_string(json_object_get(j, "master_weights")) || !json_is_array(list) ||
	    (!shards && json_array_size(json_object_get(j, "shards")) != 1))
		return bad(path, "it lacks moments, master_weights or states, or has several shards", err);
	json_array_foreach((json_t *)list, i, one)
	{
		const char *word = json_string_value(json_object_get(one, "dtype"));

		if (!json_is_string(json_object_get(one, "name")) || !word || !dtype_of_word(&dtype, word) ||
		    (!shards && !whole(one, "offset", &offset)) || !whole(one, "count", &count) ||
		    count > length)
			return bad(path, "a state lacks name, dtype, offset or count", err);
	}
	json_array_foreach(json_object_get(j, "parameters"), i, one)
	{
		if (json_object_get(one, "state") && !whole(one, "state", &offset))
			return bad(path, "a parameter has a wrong state", err);
	}
	return STATUS_OK;
}

/* A shard's entry of a state; NULL: none. */
static const json_t *part_of(const json_t *shard, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(shard, "states"), i, one)
	{
		const char *word = json_string_value(json_object_get(one, "name"));

		if (word && !strcmp(word, name))
			return one;
	}
	return NULL;
}

/* Checks that the shards of a part of tensors (0 if there are none) have `whole_count` elements of a state,
 * which lie within their files. */
static enum status check_parts(const json_t *shards, const json_t *state, json_int_t of,
			       json_int_t whole_count, const char *path, struct error *err)
{
	const json_t *shard;
	json_int_t sum = 0, count, offset, bytes;
	enum dtype dtype;
	size_t i;

	dtype_of_word(&dtype, json_string_value(json_object_get(state, "dtype")));
	json_array_foreach((json_t *)shards, i, shard)
	{
		const json_t *part = part_of(shard, json_string_value(json_object_get(state, "name")));

		if (!part || number(shard, "part") != of)
			continue;
		if (!whole(part, "count", &count) || !whole(part, "offset", &offset) ||
		    !whole(shard, "bytes", &bytes) || count > whole_count || offset > bytes ||
		    dtype_bytes(dtype, (uint64_t)count) > (uint64_t)(bytes - offset))
			return bad(path, "a shard's states do not lie within its file", err);
		sum += count;
		if (sum > whole_count)
			break;
	}
	return sum == whole_count ? STATUS_OK : bad(path, "its shards do not cover a state exactly", err);
}

static enum status check_all_parts(const json_t *j, bool parts, const char *path, struct error *err)
{
	const json_t *one, *shards = json_object_get(j, "shards");
	json_int_t rank, bytes;
	enum status st = STATUS_OK;
	size_t i;

	json_array_foreach((json_t *)shards, i, one)
	{
		if (!whole(one, "rank", &rank) || rank > RANK_MAX || !whole(one, "bytes", &bytes))
			return bad(path, "a shard lacks rank or bytes", err);
	}
	json_array_foreach(json_object_get(j, "states"), i, one)
	{
		if (!parts && !st)
			st = check_parts(shards, one, 0, (json_int_t)number(one, "count"), path, err);
		for (size_t part = 0; parts && part < manifest_parts_count(j) && !st; part++)
			st = check_parts(shards, one, (json_int_t)part,
					 (json_int_t)manifest_part_length(j, part), path, err);
	}
	return st;
}

bool manifest_state(struct manifest_state *out, const json_t *manifest, enum params_state which)
{
	const json_t *list = json_object_get(manifest, "states"), *one;
	const uint64_t length = (uint64_t)json_integer_value(json_object_get(manifest, "length"));
	size_t i;

	*out = (struct manifest_state){0};
	if (!list) { /* schema 1: master, m, v */
		*out = (struct manifest_state){DTYPE_F32, length};
		return which <= PARAMS_STATE_v;
	}
	json_array_foreach((json_t *)list, i, one)
	{
		if (strcmp(json_string_value(json_object_get(one, "name")), params_state_name(which)))
			continue;
		out->count = (uint64_t)json_integer_value(json_object_get(one, "count"));
		return dtype_of_word(&out->dtype, json_string_value(json_object_get(one, "dtype")));
	}
	return false;
}

/* Schema 1: each shard has its part of master, m and v. Schema 2: the only shard has the states. Schemas 3
 * and 4: each shard lists its parts. */
static void take_piece(struct manifest_piece *piece, const json_t *manifest, const json_t *shard,
		       enum params_state which)
{
	const bool shards = number(manifest, "schema") >= CHECKPOINT_SCHEMA_SHARDS,
		   states = json_object_get(manifest, "states") != NULL;
	const json_t *part = part_of(shards ? shard : manifest, params_state_name(which));

	piece->file = file_of(shard);
	piece->count = (uint64_t)number(states ? part : shard, "count");
	piece->offset =
		states ? (uint64_t)number(part, "offset") : (uint64_t)which * piece->count * sizeof(float);
}

bool manifest_next(struct manifest_piece *piece, const json_t *manifest, enum params_state which)
{
	const json_t *shard;

	do {
		shard = json_array_get(json_object_get(manifest, "shards"), piece->next++);
		if (!shard)
			return false;
	} while ((size_t)number(shard, "part") != piece->part);
	piece->first += piece->count;
	take_piece(piece, manifest, shard, which);
	return true;
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
	bool parts;
	enum status st;

	*out = NULL;
	if (!j)
		return error_set(err, STATUS_BAD_INPUT, "%s: not JSON: %s at byte %d", path, why.text,
				 why.position);
	if (!whole(j, "schema", &schema) || schema < CHECKPOINT_SCHEMA || schema > CHECKPOINT_SCHEMA_PARTS)
		st = bad(path, "unknown checkpoint schema", err);
	else if (!whole(j, "step", &step) || !whole(j, "length", &length))
		st = bad(path, "it has no step or no length", err);
	else
		st = check_files(files, path, err);
	if (!st)
		st = check_parameters(json_object_get(j, "parameters"), length, path, err);
	parts = schema == CHECKPOINT_SCHEMA_PARTS;
	if (!st && parts)
		st = manifest_parts_check(j, path, err);
	else if (!st && json_object_get(j, "parts"))
		st = bad(path, "its schema has no parts", err);
	if (!st)
		st = check_shards(j, files, parts, path, err);
	if (!st && schema != CHECKPOINT_SCHEMA)
		st = check_states(j, length, schema >= CHECKPOINT_SCHEMA_SHARDS, path, err);
	else if (!st && json_object_get(j, "states"))
		st = bad(path, "its schema has no states", err);
	if (!st && schema >= CHECKPOINT_SCHEMA_SHARDS)
		st = check_all_parts(j, parts, path, err);
	if (st)
		json_decref(j);
	else
		*out = j;
	return st;
}

/* The shard of that file, if several ranks wrote the checkpoint. */
static const json_t *shard_of(const json_t *manifest, const char *file)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(manifest, "shards"), i, one)
	{
		if (json_object_get(one, "rank") && !strcmp(file_of(one), file))
			return one;
	}
	return NULL;
}

static enum status check_sum(const json_t *manifest, const char *dir, const char *name, const char *expected,
			     struct error *err)
{
	const json_t *shard = shard_of(manifest, name);
	char path[PATH_MAX + 300], hex[65], by[48] = "";
	enum status st = shard ? check_size(shard, dir, err) : STATUS_OK;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (shard)
		snprintf(by, sizeof(by), " that rank %lld wrote", number(shard, "rank"));
	if (!st)
		st = file_sha256_of(hex, path, err);
	if (!st && strcmp(hex, expected))
		st = error_set(err, STATUS_BAD_INPUT, "%s: its SHA-256 differs from the one in %s%s%s", path,
			       CHECKPOINT_MANIFEST, shard ? "; it is a shard" : "", by);
	return st;
}

enum status manifest_read(json_t **out, const char *dir, struct error *err)
{
	char path[PATH_MAX + 64], *text = NULL;
	size_t size;
	enum status st;

	*out = NULL;
	snprintf(path, sizeof(path), "%s/" CHECKPOINT_MANIFEST, dir);
	st = file_read(&text, &size, path, MANIFEST_MAX, err);
	if (!st)
		st = manifest_parse(out, path, text, size, err);
	free(text);
	return st;
}

enum status manifest_check_shards(const json_t *manifest, const char *dir, struct error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(manifest, "shards"), i, one)
	{
		if (json_object_get(one, "rank") && size_of(one, dir) < 0)
			return is_missing(one, dir, err);
	}
	return STATUS_OK;
}

enum status manifest_check_sums(const json_t *manifest, const char *dir, struct error *err)
{
	const char *name;
	const json_t *sum;
	enum status st = STATUS_OK;

	json_object_foreach(json_object_get(manifest, "files"), name, sum)
	{
		if (!st)
			st = check_sum(manifest, dir, name, json_string_value(sum), err);
	}
	return st;
}
