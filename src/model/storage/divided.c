/* SPDX-License-Identifier: Apache-2.0 */
#include "model/storage/divided.h"
#include <stdlib.h>
#include "model/model.h"
#include "model/tensor/matrix.h"

/* Numbers of the parts: layers are 0, 1, .. */
enum { NOTHING = -1 };

struct part {
	size_t first, last; /* elements of the flat vector */
	const size_t *border;
	size_t at; /* in the memory of the ends; 0 for a layer */
};

static struct part part_of(const struct divided *d, const struct params *p, int64_t number)
{
	struct part out = {.border = d->border + (size_t)number * (p->shards.ranks + 1)};

	if (number < d->layers) {
		out.first = d->layers_begin + (size_t)number * d->layer_length;
		out.last = out.first + d->layer_length;
	} else if (number == d->layers) {
		out.last = d->layers_begin;
	} else {
		out.first = d->layers_end;
		out.last = p->length;
		out.at = d->layers_begin;
	}
	return out;
}

static enum status find_layers(struct divided *d, const struct params *p, struct error *err)
{
	static const char layer[] = "model.layers.";
	size_t end = 0;

	d->layers_begin = p->length;
	for (int i = 0; i < p->count; i++) {
		const struct param *one = &p->table[i];

		if (strncmp(one->name, layer, sizeof(layer) - 1))
			continue;
		d->layers_begin = one->offset < d->layers_begin ? one->offset : d->layers_begin;
		end = one->offset + (size_t)(one->rows * one->cols);
	}
	d->layers_end = end;
	d->layer_length = end > d->layers_begin ? (end - d->layers_begin) / (size_t)d->layers : 0;
	return d->layer_length * (size_t)d->layers == end - d->layers_begin
		       ? STATUS_OK
		       : error_set(err, STATUS_BUG, "layers of unequal size cannot be divided");
}

static enum status make_borders(struct divided *d, const struct params *p, struct error *err)
{
	const size_t ends = (size_t)p->shards.ranks + 1;

	if (d->border)
		return STATUS_OK;
	d->border = calloc((size_t)(d->layers + 2) * ends, sizeof(*d->border));
	if (!d->border)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the ranges of %lld layers", (long long)d->layers);
	for (int64_t i = 0; i < d->layers + 2; i++) {
		const struct part part = part_of(d, p, i);

		params_borders(p, part.first, part.last, d->border + (size_t)i * ends);
	}
	return STATUS_OK;
}

static enum status place_memory(struct mat turns[DIVIDED_TURNS], struct mat *ends, const struct divided *d,
				const struct params *p, enum dtype dtype, enum memory_kind kind,
				const char *name, struct backend *back, struct error *err)
{
	const struct mat layer = {.rows = 1, .cols = (int64_t)d->layer_length, .dtype = dtype};
	enum status st = STATUS_OK;

	for (int i = 0; i < DIVIDED_TURNS && !st; i++) {
		turns[i] = layer;
		st = arena_mat(back->arena, kind, &turns[i], name, err);
	}
	*ends = layer;
	ends->cols = (int64_t)(d->layers_begin + p->length - d->layers_end);
	return st ? st : arena_mat(back->arena, kind, ends, name, err);
}

enum status divided_place(struct divided *d, const struct params *p, int64_t layers, bool weights,
			  struct backend *back, struct error *err)
{
	enum status st;

	d->gradient = p->shards.gradient;
	d->weights = weights;
	d->layers = layers;
	d->summed = NOTHING;
	d->held[0] = d->held[1] = d->due_sum = d->due_gather = NOTHING;
	if (!d->gradient && !weights)
		return STATUS_OK;
	st = find_layers(d, p, err);
	if (!st)
		st = make_borders(d, p, err);
	if (!st && d->gradient)
		st = place_memory(d->grad, &d->grad_ends, d, p, p->grad.dtype, MEM_GRADIENT,
				  "gradient of a layer", back, err);
	if (!st && weights)
		st = place_memory(d->slot, &d->ends, d, p, back->dtype, MEM_SLOTS, "a layer's weights", back,
				  err);
	return st;
}

uint64_t divided_base_room(uint64_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static enum status make_base_tables(struct divided *d, unsigned ranks, size_t words, struct error *err)
{
	const size_t unit = ARENA_ALIGN / sizeof(float), units = words / unit;

	d->own = calloc((size_t)d->layers, sizeof(*d->own));
	d->base_border = calloc((size_t)ranks + 1, sizeof(*d->base_border));
	if (!d->own || !d->base_border)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the ranges of %lld layers", (long long)d->layers);
	for (unsigned r = 0; r <= ranks; r++)
		d->base_border[r] = units * r / ranks * unit;
	return STATUS_OK;
}

enum status divided_place_base(struct divided *d, unsigned rank, unsigned ranks, uint64_t bytes,
			       struct backend *back, struct error *err)
{
	const size_t words = bytes / sizeof(float);
	enum status st = make_base_tables(d, ranks, words, err);

	d->base = true;
	d->placing = -1;
	for (int i = 0; i < DIVIDED_TURNS && !st; i++) {
		d->room[i] = (struct mat){.rows = 1, .cols = (int64_t)words, .dtype = DTYPE_F32};
		st = arena_mat(back->arena, MEM_SLOTS, &d->room[i], "a layer's stored weights", err);
	}
	for (int64_t i = 0; i < d->layers && !st; i++) {
		d->own[i] = (struct mat){.rows = 1,
					 .cols = (int64_t)(d->base_border[rank + 1] - d->base_border[rank]),
					 .dtype = DTYPE_F32};
		st = arena_mat(back->arena, MEM_WEIGHTS, &d->own[i], "this rank's part of a layer", err);
	}
	return st;
}

void *divided_base_take(struct divided *d, int64_t layer, uint64_t bytes)
{
	uint8_t *data = d->room[layer % DIVIDED_TURNS].data;
	const size_t at = layer == d->placing ? d->taken : 0;

	d->placing = layer;
	d->taken = at + divided_base_room(bytes);
	return data ? data + at : NULL;
}

void divided_release(struct divided *d)
{
	free(d->own);
	free(d->base_border);
	free(d->border);
	*d = (struct divided){0};
}

/* The memory of a part, among that of two layers and the ends. */
static struct mat memory_of(const struct divided *d, const struct mat turns[DIVIDED_TURNS],
			    const struct mat *ends, const struct part *part, int64_t number)
{
	struct mat m = number < d->layers ? turns[number % DIVIDED_TURNS] : *ends;

	m = mat_cols(&m, (int64_t)part->at, (int64_t)(part->last - part->first));
	m.ld = m.cols;
	return m;
}

static int64_t number_of(const struct divided *d, size_t offset)
{
	if (offset < d->layers_begin)
		return d->layers;
	return offset < d->layers_end ? (int64_t)((offset - d->layers_begin) / d->layer_length)
				      : d->layers + 1;
}

static struct mat view_of(const struct divided *d, const struct params *p,
			  const struct mat turns[DIVIDED_TURNS], const struct mat *ends,
			  const struct param *param)
{
	const int64_t number = number_of(d, param->offset);
	const struct part part = part_of(d, p, number);
	const struct mat memory = memory_of(d, turns, ends, &part, number);
	struct mat view =
		mat_view(&memory, 0, (int64_t)(param->offset - part.first), param->rows, param->cols);

	view.ld = param->cols;
	return view;
}

struct mat divided_grad(const struct divided *d, const struct params *p, const struct param *param)
{
	return view_of(d, p, d->grad, &d->grad_ends, param);
}

struct mat divided_weight(const struct divided *d, const struct params *p, const struct param *param)
{
	return view_of(d, p, d->slot, &d->ends, param);
}

/* Copies the own range's elements in the part: from `flat` to the part's memory, or back. *flat may be in
 * host memory on the way back. */
static enum status copy_own(const struct params *p, struct backend *back, const struct part *part,
			    const struct mat *memory, const struct mat *flat, bool to_flat, struct error *err)
{
	const size_t own = params_begin(p), own_end = params_end(p);
	const size_t first = part->first > own ? part->first : own;
	const size_t last = part->last < own_end ? part->last : own_end;
	struct mat here, there;

	if (first >= last)
		return STATUS_OK;
	there = params_cut(p, flat, first, last - first);
	here = mat_cols(memory, (int64_t)(first - part->first), (int64_t)(last - first));
	here.ld = here.cols;
	if (to_flat && flat == &p->master && params_state_offloaded(p, PARAMS_STATE_master))
		return back->ops->get(back, here, there.data, err);
	return to_flat ? back->ops->convert(back, here, there, err)
		       : back->ops->convert(back, there, here, err);
}

static enum status await(const struct divided *d, struct error *err)
{
	return d->comm ? d->comm->ops->wait(d->comm, err) : STATUS_OK;
}

/* -- gradient -- */

static struct mat grad_of(const struct divided *d, const struct part *part, int64_t number)
{
	return memory_of(d, d->grad, &d->grad_ends, part, number);
}

/* Each shard group has the sum of all ranks for the earlier passes of the step. It may count only once. */
static bool adds_earlier(const struct divided *d)
{
	return !d->one_pass && (!d->comm || d->comm->rank < comm_shards(d->comm)->size);
}

/* The part's memory becomes zero. If a step has several passes, the own range's elements go on from the sum
 * of the earlier ones, in the first shard group. */
static enum status open_part(struct model *m, struct backend *back, int64_t number, struct error *err)
{
	const struct part part = part_of(&m->divided, &m->params, number);
	const struct mat memory = grad_of(&m->divided, &part, number);
	enum status st = memory.cols ? back->ops->zero(back, memory, err) : STATUS_OK;

	if (st || !adds_earlier(&m->divided))
		return st;
	return copy_own(&m->params, back, &part, &memory, &m->params.grad, false, err);
}

static enum status sum_part(const struct model *m, int64_t number, struct error *err)
{
	const struct divided *d = &m->divided;
	const struct part part = part_of(d, &m->params, number);

	if (!d->comm || part.first == part.last)
		return STATUS_OK;
	d->comm->layer = number < d->layers ? number : -1;
	return d->comm->ops->reduce_scatter(d->comm, grad_of(d, &part, number), part.border, err);
}

/* The gradient may lie where passes have their matrices (lent.h). */
static enum status check_not_read(const struct model *m, const struct part *part, int64_t number,
				  struct error *err)
{
	const struct divided *d = &m->divided;
	const struct params *p = &m->params;
	const size_t own = params_begin(p), first = part->first > own ? part->first : own;

	if (!p->grad.data || first >= part->last || first >= params_end(p) ||
	    d->read_end <= (uintptr_t)params_cut(p, &p->grad, first, 1).data)
		return STATUS_OK;
	return lent_overlap(number < d->layers ? number + 1 : number == d->layers ? 0 : number, err);
}

/* After the wait for its sum. */
static enum status take_part(struct model *m, struct backend *back, int64_t number, struct error *err)
{
	const struct part part = part_of(&m->divided, &m->params, number);
	const struct mat memory = grad_of(&m->divided, &part, number);
	enum status st = check_not_read(m, &part, number, err);

	return st ? st : copy_own(&m->params, back, &part, &memory, &m->params.grad, true, err);
}

static enum status fill(struct model *m, struct backend *back, int64_t layer, struct error *err);

enum status divided_due(struct model *m, struct backend *back, struct error *err)
{
	struct divided *d = &m->divided;
	const int64_t sum = d->due_sum, gather = d->due_gather;
	enum status st = STATUS_OK;

	d->due_sum = d->due_gather = NOTHING;
	if (sum != NOTHING)
		st = sum_part(m, sum, err);
	return st || gather == NOTHING ? st : fill(m, back, gather, err);
}

enum status divided_begin(struct model *m, struct backend *back, struct error *err)
{
	enum status st;

	m->divided.summed = NOTHING;
	m->divided.read_end = 0;
	if (!m->divided.gradient)
		return STATUS_OK;
	st = open_part(m, back, m->divided.layers, err);
	return st ? st : open_part(m, back, m->divided.layers + 1, err);
}

enum status divided_layer(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	return m->divided.gradient ? open_part(m, back, layer, err) : STATUS_OK;
}

/* Takes the sum that was begun before. The wait includes the weights that come meanwhile. */
static enum status take_summed(struct model *m, struct backend *back, struct error *err)
{
	struct divided *d = &m->divided;
	enum status st = await(d, err);

	for (int i = 0; i < DIVIDED_TURNS; i++)
		d->awaited[i] = true;
	if (!st && d->summed != NOTHING)
		st = take_part(m, back, d->summed, err);
	d->summed = NOTHING;
	return st;
}

enum status divided_layer_done(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	struct divided *d = &m->divided;
	enum status st;

	st = divided_due(m, back, err);
	if (st || !d->gradient)
		return st;
	st = take_summed(m, back, err);
	d->summed = d->due_sum = layer;
	return st || split_is(&m->split) ? st : divided_due(m, back, err);
}

enum status divided_end(struct model *m, struct backend *back, struct error *err)
{
	const int64_t ends = m->divided.layers;
	enum status st;

	st = divided_due(m, back, err);
	if (st || !m->divided.gradient)
		return st;
	st = sum_part(m, ends, err);
	if (!st)
		st = sum_part(m, ends + 1, err);
	if (!st)
		st = take_summed(m, back, err);
	if (!st)
		st = take_part(m, back, ends, err);
	return st ? st : take_part(m, back, ends + 1, err);
}

/* -- weights -- */

static enum status gather_part(struct model *m, struct backend *back, int64_t number, struct error *err)
{
	const struct divided *d = &m->divided;
	const struct part part = part_of(d, &m->params, number);
	const struct mat memory = memory_of(d, d->slot, &d->ends, &part, number);
	const struct mat *own = m->params.live.rows ? &m->params.live : &m->params.master;
	enum status st = copy_own(&m->params, back, &part, &memory, own, false, err);

	if (st || !d->comm || part.first == part.last)
		return st;
	d->comm->layer = number < d->layers ? number : -1;
	return d->comm->ops->all_gather(d->comm, memory, part.border, err);
}

/* This rank's part of a layer in the room. */
static struct mat own_part(const struct model *m, int64_t layer)
{
	const struct divided *d = &m->divided;
	struct mat part = mat_cols(&d->room[layer % DIVIDED_TURNS], (int64_t)d->base_border[m->shards.rank],
				   d->own[layer].cols);

	part.ld = part.cols;
	return part;
}

static enum status gather_base(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	const struct divided *d = &m->divided;
	enum status st = d->own[layer].cols ? back->ops->convert(back, d->own[layer], own_part(m, layer), err)
					    : STATUS_OK;

	if (st || !d->comm)
		return st;
	d->comm->layer = layer;
	return d->comm->ops->all_gather(d->comm, d->room[layer % DIVIDED_TURNS], d->base_border, err);
}

static enum status fill(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	m->divided.held[layer % DIVIDED_TURNS] = layer;
	m->divided.awaited[layer % DIVIDED_TURNS] = false;
	return m->divided.base ? gather_base(m, back, layer, err) : gather_part(m, back, layer, err);
}

enum status divided_use(struct model *m, struct backend *back, int64_t layer, int64_t next, struct error *err)
{
	struct divided *d = &m->divided;
	const int slot = (int)(layer % DIVIDED_TURNS);
	enum status st = STATUS_OK;

	if (!d->weights && !d->base)
		return STATUS_OK;
	if (d->held[slot] != layer) /* it may be due */
		st = divided_due(m, back, err);
	if (!st && d->held[slot] != layer)
		st = fill(m, back, layer, err);
	if (!st && !d->awaited[slot])
		st = await(d, err);
	d->awaited[slot] = true;
	if (next >= 0 && d->held[next % DIVIDED_TURNS] != next)
		d->due_gather = next;
	return st || split_is(&m->split) ? st : divided_due(m, back, err);
}

uint64_t divided_state(const struct divided *d)
{
	return d->weights || d->base
		       ? (uint64_t)(d->held[0] + 1) * (uint64_t)(d->layers + 1) + (uint64_t)(d->held[1] + 1)
		       : 0;
}

void divided_drop(struct divided *d)
{
	d->held[0] = d->held[1] = -1;
}

enum status divided_gather(struct model *m, struct backend *back, struct error *err)
{
	struct divided *d = &m->divided;
	enum status st;

	if (!d->weights)
		return STATUS_OK;
	divided_drop(d);
	st = gather_part(m, back, d->layers, err);
	if (!st)
		st = gather_part(m, back, d->layers + 1, err);
	return st ? st : await(d, err);
}

/* Takes the own range of a part that was loaded to the gradient's memory, and makes the copy that GEMMs read.
 */
static enum status take_loaded(struct model *m, struct backend *back, int64_t number, struct error *err)
{
	const struct params *p = &m->params;
	const struct part part = part_of(&m->divided, p, number);
	const struct mat memory = grad_of(&m->divided, &part, number);
	enum status st = STATUS_OK;

	if (part.first == part.last)
		return STATUS_OK;
	if (p->shards.live && p->live.rows)
		st = copy_own(p, back, &part, &memory, &p->live, true, err);
	else if (p->live.rows)
		st = back->ops->convert(back, memory,
					params_cut(p, &p->live, part.first, part.last - part.first), err);
	return st ? st : copy_own(p, back, &part, &memory, &p->master, true, err);
}

enum status divided_loaded(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	const int64_t ends = m->divided.layers;
	enum status st;

	if (m->divided.base)
		return layer >= 0 && m->divided.own[layer].cols
			       ? back->ops->convert(back, own_part(m, layer), m->divided.own[layer], err)
			       : STATUS_OK;
	if (layer >= 0)
		return take_loaded(m, back, layer, err);
	st = take_loaded(m, back, ends, err);
	return st ? st : take_loaded(m, back, ends + 1, err);
}

enum status divided_empty_forward(struct model *m, struct backend *back, struct error *err)
{
	const int64_t layers = m->divided.layers;
	enum status st = STATUS_OK;

	for (int64_t i = 0; i < layers && !st; i++)
		st = divided_use(m, back, i, i + 1 < layers ? i + 1 : -1, err);
	return st;
}

enum status divided_empty_backward(struct model *m, struct backend *back, struct error *err)
{
	enum status st = divided_begin(m, back, err);

	for (int64_t i = m->divided.layers - 1; i >= m->divided.lowest && !st; i--) {
		st = divided_use(m, back, i, i > m->divided.lowest ? i - 1 : -1, err);
		if (!st)
			st = divided_layer(m, back, i, err);
		if (!st)
			st = divided_layer_done(m, back, i, err);
	}
	return st ? st : divided_end(m, back, err);
}
