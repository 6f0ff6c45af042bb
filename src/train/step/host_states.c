/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/host_states.h"
#include <stdlib.h>
#include "model/decoder/layer_tensors.h"
#include "model/tensor/matrix.h"

/* The element at which a slot begins. So elements have the same alignment there as in the flat vector. */
static size_t slot_begin(const struct host_bucket *b)
{
	return b->begin / ADAMW_BLOCK * ADAMW_BLOCK;
}

static bool is_flat(enum params_state which)
{
	return which == PARAMS_STATE_master || which == PARAMS_STATE_m || which == PARAMS_STATE_v ||
	       which == PARAMS_STATE_rest;
}

static struct params_range range_of(const struct params *p, const struct host_bucket *b,
				    enum params_state which)
{
	return params_state_offloaded(p, which) ? params_part(p, b->begin, b->end, which)
						: (struct params_range){0};
}

/* The last place at or before `at` where a bucket may end: a tensor's begin, or whole blocks behind it. */
static size_t border(const struct params *p, size_t at)
{
	int i = p->count - 1;

	while (i > 0 && p->table[i].offset > at)
		i--;
	return p->table[i].offset + (at - p->table[i].offset) / ADAMW_BLOCK * ADAMW_BLOCK;
}

static enum status add_bucket(struct host_states *h, const struct host_bucket *b, struct error *err)
{
	if (h->count % 64 == 0) {
		struct host_bucket *more = realloc(h->list, (h->count + 64) * sizeof(*more));

		if (!more)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for %zu buckets", h->count + 1);
		h->list = more;
	}
	h->list[h->count] = *b;
	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		h->list[h->count].part[i] = range_of(h->params, b, (enum params_state)i);
	h->count++;
	return STATUS_OK;
}

static enum status cut(struct host_states *h, size_t begin, size_t end, size_t most, int64_t layer,
		       struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && begin < end) {
		const size_t upto = end - begin > most ? border(h->params, begin + most) : end;
		const struct host_bucket b = {.begin = begin, .end = upto, .layer = layer};

		st = add_bucket(h, &b, err);
		begin = upto;
	}
	return st;
}

static size_t layers_end(const struct params *p)
{
	const struct param *norm = params_find(p, NAME_NORM);

	return norm ? norm->offset : p->length;
}

static enum status cut_layers(struct host_states *h, int64_t layers, size_t most, struct error *err)
{
	const struct params *p = h->params;
	const size_t first = params_layer_begin(p, 0), last = layers_end(p);
	size_t end = last;
	enum status st = STATUS_OK;

	for (int64_t i = layers - 1; !st && i >= 0; i--) {
		const size_t begin = params_layer_begin(p, i);

		st = cut(h, begin, end, most, i, err);
		end = begin;
	}
	if (!st)
		st = cut(h, 0, first, most, -1, err);
	return st ? st : cut(h, last, p->length, most, -1, err);
}

/* Each slot has room for the largest part of each state. */
static enum status place_slots(struct host_states *h, struct arena *a, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < PARAMS_STATE_COUNT; i++) {
		const struct mat *state = params_state(h->params, (enum params_state)i);
		size_t most = 0;

		for (size_t j = 0; j < h->count; j++)
			most = h->list[j].part[i].count > most ? h->list[j].part[i].count : most;
		if (!most)
			continue;
		most += is_flat((enum params_state)i) ? ADAMW_BLOCK : 0;
		for (int slot = 0; !st && slot < LANE_SLOTS; slot++) {
			h->slot[slot][i] =
				(struct mat){.rows = 1, .cols = (int64_t)most, .dtype = state->dtype};
			st = arena_mat(a, MEM_STAGED, &h->slot[slot][i], "slot for optimizer states", err);
		}
	}
	return st;
}

enum status host_states_create(struct host_states *h, struct params *p, struct arena *a, int64_t layers,
			       double bytes, bool by_layer, struct error *err)
{
	const double elements = bytes / sizeof(float);
	const size_t most = elements < (double)p->length ? (size_t)elements : p->length;
	/* at least two blocks, so that a bucket has elements wherever it begins */
	const size_t least = (size_t)2 * ADAMW_BLOCK;
	enum status st;

	*h = (struct host_states){0};
	if (!p->offloaded || !p->length)
		return STATUS_OK;
	h->params = p;
	h->by_layer = by_layer;
	st = by_layer ? cut_layers(h, layers, most > least ? most : least, err)
		      : cut(h, params_begin(p), params_end(p), most > least ? most : least, -1, err);
	return st ? st : place_slots(h, a, err);
}

void host_states_release(struct host_states *h)
{
	free(h->list);
	*h = (struct host_states){0};
}

static int slot_of(size_t bucket)
{
	return (int)(bucket % LANE_SLOTS);
}

/* A part of a state in its slot. */
static struct mat in_slot(const struct host_states *h, size_t bucket, int state)
{
	const struct host_bucket *b = &h->list[bucket];
	const size_t into = is_flat((enum params_state)state) ? b->begin - slot_begin(b) : 0;
	struct mat m =
		mat_cols(&h->slot[slot_of(bucket)][state], (int64_t)into, (int64_t)b->part[state].count);

	m.ld = m.cols;
	return m;
}

static enum status copy(const struct host_states *h, struct backend *back, size_t bucket, bool out,
			struct error *err)
{
	const struct host_bucket *b = &h->list[bucket];
	struct lane_copy parts[PARAMS_STATE_COUNT];
	struct lane_copies all = {.lane = LANE_STATES, .slot = slot_of(bucket), .out = out, .copy = parts};

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		struct mat host;

		if (!b->part[i].count)
			continue;
		host = mat_cols(params_state(h->params, (enum params_state)i),
				(int64_t)(b->part[i].first - params_first(h->params, (enum params_state)i)),
				(int64_t)b->part[i].count);
		host.ld = host.cols;
		parts[all.count++] = (struct lane_copy){.device = in_slot(h, bucket, i), .host = host};
	}
	return back->ops->lane_copy(back, &all, err);
}

/* Copies in as many buckets ahead as there are slots. */
static enum status copy_ahead(struct host_states *h, struct backend *back, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && h->copied_in < h->count && h->copied_in < h->stepped + LANE_SLOTS)
		st = copy(h, back, h->copied_in++, false, err);
	return st;
}

enum status host_states_begin(struct host_states *h, struct backend *back, struct error *err)
{
	if (h->begun || !h->params)
		return STATUS_OK;
	h->begun = true;
	h->stepped = h->copied_in = 0;
	return copy_ahead(h, back, err);
}

struct stepping {
	struct host_states *h;
	const struct optimiser *o;
	struct backend *back;
	const struct adamw *a;
};

/* Steps a bucket in its slot, and rounds the weights into the copy that GEMMs read. */
static enum status step_bucket(void *arg, struct error *err)
{
	const struct stepping *g = arg;
	const struct host_states *h = g->h;
	const struct host_bucket *b = &h->list[h->stepped];
	struct states s = states_of(h->params);
	struct mat live;
	enum status st;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		if (params_state_offloaded(h->params, (enum params_state)i)) {
			s.of[i] = h->slot[slot_of(h->stepped)][i];
			s.first[i] = is_flat((enum params_state)i) ? slot_begin(b) : b->part[i].first;
		}
	st = optimiser_range(g->o, g->back, h->params, &s, b->begin, b->end, g->a, err);
	if (st || !b->part[PARAMS_STATE_master].count)
		return st;
	live = params_cut(h->params, &h->params->live, b->begin, b->end - b->begin);
	return g->back->ops->convert(g->back, in_slot(h, h->stepped, PARAMS_STATE_master), live, err);
}

static enum status step_next(struct host_states *h, const struct optimiser *o, struct backend *back,
			     const struct adamw *a, struct error *err)
{
	struct stepping g = {h, o, back, a};
	enum status st = back->ops->lane_event(back, LANE_STATES, slot_of(h->stepped), LANE_READY, err);

	if (!st)
		st = back->ops->lane_run(back, LANE_STATES, step_bucket, &g, err);
	if (!st)
		st = copy(h, back, h->stepped, true, err);
	h->stepped++;
	return st ? st : copy_ahead(h, back, err);
}

enum status host_states_update(struct host_states *h, const struct optimiser *o, struct backend *back,
			       const struct adamw *a, int64_t layer, struct error *err)
{
	enum status st = host_states_begin(h, back, err);

	while (!st && h->stepped < h->count && h->list[h->stepped].layer >= layer)
		st = step_next(h, o, back, a, err);
	if (st || layer >= 0)
		return st;
	h->begun = false;
	return back->ops->lane_join(back, LANE_STATES, err);
}
