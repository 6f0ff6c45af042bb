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
#include "train/checkpoint/read_states.h"

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
	st = manifest_read(&f->manifest, f->path, err);
	if (!st && (uint64_t)json_integer_value(json_object_get(f->manifest, "step")) != step)
		st = error_set(err, STATUS_BAD_INPUT, "%s: its manifest belongs to another step", f->path);
	if (!st && manifest_check_shards(f->manifest, f->path, err)) { /* they may be on another disk */
		checkpoint_found_release(f);
		f->elsewhere = true;
		return STATUS_UNAVAILABLE;
	}
	if (!st)
		st = manifest_check_sums(f->manifest, f->path, err);
	if (st) {
		put_aside(run, step, err, note);
		checkpoint_found_release(f);
	}
	return st;
}

enum status checkpoint_reopen(struct checkpoint_found *f, const char *path, uint64_t step, struct error *err)
{
	enum status st;

	*f = (struct checkpoint_found){.step = step};
	text_copy(f->path, sizeof(f->path), path);
	st = manifest_read(&f->manifest, f->path, err);
	if (!st)
		st = manifest_check_shards(f->manifest, f->path, err);
	if (st)
		checkpoint_found_release(f);
	return st;
}

enum status checkpoint_find(struct checkpoint_found *f, const char *run, struct text *note, struct error *err)
{
	struct checkpoint_list list;
	char path[PATH_MAX + 80];
	bool found = false;
	struct error why = {0};
	enum status st = checkpoint_list_read(&list, run, err);

	*f = (struct checkpoint_found){0};
	if (st)
		return st;
	for (size_t i = 0; i < list.count; i++) {
		if (list.entry[i].state == CHECKPOINT_HALF) {
			snprintf(path, sizeof(path), "%s/%s", run, list.entry[i].name);
			file_remove_tree(path);
			continue;
		}
		if (found || f->elsewhere)
			continue;
		error_clear(&why);
		found = !checkpoint_open(f, run, list.entry[i].step, note, &why);
	}
	checkpoint_list_release(&list);
	if (f->elsewhere)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s; copy it there, or remove that checkpoint to resume from the one before",
				 why.text);
	return found ? STATUS_OK
		     : error_set(err, STATUS_UNAVAILABLE, "%s: there is no intact checkpoint", run);
}

#define NOT_FOUND SIZE_MAX

/* The number of a parameter in the manifest's list. */
static size_t find_parameter(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "name")), name))
			return i;
	}
	return NOT_FOUND;
}

/* Part of the flat vector that is read: of each state, its first element there. */
struct target {
	size_t begin, end;
	struct mat state[PARAMS_STATE_COUNT];
	size_t first[PARAMS_STATE_COUNT];
};

/* Whether the checkpoint has this state of the parameter. *first: its first element there. */
static enum status find_state(const struct checkpoint_found *f, const json_t *entry,
			      const struct param *param, const struct params *p, enum params_state which,
			      uint64_t *first, struct error *err)
{
	const struct params_range to = params_range(p, param, which);
	const bool by_state = which >= PARAMS_STATE_m_scale;
	struct params copy = *p;
	struct manifest_state from;

	*first = (uint64_t)json_integer_value(json_object_get(entry, by_state ? "state" : "offset"));
	if (!to.count ||
	    (manifest_state(&from, f->manifest, which) && from.dtype == params_state(&copy, which)->dtype &&
	     (!by_state || json_object_get(entry, "state")) && *first + to.count <= from.count))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s: its state %s does not hold %s", f->path,
			 params_state_name(which), param->name);
}

static const json_t *parameters_of(const struct checkpoint_found *f)
{
	return json_object_get(f->manifest, "parameters");
}

/* Reads what the target has of one state of one parameter. `place`: that of the parameter in the whole one.
 */
static enum status load_state(const struct checkpoint_found *f, const struct param *param,
			      const struct split_part *place, const struct params *p, const struct target *t,
			      enum params_state which, struct error *err)
{
	const struct params_range own = params_range(p, param, which);
	const struct mat *m = &t->state[which];
	const size_t begin = t->first[which], end = begin + (size_t)(m->rows * m->cols),
		     from = own.first > begin ? own.first : begin,
		     to = own.first + own.count < end ? own.first + own.count : end;
	const size_t index = find_parameter(parameters_of(f), param->name);
	const struct state_source source = {f, which, m->dtype};
	uint64_t first;
	uint8_t *out;
	enum status st;

	if (from >= to)
		return STATUS_OK;
	out = (uint8_t *)m->data + dtype_bytes(m->dtype, from - begin);
	if (which < PARAMS_STATE_m_scale)
		return read_states_tensor(&source, index, place, from - own.first, to - from, out, err);
	st = find_state(f, json_array_get(parameters_of(f), index), param, p, which, &first, err);
	return st ? st : read_states_range(&source, 0, first + (from - own.first), to - from, out, err);
}

static enum status check_one(const struct checkpoint_found *f, const json_t *entry, const struct param *param,
			     const struct params *p, struct error *err)
{
	uint64_t first;
	enum status st = STATUS_OK;

	if (!entry)
		return error_set(err, STATUS_BAD_INPUT, "%s: it has no parameter %s", f->path, param->name);
	if (json_integer_value(json_object_get(entry, "rows")) != param->rows ||
	    json_integer_value(json_object_get(entry, "cols")) != param->cols)
		return error_set(err, STATUS_BAD_INPUT, "%s: its parameter %s has another size", f->path,
				 param->name);
	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++)
		st = find_state(f, entry, param, p, (enum params_state)i, &first, err);
	return st;
}

static enum status load_one(const struct checkpoint_found *f, const struct param *param,
			    const struct split_part *place, const struct params *p, const struct target *t,
			    struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++)
		st = load_state(f, param, place, p, t, (enum params_state)i, err);
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

enum status checkpoint_fits(const struct checkpoint_found *f, const struct params *p, struct error *err)
{
	const json_t *list = parameters_of(f);
	enum status st = STATUS_OK;

	if (json_array_size(list) != (size_t)p->count)
		return error_set(err, STATUS_BAD_INPUT, "%s: it has %zu parameters, but this run trains %d",
				 f->path, json_array_size(list), p->count);
	st = check_format(f, p, err);
	for (int i = 0; i < p->count && !st; i++)
		st = check_one(f, json_array_get(list, find_parameter(list, p->table[i].name)), &p->table[i],
			       p, err);
	return st;
}

/* `parts` NULL: *p has the whole tensors. */
static enum status load(const struct checkpoint_found *f, const struct params *p,
			const struct checkpoint_parts *parts, const struct shard *s, struct error *err)
{
	struct target t = {.begin = s->begin, .end = s->end};
	enum status st;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		t.state[i] = s->state[i];
		t.first[i] = params_part(p, s->begin, s->end, (enum params_state)i).first;
	}
	st = checkpoint_fits(f, parts ? &parts->whole : p, err);
	for (int i = 0; i < p->count && !st; i++) {
		const struct param *one = &p->table[i];
		const struct split_part whole = {.rows = one->rows, .cols = one->cols};

		if (one->offset < t.end && one->offset + (size_t)(one->rows * one->cols) > t.begin)
			st = load_one(f, one, parts ? checkpoint_parts_place(parts, parts->rank, i) : &whole,
				      p, &t, err);
	}
	return st;
}

enum status checkpoint_load_shard(const struct checkpoint_found *f, const struct params *p,
				  const struct shard *s, struct error *err)
{
	return load(f, p, NULL, s, err);
}

enum status checkpoint_load_part(const struct checkpoint_found *f, const struct checkpoint_parts *parts,
				 const struct shard *s, struct error *err)
{
	return load(f, &parts->local, parts, s, err);
}

enum status checkpoint_load(const struct checkpoint_found *f, struct params *p, struct error *err)
{
	struct shard whole;

	shard_view(&whole, p, 0, p->length);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		if (!whole.state[i].data)
			whole.state[i] = (struct mat){0};
	return checkpoint_load_shard(f, p, &whole, err);
}

/* Reads elements [first, first + count) of both halves of a parameter's weights; the second one may be
 * absent. */
static enum status read_weights(const struct checkpoint_found *f, const struct param *param,
				const struct params *p, size_t first, size_t count, struct params *out,
				struct error *err)
{
	static const enum params_state halves[] = {PARAMS_STATE_master, PARAMS_STATE_rest};
	const struct split_part whole = {.rows = param->rows, .cols = param->cols};
	const size_t index = find_parameter(parameters_of(f), param->name);
	enum status st = check_one(f, json_array_get(parameters_of(f), index), param, p, err);

	for (int i = 0; i < 2 && !st; i++) {
		struct mat *m = params_state(out, halves[i]);
		const struct state_source source = {f, halves[i], m->dtype};

		if (m->rows)
			st = read_states_tensor(&source, index, &whole, first, count, m->data, err);
	}
	return st;
}

enum status checkpoint_weights(const struct checkpoint_found *f, const struct params *p,
			       const struct param *param, size_t first, size_t count, float *out,
			       struct error *err)
{
	struct params part = {.format = p->format, .master = p->master, .rest = p->rest};
	enum status st;

	part.master.data = out; /* F32 needs no second buffer */
	part.rest.data = NULL;
	if (p->format.master != MASTER_F32) {
		part.master.data = malloc(2 * count * sizeof(uint16_t));
		if (!part.master.data)
			return error_errno(err, ENOMEM, "%s", f->path);
		part.rest.data = (uint16_t *)part.master.data + count;
	}
	st = read_weights(f, param, p, first, count, &part, err);
	if (part.master.data == out)
		return st;
	if (!st)
		params_master(&part, 0, count, out);
	free(part.master.data);
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
