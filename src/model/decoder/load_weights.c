/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the base model: resident weights in one call, so that threads share all of them, then layer after
 * layer the weights that are stored in another form. */
#include <stdlib.h>
#include "model/decoder/layer_tensors.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"

static enum status make_random(const struct model *m, struct backend *back, const struct model_source *from,
			       const struct weights_slot *slots, size_t count, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++) {
		struct random_fill fill;
		struct named n;

		if (!names_find(&n, &m->shape, slots[i].name))
			return error_set(err, STATUS_BUG, "a model of this shape has no %s", slots[i].name);
		fill = random_weights_fill(&n, from->seed);
		st = back->ops->random(back, slots[i].to, &fill, err);
	}
	return st;
}

static enum status load_numbers(const struct model *m, struct backend *back, const struct model_source *from,
				const struct weights_slot *slots, size_t count, struct error *err)
{
	return from->random ? make_random(m, back, from, slots, count, err)
			    : weights_load_to(from->weights, back, slots, count, err);
}

static enum status load_resident(const struct model *m, struct backend *back, const struct model_source *from,
				 struct error *err)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_weight_slots(m, &slots, &names, &count, err);

	if (!st)
		st = load_numbers(m, back, from, slots, count, err);
	free(slots);
	free(names);
	return st;
}

/* The layer's slot is the place of the numbers until they are quantized. */
static enum status load_stored(const struct model *m, struct backend *back, const struct model_source *from,
			       int64_t layer, struct error *err)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	struct weights_slot slots[LAYER_TENSOR_COUNT];
	const struct stored *stored[LAYER_TENSOR_COUNT];
	char name[LAYER_TENSOR_COUNT][PARAM_NAME];
	size_t count = 0;
	enum status st;

	layer_tensors(&m->shape, t);
	for (int i = 0; i < LAYER_TENSOR_COUNT; i++) {
		const struct linear *l = layer_linear_of(&m->layer[layer], &t[i]);

		stored[count] = l ? linear_stored(l, t[i].begin) : NULL;
		if (!stored[count])
			continue;
		tensor_name(name[count], layer, t[i].name);
		slots[count] = (struct weights_slot){.name = name[count],
						     .to = mat_rows(&l->w.w, t[i].begin, t[i].rows)};
		count++;
	}
	st = load_numbers(m, back, from, slots, count, err);
	for (size_t i = 0; !st && i < count; i++)
		st = back->ops->quantize(back, slots[i].to, stored[i], err);
	return st;
}

/* Scratch memory, which model_place planned, is the place of the numbers until they are quantized. */
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
		st = back->ops->quantize_e4m3(back, numbers, l->fp8, l->fp8_transposed, NULL, err);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status load_layer(const struct model *m, struct backend *back, const struct model_source *from,
			      int64_t layer, struct error *err)
{
	const struct layer *l = &m->layer[layer];
	const struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	enum status st = m->slots.count ? load_stored(m, back, from, layer, err) : STATUS_OK;

	for (int i = 0; !st && i < LAYER_LINEARS; i++)
		if (linear_is_quantized(maps[i]))
			st = load_e4m3(m, back, from, layer, maps[i], err);
	return st;
}

enum status model_load(struct model *m, struct backend *back, const struct model_source *from,
		       struct error *err)
{
	enum status st = load_resident(m, back, from, err);

	for (int64_t i = 0; !st && i < m->shape.layers; i++)
		st = load_layer(m, back, from, i, err);
	return st;
}
