/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In one process a call's own addresses serve. Between processes each rank has two rooms in the meeting's
 * file: it copies there what it sends and what lies where it receives, and takes the latter back. What no
 * rank writes comes back as it was.
 */
#include "nccl_room.h"
#include <string.h>

enum room { SENDS, RECEIVES };

static unsigned char *room(const struct fake_group *g, unsigned rank, enum room which)
{
	return g->rooms + (2ul * rank + which) * FAKE_ROOM;
}

/* Bytes of one side of a call that is none of points. */
static size_t side(const struct fake_call *c, unsigned ranks, enum room which)
{
	size_t bytes = c->count * fake_type_bytes(c->type);
	bool more = c->kind == FAKE_ALL_TO_ALL ||
		    c->kind == (which == SENDS ? FAKE_REDUCE_SCATTER : FAKE_ALL_GATHER);

	return more ? bytes * ranks : bytes;
}

bool fake_room_holds(const struct fake_group *g, const struct fake_call *c)
{
	size_t bytes[2] = {0, 0}, each = fake_type_bytes(c->type);
	unsigned ranks = g->meeting->ranks;

	for (unsigned q = 0; c->kind == FAKE_POINT && q < ranks; q++) {
		bytes[SENDS] += c->to[q].count * each;
		bytes[RECEIVES] += c->from[q].count * each;
	}
	for (int i = SENDS; c->kind != FAKE_POINT && i <= RECEIVES; i++)
		bytes[i] = side(c, ranks, i);
	return !g->rooms || (bytes[SENDS] <= FAKE_ROOM && bytes[RECEIVES] <= FAKE_ROOM);
}

/* One array behind the other; addresses become offsets. */
static void bring_points(struct fake_group *g, unsigned rank, struct fake_call *own)
{
	size_t used[2] = {0, 0}, each = fake_type_bytes(own->type);

	for (unsigned q = 0; q < g->meeting->ranks; q++) {
		struct fake_point *to = &own->to[q], *from = &own->from[q];

		if (to->count)
			memcpy(room(g, rank, SENDS) + used[SENDS], to->send, to->count * each);
		if (from->count)
			memcpy(room(g, rank, RECEIVES) + used[RECEIVES], from->receive, from->count * each);
		to->send = (const void *)used[SENDS];
		from->receive = (void *)used[RECEIVES];
		used[SENDS] += to->count * each;
		used[RECEIVES] += from->count * each;
	}
}

void fake_room_bring(struct fake_group *g, unsigned rank, const struct fake_call *call)
{
	struct fake_call *own = &g->meeting->slot[rank].call;
	unsigned ranks = g->meeting->ranks;

	*own = *call;
	if (!g->rooms)
		return;
	if (call->kind == FAKE_POINT) {
		bring_points(g, rank, own);
		return;
	}
	if (call->send)
		memcpy(room(g, rank, SENDS), call->send, side(call, ranks, SENDS));
	if (call->receive)
		memcpy(room(g, rank, RECEIVES), call->receive, side(call, ranks, RECEIVES));
	own->send = own->receive = NULL;
}

struct fake_call fake_room_call(const struct fake_group *g, unsigned rank)
{
	struct fake_call c = g->meeting->slot[rank].call;

	if (!g->rooms)
		return c;
	c.send = room(g, rank, SENDS);
	c.receive = room(g, rank, RECEIVES);
	for (unsigned q = 0; q < FAKE_RANKS; q++) {
		c.to[q].send = room(g, rank, SENDS) + (uintptr_t)c.to[q].send;
		c.from[q].receive = room(g, rank, RECEIVES) + (uintptr_t)c.from[q].receive;
	}
	return c;
}

void fake_room_take(struct fake_group *g, unsigned rank, const struct fake_call *call)
{
	struct fake_call staged;
	unsigned ranks = g->meeting->ranks;

	if (!g->rooms)
		return;
	staged = fake_room_call(g, rank);
	for (unsigned q = 0; call->kind == FAKE_POINT && q < ranks; q++)
		if (call->from[q].count)
			memcpy(call->from[q].receive, staged.from[q].receive,
			       call->from[q].count * fake_type_bytes(call->type));
	if (call->kind != FAKE_POINT && call->receive)
		memcpy(call->receive, staged.receive, side(call, ranks, RECEIVES));
}
