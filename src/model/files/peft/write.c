/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an adapter, and compares the written files with its source. */
#include <inttypes.h>
#include <limits.h>
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"
#include "core/json/file.h"
#include "model/files/peft/names.h"

struct writing {
	const struct peft_config *config;
	const struct shape *shape;
	const struct peft_slot *slots;
	size_t slot_count, count; /* number of slots; number of matrices needed */
	struct tensor *tensors;
	const struct peft_slot **order; /* slots in the file's order */
	char (*names)[PEFT_NAME_SIZE];
};

static const struct peft_slot *slot_of(const struct writing *w, const struct peft_place *at)
{
	for (size_t i = 0; i < w->slot_count; i++) {
		if (w->slots[i].part == at->part && !strcmp(w->slots[i].name, at->base.hf))
			return &w->slots[i];
	}
	return NULL;
}

static enum status check_numbers(const char *name, const struct peft_slot *slot, struct error *err)
{
	const struct mat *m = &slot->mat;

	for (int64_t row = 0; row < m->rows; row++) {
		if (!dtype_finite(DTYPE_F32, (const float *)m->data + row * m->ld, (size_t)m->cols))
			return error_set_cause(err, STATUS_MISMATCH, CAUSE_NAN,
					       "%s has NaN or infinity; the adapter is not written", name);
	}
	return STATUS_OK;
}

static bool any_nonzero(const struct mat *m)
{
	for (int64_t row = 0; row < m->rows; row++) {
		const float *x = (const float *)m->data + row * m->ld;

		for (int64_t i = 0; i < m->cols; i++)
			if (x[i] != 0)
				return true;
	}
	return false;
}

bool peft_slots_do_nothing(const struct peft_slot *slots, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (slots[i].part == PEFT_WHOLE || (slots[i].part == PEFT_B && any_nonzero(&slots[i].mat)))
			return false;
	}
	return true;
}

/* Finds the slot of the i-th matrix that the configuration needs. */
static enum status take(struct writing *w, size_t i, struct error *err)
{
	struct peft_place at;
	int64_t rows, cols;

	peft_names_at(&at, w->shape, w->config, i);
	peft_name(w->names[i], &at);
	rows = at.part == PEFT_A ? w->config->rank : at.base.rows;
	cols = at.part == PEFT_B ? w->config->rank : at.base.cols;
	w->order[i] = slot_of(w, &at);
	if (!w->order[i] || w->order[i]->mat.rows != rows || w->order[i]->mat.cols != cols ||
	    w->order[i]->mat.dtype != DTYPE_F32 || !w->order[i]->mat.data)
		return error_set(err, STATUS_BUG, "%s of %" PRId64 " x %" PRId64 " is missing", w->names[i],
				 rows, cols);
	w->tensors[i] =
		(struct tensor){.name = w->names[i], .dtype = DTYPE_F32, .rank = 2, .dim = {rows, cols}};
	return check_numbers(w->names[i], w->order[i], err);
}

/* Writes packed rows at once: a row of B has few numbers, and a model has thousands of such rows. */
static enum status write_matrix(struct safetensors_writer *out, const struct mat *m, struct error *err)
{
	const bool packed = m->ld == m->cols;
	const int64_t writes = packed ? 1 : m->rows;
	const uint64_t size = sizeof(float) * (uint64_t)(packed ? m->rows * m->cols : m->cols);
	enum status st = STATUS_OK;

	for (int64_t row = 0; row < writes && !st; row++)
		st = safetensors_write(out, (const float *)m->data + row * m->ld, size, err);
	return st;
}

static enum status write_weights(const struct writing *w, const char *path, struct error *err)
{
	const char *sum = w->config->base_sum;
	const char *storage = storage_word(&w->config->base_storage);
	json_t *metadata = *sum ? json_pack("{s:s, s:s*}", PEFT_BASE_SUM, sum, PEFT_BASE_STORAGE,
					    *storage ? storage : NULL)
				: NULL;
	struct safetensors_writer out;
	enum status st = safetensors_write_begin(&out, path, w->tensors, w->count, metadata, err);

	for (size_t i = 0; i < w->count && !st; i++)
		st = write_matrix(&out, &w->order[i]->mat, err);
	json_decref(metadata);
	return safetensors_write_end(&out, st, err);
}

static enum status compare(const struct writing *w, const char *dir, struct error *err)
{
	enum { FORGET_BYTES = 1 << 20 };
	struct peft p;
	uint64_t read = 0;
	enum status st = peft_open(&p, dir, w->shape, err);

	if (st)
		return st;
	if (p.file.count != w->count || p.config.rank != w->config->rank ||
	    peft_scale(&p.config) != peft_scale(w->config) || p.config.targets != w->config->targets ||
	    p.config.save != w->config->save || strcmp(p.config.base_sum, w->config->base_sum) ||
	    strcmp(storage_word(&p.config.base_storage), storage_word(&w->config->base_storage)))
		st = error_set(err, STATUS_MISMATCH, "%s: reading it back gives another adapter", dir);
	for (size_t i = 0; i < w->count && !st; i++) {
		const struct mat *m = &w->order[i]->mat;
		const struct tensor *t = peft_find(&p, w->order[i]->name, w->order[i]->part);
		size_t size = sizeof(float) * (size_t)m->cols;

		for (int64_t row = 0; row < m->rows && !st; row++) {
			if (memcmp(t->data + (size_t)row * size, (const float *)m->data + row * m->ld, size))
				st = error_set(err, STATUS_MISMATCH, "%s: %s differs when read back", dir,
					       t->name);
		}
		read += t->size;
		if (read < FORGET_BYTES)
			continue;
		mapped_forget(p.file.map, p.file.map_size);
		read = 0;
	}
	st = mapped_check(st, err);
	peft_release(&p);
	return st;
}

enum status peft_write(const char *dir, const struct peft_config *c, const struct shape *s,
		       const struct peft_slot *slots, size_t count, struct error *err)
{
	struct writing w = {.config = c, .shape = s, .slots = slots, .slot_count = count};
	char path[PATH_MAX];
	enum status st;

	w.count = peft_names_count(s, c);
	w.tensors = calloc(w.count + 1, sizeof(*w.tensors));
	w.order = calloc(w.count + 1, sizeof(const struct peft_slot *));
	w.names = calloc(w.count + 1, sizeof(*w.names));
	st = w.tensors && w.order && w.names
		     ? STATUS_OK
		     : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", dir);
	if (!st && w.count != count)
		st = error_set(err, STATUS_BUG, "%s: %zu matrices are given, but the adapter has %zu", dir,
			       count, w.count);
	for (size_t i = 0; i < w.count && !st; i++)
		st = take(&w, i, err);
	if (!st && peft_slots_do_nothing(slots, count))
		st = error_set(
			err, STATUS_MISMATCH,
			"every lora_B is still zero, so the adapter would have no effect; it is not written");
	if (!st)
		st = file_make_dir(dir, err);
	if (!st && snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, dir) >= (int)sizeof(path))
		st = error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", dir);
	if (!st)
		st = write_weights(&w, path, err);
	if (!st)
		st = json_file_write(dir, PEFT_CONFIG, peft_config_json(c),
				     JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15), err);
	if (!st)
		st = compare(&w, dir, err);
	free(w.tensors);
	free(w.order);
	free(w.names);
	return st;
}
