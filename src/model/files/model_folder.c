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
#include "model/files/bnb4/bnb4_file.h"
#include "model/files/safetensors/safetensors.h"

#define JSON_STYLE (JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15))

enum {
	CHUNK = 1 << 22, /* elements produced and written at once */
	THREADS_MAX = 64,
};

/* A tensor of the files: one of the model, or a part of one that is quantized. */
struct entry {
	const struct named *n;
	bool quantized;
	struct bnb4_part part; /* of the model's own tensor: name and tensor only */
	void *late;	       /* data of a part that is written at the end of its file */
};

struct writing {
	const struct folder_options *o;
	const char *dir;
	struct named *names;
	struct entry *entries;
	size_t *first;	/* first entry of each name; the last one is the number of entries */
	uint64_t *size; /* bytes of each name's entries */
	size_t count, shards;
	uint64_t done, all;
	float *floats;
	uint16_t *halves; /* NULL for F32 */
	struct cpu_pool *pool;
	json_t *map; /* weight_map of the index: tensor to file */
};

static bool is_quantized(const struct writing *w, const struct named *n)
{
	return w->o->bnb4 && n->layer >= 0 && !n->vector;
}

static struct bnb4_state state_of(const struct writing *w, const struct named *n)
{
	return (struct bnb4_state){.type = w->o->bnb4->type,
				   .dtype = w->o->dtype,
				   .rows = n->rows,
				   .cols = n->cols,
				   .nested = w->o->bnb4->nested};
}

static size_t add_quantized(const struct writing *w, struct entry *to, const struct named *n)
{
	const struct bnb4_state state = state_of(w, n);
	struct bnb4_part part[BNB4_PARTS_MOST];
	const size_t count = bnb4_parts(part, n->hf, &state);

	for (size_t i = 0; i < count; i++) {
		to[i] = (struct entry){.n = n, .quantized = true, .part = part[i]};
		to[i].part.tensor.name = to[i].part.name;
	}
	return count;
}

static size_t add_plain(const struct writing *w, struct entry *to, const struct named *n)
{
	struct tensor *t = &to->part.tensor;

	*to = (struct entry){.n = n};
	*t = (struct tensor){.name = n->hf, .dtype = w->o->dtype, .rank = n->vector ? 1 : 2};
	t->dim[0] = n->vector ? n->cols : n->rows;
	t->dim[1] = n->vector ? 0 : n->cols;
	dtype_measure(t);
	return 1;
}

static enum status allocate(struct writing *w, struct error *err)
{
	size_t used = 0;

	w->count = names_count(w->o->shape);
	w->names = calloc(w->count, sizeof(*w->names));
	w->entries = calloc(w->count * (w->o->bnb4 ? BNB4_PARTS_MOST : 1), sizeof(*w->entries));
	w->first = calloc(w->count + 1, sizeof(*w->first));
	w->size = calloc(w->count, sizeof(*w->size));
	w->floats = malloc(sizeof(*w->floats) * CHUNK);
	w->halves = w->o->dtype == DTYPE_F32 ? NULL : malloc(sizeof(*w->halves) * CHUNK);
	w->map = json_object();
	if (!w->names || !w->entries || !w->first || !w->size || !w->floats ||
	    (!w->halves && w->o->dtype != DTYPE_F32))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->dir);
	for (size_t i = 0; i < w->count; i++) {
		struct named *n = &w->names[i];

		names_at(n, w->o->shape, i);
		used += is_quantized(w, n) ? add_quantized(w, w->entries + used, n)
					   : add_plain(w, w->entries + used, n);
		w->first[i + 1] = used;
		for (size_t k = w->first[i]; k < used; k++)
			w->size[i] += w->entries[k].part.tensor.size;
		w->all += w->size[i];
	}
	return cpu_pool_usable(&w->pool, err);
}

/* Index after the last tensor in the file that begins with tensor `first`. */
static size_t shard_end(const struct writing *w, size_t first)
{
	uint64_t size = w->size[first];
	size_t at = first + 1;

	while (at < w->count && size + w->size[at] <= w->o->shard_bytes)
		size += w->size[at++];
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

/* Makes the rows of a part; *data becomes their numbers. */
static enum status get_rows(struct writing *w, struct part *p, const void **data, struct error *err)
{
	*data = w->halves ? (const void *)w->halves : w->floats;
	cpu_pool_run(w->pool, make_rows, p);
	for (unsigned i = 0; i < cpu_pool_count(w->pool); i++) {
		if (p->st[i]) {
			*err = p->err[i];
			return p->st[i];
		}
	}
	if (!dtype_finite(w->o->dtype, *data, (size_t)(p->rows * p->n->cols)))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "%s: %s has numbers that %s cannot hold", w->dir, p->n->hf,
				       dtype_name(w->o->dtype));
	return STATUS_OK;
}

static enum status count_done(struct writing *w, uint64_t bytes, struct error *err)
{
	w->done += bytes;
	if (w->o->progress && !w->o->progress(w->o->arg, w->done, w->all))
		return error_set(err, STATUS_CANCELLED, "stopped on request");
	return STATUS_OK;
}

/* Makes all rows of a tensor, and writes them to `out`, or to `matrix` if it is not NULL. */
static enum status make_tensor(struct writing *w, struct safetensors_writer *out, const struct named *n,
			       uint8_t *matrix, struct error *err)
{
	struct part *p = calloc(1, sizeof(*p));
	int64_t rows = CHUNK / n->cols;
	enum status st = STATUS_OK;
	const void *data;

	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->dir);
	if (w->o->begin)
		st = w->o->begin(w->o->arg, n, err);
	for (int64_t row = 0; row < n->rows && !st; row += rows) {
		uint64_t bytes;

		*p = (struct part){.w = w, .n = n, .row = row};
		p->rows = n->rows - row < rows ? n->rows - row : rows;
		bytes = dtype_bytes(w->o->dtype, (uint64_t)(p->rows * n->cols));
		st = get_rows(w, p, &data, err);
		if (!st && matrix)
			memcpy(matrix + dtype_bytes(w->o->dtype, (uint64_t)(row * n->cols)), data, bytes);
		if (!st && !matrix)
			st = count_done(w, bytes, err);
		if (!st && !matrix)
			st = safetensors_write(out, data, bytes, err);
	}
	free(p);
	return st;
}

/* Writes the parts of a quantized matrix that are not late, and keeps the late ones. */
static enum status write_parts(struct writing *w, struct safetensors_writer *out, size_t name,
			       const struct bnb4 *m, struct error *err)
{
	struct bnb4_state state = state_of(w, &w->names[name]);
	enum status st = STATUS_OK;

	state.offset = m->nested ? *m->offset : 0;
	for (size_t i = w->first[name]; i < w->first[name + 1] && !st; i++) {
		struct entry *e = &w->entries[i];
		void *data = malloc(e->part.tensor.size + 1);

		st = data ? bnb4_part_data(data, &e->part, &state, m, err)
			  : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory",
					    w->dir);
		if (!st && e->part.late) {
			e->late = data;
			continue;
		}
		if (!st)
			st = safetensors_write(out, data, e->part.tensor.size, err);
		free(data);
	}
	return st ? st : count_done(w, w->size[name], err);
}

static enum status write_quantized(struct writing *w, struct safetensors_writer *out, size_t name,
				   struct error *err)
{
	const struct named *n = &w->names[name];
	const struct folder_bnb4 *to = w->o->bnb4;
	struct bnb4 m = {.rows = n->rows, .cols = n->cols, .type = to->type, .nested = to->nested};
	struct mat from = {.rows = n->rows, .cols = n->cols, .ld = n->cols, .dtype = w->o->dtype};
	void *memory = malloc(bnb4_bytes(n->rows, n->cols, to->nested));
	enum status st = STATUS_OK;

	from.data = malloc(dtype_bytes(w->o->dtype, (uint64_t)(n->rows * n->cols)));
	if (!memory || !from.data)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory for %s", w->dir,
				     n->hf);
	bnb4_place(&m, memory);
	if (!st)
		st = make_tensor(w, NULL, n, from.data, err);
	if (!st)
		st = bnb4_quantize(&m, &from, w->pool, err);
	free(from.data);
	if (!st)
		st = write_parts(w, out, name, &m, err);
	free(memory);
	return st;
}

/* The tensors of a file in their order: quantized matrices, others, late parts. */
static size_t order_tensors(struct writing *w, size_t first, size_t end, struct tensor *out)
{
	size_t count = 0;

	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = w->first[first]; i < w->first[end]; i++) {
			const struct entry *e = &w->entries[i];

			if (pass == (e->part.late ? 2 : !e->quantized))
				out[count++] = e->part.tensor;
		}
	}
	return count;
}

static enum status write_tensors(struct writing *w, struct safetensors_writer *out, size_t first, size_t end,
				 struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = first; i < end && !st; i++)
		if (w->entries[w->first[i]].quantized)
			st = write_quantized(w, out, i, err);
	for (size_t i = first; i < end && !st; i++)
		if (!w->entries[w->first[i]].quantized)
			st = make_tensor(w, out, &w->names[i], NULL, err);
	for (size_t i = w->first[first]; i < w->first[end] && !st; i++)
		if (w->entries[i].late)
			st = safetensors_write(out, w->entries[i].late, w->entries[i].part.tensor.size, err);
	return st;
}

static enum status write_shard(struct writing *w, size_t first, size_t end, size_t number, struct error *err)
{
	struct tensor *order = calloc(w->first[end] - w->first[first], sizeof(*order));
	char name[64], path[PATH_MAX];
	struct safetensors_writer out;
	enum status st;

	if (!order)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->dir);
	shard_name(w, number, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	for (size_t i = w->first[first]; i < w->first[end]; i++)
		json_object_set_new(w->map, w->entries[i].part.tensor.name, json_string(name));
	st = safetensors_write_begin(&out, path, order, order_tensors(w, first, end, order), NULL, err);
	if (!st && w->o->holes)
		st = safetensors_write_hole(&out, err);
	if (!st && !w->o->holes)
		st = write_tensors(w, &out, first, end, err);
	st = safetensors_write_end(&out, st, err);
	for (size_t i = w->first[first]; i < w->first[end]; i++) {
		free(w->entries[i].late);
		w->entries[i].late = NULL;
	}
	free(order);
	return st;
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
	free(w.entries);
	free(w.first);
	free(w.size);
	free(w.names);
	return st;
}
