/* SPDX-License-Identifier: Apache-2.0 */
#include "model/storage/slots.h"

#include "model/model.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"

enum { STATE_BITS = 32 };

int slots_of(const struct slots *s, int64_t layer)
{
	return (int)(layer % s->count);
}

static const struct linear *linear_of(const struct model *m, int64_t layer, int i)
{
	const struct layer *l = &m->layer[layer];
	const struct linear *linears[LAYER_LINEARS] = {&l->qkv, &l->o, &l->gate_up, &l->down};

	return linears[i];
}

static enum status place_scales(struct backend *back, struct mat *w, struct error *err)
{
	struct mat scale = {.rows = 1, .cols = fp8_weight_scales(w->rows, w->cols), .dtype = DTYPE_F32};
	enum status st = arena_mat(back->arena, MEM_SLOTS, &scale, "scales of a layer's weights", err);

	w->scales = fp8_scales_of_weights(scale.data, w->cols);
	return st;
}

/* The places of W and its transposed copy in E4M3. Numbers have two bytes or more, so both fit there. */
static enum status place_fp8(struct backend *back, const struct mat *numbers, struct mat *w,
			     struct mat *transposed, struct error *err)
{
	enum status st;

	if (!numbers->rows) {
		st = arena_mat(back->arena, MEM_SLOTS, transposed, "a layer's transposed weights", err);
		return st ? st : place_scales(back, transposed, err);
	}
	w->data = numbers->data;
	w->ld = w->cols;
	transposed->data = numbers->data ? (uint8_t *)numbers->data + w->rows * w->cols : NULL;
	transposed->ld = transposed->cols;
	st = place_scales(back, w, err);
	return st ? st : place_scales(back, transposed, err);
}

/* All layers have the same structure, except that some may not be FP8. */
static enum status place_slot(struct model *m, struct backend *back, int slot, struct error *err)
{
	struct slots *s = &m->slots;
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < LAYER_LINEARS; i++) {
		const struct linear *l = linear_of(m, 0, i);
		const int64_t tail = m->extended ? l->adapters * l->rank : 0;

		if (!s->backward_only) {
			s->mat[slot][i] = (struct mat){
				.rows = l->out + tail, .cols = l->in + tail, .dtype = back->dtype};
			st = arena_mat(back->arena, MEM_SLOTS, &s->mat[slot][i], "a layer's weights", err);
		}
		s->fp8[slot][i] = (struct mat){.rows = l->out, .cols = l->in, .dtype = DTYPE_E4M3};
		s->transposed[slot][i] = (struct mat){.rows = l->in, .cols = l->out, .dtype = DTYPE_E4M3};
		if (!st && m->fp8)
			st = place_fp8(back, &s->mat[slot][i], &s->fp8[slot][i], &s->transposed[slot][i],
				       err);
	}
	s->exact[slot] = (struct mat){0};
	if (st || !m->fp8 || s->backward_only)
		return st;
	s->exact[slot] = (struct mat){
		.rows = m->shape.heads * m->shape.head_dim, .cols = m->shape.hidden, .dtype = back->dtype};
	return arena_mat(back->arena, MEM_SLOTS, &s->exact[slot], "a layer's weights of q", err);
}

enum status slots_place(struct model *m, struct backend *back, struct error *err)
{
	struct slots *s = &m->slots;
	const bool resident = storage_is_resident(&m->storage);
	const int most = back->kind == BACKEND_GPU ? SLOTS_MOST : 1;
	enum status st = STATUS_OK;

	*s = (struct slots){0};
	if (resident && !m->fp8)
		return STATUS_OK;
	if (!resident && back->kind == BACKEND_GPU && back->dtype != DTYPE_BF16)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"load_in_4bit needs precision: bf16 or fp8 on a GPU, because its weights become BF16 or E4M3");
	s->backward_only = resident;
	s->count = m->shape.layers < most ? (int)m->shape.layers : most;
	slots_drop(s);
	for (int i = 0; !st && i < s->count; i++)
		st = place_slot(m, back, i, err);
	return st;
}

struct mat slots_numbers(const struct model *m, int64_t layer, int linear)
{
	const struct linear *l = linear_of(m, layer, linear);

	return mat_view(&m->slots.mat[slots_of(&m->slots, layer)][linear], 0, 0, l->out, l->in);
}

static enum status fill(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	const int slot = slots_of(&m->slots, layer);
	const struct linear *qkv = &m->layer[layer].qkv;
	struct slot_part part[LAYER_LINEARS + 1];
	struct slot_fill all = {
		.slot = slot, .part = part, .parts = LAYER_LINEARS, .master = m->params.master};

	for (int i = 0; i < LAYER_LINEARS; i++) {
		const struct linear *l = linear_of(m, layer, i);

		part[i] = (struct slot_part){
			.from = l->stored, .count = l->stored_count, .to = l->is_fp8 ? l->fp8 : l->w.w};
		if (l->is_fp8)
			part[i].transposed = l->fp8_transposed;
	}
	if (qkv->exact.rows && qkv->stored_count)
		part[all.parts++] = (struct slot_part){.from = qkv->stored, .count = 1, .to = qkv->exact};
	if (m->extended)
		all.live = model_live_of_layer(m, layer);
	m->slots.held[slot] = layer;
	m->slots.awaited[slot] = false;
	return back->ops->slot_fill(back, &all, err);
}

/* Whether a pass over the layer reads its slot. */
static bool reads(const struct model *m, int64_t layer)
{
	return layer >= 0 && (!m->slots.backward_only || m->layer[layer].qkv.is_fp8);
}

static bool holds(const struct slots *s, int64_t layer)
{
	return s->held[slots_of(s, layer)] == layer;
}

enum status slots_begin(struct model *m, struct backend *back, bool backward, struct error *err)
{
	enum status st = STATUS_OK;

	m->slots.used = m->slots.count && (backward || !m->slots.backward_only);
	for (int i = 0; !st && m->slots.used && i < m->slots.count; i++)
		st = back->ops->slot_free(back, i, err);
	return st;
}

static enum status use(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	struct slots *s = &m->slots;
	enum status st = STATUS_OK;

	if (!holds(s, layer))
		st = fill(m, back, layer, err);
	if (!st && !s->awaited[slots_of(s, layer)])
		st = back->ops->slot_ready(back, slots_of(s, layer), err);
	s->awaited[slots_of(s, layer)] = true;
	return st;
}

enum status slots_use(struct model *m, struct backend *back, int64_t layer, int64_t next, struct error *err)
{
	struct slots *s = &m->slots;
	enum status st = STATUS_OK;

	if (!s->used)
		return STATUS_OK;
	if (m->divided.base) { /* a fill follows the wait for the layer's bytes, and the next ones are on
				  their way */
		if (reads(m, layer) && !holds(s, layer))
			st = back->ops->slot_free(back, slots_of(s, layer), err);
		next = -1;
	}
	if (!st && reads(m, layer))
		st = use(m, back, layer, err);
	if (!st && reads(m, next) && slots_of(s, next) != slots_of(s, layer) && !holds(s, next))
		st = fill(m, back, next, err);
	return st;
}

enum status slots_done(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	return m->slots.used && reads(m, layer) ? back->ops->slot_free(back, slots_of(&m->slots, layer), err)
						: STATUS_OK;
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

void slots_left(struct model *m, int64_t first, int64_t last, bool backward)
{
	struct slots *s = &m->slots;
	const int64_t step = first <= last ? 1 : -1;

	if (!s->count || (s->backward_only && !backward))
		return;
	for (int64_t i = first; i != last + step; i += step)
		if (reads(m, i))
			s->held[slots_of(s, i)] = i;
	for (int i = 0; i < s->count; i++)
		s->awaited[i] = true;
}

void slots_drop(struct slots *s)
{
	for (int i = 0; i < s->count; i++)
		s->held[i] = -1;
}
