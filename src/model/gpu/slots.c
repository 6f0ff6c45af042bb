/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of weights (model/storage/slots.h), which a stream of its own fills. Only two events order it and the
 * main stream: `free`, which the main stream records after the last work that reads a slot, and `ready`,
 * which the fetch stream records when the slot is filled. Within a capture both belong to the graph.
 */
#include <stdlib.h>
#include "gpu/bnb4/bnb4_kernels.h"
#include "model/gpu/fp8.h"
#include "model/tensor/matrix.h"

enum { TENSORS_MOST = LAYER_LINEARS * STORED_MOST };

struct fetching {
	struct bnb4_kernels kernels;
	struct gpu_stream *stream;
	struct gpu_event *ready[SLOTS_MOST], *free[SLOTS_MOST];
};

void fetching_release(struct fetching **out)
{
	struct fetching *f = *out;

	if (!f)
		return;
	if (f->stream)
		gpu_stream_wait(f->stream, NULL); /* after a failure it may still be writing */
	for (int i = 0; i < SLOTS_MOST; i++) {
		gpu_event_destroy(&f->ready[i]);
		gpu_event_destroy(&f->free[i]);
	}
	gpu_stream_destroy(&f->stream);
	free(f);
	*out = NULL;
}

static enum status fetching_create(struct fetching **out, struct gpu_device *d, struct error *err)
{
	struct fetching *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the slots of weights");
	st = bnb4_kernels_open(&f->kernels, d, err);
	if (!st)
		st = gpu_stream_create(d, &f->stream, err);
	for (int i = 0; !st && i < SLOTS_MOST; i++) {
		st = gpu_event_create(d, &f->ready[i], err);
		if (!st)
			st = gpu_event_create(d, &f->free[i], err);
	}
	if (st)
		fetching_release(&f);
	*out = f;
	return st;
}

/* The first call is before any capture: weights are quantized, or the first pass begins, which is never
 * captured. */
static enum status fetching_of(struct gpu_state *g, struct fetching **f, struct error *err)
{
	enum status st = g->fetching ? STATUS_OK : fetching_create(&g->fetching, g->device, err);

	*f = g->fetching;
	return st;
}

static struct bnb4_weight weight_of(const struct bnb4 *q)
{
	return (struct bnb4_weight){
		.codes = gpu_address(q->codes),
		.absmax_codes = gpu_address(q->absmax_codes),
		.offset = gpu_address(q->offset),
		.map = gpu_address(q->map),
		.absmax = gpu_address(q->absmax),
		.rows = q->rows,
		.cols = q->cols,
		.type = q->type,
	};
}

enum status gpu_quantize(struct backend *back, struct mat from, const struct stored *to, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	const struct bnb4_weight weight = weight_of(&to->bnb4);
	struct fetching *f;
	struct mat room;
	enum status st = fetching_of(gpu_of(back), &f, err);

	if (!st)
		st = workspace_quantize(back, to, &room, err);
	if (!st)
		st = bnb4_kernels_quantize(&f->kernels, &weight, gpu_address(from.data), from.ld,
					   gpu_address(room.data), gpu_of(back)->stream, err);
	cost_touch(back, &from, 1);
	back->cost.bytes += (double)stored_bytes(to);
	arena_reset(back->arena, &mark);
	return st;
}

enum status gpu_slot_free(struct backend *back, int slot, struct error *err)
{
	struct fetching *f;
	enum status st = fetching_of(gpu_of(back), &f, err);

	return st ? st : gpu_event_record(f->free[slot], gpu_of(back)->stream, err);
}

enum status gpu_slot_ready(struct backend *back, int slot, struct error *err)
{
	struct gpu_state *g = gpu_of(back);

	return gpu_stream_after(g->stream, g->fetching->ready[slot], err);
}

/* Linear layers whose numbers are read: all of the layer in one launch. */
static enum status fill_numbers(const struct fetching *f, const struct slot_fill *fill, struct error *err)
{
	struct bnb4_output out[TENSORS_MOST];
	size_t count = 0;

	for (int i = 0; i < fill->parts; i++) {
		const struct slot_part *p = &fill->part[i];

		for (int j = 0; p->to.dtype != DTYPE_E4M3 && j < p->count; j++) {
			const struct mat to = mat_rows(&p->to, p->from[j].begin, p->from[j].bnb4.rows);

			out[count++] = (struct bnb4_output){
				.from = weight_of(&p->from[j].bnb4), .to = gpu_address(to.data), .ld = to.ld};
		}
	}
	return bnb4_kernels_dequantize(&f->kernels, out, count, f->stream, err);
}

static enum status fill_e4m3(struct backend *back, const struct slot_part *p, struct error *err)
{
	const struct fetching *f = gpu_of(back)->fetching;
	const struct train_fp8_weights to = gpu_fp8_weights(&p->to, &p->transposed);
	struct bnb4_weight part[STORED_MOST];

	if (!p->count)
		return gpu_fp8_transpose_on(back, &p->to, &p->transposed, f->stream, err);
	for (int i = 0; i < p->count; i++)
		part[i] = weight_of(&p->from[i].bnb4);
	return bnb4_kernels_to_fp8(&f->kernels, part, (size_t)p->count, &to, f->stream, err);
}

/* The bytes of a fill belong to no part of the main stream's time. */
enum status gpu_slot_fill(struct backend *back, const struct slot_fill *fill, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct fetching *f = g->fetching;
	const double before = back->cost.bytes;
	enum status st = gpu_stream_after(f->stream, f->free[fill->slot], err);

	if (!st)
		st = fill_numbers(f, fill, err);
	for (int i = 0; !st && i < fill->parts; i++)
		if (fill->part[i].transposed.rows)
			st = fill_e4m3(back, &fill->part[i], err);
	if (!st && fill->live.count)
		st = gpu_refresh_on(back, fill->master, &fill->live, f->stream, err);
	back->cost.bytes = before;
	cost_slot_fill(back, fill);
	g->counted_bytes += back->cost.bytes - before;
	return st ? st : gpu_event_record(f->ready[fill->slot], f->stream, err);
}
