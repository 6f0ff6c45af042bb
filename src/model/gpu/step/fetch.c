/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of steps, copied to pinned memory in the order of the stream: what follows may overwrite them. A
 * wait first asks again and again, because results usually come within a fraction of a step, then sleeps.
 */
#include <stdlib.h>
#include "core/clock.h"
#include "model/gpu/internal.h"
#include "model/tensor/dtype.h"

#define ASK_NS 300000u

struct fetch {
	struct gpu_pinned memory;
	uint64_t room;
	struct gpu_event *copied;
	bool begun;
};

struct fetches {
	struct gpu_device *device;
	struct fetch turn[FETCHES];
};

void fetches_release(struct fetches **out)
{
	struct fetches *f = *out;

	for (int i = 0; f && i < FETCHES; i++) {
		gpu_event_destroy(&f->turn[i].copied);
		gpu_host_free(f->device, &f->turn[i].memory.host);
	}
	free(f);
	*out = NULL;
}

static enum status turn_of(struct gpu_state *g, int turn, struct fetch **out, struct error *err)
{
	*out = NULL;
	if (turn < 0 || turn >= FETCHES)
		return error_set(err, STATUS_BUG, "there is no turn %d of results", turn);
	if (!g->fetches)
		g->fetches = calloc(1, sizeof(*g->fetches));
	if (!g->fetches)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for results");
	g->fetches->device = g->device;
	*out = &g->fetches->turn[turn];
	return STATUS_OK;
}

static enum status make_room(struct gpu_state *g, struct fetch *f, uint64_t bytes, struct error *err)
{
	enum status st = STATUS_OK;

	if (f->room >= bytes && f->copied)
		return STATUS_OK;
	if (f->begun)
		st = gpu_event_wait(f->copied, err); /* an earlier copy to the old memory */
	f->begun = false;
	f->room = 0;
	gpu_host_free(g->device, &f->memory.host);
	if (!st && !f->copied)
		st = gpu_event_create_sleeping(g->device, &f->copied, err);
	if (!st)
		st = gpu_pinned_alloc(g, &f->memory, bytes, err);
	f->room = st ? 0 : bytes;
	return st;
}

enum status gpu_fetch_begin(struct backend *back, struct mat from, int turn, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	const bool packed = from.ld == from.cols || from.rows <= 1;
	const int64_t pieces = packed ? 1 : from.rows;
	const uint64_t bytes = dtype_bytes(from.dtype, (uint64_t)(from.rows * from.cols));
	const uint64_t piece = bytes / (uint64_t)pieces, pitch = dtype_bytes(from.dtype, (uint64_t)from.ld);
	struct fetch *f;
	enum status st = turn_of(g, turn, &f, err);

	if (!st)
		st = make_room(g, f, bytes ? bytes : 1, err);
	for (int64_t i = 0; !st && bytes && i < pieces; i++) {
		const uint64_t at = (uint64_t)i * piece;
		const struct gpu_pinned to = {(uint8_t *)f->memory.host + at,
					      f->memory.device ? f->memory.device + at : 0};

		st = gpu_few_from(g, &to, gpu_address(from.data) + (uint64_t)i * pitch, piece, err);
	}
	if (!st)
		st = gpu_event_record(f->copied, g->stream, err);
	if (!st)
		f->begun = true;
	return st;
}

enum status gpu_fetch_wait(struct backend *back, int turn, const void **out, struct error *err)
{
	struct fetch *f;
	enum status st = turn_of(gpu_of(back), turn, &f, err);
	const uint64_t began = clock_now_ns(clock_monotonic());

	*out = NULL;
	if (st)
		return st;
	if (!f->begun)
		return error_set(err, STATUS_BUG, "turn %d of results was not started", turn);
	while (!gpu_event_done(f->copied) && clock_now_ns(clock_monotonic()) - began < ASK_NS)
		;
	st = gpu_event_wait(f->copied, err);
	*out = st ? NULL : f->memory.host;
	return st;
}
