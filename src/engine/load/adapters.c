/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load/adapters.h"
#include <stdlib.h>
#include "core/file/mapped.h"
#include "engine/load/dora.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/decoder/layer_tensors.h"
#include "model/files/peft/base.h"
#include "model/model.h"
#include "model/tensor/matrix.h"

enum { RANK_UNIT = 8 }; /* 16 bytes of BF16 */

/* Whether an adapter before this one was trained on the same weights: their fingerprint reads all of them. */
static bool is_checked(const struct adapters *a, int32_t i)
{
	const char *sum = a->peft[i].config.base_sum;

	for (int32_t k = 0; *sum && k < i; k++)
		if (!strcmp(a->peft[k].config.base_sum, sum))
			return true;
	return false;
}

static enum status open_one(struct adapters *a, const struct adapters_options *o, int32_t i,
			    const struct weights *w, struct error *err)
{
	enum status st = peft_open(&a->peft[i], o->dir[i], &w->shape, err);

	if (!st && !is_checked(a, i))
		st = peft_check_base(&a->peft[i], w, o->any_base, o->log, err);
	if (!st && !storage_is_resident(&a->peft[i].config.base_storage) && !w->bnb4_count)
		log_warn(o->log, LOG_TOPIC_RUN,
			 "%s: it was trained on weights in %s; here they are not quantized, so results "
			 "differ slightly (assay merge writes the trained model)",
			 o->dir[i], storage_word(&a->peft[i].config.base_storage));
	if (!st && a->count > 1 && a->peft[i].config.save)
		st = error_set(
			err, STATUS_UNSUPPORTED,
			"%s: it has an embedding or head of its own (modules_to_save); several adapters "
			"share those of the base model, so serve this one alone",
			o->dir[i]);
	return st;
}

enum status adapters_open(struct adapters *a, const struct adapters_options *o, const struct weights *w,
			  struct error *err)
{
	enum status st = STATUS_OK;

	*a = (struct adapters){0};
	while (a->count < ADAPTERS_MOST && o->dir[a->count])
		a->count++;
	a->peft = calloc((size_t)a->count + 1, sizeof(*a->peft));
	if (!a->peft)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate the table of adapters");
	for (int32_t i = 0; !st && i < a->count; i++)
		st = open_one(a, o, i, w, err);
	return st;
}

void adapters_release(struct adapters *a)
{
	for (int32_t i = 0; a->peft && i < a->count; i++)
		peft_release(&a->peft[i]);
	free(a->peft);
	*a = (struct adapters){0};
}

/* Whether a CPU would keep one of the adapted weights in the file's blocks. */
static bool is_quantized(const struct adapters *a, const struct weights *w)
{
	for (int64_t i = 0; i < w->shape.layers * PEFT_TARGET_COUNT; i++) {
		char name[NAME_SIZE];
		struct weights_raw raw;

		dora_weight_name(name, i / PEFT_TARGET_COUNT, (enum peft_target)(i % PEFT_TARGET_COUNT));
		if (a->peft[0].module[i].a && weights_find(&raw, w, name) && cpu_blocks_of(raw.tensor->dtype))
			return true;
	}
	return false;
}

/* One configuration that has room for all: the scale of each is in its B. */
static void set_shared(struct adapters *a)
{
	int64_t most = 1;

	a->config = (struct peft_config){0};
	for (int32_t i = 0; i < a->count; i++) {
		const struct peft_config *c = &a->peft[i].config;

		most = c->rank > most ? c->rank : most;
		a->config.targets |= c->targets;
		a->config.dora |= c->dora;
	}
	a->config.rank = (most + RANK_UNIT - 1) / RANK_UNIT * RANK_UNIT * a->count;
	a->config.alpha = (double)a->config.rank;
}

void adapters_plan(struct adapters *a, const struct adapters_options *o, const struct weights *w, bool gpu)
{
	a->merge = a->count == 1 && o->merge && (gpu || !is_quantized(a, w));
	if (a->count > 1)
		set_shared(a);
	else if (a->count)
		a->config = a->peft[0].config;
	/* DoRA is merged on the host: the model has only the whole modules */
	if (a->merge && a->config.dora) {
		a->config.targets = 0;
		a->config.rank = 0;
		a->config.dora = false;
	}
}

const struct peft_config *adapters_config(const struct adapters *a)
{
	return a->count && (a->config.targets || a->config.save) ? &a->config : NULL;
}

/* The part of a slot that belongs to one of several adapters. */
static struct peft_slot part_of(const struct peft_slot *slot, int32_t adapter, int32_t count)
{
	struct peft_slot part = *slot;

	if (slot->part == PEFT_A)
		part.mat = mat_rows(&slot->mat, slot->mat.rows / count * adapter, slot->mat.rows / count);
	if (slot->part == PEFT_B)
		part.mat = mat_cols(&slot->mat, slot->mat.cols / count * adapter, slot->mat.cols / count);
	return part;
}

/* Fills the model's flat vector. */
static enum status load_flat(const struct adapters *a, const struct model *m, const struct mat *flat,
			     struct error *err)
{
	struct peft_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_peft_slots(m, flat, &slots, &names, &count, err);

	if (st)
		return st;
	for (size_t i = 0; !st && i < count; i++)
		for (int32_t n = 0; !st && n < a->count; n++) {
			const struct peft_slot part = part_of(&slots[i], n, a->count);

			st = peft_load_slot(&a->peft[n], &part, peft_scale(&a->config), err);
		}
	free(slots);
	free(names);
	return mapped_check_sizes(st, err);
}

static enum status load_flat_gpu(const struct adapters *a, const struct model *m, struct backend *back,
				 struct error *err)
{
	const struct mat *master = &m->params.master;
	struct mat host = *master;
	enum status st;

	host.data = calloc(m->params.length, sizeof(float));
	if (!host.data)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate memory for the adapters' parameters");
	st = load_flat(a, m, &host, err);
	if (!st)
		st = back->ops->put(back, *master, host.data, err);
	free(host.data);
	return st;
}

enum status adapters_load(const struct adapters *a, struct model *m, struct backend *back,
			  const struct weights *w, struct error *err)
{
	const bool dora_merge = a->merge && a->peft[0].config.dora;
	enum status st = STATUS_OK;

	if (adapters_config(a))
		st = back->kind == BACKEND_GPU ? load_flat_gpu(a, m, back, err)
					       : load_flat(a, m, &m->params.master, err);
	if (!st && adapters_config(a))
		st = model_refresh(m, back, err);
	if (!st && dora_merge)
		st = dora_merge_weights(&a->peft[0], m, back, w, err);
	else if (!st && a->merge)
		st = model_merge(m, back, err);
	else if (!st && a->config.dora)
		st = dora_load_ratios(a->peft, a->count, m, back, w, err);
	return st;
}
