/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes (enum lane in model/backend/ops.h). Only events order their streams and the main stream. */
#include <stdlib.h>
#include "model/gpu/internal.h"
#include "model/tensor/dtype.h"

struct one_lane {
	/* Copies to the device, copies to the host, and the work. own NULL: the main stream has the work. */
	struct gpu_stream *in, *out, *own;
	/* The stream of the work records `written` before a copy out, and `free` (see ops.h). `stored` is
	 * recorded after a copy out, `ready` after a copy in. */
	struct gpu_event *ready[LANE_SLOTS], *free[LANE_SLOTS], *written[LANE_SLOTS], *stored[LANE_SLOTS];
	struct gpu_event *begun, *joined; /* recorded by the main stream, and by `own` */
};

struct lanes {
	struct one_lane lane[LANES];
};

static void release_lane(struct one_lane *l)
{
	struct gpu_stream **streams[] = {&l->in, &l->own, &l->out};

	for (int i = 0; i < 3; i++)
		if (*streams[i])
			gpu_stream_wait(*streams[i], NULL); /* after a failure it may still copy */
	for (int i = 0; i < 3; i++)
		gpu_stream_destroy(streams[i]);
	for (int i = 0; i < LANE_SLOTS; i++) {
		gpu_event_destroy(&l->ready[i]);
		gpu_event_destroy(&l->free[i]);
		gpu_event_destroy(&l->written[i]);
		gpu_event_destroy(&l->stored[i]);
	}
	gpu_event_destroy(&l->begun);
	gpu_event_destroy(&l->joined);
}

void lanes_release(struct lanes **out)
{
	for (int i = 0; *out && i < LANES; i++)
		release_lane(&(*out)->lane[i]);
	free(*out);
	*out = NULL;
}

static enum status open_lane(struct one_lane *l, struct gpu_device *d, bool has_own, struct error *err)
{
	enum status st = gpu_stream_create(d, &l->in, err);

	if (!st)
		st = gpu_stream_create(d, &l->out, err);
	if (!st && has_own)
		st = gpu_stream_create(d, &l->own, err);
	for (int i = 0; !st && i < LANE_SLOTS; i++) {
		struct gpu_event **events[] = {&l->ready[i], &l->free[i], &l->written[i], &l->stored[i]};

		for (int j = 0; !st && j < 4; j++)
			st = gpu_event_create(d, events[j], err);
	}
	if (!st)
		st = gpu_event_create(d, &l->begun, err);
	return st ? st : gpu_event_create(d, &l->joined, err);
}

static enum status lane_of(struct gpu_state *g, enum lane which, struct one_lane **out, struct error *err)
{
	if (!g->lanes)
		g->lanes = calloc(1, sizeof(*g->lanes));
	if (!g->lanes)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for copies");
	*out = &g->lanes->lane[which];
	return (*out)->joined ? STATUS_OK : open_lane(*out, g->device, which == LANE_STATES, err);
}

static struct gpu_stream *work_of(const struct gpu_state *g, const struct one_lane *l)
{
	return l->own ? l->own : g->stream;
}

static enum status copy_one(struct gpu_stream *s, const struct lane_copy *c, bool out, struct error *err)
{
	const uint64_t bytes = dtype_bytes(c->host.dtype, (uint64_t)(c->host.rows * c->host.cols));

	if (!bytes)
		return STATUS_OK;
	return out ? gpu_stream_copy_from(s, c->host.data, gpu_address(c->device.data), bytes, err)
		   : gpu_stream_copy_to(s, gpu_address(c->device.data), c->host.data, bytes, err);
}

/* What the stream of the copies waits for first. */
static enum status begin_copy(struct gpu_state *g, struct one_lane *l, const struct lane_copies *c,
			      struct error *err)
{
	enum status st;

	if (c->out) {
		st = gpu_event_record(l->written[c->slot], work_of(g, l), err);
		return st ? st : gpu_stream_after(l->out, l->written[c->slot], err);
	}
	st = gpu_stream_after(l->in, l->stored[c->slot], err);
	return st ? st : gpu_stream_after(l->in, l->free[c->slot], err);
}

enum status gpu_lane_copy(struct backend *back, const struct lane_copies *c, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct one_lane *l;
	enum status st = lane_of(g, c->lane, &l, err);

	cost_lane(back, c);
	if (!st)
		st = begin_copy(g, l, c, err);
	for (int i = 0; !st && i < c->count; i++)
		st = copy_one(c->out ? l->out : l->in, &c->copy[i], c->out, err);
	if (st)
		return st;
	return c->out ? gpu_event_record(l->stored[c->slot], l->out, err)
		      : gpu_event_record(l->ready[c->slot], l->in, err);
}

enum status gpu_lane_event(struct backend *back, enum lane lane, int slot, enum lane_event event,
			   struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct one_lane *l;
	enum status st = lane_of(g, lane, &l, err);

	if (st)
		return st;
	if (event == LANE_FREE)
		return gpu_event_record(l->free[slot], work_of(g, l), err);
	return gpu_stream_after(work_of(g, l), event == LANE_READY ? l->ready[slot] : l->stored[slot], err);
}

/* Its work is no part of the main stream's time. */
enum status gpu_lane_run(struct backend *back, enum lane lane, enum status (*run)(void *arg, struct error *),
			 void *arg, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct gpu_stream *const main = g->stream;
	struct gpu_times *const parts = g->parts;
	const double before = back->cost.bytes;
	struct one_lane *l;
	enum status st = lane_of(g, lane, &l, err);

	if (!st)
		st = gpu_event_record(l->begun, main, err);
	if (!st)
		st = gpu_stream_after(l->own, l->begun, err);
	if (st)
		return st;
	g->stream = l->own;
	g->parts = NULL;
	st = run(arg, err);
	g->stream = main;
	g->parts = parts;
	g->counted_bytes += back->cost.bytes - before;
	return st;
}

enum status gpu_lane_join(struct backend *back, enum lane lane, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct one_lane *l;
	enum status st = lane_of(g, lane, &l, err);

	if (!st)
		st = gpu_event_record(l->joined, l->own, err);
	return st ? st : gpu_stream_after(g->stream, l->joined, err);
}

enum status gpu_lane_wait(struct backend *back, enum lane lane, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct one_lane *l;
	enum status st = lane_of(g, lane, &l, err);

	if (!st)
		st = gpu_stream_wait(l->in, err);
	if (!st)
		st = gpu_stream_wait(work_of(g, l), err);
	return st ? st : gpu_stream_wait(l->out, err);
}
