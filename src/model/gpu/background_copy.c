/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the device while the stream continues: a separate stream and two pinned pieces, one of which
 * is filled while the other is copied out. */
#include <stdlib.h>
#include "model/tensor/dtype.h"
#include "model/gpu/internal.h"

enum { PIECES = 2, PIECE_BYTES = 4 << 20 };

struct background_copy {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *marked, *copied[PIECES];
	void *host[PIECES];
};

uint64_t background_copy_pinned_bytes(void)
{
	return (uint64_t)PIECES * PIECE_BYTES;
}

void background_copy_release(struct background_copy **out)
{
	struct background_copy *b = *out;

	if (!b)
		return;
	if (b->stream)
		/* After a failure, copies to these pieces may still be running. */
		gpu_stream_wait(b->stream, NULL);
	for (int i = 0; i < PIECES; i++) {
		gpu_event_destroy(&b->copied[i]);
		gpu_host_free(b->device, &b->host[i]);
	}
	gpu_event_destroy(&b->marked);
	gpu_stream_destroy(&b->stream);
	free(b);
	*out = NULL;
}

static enum status background_copy_create(struct background_copy **out, struct gpu_device *d,
					  struct error *err)
{
	struct background_copy *b = calloc(1, sizeof(*b));
	enum status st;

	if (!b)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for copies");
	b->device = d;
	st = gpu_stream_create(d, &b->stream, err);
	if (!st)
		st = gpu_event_create(d, &b->marked, err);
	for (int i = 0; !st && i < PIECES; i++) {
		st = gpu_host_alloc(d, &b->host[i], PIECE_BYTES, err);
		if (!st)
			st = gpu_event_create(d, &b->copied[i], err);
	}
	if (st)
		background_copy_release(&b);
	*out = b;
	return st;
}

enum status gpu_backend_mark(struct backend *back, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	enum status st = g->background ? STATUS_OK : background_copy_create(&g->background, g->device, err);

	return st ? st : gpu_event_record(g->background->marked, g->stream, err);
}

static uint64_t piece_at(uint64_t at, uint64_t bytes)
{
	return bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
}

static enum status fetch(struct background_copy *b, const struct mat *from, uint64_t piece, uint64_t bytes,
			 struct error *err)
{
	const uint64_t at = piece * PIECE_BYTES;
	enum status st = gpu_stream_copy_from(b->stream, b->host[piece % PIECES],
					      gpu_address(from->data) + at, piece_at(at, bytes), err);

	return st ? st : gpu_event_record(b->copied[piece % PIECES], b->stream, err);
}

enum status gpu_backend_get_marked(struct backend *back, struct mat from, void *to, struct error *err)
{
	struct background_copy *b = gpu_of(back)->background;
	const uint64_t bytes = dtype_bytes(from.dtype, (uint64_t)(from.rows * from.cols));
	const uint64_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	enum status st = gpu_current(gpu_of(back)->device, err);

	if (!st)
		st = gpu_stream_after(b->stream, b->marked, err);
	if (!st && pieces)
		st = fetch(b, &from, 0, bytes, err);
	for (uint64_t i = 0; !st && i < pieces; i++) {
		if (i + 1 < pieces)
			st = fetch(b, &from, i + 1, bytes, err);
		if (!st)
			st = gpu_event_wait(b->copied[i % PIECES], err);
		if (!st)
			memcpy((uint8_t *)to + i * PIECE_BYTES, b->host[i % PIECES],
			       piece_at(i * PIECE_BYTES, bytes));
	}
	return st;
}
