/* SPDX-License-Identifier: Apache-2.0 */
#include "model/storage/slots.h"

#include "model/model.h"
#include "model/tensor/matrix.h"

enum { PARTS_MOST = LAYER_LINEARS * STORED_MOST, STATE_BITS = 32 };

static int slot_of(const struct slots *s, int64_t layer)
{
	return (int)(layer % s->count);
}

/* All layers have the same structure. */
static enum status place_slot(struct model *m, struct backend *back, int slot, struct error *err)
{
	const struct layer *l = &m->layer[0];
	const struct linear *linears[LAYER_LINEARS] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < LAYER_LINEARS; i++) {
		const int64_t tail = m->extended ? linears[i]->adapters * linears[i]->rank : 0;
		struct mat *mat = &m->slots.mat[slot][i];

		*mat = (struct mat){
			.rows = linears[i]->out + tail, .cols = linears[i]->in + tail, .dtype = back->dtype};
		st = arena_mat(back->arena, MEM_SLOTS, mat, "a layer's weights", err);
	}
	return st;
}

enum status slots_place(struct model *m, struct backend *back, struct error *err)
{
	struct slots *s = &m->slots;
	const int most = back->kind == BACKEND_GPU ? SLOTS_MOST : 1;
	enum status st = STATUS_OK;

	*s = (struct slots){0};
	if (storage_is_resident(&m->storage))
		return STATUS_OK;
	if (back->kind == BACKEND_GPU && back->dtype != DTYPE_BF16)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"load_in_4bit needs precision: bf16 on a GPU, because its weights become BF16");
	s->count = m->shape.layers < most ? (int)m->shape.layers : most;
	slots_drop(s);
	for (int i = 0; !st && i < s->count; i++)
		st = place_slot(m, back, i, err);
	return st;
}

const struct mat *slots_mat(const struct slots *s, int64_t layer, int linear)
{
	return &s->mat[slot_of(s, layer)][linear];
}

static enum status fill(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	const struct layer *l = &m->layer[layer];
	const struct linear *linears[LAYER_LINEARS] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	const int slot = slot_of(&m->slots, layer);
	struct slot_part part[PARTS_MOST];
	struct slot_fill all = {.slot = slot, .part = part, .master = m->params.master};

	for (int i = 0; i < LAYER_LINEARS; i++)
		for (int j = 0; j < linears[i]->stored_count; j++) {
			const struct stored *from = &linears[i]->stored[j];

			part[all.parts++] = (struct slot_part){
				.from = from, .to = mat_rows(&linears[i]->w.w, from->begin, from->bnb4.rows)};
		}
	if (m->extended)
		all.live = model_live_of_layer(m, layer);
	m->slots.held[slot] = layer;
	m->slots.awaited[slot] = false;
	return back->ops->slot_fill(back, &all, err);
}

static bool holds(const struct slots *s, int64_t layer)
{
	return s->held[slot_of(s, layer)] == layer;
}

enum status slots_begin(struct model *m, struct backend *back, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < m->slots.count; i++)
		st = back->ops->slot_free(back, i, err);
	return st;
}

enum status slots_use(struct model *m, struct backend *back, int64_t layer, int64_t next, struct error *err)
{
	struct slots *s = &m->slots;
	enum status st = STATUS_OK;

	if (!s->count)
		return STATUS_OK;
	if (!holds(s, layer)) {
		if (m->divided.base) /* the fill follows the wait for the layer's bytes */
			st = back->ops->slot_free(back, slot_of(s, layer), err);
		if (!st)
			st = fill(m, back, layer, err);
	}
	if (!st && !s->awaited[slot_of(s, layer)])
		st = back->ops->slot_ready(back, slot_of(s, layer), err);
	s->awaited[slot_of(s, layer)] = true;
	if (m->divided.base) /* its bytes are still on their way */
		return st;
	if (!st && next >= 0 && slot_of(s, next) != slot_of(s, layer) && !holds(s, next))
		st = fill(m, back, next, err);
	return st;
}

enum status slots_done(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	return m->slots.count ? back->ops->slot_free(back, slot_of(&m->slots, layer), err) : STATUS_OK;
}

uint64_t slots_state(const struct slots *s)
{
	uint64_t state = 0;

	for (int i = 0; i < s->count; i++)
		state |= (uint64_t)(s->held[i] + 1) << (i * STATE_BITS);
	return state;
}

void slots_set(struct slots *s, uint64_t state)
{
	for (int i = 0; i < s->count; i++) {
		s->held[i] = (int64_t)(uint32_t)(state >> (i * STATE_BITS)) - 1;
		s->awaited[i] = true; /* every fill is awaited in the pass that made it */
	}
}

void slots_left(struct slots *s, int64_t before_last, int64_t last)
{
	if (!s->count)
		return;
	if (before_last >= 0)
		s->held[slot_of(s, before_last)] = before_last;
	s->held[slot_of(s, last)] = last;
	for (int i = 0; i < s->count; i++)
		s->awaited[i] = true;
}

void slots_drop(struct slots *s)
{
	for (int i = 0; i < s->count; i++)
		s->held[i] = -1;
}
