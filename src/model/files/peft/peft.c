/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/peft/peft.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "core/file/mapped.h"
#include "core/text/text.h"
#include "model/tensor/dtype.h"
#include "core/json/file.h"
#include "model/files/peft/names.h"
#include "model/files/peft/pattern.h"

enum { CONFIG_MAX = 1 << 20 };

double peft_scale(const struct peft_config *c)
{
	return c->rslora ? c->alpha / sqrt((double)c->rank) : c->alpha / (double)c->rank;
}

/* The module that a matrix belongs to; NULL: a module trained in full. */
static struct peft_module *module_at(const struct peft *p, const struct peft_place *at)
{
	return at->target_bit ? &p->module[at->base.layer * PEFT_TARGET_COUNT + __builtin_ctz(at->target_bit)]
			      : NULL;
}

static enum status check_tensor(const struct peft *p, const struct tensor *t, const struct peft_place *at,
				struct error *err)
{
	const struct peft_module *module = module_at(p, at);
	const int64_t rank = module ? module->rank : p->config.rank;
	const int64_t rows = at->part == PEFT_A ? rank : at->base.rows;
	const int64_t cols = at->part == PEFT_B ? rank : at->base.cols;
	const bool vector = at->part == PEFT_MAGNITUDE;

	if (vector && (t->rank != 1 || t->dim[0] != rows))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.150s has not %" PRId64 " numbers; it may belong to another model",
				 p->file.path, t->name, rows);
	if (!vector && (t->rank != 2 || t->dim[0] != rows || t->dim[1] != cols))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.150s is %" PRId64 " x %" PRId64 "; rank %" PRId64
				 " and this model make it %" PRId64 " x %" PRId64
				 "; it may belong to another model",
				 p->file.path, t->name, t->rank > 1 ? t->dim[0] : 1,
				 t->rank ? t->dim[t->rank - 1] : 1, rank, rows, cols);
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

/* If A is present in one layer, A and B must be present in all layers. DoRA has a magnitude for each A. */
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
	for (int64_t i = 0; i < p->layers * PEFT_TARGET_COUNT; i++)
		if (p->module[i].a && !p->module[i].magnitude == p->config.dora)
			return error_set(err, STATUS_BAD_INPUT, "%s: use_dora is %s, but %s has %s magnitude",
					 p->file.path, p->config.dora ? "true" : "false",
					 p->module[i].a->name, p->config.dora ? "no" : "a");
	return STATUS_OK;
}

/* "model.layers.0.self_attn.q_proj" */
static void name_module(char out[NAME_SIZE], int64_t layer, enum peft_target target)
{
	snprintf(out, NAME_SIZE, "model.layers.%" PRId64 ".%s.%s", layer, peft_target_block(target),
		 peft_target_name(target));
}

/* Ranks and scales of all modules that the model has. */
static enum status set_modules(struct peft *p, const json_t *config, const char *path, struct error *err)
{
	const struct json_keys r = {config, path, err};
	struct peft_patterns *ranks = NULL, *alphas = NULL;
	enum status st = peft_patterns_read(&ranks, &r, "rank_pattern");

	if (!st)
		st = peft_patterns_read(&alphas, &r, "alpha_pattern");
	for (int64_t i = 0; !st && i < p->layers * PEFT_TARGET_COUNT; i++) {
		struct peft_config one = p->config;
		char name[NAME_SIZE];
		double rank;

		name_module(name, i / PEFT_TARGET_COUNT, (enum peft_target)(i % PEFT_TARGET_COUNT));
		rank = peft_patterns_find(ranks, name, (double)one.rank);
		if (!(rank <= PEFT_RANK_MOST) || rank != floor(rank))
			st = error_set(err, STATUS_BAD_INPUT, "%s: rank_pattern gives %s the rank %g", path,
				       name, rank);
		if (st)
			break;
		one.rank = (int64_t)rank;
		one.alpha = peft_patterns_find(alphas, name, one.alpha);
		p->module[i] = (struct peft_module){.rank = one.rank, .scale = peft_scale(&one)};
	}
	peft_patterns_free(&ranks);
	peft_patterns_free(&alphas);
	return st;
}

/* config.rank becomes the largest rank. */
static void set_rank(struct peft *p)
{
	int64_t most = 0;

	for (int64_t i = 0; i < p->layers * PEFT_TARGET_COUNT; i++)
		if (p->module[i].a && p->module[i].rank > most)
			most = p->module[i].rank;
	p->config.rank = most ? most : p->config.rank;
}

/* Notes where a module's matrices are. */
static void note(const struct peft *p, const struct tensor *t, const struct peft_place *at)
{
	struct peft_module *module = module_at(p, at);

	if (!module)
		return;
	*(at->part == PEFT_A ? &module->a : at->part == PEFT_B ? &module->b : &module->magnitude) = t;
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
		note(p, t, &at);
	}
	if (st)
		return st;
	if (p->config.save != whole)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: modules_to_save does not list the whole modules in the file",
				 p->file.path);
	st = check_targets(p, listed, err);
	if (!st)
		st = check_complete(p, s, err);
	set_rank(p);
	return st;
}

/* What assay writes about the base model; PEFT's own adapters have none of it. */
static enum status read_metadata(struct peft *p, const char *path, struct error *err)
{
	const char *storage = safetensors_metadata(&p->file, PEFT_BASE_STORAGE);

	text_copy(p->config.base_sum, sizeof(p->config.base_sum),
		  safetensors_metadata(&p->file, PEFT_BASE_SUM));
	if (*storage && !storage_of_word(&p->config.base_storage, storage))
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: its base model was quantized in a way that is not supported: %.60s",
				 path, storage);
	return STATUS_OK;
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
	p->layers = s->layers;
	p->module = calloc((size_t)s->layers * PEFT_TARGET_COUNT, sizeof(*p->module));
	if (!st && !p->module)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", dir);
	if (!st)
		st = set_modules(p, config, path, err);
	json_decref(config);
	snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, dir);
	if (!st)
		st = safetensors_open(&p->file, path, err);
	if (!st)
		st = read_tensors(p, s, err);
	if (!st)
		st = read_metadata(p, path, err);
	if (st)
		peft_release(p);
	return st;
}

void peft_release(struct peft *p)
{
	safetensors_release(&p->file);
	free(p->module);
	*p = (struct peft){0};
}

const struct peft_module *peft_module_of(const struct peft *p, const char *base)
{
	static const char before[] = "model.layers.";
	const unsigned bit = peft_target_of(base);
	const struct peft_module *module;
	long layer;

	if (!bit || strncmp(base, before, sizeof(before) - 1))
		return NULL;
	layer = strtol(base + sizeof(before) - 1, NULL, 10);
	if (layer < 0 || layer >= p->layers)
		return NULL;
	module = &p->module[layer * PEFT_TARGET_COUNT + __builtin_ctz(bit)];
	return module->a ? module : NULL;
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
	uint64_t count = (uint64_t)(t->dim[0] * (t->rank > 1 ? t->dim[1] : 1)), element = t->size / count;
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
