/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/lending.h"
#include "model/tensor/dtype.h"
#include "train/mesh/mesh.h"

bool lending_is_possible(const struct config *c, const struct model *m)
{
	struct mesh mesh;
	struct error ignored = {0}; /* place_tree reports it */

	if (!m->full || mesh_of(&mesh, c, &ignored) || mesh.micros != 1)
		return false;
	return !m->shape.tied || (m->shards.stage >= 2 && mesh.shard > 1);
}

static size_t gradient_bytes(const struct params *p)
{
	return dtype_bytes(p->grad.dtype, (uint64_t)p->grad.cols);
}

/* The same on the rank with the smallest range. */
static size_t least_gradient_bytes(const struct params *p)
{
	size_t least = (size_t)p->grad.cols;

	for (unsigned r = 0; p->shards.gradient && p->border && r < p->shards.ranks; r++)
		if (p->border[r + 1] - p->border[r] < least)
			least = p->border[r + 1] - p->border[r];
	return dtype_bytes(p->grad.dtype, least);
}

void lending_begin(struct lending *l, struct model *m, struct backend *back, struct saved *saved)
{
	const struct params *p = &m->params;

	if (!l->on)
		return;
	m->divided.one_pass = true;
	l->room = (struct arena){.base = p->grad.data ? (uint8_t *)p->grad.data - l->lead : NULL,
				 .size = l->lead + gradient_bytes(p)};
	l->saved = (struct arena){0};
	saved->lent.saved = &l->saved;
	saved->lent.elements = l->elements;
	back->arena = &l->room;
}

void lending_pass(struct lending *l, const struct pass_room *pass)
{
	if (!l->on)
		return;
	l->rest = l->room.size;
	l->room.size = pass->scratch;
	l->saved.base = l->room.base ? l->room.base + pass->scratch : NULL;
	l->saved.size = pass->saved;
}

void lending_rest(struct lending *l)
{
	const struct arena_mark none = {0};

	if (!l->on)
		return;
	l->room.size = l->rest;
	arena_reset(&l->room, &none);
	arena_reset(&l->saved, &none);
}

enum status lending_micro(struct lending *l, struct error *err)
{
	return l->on && l->micros++ ? error_set(err, STATUS_BUG,
						"a step has a second micro-batch, but its memory is planned "
						"for one")
				    : STATUS_OK;
}

struct pass_room lending_peaks(struct lending *l)
{
	struct pass_room out = {.scratch = l->room.peak, .saved = l->saved.peak};

	memcpy(out.kind, l->room.kind_at_peak, sizeof(out.kind));
	l->room = (struct arena){0};
	l->saved = (struct arena){0};
	return out;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t beyond(size_t bytes, size_t room)
{
	return bytes > room ? bytes - room : 0;
}

static size_t room_bytes(const struct pass_room *r)
{
	return r->scratch + r->saved;
}

static size_t aligned(size_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static const struct pass_room *larger_pass(const struct lending *l)
{
	return room_bytes(&l->trained) > room_bytes(&l->evaluated) ? &l->trained : &l->evaluated;
}

enum status lending_settle(struct lending *l, const struct params *p, size_t load, size_t update,
			   struct arena *a, struct error *err)
{
	const size_t gradient = least_gradient_bytes(p), number = dtype_bytes(p->grad.dtype, 1);
	struct mat lead = {.rows = 1, .dtype = DTYPE_U8};

	if (!l->on)
		return STATUS_OK;
	l->lead = larger(l->lead, update);
	l->lead = larger(l->lead, beyond(room_bytes(larger_pass(l)), gradient));
	l->lead = larger(l->lead, beyond(load, gradient));
	l->lead = aligned(l->lead);
	l->shared = beyond(room_bytes(larger_pass(l)), l->lead);
	/* the rest begins at an aligned address, so that a GPU clears it in wide stores */
	l->elements = aligned(beyond(room_bytes(&l->trained), l->lead)) / number;
	if (p->shards.gradient || l->elements > p->length) /* a divided one is overwritten in each pass */
		l->elements = (size_t)p->grad.cols;
	lead.cols = (int64_t)l->lead;
	return arena_mat(a, MEM_SCRATCH, &lead, "memory of passes", err);
}

void lending_kinds(const struct lending *l, uint64_t kind[MEM_KINDS])
{
	const struct pass_room *pass = larger_pass(l);
	size_t left = l->shared;

	if (!l->on)
		return;
	kind[MEM_SCRATCH] -= l->lead;
	kind[MEM_WORKSPACE] += beyond(l->lead, room_bytes(pass));
	kind[MEM_SAVED] += beyond(pass->saved, left);
	left = beyond(left, pass->saved);
	for (int i = 0; i < MEM_KINDS; i++) {
		kind[i] += beyond(pass->kind[i], left);
		left = beyond(left, pass->kind[i]);
	}
}
