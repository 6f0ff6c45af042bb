/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/model_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"
#include "core/json/file.h"
#include "model/files/safetensors/safetensors.h"

#define JSON_STYLE (JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15))

enum {
	CHUNK = 1 << 22, /* elements produced and written at once */
	THREADS_MAX = 64,
};

struct writing {
	const struct folder_options *o;
	const char *dir;
	struct named *names;
	struct tensor *tensors; /* sorted as written */
	size_t count, shards;
	uint64_t done, all;
	float *floats;
	uint16_t *halves; /* NULL for F32 */
	struct cpu_pool *pool;
	json_t *map; /* weight_map of the index: tensor to file */
};

static enum status allocate(struct writing *w, struct error *err)
{
	w->count = names_count(w->o->shape);
	w->names = calloc(w->count, sizeof(*w->names));
	w->tensors = calloc(w->count, sizeof(*w->tensors));
	w->floats = malloc(sizeof(*w->floats) * CHUNK);
	w->halves = w->o->dtype == DTYPE_F32 ? NULL : malloc(sizeof(*w->halves) * CHUNK);
	w->map = json_object();
	if (!w->names || !w->tensors || !w->floats || (!w->halves && w->o->dtype != DTYPE_F32))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->dir);
	for (size_t i = 0; i < w->count; i++) {
		struct named *n = &w->names[i];
		struct tensor *t = &w->tensors[i];

		names_at(n, w->o->shape, i);
		*t = (struct tensor){.name = n->hf, .dtype = w->o->dtype, .rank = n->vector ? 1 : 2};
		t->dim[0] = n->vector ? n->cols : n->rows;
		t->dim[1] = n->vector ? 0 : n->cols;
		dtype_measure(t);
		w->all += t->size;
	}
	return cpu_pool_usable(&w->pool, err);
}

/* Index after the last tensor in the file that begins with tensor `first`. */
static size_t shard_end(const struct writing *w, size_t first)
{
	uint64_t size = w->tensors[first].size;
	size_t at = first + 1;

	while (at < w->count && size + w->tensors[at].size <= w->o->shard_bytes)
		size += w->tensors[at++].size;
	return at;
}

static void shard_name(const struct writing *w, size_t number, char *out, size_t size)
{
	if (w->shards == 1)
		snprintf(out, size, "model.safetensors");
	else
		snprintf(out, size, "model-%05zu-of-%05zu.safetensors", number + 1, w->shards);
}

/* Work of the thread pool: rows [row, row + rows) of a tensor, divided among the threads. */
struct part {
	struct writing *w;
	const struct named *n;
	int64_t row, rows;
	enum status st[THREADS_MAX];
	struct error err[THREADS_MAX];
};

static void make_rows(void *arg, unsigned thread)
{
	struct part *p = arg;
	struct writing *w = p->w;
	uint64_t first, last, at, count;

	cpu_share((uint64_t)p->rows, 1, thread, cpu_pool_count(w->pool), &first, &last);
	if (first >= last)
		return;
	at = first * (uint64_t)p->n->cols;
	count = (last - first) * (uint64_t)p->n->cols;
	p->st[thread] = w->o->rows(w->o->arg, p->n, p->row + (int64_t)first, (int64_t)(last - first),
				   w->floats + at, &p->err[thread]);
	if (!p->st[thread] && w->halves)
		dtype_pack(w->o->dtype, w->floats + at, w->halves + at, count);
}

static enum status write_rows(struct writing *w, struct safetensors_writer *out, struct part *p,
			      struct error *err)
{
	uint64_t count = (uint64_t)(p->rows * p->n->cols);
	const void *data = w->halves ? (const void *)w->halves : w->floats;

	cpu_pool_run(w->pool, make_rows, p);
	for (unsigned i = 0; i < cpu_pool_count(w->pool); i++) {
		if (p->st[i]) {
			*err = p->err[i];
			return p->st[i];
		}
	}
	if (!dtype_finite(w->o->dtype, data, count))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "%s: %s has numbers that %s cannot hold", w->dir, p->n->hf,
				       dtype_name(w->o->dtype));
	w->done += dtype_bytes(w->o->dtype, count);
	if (w->o->progress && !w->o->progress(w->o->arg, w->done, w->all))
		return error_set(err, STATUS_CANCELLED, "stopped on request");
	return safetensors_write(out, data, dtype_bytes(w->o->dtype, count), err);
}

static enum status write_tensor(struct writing *w, struct safetensors_writer *out, const struct named *n,
				struct error *err)
{
	struct part *p = calloc(1, sizeof(*p));
	int64_t rows = CHUNK / n->cols;
	enum status st = STATUS_OK;

	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->dir);
	if (w->o->begin)
		st = w->o->begin(w->o->arg, n, err);
	for (int64_t row = 0; row < n->rows && !st; row += rows) {
		*p = (struct part){.w = w, .n = n, .row = row};
		p->rows = n->rows - row < rows ? n->rows - row : rows;
		st = write_rows(w, out, p, err);
	}
	free(p);
	return st;
}

static enum status write_shard(struct writing *w, size_t first, size_t end, size_t number, struct error *err)
{
	char name[64], path[PATH_MAX];
	struct safetensors_writer out;
	enum status st;

	shard_name(w, number, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	for (size_t i = first; i < end; i++)
		json_object_set_new(w->map, w->names[i].hf, json_string(name));
	st = safetensors_write_begin(&out, path, w->tensors + first, end - first, NULL, err);
	if (!st && w->o->holes)
		st = safetensors_write_hole(&out, err);
	for (size_t i = first; i < end && !st && !w->o->holes; i++)
		st = write_tensor(w, &out, &w->names[i], err);
	return safetensors_write_end(&out, st, err);
}

static enum status write_all(struct writing *w, struct error *err)
{
	enum status st = allocate(w, err);
	size_t first = 0, number = 0;
	json_t *config;

	for (size_t at = 0; at < w->count && !st; at = shard_end(w, at))
		w->shards++;
	for (; first < w->count && !st; first = shard_end(w, first), number++)
		st = write_shard(w, first, shard_end(w, first), number, err);
	if (!st && w->shards > 1)
		st = json_file_write(w->dir, "model.safetensors.index.json",
				     json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)w->all,
					       "weight_map", w->map),
				     JSON_STYLE, err);
	if (!st && w->o->more)
		st = w->o->more(w->o->arg, w->dir, err);
	/* Written last: without it the folder is not a model. */
	if (st)
		return st;
	config = w->o->config ? json_deep_copy(w->o->config) : shape_config(w->o->shape, w->o->dtype);
	return json_file_write(w->dir, "config.json", config, JSON_STYLE, err);
}

static bool is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool empty = d || errno == ENOENT;

	while (d && empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

static enum status not_empty(const char *dir, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "%s exists and is not empty; name a new folder", dir);
}

/* Gives the new folder its final name. With `replace`, a folder of that name is exchanged with it, and is
 * then removed. Without, a folder that somebody created meanwhile stays, and the call fails. On file systems
 * without exchange, the name is missing for a moment. */
static enum status take_name(const char *temporary, const char *target, bool replace, struct error *err)
{
	if (!rename(temporary, target))
		return STATUS_OK;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return error_errno(err, errno, "cannot create %s", target);
	if (!replace)
		return not_empty(target, err);
	if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, target, RENAME_EXCHANGE)) {
		file_remove_tree(temporary);
		return STATUS_OK;
	}
	file_remove_tree(target);
	return rename(temporary, target) ? error_errno(err, errno, "cannot create %s", target) : STATUS_OK;
}

/* Creates the temporary folder next to the target. It is locked until *hold is closed. */
static enum status make_temporary(const char *temporary, const char *target, int *hold, struct error *err)
{
	enum status st;

	file_remove_tree(temporary); /* left by an earlier process with the same process number */
	file_sweep(target);
	st = file_make_dir(temporary, err);
	*hold = st ? -1 : open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*hold >= 0)
		file_hold(*hold);
	return st;
}

/* Replaces the temporary name in an error message by the name that the user gave. */
static void name_target(struct error *err, const char *temporary, const char *target)
{
	const struct error was = err ? *err : (struct error){0};
	const char *at = strstr(was.text, temporary);

	if (at)
		snprintf(err->text, sizeof(err->text), "%.*s%.300s%s", (int)(at - was.text), was.text, target,
			 at + strlen(temporary));
}

enum status folder_write(const char *dir, const struct folder_options *o, struct error *err)
{
	char target[PATH_MAX], temporary[PATH_MAX + 128];
	struct writing w = {.o = o, .dir = temporary};
	size_t size = strlen(dir);
	int hold = -1;
	enum status st;

	while (size > 1 && dir[size - 1] == '/')
		size--;
	if (!size || size > sizeof(target) - 128)
		return error_set(err, STATUS_BAD_INPUT, "cannot write a model to \"%.200s\"", dir);
	if (!o->replace && !is_empty(dir))
		return not_empty(dir, err);
	snprintf(target, sizeof(target), "%.*s", (int)size, dir);
	if (!file_temporary_name(temporary, sizeof(temporary), target))
		return error_set(err, STATUS_BAD_INPUT, "cannot write a model to \"%.200s\"", dir);
	if (file_is_held(temporary))
		return file_busy(target, err);
	st = make_temporary(temporary, target, &hold, err);
	if (!st)
		st = write_all(&w, err);
	st = mapped_check(st, err);
	if (!st)
		st = take_name(temporary, target, o->replace, err);
	if (st) {
		file_remove_tree(temporary);
		name_target(err, temporary, target);
	}
	if (hold >= 0)
		close(hold);
	cpu_pool_destroy(&w.pool);
	json_decref(w.map);
	free(w.halves);
	free(w.floats);
	free(w.tensors);
	free(w.names);
	return st;
}
