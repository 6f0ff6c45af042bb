/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/safetensors/shards.h"

#include <limits.h>
#include <unistd.h>
#include "core/json/file.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"
enum { INDEX_MAX = 100000000 };

static enum status path_of(char out[PATH_MAX], const char *dir, const char *name, struct error *err)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

	if (n < 0 || n >= PATH_MAX)
		return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", dir);
	return STATUS_OK;
}

static enum status no_memory(const char *dir, struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory for its headers",
			       dir);
}

static enum status read_index(json_t **out, const char *path, struct error *err)
{
	enum status st = json_file_read(out, path, INDEX_MAX, err);

	if (!st && !json_is_object(json_object_get(*out, "weight_map")))
		st = error_set(err, STATUS_BAD_INPUT, "%s: weight_map is missing or not an object", path);
	return st;
}

/* Whether it names a file in the index's own folder. */
static bool plain_name(const char *name)
{
	return name && name[0] && name[0] != '.' && !strchr(name, '/');
}

/* The distinct files of the map, as an object with their numbers. */
static enum status files_of(json_t *files, const json_t *map, const char *path, struct error *err)
{
	const char *tensor;
	json_t *value;

	json_object_foreach((json_t *)map, tensor, value)
	{
		const char *name = json_string_value(value);

		if (!plain_name(name))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %.100s: not the name of a file in this folder", path, tensor);
		if (!json_object_get(files, name) &&
		    json_object_set_new(files, name, json_integer((json_int_t)json_object_size(files))))
			return no_memory(path, err);
	}
	return STATUS_OK;
}

static enum status open_files(struct shards *s, const char *dir, const json_t *names, struct error *err)
{
	char path[PATH_MAX];
	const char *name;
	json_t *number;
	enum status st;

	s->files = calloc(json_object_size(names) + 1, sizeof(*s->files));
	if (!s->files)
		return no_memory(dir, err);
	json_object_foreach((json_t *)names, name, number)
	{
		st = path_of(path, dir, name, err);
		if (!st)
			st = safetensors_open(&s->files[s->file_count], path, err);
		if (st)
			return st;
		s->file_count++;
	}
	return STATUS_OK;
}

/* Checks that each tensor of the map is in its file, and that each tensor of the files is in the map. */
static enum status check_index(const struct shards *s, const json_t *map, const json_t *names,
			       const char *path, struct error *err)
{
	const char *tensor;
	json_t *value;

	for (size_t i = 0; i < s->file_count; i++) {
		for (size_t k = 0; k < s->files[i].count; k++) {
			const json_t *file = json_object_get(map, s->files[i].tensors[k].name);
			const json_t *number = json_object_get(names, json_string_value(file));

			if (!number || (size_t)json_integer_value(number) != i)
				return error_set(err, STATUS_BAD_INPUT,
						 "%s: %.100s is in %.200s, and the index %s", path,
						 s->files[i].tensors[k].name, s->files[i].path,
						 number ? "names another file" : "does not name it");
		}
	}
	json_object_foreach((json_t *)map, tensor, value)
	{
		if (!shards_find(s, tensor))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s: tensor %.100s is not in %.100s, although the index names this file",
				path, tensor, json_string_value(value));
	}
	return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct tensor *const *)a)->name, (*(const struct tensor *const *)b)->name);
}

static enum status sort_tensors(struct shards *s, const char *dir, struct error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < s->file_count; i++)
		count += s->files[i].count;
	s->tensors = calloc(count + 1, sizeof(const struct tensor *));
	if (!s->tensors)
		return no_memory(dir, err);
	for (size_t i = 0; i < s->file_count; i++) {
		for (size_t k = 0; k < s->files[i].count; k++)
			s->tensors[s->tensor_count++] = &s->files[i].tensors[k];
	}
	qsort(s->tensors, s->tensor_count, sizeof(const struct tensor *), by_name);
	for (size_t i = 1; i < s->tensor_count; i++) {
		if (!by_name(&s->tensors[i - 1], &s->tensors[i]))
			return error_set(err, STATUS_BAD_INPUT, "%s: %.100s is in two files", dir,
					 s->tensors[i]->name);
	}
	return STATUS_OK;
}

static enum status open_indexed(struct shards *s, const char *dir, const char *path, struct error *err)
{
	json_t *index = NULL, *names = json_object();
	const json_t *map;
	enum status st = read_index(&index, path, err);

	map = json_object_get(index, "weight_map");
	if (!st)
		st = files_of(names, map, path, err);
	if (!st)
		st = open_files(s, dir, names, err);
	if (!st)
		st = sort_tensors(s, dir, err);
	if (!st)
		st = check_index(s, map, names, path, err);
	json_decref(names);
	json_decref(index);
	return st;
}

static enum status open_single(struct shards *s, const char *dir, const char *path, struct error *err)
{
	enum status st;

	s->files = calloc(1, sizeof(*s->files));
	if (!s->files)
		return no_memory(dir, err);
	st = safetensors_open(&s->files[0], path, err);
	if (st)
		return st;
	s->file_count = 1;
	return sort_tensors(s, dir, err);
}

enum status shards_open(struct shards *s, const char *dir, struct error *err)
{
	char single[PATH_MAX], index[PATH_MAX], pickle[PATH_MAX];
	enum status st;

	*s = (struct shards){0};
	st = path_of(single, dir, SINGLE, err);
	if (!st)
		st = path_of(index, dir, INDEX, err);
	if (!st)
		st = path_of(pickle, dir, "pytorch_model.bin", err);
	if (st)
		return st;
	if (!access(single, F_OK))
		st = open_single(s, dir, single, err);
	else if (!access(index, F_OK))
		st = open_indexed(s, dir, index, err);
	else
		st = error_set(
			err, STATUS_BAD_INPUT, "%s: neither " SINGLE " nor " INDEX " is there%s", dir,
			access(pickle, F_OK)
				? ""
				: ". pytorch_model.bin is not supported; save the model as safetensors");
	if (st)
		shards_release(s);
	return st;
}

void shards_release(struct shards *s)
{
	for (size_t i = 0; i < s->file_count; i++)
		safetensors_release(&s->files[i]);
	free(s->files);
	free(s->tensors);
	*s = (struct shards){0};
}

static int name_is(const void *name, const void *tensor)
{
	return strcmp(name, (*(const struct tensor *const *)tensor)->name);
}

const struct tensor *shards_find(const struct shards *s, const char *name)
{
	const struct tensor **found = NULL;

	if (s->tensor_count)
		found = bsearch(name, s->tensors, s->tensor_count, sizeof(const struct tensor *), name_is);
	return found ? *found : NULL;
}

const char *shards_path(const struct shards *s, const struct tensor *t)
{
	for (size_t i = 0; i < s->file_count; i++) {
		if (t >= s->files[i].tensors && t < s->files[i].tensors + s->files[i].count)
			return s->files[i].path;
	}
	return "";
}
