/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "model/tensor/dtype.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/names.h"

enum { STATE_MAX = 256 << 20 };

void checkpoint_found_release(struct checkpoint_found *f)
{
	json_decref(f->manifest);
	*f = (struct checkpoint_found){0};
}

static void put_aside(const char *run, uint64_t step, const struct error *why, struct text *note)
{
	char path[PATH_MAX + 64], aside[PATH_MAX + 64];

	checkpoint_path(path, run, step, "");
	checkpoint_path(aside, run, step, CHECKPOINT_DAMAGED);
	if (!access(path, F_OK)) /* otherwise the .damaged folder is this checkpoint */
		file_remove_tree(aside);
	if (!rename(path, aside))
		text_addf(note, "%s; it is renamed to %s\n", why->text, aside);
	else
		text_addf(note, "%s\n", why->text);
}

enum status checkpoint_open(struct checkpoint_found *f, const char *run, uint64_t step, struct text *note,
			    struct error *err)
{
	enum status st;

	*f = (struct checkpoint_found){.step = step};
	checkpoint_path(f->path, run, step, "");
	st = manifest_check(&f->manifest, f->path, err);
	if (!st && (uint64_t)json_integer_value(json_object_get(f->manifest, "step")) != step)
		st = error_set(err, STATUS_BAD_INPUT, "%s: its manifest belongs to another step", f->path);
	if (st) {
		put_aside(run, step, err, note);
		checkpoint_found_release(f);
	}
	return st;
}

enum status checkpoint_find(struct checkpoint_found *f, const char *run, struct text *note, struct error *err)
{
	struct checkpoint_list list;
	char path[PATH_MAX + 64];
	bool found = false;
	enum status st = checkpoint_list_read(&list, run, err);

	if (st)
		return st;
	for (size_t i = 0; i < list.count; i++) {
		struct error why = {0};

		if (list.entry[i].state == CHECKPOINT_HALF) {
			checkpoint_path(path, run, list.entry[i].step, CHECKPOINT_NEW);
			file_remove_tree(path);
			continue;
		}
		if (found)
			continue;
		found = !checkpoint_open(f, run, list.entry[i].step, note, &why);
	}
	checkpoint_list_release(&list);
	return found ? STATUS_OK
		     : error_set(err, STATUS_UNAVAILABLE, "%s: there is no intact checkpoint", run);
}

static enum status read_at(const char *path, json_int_t offset, size_t size, void *out, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t got = 1;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	while (done < size && got > 0) { /* one call reads at most 2 GiB */
		got = pread(fd, (char *)out + done, size - done, (off_t)offset + (off_t)done);
		done += got > 0 ? (size_t)got : 0;
		if (got < 0 && errno == EINTR)
			got = 1;
	}
	close(fd);
	return done == size
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT, "%s: it is shorter than its manifest says", path);
}

/* Reads elements [begin, begin + count) of a state, from the shards that contain them. Only F32 states have
 * several shards; each of them holds its part of master, m and v. */
static enum status read_range(const struct checkpoint_found *f, const struct manifest_state *state, int part,
			      json_int_t begin, json_int_t count, uint8_t *out, struct error *err)
{
	const bool sharded = json_array_size(json_object_get(f->manifest, "shards")) > 1;
	const json_int_t size = (json_int_t)dtype_bytes(state->dtype, 1);
	const json_t *shard;
	size_t i;

	json_array_foreach(json_object_get(f->manifest, "shards"), i, shard)
	{
		json_int_t first = sharded ? json_integer_value(json_object_get(shard, "begin")) : 0;
		json_int_t length = sharded ? json_integer_value(json_object_get(shard, "count"))
					    : (json_int_t)state->count;
		json_int_t offset = sharded ? part * length * size : (json_int_t)state->offset;
		json_int_t from = begin > first ? begin : first;
		json_int_t to = begin + count < first + length ? begin + count : first + length;
		char path[PATH_MAX + 400];
		enum status st;

		if (from >= to)
			continue;
		snprintf(path, sizeof(path), "%s/%s", f->path,
			 json_string_value(json_object_get(shard, "file")));
		st = read_at(path, offset + (from - first) * size, (size_t)((to - from) * size),
			     out + (from - begin) * size, err);
		if (st)
			return st;
	}
	return STATUS_OK;
}

static const json_t *find_parameter(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(
		(json_t *)list, i,
		one) if (!strcmp(json_string_value(json_object_get(one, "name")), name)) return one;
	return NULL;
}

/* One state of one parameter. `entry` has its place in the checkpoint. */
static enum status load_state(const struct checkpoint_found *f, const json_t *entry,
			      const struct param *param, struct params *p, enum params_state which,
			      struct error *err)
{
	const struct params_range to = params_range(p, param, which);
	const struct mat *m = params_state(p, which);
	const bool by_state = which >= PARAMS_STATE_m_scale;
	const json_int_t first = json_integer_value(json_object_get(entry, by_state ? "state" : "offset"));
	struct manifest_state from;

	if (!to.count)
		return STATUS_OK;
	if (!manifest_state(&from, f->manifest, which) || from.dtype != m->dtype ||
	    (by_state && !json_object_get(entry, "state")) || (uint64_t)first + to.count > from.count)
		return error_set(err, STATUS_BAD_INPUT, "%s: its state %s does not hold %s", f->path,
				 params_state_name(which), param->name);
	return read_range(f, &from, (int)which, first, (json_int_t)to.count,
			  (uint8_t *)m->data + dtype_bytes(m->dtype, to.first), err);
}

static enum status load_one(const struct checkpoint_found *f, const json_t *entry, const struct param *param,
			    struct params *p, struct error *err)
{
	enum status st = STATUS_OK;

	if (!entry)
		return error_set(err, STATUS_BAD_INPUT, "%s: it has no parameter %s", f->path, param->name);
	if (json_integer_value(json_object_get(entry, "rows")) != param->rows ||
	    json_integer_value(json_object_get(entry, "cols")) != param->cols)
		return error_set(err, STATUS_BAD_INPUT, "%s: its parameter %s has another size", f->path,
				 param->name);
	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++)
		st = load_state(f, entry, param, p, (enum params_state)i, err);
	return st;
}

static enum status check_format(const struct checkpoint_found *f, const struct params *p, struct error *err)
{
	const char *moments = manifest_moments(f->manifest), *master = manifest_master(f->manifest);

	if (!strcmp(moments, moments_name(p->format.moments)) &&
	    !strcmp(master, master_name(p->format.master)))
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s: its optimizer states are %s moments with master_weights: %s, but this run has %s moments "
		"with master_weights: %s; resume with the same optim and master_weights, or start a new run",
		f->path, moments, master, moments_name(p->format.moments), master_name(p->format.master));
}

enum status checkpoint_load(const struct checkpoint_found *f, struct params *p, struct error *err)
{
	const json_t *list = json_object_get(f->manifest, "parameters");
	enum status st = STATUS_OK;

	if (json_array_size(list) != (size_t)p->count)
		return error_set(err, STATUS_BAD_INPUT, "%s: it has %zu parameters, but this run trains %d",
				 f->path, json_array_size(list), p->count);
	st = check_format(f, p, err);
	for (int i = 0; i < p->count && !st; i++)
		st = load_one(f, find_parameter(list, p->table[i].name), &p->table[i], p, err);
	return st;
}

enum status checkpoint_state(const struct checkpoint_found *f, json_t **state, struct error *err)
{
	char path[PATH_MAX + 96], *text;
	json_error_t why;
	size_t size;
	enum status st;

	snprintf(path, sizeof(path), "%s/" CHECKPOINT_STATE, f->path);
	st = file_read(&text, &size, path, STATE_MAX, err);
	if (st)
		return st;
	*state = json_loadb(text, size, 0, &why);
	free(text);
	return *state ? STATUS_OK : error_set(err, STATUS_BAD_INPUT, "%s: not JSON: %s", path, why.text);
}
