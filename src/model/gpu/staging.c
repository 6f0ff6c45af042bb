/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between host and device through a ring of pinned pieces: the host fills one while others are being
 * copied. Copies run on the main stream, so later work there sees their data.
 */
#include <pthread.h>
#include <stdlib.h>
#include "gpu/matmul/skinny.h"
#include "kernel/train/rows.h"
#include "model/tensor/matrix.h"
#include "model/gpu/internal.h"

/* At least as many pieces as a host's threads; small enough to stay in caches between filling and copying. */
enum { PIECES = 32, PIECE_BYTES = 1 << 20 };

struct piece {
	uint8_t *host;
	gpu_ptr mapped;	 /* device address of the same memory */
	gpu_ptr scratch; /* device memory of a piece's size; 0: not needed yet */
	struct gpu_event *copied;
	bool taken, used; /* taken: a thread is filling it; used: its event was recorded */
};

struct staging {
	struct gpu_device *device;
	struct gpu_stream *stream;
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	struct piece piece[PIECES];
	unsigned next;
};

uint64_t gpu_backend_pinned_bytes(int64_t rows)
{
	return (uint64_t)PIECES * PIECE_BYTES + turns_pinned_bytes(rows) + background_copy_pinned_bytes();
}

enum status staging_create(struct staging **out, struct gpu_device *d, struct gpu_stream *stream,
			   struct error *err)
{
	struct staging *s = calloc(1, sizeof(*s));
	enum status st = STATUS_OK;

	*out = s;
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for copies");
	s->device = d;
	s->stream = stream;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->given_back, NULL);
	for (int i = 0; !st && i < PIECES; i++) {
		void *host = NULL;

		st = gpu_host_alloc(d, &host, PIECE_BYTES, err);
		s->piece[i].host = host;
		if (!st)
			st = gpu_host_pointer(d, host, &s->piece[i].mapped, err);
		if (!st)
			st = gpu_event_create(d, &s->piece[i].copied, err);
	}
	return st;
}

void staging_release(struct staging **out)
{
	struct staging *s = *out;

	if (!s)
		return;
	for (int i = 0; i < PIECES; i++) {
		void *host = s->piece[i].host;

		gpu_event_destroy(&s->piece[i].copied);
		gpu_free(s->device, &s->piece[i].scratch);
		gpu_host_free(s->device, &host);
	}
	pthread_cond_destroy(&s->given_back);
	pthread_mutex_destroy(&s->lock);
	free(s);
	*out = NULL;
}

/* Takes the oldest piece, after all copies from it have ended. */
static enum status take(struct staging *s, struct piece **out, struct error *err)
{
	struct piece *p;

	pthread_mutex_lock(&s->lock);
	p = &s->piece[s->next++ % PIECES];
	while (p->taken)
		pthread_cond_wait(&s->given_back, &s->lock);
	p->taken = true;
	pthread_mutex_unlock(&s->lock);
	*out = p;
	return p->used ? gpu_event_wait(p->copied, err) : STATUS_OK;
}

static void give_back(struct staging *s, struct piece *p)
{
	pthread_mutex_lock(&s->lock);
	p->taken = false;
	pthread_cond_broadcast(&s->given_back);
	pthread_mutex_unlock(&s->lock);
}

static enum status mark(struct staging *s, struct piece *p, struct error *err)
{
	enum status st = gpu_event_record(p->copied, s->stream, err);

	p->used = !st;
	return st;
}

/* Copies packed rows from a piece to rows with another pitch: a kernel reads the pinned memory. */
static enum status spread(struct backend *back, const struct piece *p, struct mat to, struct error *err)
{
	const uint64_t row = dtype_bytes(to.dtype, (uint64_t)to.cols);
	const struct train_copy_args args = {
		.from = p->mapped,
		.to = gpu_address(to.data),
		.pitch_from = (int64_t)row,
		.pitch_to = (int64_t)dtype_bytes(to.dtype, (uint64_t)to.ld),
		.rows = (uint32_t)to.rows,
		.bytes = row,
	};

	const unsigned grid[3] = {train_blocks((uint64_t)to.rows, row / 2), 1, 1},
		       block[3] = {TRAIN_THREADS, 1, 1};

	/* Does not use gpu_part, because several threads may read files and gpu_part is for one thread. */
	return gpu_launch(gpu_of(back)->kernel[GPU_KERNEL_COPY], gpu_of(back)->stream, grid, block, 0, &args,
			  err);
}

static bool is_quantized(const struct made_rows *made, const struct mat *to)
{
	return made && to->dtype == DTYPE_E4M3 && made->dtype == DTYPE_BF16;
}

/* Quantizes packed rows of BF16 in a piece, through device memory, because they are read twice. */
static enum status quantize(struct backend *back, struct piece *p, struct mat to, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct skinny_quantize q = {
		.to = gpu_address(to.data),
		.scale = gpu_address(to.scales.data),
		.rows = (uint64_t)to.rows,
		.cols = (uint64_t)to.cols,
		.row_from = (uint64_t)to.cols,
		.row_to = (uint64_t)to.ld,
	};
	enum status st = STATUS_OK;

	if (!g->skinny)
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s cannot hold weights in E4M3: its kernels are for sm_90",
				 gpu_name(g->device));
	if (!p->scratch)
		st = gpu_alloc(g->device, &p->scratch, PIECE_BYTES, err);
	if (!st)
		st = gpu_stream_copy_to(g->stream, p->scratch, p->host,
					dtype_bytes(DTYPE_BF16, (uint64_t)(to.rows * to.cols)), err);
	q.from = p->scratch;
	return st ? st : skinny_quantize(g->skinny, &q, false, g->stream, err);
}

/* Copies as many bytes as a piece holds, or as many whole rows if they have a pitch: from `made`, or from
 * the memory at `from`. */
static enum status put_piece(struct backend *back, struct mat to, const uint8_t *from, uint64_t bytes,
			     const struct made_rows *made, int64_t first, struct error *err)
{
	struct staging *s = gpu_of(back)->staging;
	struct piece *p;
	enum status st = take(s, &p, err);

	if (!st && made)
		st = made->make(made->arg, first, to.rows, p->host, err);
	else if (!st)
		memcpy(p->host, from, bytes);
	if (!st && is_quantized(made, &to))
		st = quantize(back, p, to, err);
	else if (!st)
		st = to.ld == to.cols
			     ? gpu_stream_copy_to(s->stream, gpu_address(to.data), p->host, bytes, err)
			     : spread(back, p, to, err);
	if (!st)
		st = mark(s, p, err);
	give_back(s, p);
	return st;
}

static enum status put_packed(struct backend *back, uint8_t *to, const uint8_t *from, uint64_t bytes,
			      struct error *err)
{
	enum status st = STATUS_OK;

	for (uint64_t at = 0; !st && at < bytes; at += PIECE_BYTES)
		st = put_piece(back, (struct mat){.data = to + at}, from + at,
			       bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES, NULL, 0, err);
	return st;
}

/* Copies rows, as many whole rows at a time as a piece holds. */
static enum status put_rows(struct backend *back, struct mat to, const uint8_t *from,
			    const struct made_rows *made, struct error *err)
{
	const uint64_t row = dtype_bytes(is_quantized(made, &to) ? DTYPE_BF16 : to.dtype, (uint64_t)to.cols);
	const int64_t most = (int64_t)(PIECE_BYTES / row);
	enum status st = STATUS_OK;

	if (!most)
		return error_set(err, STATUS_UNSUPPORTED,
				 "a row of %llu bytes does not fit into a pinned piece of %d",
				 (unsigned long long)row, PIECE_BYTES);
	for (int64_t i = 0; !st && i < to.rows; i += most) {
		const struct mat rows = mat_rows(&to, i, to.rows - i < most ? to.rows - i : most);

		st = put_piece(back, rows, from ? from + (uint64_t)i * row : NULL, (uint64_t)rows.rows * row,
			       made, i, err);
	}
	return st;
}

enum status gpu_backend_put_made(struct backend *back, struct mat to, const struct made_rows *made,
				 struct error *err)
{
	enum status st = gpu_current(gpu_of(back)->device, err); /* may be called by any thread */

	return st ? st : put_rows(back, to, NULL, made, err);
}

enum status gpu_backend_put(struct backend *back, struct mat to, const void *from, struct error *err)
{
	enum status st = gpu_current(gpu_of(back)->device, err); /* may be called by any thread */

	if (st)
		return st;
	return to.ld == to.cols || to.rows == 1
		       ? put_packed(back, to.data, from, dtype_bytes(to.dtype, (uint64_t)(to.rows * to.cols)),
				    err)
		       : put_rows(back, to, from, NULL, err);
}

enum status gpu_staged_words(struct backend *back, const int32_t *words, uint64_t count, gpu_staged_run *run,
			     void *arg, struct error *err)
{
	enum { PIECE_WORDS = PIECE_BYTES / sizeof(*words) };
	struct staging *s = gpu_of(back)->staging;
	enum status st = STATUS_OK;

	for (uint64_t at = 0; !st && at < count; at += PIECE_WORDS) {
		const uint64_t some = count - at < PIECE_WORDS ? count - at : PIECE_WORDS;
		struct piece *p;

		st = take(s, &p, err);
		if (!st) {
			memcpy(p->host, words + at, some * sizeof(*words));
			st = run(arg, p->mapped, at, some, err);
		}
		if (!st)
			st = mark(s, p, err);
		give_back(s, p);
	}
	return st;
}

static enum status get_piece(struct backend *back, const uint8_t *from, uint8_t *to, uint64_t bytes,
			     struct error *err)
{
	struct staging *s = gpu_of(back)->staging;
	struct piece *p;
	enum status st = take(s, &p, err);

	if (!st)
		st = gpu_stream_copy_from(s->stream, p->host, gpu_address(from), bytes, err);
	if (!st)
		st = mark(s, p, err);
	if (!st)
		st = gpu_event_wait(p->copied, err);
	if (!st)
		memcpy(to, p->host, bytes);
	give_back(s, p);
	return st;
}

enum status gpu_backend_get(struct backend *back, struct mat from, void *to, struct error *err)
{
	const bool packed = from.ld == from.cols || from.rows == 1;
	const uint64_t row = dtype_bytes(from.dtype, (uint64_t)from.cols);
	const uint64_t bytes = packed ? (uint64_t)from.rows * row : row;
	enum status st = gpu_current(gpu_of(back)->device, err);

	for (int64_t i = 0; !st && i < (packed ? 1 : from.rows); i++) {
		const uint8_t *at =
			(const uint8_t *)from.data + dtype_bytes(from.dtype, (uint64_t)(i * from.ld));

		for (uint64_t done = 0; !st && done < bytes; done += PIECE_BYTES)
			st = get_piece(back, at + done, (uint8_t *)to + (uint64_t)i * row + done,
				       bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES, err);
	}
	return st;
}
