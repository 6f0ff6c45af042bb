/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder/inputs.h"

static bool layer_is_trained(const struct layer *l)
{
	return linear_is_trained(&l->qkv) || linear_is_trained(&l->o) || linear_is_trained(&l->gate_up) ||
	       linear_is_trained(&l->down) || l->norm1.grad.rows;
}

int64_t model_lowest_trained(const struct model *m)
{
	int64_t layer = 0;

	if (m->embed.grad.rows)
		return 0;
	while (layer < m->shape.layers && !layer_is_trained(&m->layer[layer]))
		layer++;
	return layer;
}

static int slot_of(int64_t layer)
{
	return (int)(layer % LANE_SLOTS);
}

/* Whether a layer's input is copied to host memory and back. */
static bool is_moved(const struct pass *p, int64_t layer)
{
	return p->saved->offload && !p->forward_only && layer + LANE_SLOTS < p->model->shape.layers &&
	       layer >= model_lowest_trained(p->model);
}

enum status inputs_place(const struct pass *p, int64_t layer, struct arena *slots, struct mat *x,
			 struct error *err)
{
	enum status st = STATUS_OK;

	p->saved->host[layer] = (struct mat){0};
	if (layer < LANE_SLOTS)
		st = arena_mat(slots, MEM_SAVED, x, "slot for the input of a layer", err);
	else
		*x = p->saved->layer[layer - LANE_SLOTS].x;
	if (st || !is_moved(p, layer))
		return st;
	p->saved->host[layer] = *x;
	return arena_mat(p->back->host, MEM_SAVED, &p->saved->host[layer], "input of a layer", err);
}

static enum status copy(const struct pass *p, int64_t layer, bool out, struct error *err)
{
	const struct lane_copy one = {.device = p->saved->layer[layer].x, .host = p->saved->host[layer]};
	const struct lane_copies copies = {
		.lane = LANE_INPUTS, .slot = slot_of(layer), .out = out, .copy = &one, .count = 1};

	return p->back->ops->lane_copy(p->back, &copies, err);
}

static enum status event(const struct pass *p, int64_t layer, enum lane_event what, struct error *err)
{
	return p->back->ops->lane_event(p->back, LANE_INPUTS, slot_of(layer), what, err);
}

/* The output of the layer is the input of the one above, which has the slot of the one below. */
enum status inputs_forward(const struct pass *p, int64_t layer, struct error *err)
{
	enum status st = is_moved(p, layer) ? copy(p, layer, true, err) : STATUS_OK;

	return st || !layer || !is_moved(p, layer - 1) ? st : event(p, layer - 1, LANE_STORED, err);
}

enum status inputs_backward(const struct pass *p, int64_t layer, struct error *err)
{
	enum status st = is_moved(p, layer) ? event(p, layer, LANE_READY, err) : STATUS_OK;

	return st || !layer || !is_moved(p, layer - 1) ? st : copy(p, layer - 1, false, err);
}

enum status inputs_done(const struct pass *p, int64_t layer, struct error *err)
{
	return p->saved->offload ? event(p, layer, LANE_FREE, err) : STATUS_OK;
}
