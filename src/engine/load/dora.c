/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load/dora.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/process/cpu_pool.h"
#include "model/decoder/layer_tensors.h"
#include "model/files/peft/delta.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

enum { CHUNK = 512, ITEM = 16 }; /* rows that are read together, and rows of a thread's turn */

/* Rows of one weight, while an adapter is applied to them. */
struct dora {
	const struct weights *weights;
	struct cpu_pool *pool;
	float *w;     /* [CHUNK, cols] */
	void *packed; /* the same in the type of the model's weight */
	float *ratio; /* [rows] of the present weight */
	int64_t room; /* numbers in w */
	struct peft_delta delta;
	int64_t row, count; /* the present rows */
};

void dora_weight_name(char out[NAME_SIZE], int64_t layer, enum peft_target target)
{
	snprintf(out, NAME_SIZE, "model.layers.%" PRId64 ".%s.%s.weight", layer, peft_target_block(target),
		 peft_target_name(target));
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static enum status create(struct dora *d, const struct weights *w, struct error *err)
{
	const struct shape *s = &w->shape;
	const int64_t q = s->heads * s->head_dim;

	*d = (struct dora){.weights = w, .room = CHUNK * larger(larger(s->hidden, s->ffn), q)};
	d->w = malloc((size_t)d->room * sizeof(*d->w));
	d->packed = malloc((size_t)d->room * sizeof(*d->w));
	d->ratio = malloc((size_t)larger(larger(s->hidden, s->ffn), q) * sizeof(*d->ratio));
	if (!d->w || !d->packed || !d->ratio)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate memory for an adapter's norms");
	return cpu_pool_usable(&d->pool, err);
}

static void release(struct dora *d)
{
	cpu_pool_destroy(&d->pool);
	peft_delta_release(&d->delta);
	free(d->w);
	free(d->packed);
	free(d->ratio);
}

static void apply_item(void *arg, int64_t item, unsigned thread)
{
	struct dora *d = arg;
	const int64_t first = item * ITEM, left = d->count - first;

	(void)thread;
	peft_delta_apply(&d->delta, d->row + first, left < ITEM ? left : ITEM, d->w + first * d->delta.cols,
			 d->ratio + d->row + first);
}

/* Writes the present rows to the model's weight. */
static enum status put_rows(struct dora *d, struct backend *back, const struct mat *to, const char *name,
			    struct error *err)
{
	const size_t count = (size_t)(d->count * d->delta.cols);

	if (!dtype_pack(to->dtype, d->w, d->packed, count))
		return error_set(err, STATUS_UNSUPPORTED, "%s is %s in memory; DoRA cannot be merged into it",
				 name, dtype_name(to->dtype));
	return back->ops->put(back, mat_rows(to, d->row, d->count), d->packed, err);
}

/* Applies an adapter to all rows of a weight. `to` gets the merged rows; with NULL, only ratios are computed.
 */
static enum status apply(struct dora *d, const struct peft *p, const char *name, struct backend *back,
			 const struct mat *to, struct error *err)
{
	enum status st;

	peft_delta_release(&d->delta);
	st = peft_delta_read(&d->delta, p, name, err);
	for (d->row = 0; !st && d->row < d->delta.rows; d->row += d->count) {
		const int64_t left = d->delta.rows - d->row;

		d->count = left < CHUNK ? left : CHUNK;
		st = weights_rows(d->weights, name, d->row, d->count, d->w, err);
		if (st)
			break;
		cpu_pool_share(d->pool, (d->count + ITEM - 1) / ITEM, apply_item, d);
		if (to)
			st = put_rows(d, back, to, name, err);
	}
	return st;
}

enum status dora_merge_weights(const struct peft *p, struct model *m, struct backend *back,
			       const struct weights *w, struct error *err)
{
	struct dora d;
	enum status st = create(&d, w, err);

	for (int64_t i = 0; !st && i < p->layers * PEFT_TARGET_COUNT; i++) {
		const enum peft_target target = (enum peft_target)(i % PEFT_TARGET_COUNT);
		const struct lora_target at = lora_target(&m->shape, target);
		const struct linear *l = layer_linear(&m->layer[i / PEFT_TARGET_COUNT], at.linear);
		const struct mat to = mat_rows(&l->w.w, at.out_begin, at.out);
		char name[NAME_SIZE];

		dora_weight_name(name, i / PEFT_TARGET_COUNT, target);
		if (p->module[i].a)
			st = apply(&d, p, name, back, &to, err);
	}
	release(&d);
	return st;
}

/* The ratios of one linear layer of one adapter, for those of its targets that are DoRA. */
static enum status set_ratios(struct dora *d, const struct peft *p, const struct model *m, int64_t layer,
			      size_t linear, float *ratio, struct error *err)
{
	enum status st = STATUS_OK;

	for (int target = 0; !st && target < PEFT_TARGET_COUNT; target++) {
		const struct lora_target at = lora_target(&m->shape, (enum peft_target)target);
		char name[NAME_SIZE];

		if (at.linear != linear || !p->module[layer * PEFT_TARGET_COUNT + target].magnitude)
			continue;
		dora_weight_name(name, layer, (enum peft_target)target);
		st = apply(d, p, name, NULL, NULL, err);
		if (!st)
			memcpy(ratio + at.out_begin, d->ratio, (size_t)at.out * sizeof(*ratio));
	}
	return st;
}

static enum status load_linear(struct dora *d, const struct peft *p, int32_t count, const struct model *m,
			       struct backend *back, int64_t layer, size_t linear, struct error *err)
{
	const struct mat *to = &layer_linear(&m->layer[layer], linear)->ratio;
	float *ratio;
	enum status st = STATUS_OK;

	if (!to->rows)
		return STATUS_OK;
	ratio = malloc((size_t)(to->rows * to->cols) * sizeof(*ratio));
	if (!ratio)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate memory for an adapter's norms");
	for (int64_t i = 0; i < to->rows * to->cols; i++)
		ratio[i] = 1;
	for (int32_t n = 0; !st && n < count; n++)
		st = set_ratios(d, &p[n], m, layer, linear, ratio + n * to->cols, err);
	if (!st)
		st = back->ops->put(back, *to, ratio, err);
	free(ratio);
	return st;
}

enum status dora_load_ratios(const struct peft *p, int32_t count, struct model *m, struct backend *back,
			     const struct weights *w, struct error *err)
{
	static const size_t maps[] = {offsetof(struct layer, qkv), offsetof(struct layer, o),
				      offsetof(struct layer, gate_up), offsetof(struct layer, down)};
	struct dora d;
	enum status st = create(&d, w, err);

	for (int64_t layer = 0; !st && layer < m->shape.layers; layer++)
		for (size_t i = 0; !st && i < sizeof(maps) / sizeof(maps[0]); i++)
			st = load_linear(&d, p, count, m, back, layer, maps[i], err);
	release(&d);
	return st;
}
