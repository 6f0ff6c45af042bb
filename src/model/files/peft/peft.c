/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/peft/peft.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include "core/file/mapped.h"
#include "core/text/text.h"
#include "model/tensor/dtype.h"
#include "core/json/file.h"
#include "model/files/peft/names.h"

enum { CONFIG_MAX = 1 << 20 };

double peft_scale(const struct peft_config *c)
{
	return c->rslora ? c->alpha / sqrt((double)c->rank) : c->alpha / (double)c->rank;
}

static enum status check_tensor(const struct peft *p, const struct tensor *t, const struct peft_place *at,
				struct error *err)
{
	int64_t rows = at->part == PEFT_B   ? at->base.rows
		       : at->part == PEFT_A ? p->config.rank
					    : at->base.rows;
	int64_t cols = at->part == PEFT_B ? p->config.rank : at->base.cols;

	if (t->rank != 2 || t->dim[0] != rows || t->dim[1] != cols)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.150s is %" PRId64 " x %" PRId64 "; rank %" PRId64
				 " and this model make it %" PRId64 " x %" PRId64
				 "; it may belong to another model",
				 p->file.path, t->name, t->rank > 1 ? t->dim[0] : 1,
				 t->rank ? t->dim[t->rank - 1] : 1, p->config.rank, rows, cols);
	if (!dtype_unpacks(t->dtype))
		return error_set(err, STATUS_UNSUPPORTED, "%s: %.150s is %s; F32, BF16 and F16 are supported",
				 p->file.path, t->name, dtype_name(t->dtype));
	return STATUS_OK;
}

static const struct tensor *find(const struct safetensors *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!strcmp(s->tensors[i].name, name))
			return &s->tensors[i];
	}
	return NULL;
}

/* If A is present in one layer, A and B must be present in all layers. */
static enum status check_complete(const struct peft *p, const struct shape *s, struct error *err)
{
	struct peft_place place;
	char name[PEFT_NAME_SIZE];
	size_t count = peft_names_count(s, &p->config);

	for (size_t i = 0; i < count; i++) {
		peft_names_at(&place, s, &p->config, i);
		peft_name(name, &place);
		if (!find(&p->file, name))
			return error_set(err, STATUS_BAD_INPUT, "%s: %s is missing", p->file.path, name);
	}
	if (!count)
		return error_set(err, STATUS_BAD_INPUT, "%s: it contains no matrix", p->file.path);
	return STATUS_OK;
}

/* If target_modules lists names, the file must have exactly those. */
static enum status check_targets(const struct peft *p, unsigned listed, struct error *err)
{
	unsigned odd = listed ? listed ^ p->config.targets : 0;

	for (int i = 0; odd && i < PEFT_TARGET_COUNT; i++) {
		if (odd & 1u << i)
			return error_set(err, STATUS_BAD_INPUT, "%s: %s is %s", p->file.path,
					 peft_target_name((enum peft_target)i),
					 listed & 1u << i ? "listed in target_modules, but not in the file"
							  : "in the file, but not listed in target_modules");
	}
	return STATUS_OK;
}

static enum status read_tensors(struct peft *p, const struct shape *s, struct error *err)
{
	unsigned listed = p->config.targets, whole = p->config.save;
	enum status st = STATUS_OK;
	struct peft_place at;

	p->config.targets = p->config.save = 0;
	for (size_t i = 0; i < p->file.count && !st; i++) {
		const struct tensor *t = &p->file.tensors[i];

		if (!peft_place_of(&at, s, t->name))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s: %.150s does not fit this model: the adapter belongs to another model, "
				"or its names are not PEFT's",
				p->file.path, t->name);
		p->config.targets |= at.target_bit;
		p->config.save |= at.save_bit;
		st = check_tensor(p, t, &at, err);
	}
	if (st)
		return st;
	if (p->config.save != whole)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: modules_to_save does not list the whole modules in the file",
				 p->file.path);
	st = check_targets(p, listed, err);
	return st ? st : check_complete(p, s, err);
}

enum status peft_open(struct peft *p, const char *dir, const struct shape *s, struct error *err)
{
	char path[PATH_MAX];
	json_t *config = NULL;
	enum status st;

	*p = (struct peft){0};
	if (strlen(dir) > sizeof(p->path) - 64)
		return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", dir);
	snprintf(p->path, sizeof(p->path), "%s", dir);
	snprintf(path, sizeof(path), "%s/" PEFT_CONFIG, dir);
	st = json_file_read(&config, path, CONFIG_MAX, err);
	if (!st)
		st = peft_config_parse(&p->config, config, path, err);
	json_decref(config);
	snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, dir);
	if (!st)
		st = safetensors_open(&p->file, path, err);
	if (!st)
		st = read_tensors(p, s, err);
	if (!st)
		text_copy(p->config.base_sum, sizeof(p->config.base_sum),
			  safetensors_metadata(&p->file, PEFT_BASE_SUM));
	if (st)
		peft_release(p);
	return st;
}

void peft_release(struct peft *p)
{
	safetensors_release(&p->file);
	*p = (struct peft){0};
}

const struct tensor *peft_find(const struct peft *p, const char *base, enum peft_part part)
{
	char name[PEFT_NAME_SIZE];
	struct peft_place at = {.part = part};

	snprintf(at.base.hf, sizeof(at.base.hf), "%s", base);
	peft_name(name, &at);
	return find(&p->file, name);
}

static bool all_zero(const struct tensor *t)
{
	uint64_t count = (uint64_t)(t->dim[0] * t->dim[1]), element = t->size / count;
	float x;

	for (uint64_t i = 0; i < count; i++) {
		dtype_unpack(t->dtype, t->data + i * element, &x, 1);
		if (x != 0)
			return false;
	}
	return true;
}

bool peft_does_nothing(const struct peft *p)
{
	for (size_t i = 0; i < p->file.count; i++) {
		const struct tensor *t = &p->file.tensors[i];

		if (!strstr(t->name, ".lora_A.") && (p->config.save || !all_zero(t)))
			return false;
	}
	return true;
}

static enum status load_one(const struct peft *p, const struct peft_slot *slot, struct error *err)
{
	const struct tensor *t = peft_find(p, slot->name, slot->part);
	const struct mat *m = &slot->mat;

	if (!t || t->dim[0] != m->rows || t->dim[1] != m->cols || m->dtype != DTYPE_F32 || !m->data)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s of %" PRId64 " x %" PRId64 " is not in this adapter", p->file.path,
				 slot->name, m->rows, m->cols);
	for (int64_t row = 0; row < m->rows; row++) {
		float *to = (float *)m->data + row * m->ld;

		dtype_unpack(t->dtype, t->data + t->size / (uint64_t)m->rows * (uint64_t)row, to,
			     (size_t)m->cols);
		if (!dtype_finite(DTYPE_F32, to, (size_t)m->cols))
			return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
					       "%s: %s has NaN or infinity", p->file.path, t->name);
	}
	return STATUS_OK;
}

enum status peft_load(const struct peft *p, const struct peft_slot *slots, size_t count, struct error *err)
{
	enum status st = STATUS_OK;

	if (count != p->file.count)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: it has %zu matrices, but %zu are needed; rank or targets differ",
				 p->file.path, p->file.count, count);
	for (size_t i = 0; i < count && !st; i++)
		st = load_one(p, &slots[i], err);
	return mapped_check_sizes(st, err);
}
