/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the base model: resident weights in one call, so that threads share all of them, then layer after
 * layer the weights that are stored in another form. */
#include <stdlib.h>
#include "core/file/mapped.h"
#include "model/decoder/layer_tensors.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"

static enum status make_random(const struct model *m, struct backend *back, const struct model_source *from,
			       const struct weights_slot *slots, size_t count, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++) {
		const struct shape *whole = m->whole ? &m->whole->shape : &m->shape;
		struct split_part part;
		struct random_fill fill;
		struct named n;

		if (!names_find(&n, whole, slots[i].name))
			return error_set(err, STATUS_BUG, "a model of this shape has no %s", slots[i].name);
		fill = random_weights_fill(&n, from->seed);
		part = (struct split_part){.row = slots[i].row,
					   .col = slots[i].col,
					   .cols = slots[i].to.cols,
					   .all_cols = n.cols};
		st = split_random(back, slots[i].to, &fill, &part, err);
	}
	return st;
}

static enum status load_numbers(const struct model *m, struct backend *back, const struct model_source *from,
				const struct weights_slot *slots, size_t count, struct error *err)
{
	return from->random ? make_random(m, back, from, slots, count, err)
			    : weights_load_to(from->weights, back, slots, count, err);
}

/* Tensors of all layers, or of none. */
enum { ALL = -2, ENDS = -1 };

/* Keeps those of one layer. */
static size_t choose(struct weights_slot *slots, const struct named *names, size_t count, int64_t layer)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (names[i].layer == layer)
			slots[kept++] = slots[i];
	return kept;
}

static enum status load_resident(const struct model *m, struct backend *back, const struct model_source *from,
				 int64_t layer, struct error *err)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_weight_slots(m, &slots, &names, &count, err);

	if (!st && layer != ALL)
		count = choose(slots, names, count, layer);
	if (!st && count)
		st = load_numbers(m, back, from, slots, count, err);
	free(slots);
	free(names);
	return st;
}

/* Tensor parallel: rows of embedding and head beyond the vocabulary. */
static enum status zero_rest(const struct model *m, struct backend *back, struct error *err)
{
	const struct weight *ends[] = {&m->embed, &m->head};
	enum status st = STATUS_OK;

	for (size_t i = 0; m->whole && i < sizeof(ends) / sizeof(ends[0]) && !st; i++) {
		const struct mat to = ends[i]->master.rows ? ends[i]->master : ends[i]->w;
		const int64_t used = split_vocabulary(&m->split, m->whole->shape.vocab).count;

		if (to.rows > used)
			st = back->ops->zero(back, mat_rows(&to, used, to.rows - used), err);
	}
	return st;
}

/* The gradient's memory holds one layer at a time, of which the rank keeps its range. */
static enum status load_divided(struct model *m, struct backend *back, const struct model_source *from,
				struct error *err)
{
	enum status st = STATUS_OK;

	for (int64_t layer = ENDS; layer < m->shape.layers && !st; layer++) {
		st = load_resident(m, back, from, layer, err);
		if (!st && layer == ENDS)
			st = zero_rest(m, back, err);
		if (!st)
			st = divided_loaded(m, back, layer, err);
	}
	if (from->weights)
		weights_forget(from->weights);
	return st;
}

static enum status put(struct backend *back, void *to, const void *from, uint64_t bytes, struct error *err)
{
	const struct mat m = {
		.data = to, .rows = 1, .cols = (int64_t)bytes, .ld = (int64_t)bytes, .dtype = DTYPE_U8};

	return back->ops->put(back, m, from, err);
}

/* Copies a tensor that the file has in the form in which it is stored. */
static enum status copy_stored(struct backend *back, const struct weights *w, const char *name,
			       const struct bnb4 *from, const struct storage *storage,
			       const struct stored *to, struct error *err)
{
	const struct storage found = {.form = STORAGE_BNB4, .type = from->type, .nested = from->nested};
	const uint64_t blocks = bnb4_blocks(from->rows, from->cols);
	const uint64_t scales = from->nested ? bnb4_groups(from->rows, from->cols) : blocks;
	const struct bnb4 *q = &to->bnb4;
	enum status st;

	if (from->type != q->type || from->nested != q->nested)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: %s is stored in %s, but the run asks for %s; set bnb_4bit_quant_type and "
			"bnb_4bit_use_double_quant to the checkpoint's values",
			w->path, name, storage_word(&found), storage_word(storage));
	if (!bnb4_finite(from))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "%s: %s.absmax has NaN or infinity", w->path, name);
	st = put(back, q->codes, from->codes, bnb4_code_bytes(from->rows, from->cols), err);
	if (!st)
		st = put(back, q->absmax, from->absmax, scales * sizeof(float), err);
	if (!st && from->nested)
		st = put(back, q->absmax_codes, from->absmax_codes, blocks, err);
	if (!st && from->nested)
		st = put(back, q->map, from->map, BNB4_MAP * sizeof(float), err);
	if (!st && from->nested)
		st = put(back, q->offset, from->offset, sizeof(float), err);
	return mapped_check(st, err);
}

/* A layer's tensors that are quantized after loading. */
struct unquantized {
	struct weights_slot slots[LAYER_TENSOR_COUNT];
	const struct stored *stored[LAYER_TENSOR_COUNT];
	char name[LAYER_TENSOR_COUNT][PARAM_NAME];
	size_t count;
};

/* The layer's slot is the place of the numbers until they are quantized. */
static enum status load_stored(const struct model *m, struct backend *back, const struct model_source *from,
			       int64_t layer, struct error *err)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	struct unquantized u = {.count = 0};
	enum status st = STATUS_OK;

	layer_tensors(&m->shape, t);
	for (int i = 0; !st && i < LAYER_TENSOR_COUNT; i++) {
		const struct linear *l = layer_linear_of(&m->layer[layer], &t[i]);
		const struct stored *stored = l ? linear_stored(l, t[i].begin) : NULL;
		char *name = u.name[u.count];
		struct weights_raw raw;
		struct mat numbers;

		if (!stored)
			continue;
		tensor_name(name, layer, t[i].name);
		if (!from->random && weights_find(&raw, from->weights, name) && raw.bnb4) {
			st = copy_stored(back, from->weights, name, raw.bnb4, &m->storage, stored, err);
			continue;
		}
		u.stored[u.count] = stored;
		numbers = slots_numbers(m, layer, (int)(l - &m->layer[layer].qkv));
		u.slots[u.count++] =
			(struct weights_slot){.name = name, .to = mat_rows(&numbers, t[i].begin, t[i].rows)};
	}
	if (!st && u.count)
		st = load_numbers(m, back, from, u.slots, u.count, err);
	for (size_t i = 0; !st && i < u.count; i++)
		st = back->ops->quantize(back, u.slots[i].to, u.stored[i], err);
	return st;
}

/* Scratch memory is the place of the numbers until they are quantized. A plan loads too, so it counts this.
 */
static enum status load_e4m3(const struct model *m, struct backend *back, const struct model_source *from,
			     int64_t layer, const struct linear *l, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat numbers = {.rows = l->out, .cols = l->in, .dtype = back->dtype};
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	struct weights_slot slots[STORED_MOST];
	char name[STORED_MOST][PARAM_NAME];
	size_t count = 0;
	enum status st =
		arena_mat(back->arena, MEM_SCRATCH, &numbers, "weights before they are quantized", err);

	layer_tensors(&m->shape, t);
	for (int i = 0; i < LAYER_TENSOR_COUNT && count < STORED_MOST; i++) {
		if (layer_linear_of(&m->layer[layer], &t[i]) != l)
			continue;
		tensor_name(name[count], layer, t[i].name);
		slots[count] = (struct weights_slot){.name = name[count],
						     .to = mat_rows(&numbers, t[i].begin, t[i].rows)};
		count++;
	}
	if (!st)
		st = load_numbers(m, back, from, slots, count, err);
	if (!st)
		st = back->ops->quantize_e4m3(back, numbers, l->fp8, (struct mat){0}, NULL, err);
	if (!st && l->exact.rows)
		st = back->ops->convert(back, mat_rows(&numbers, 0, l->exact.rows), l->exact, err);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status load_layer(const struct model *m, struct backend *back, const struct model_source *from,
			      int64_t layer, struct error *err)
{
	const struct layer *l = &m->layer[layer];
	const struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	enum status st =
		storage_is_resident(&m->storage) ? STATUS_OK : load_stored(m, back, from, layer, err);

	for (int i = 0; !st && i < LAYER_LINEARS; i++)
		if (linear_is_quantized(maps[i]))
			st = load_e4m3(m, back, from, layer, maps[i], err);
	return st;
}

enum status model_load(struct model *m, struct backend *back, const struct model_source *from,
		       struct error *err)
{
	const bool by_layer =
		(m->params.shards.master && m->divided.gradient) || (m->divided.base && !m->slots.count);
	enum status st = by_layer ? load_divided(m, back, from, err) : load_resident(m, back, from, ALL, err);

	if (!st && !by_layer)
		st = zero_rest(m, back, err);
	for (int64_t i = 0; !st && i < m->shape.layers; i++) {
		st = load_layer(m, back, from, i, err);
		if (!st && m->slots.count && m->divided.base)
			st = divided_loaded(m, back, i, err);
	}
	if (!storage_is_resident(&m->storage) && from->weights)
		weights_forget(from->weights);
	return st;
}
