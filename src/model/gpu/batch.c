/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of a micro-batch on the device. They are copied through pinned memory, with two slots used
 * alternately. Micro-batches are padded to one of a few numbers of rows with untrained documents, because a
 * GEMM plan holds for one number of rows, and each new one would be timed.
 */
#include <stdlib.h>
#include "gpu/attention/work_order.h"
#include "model/gpu/attention_internal.h"
#include "model/gpu/internal.h"
#include "model/tensor/fp8.h"

enum { CLASSES = 64, TOGETHER = 64 };

struct filling {
	int32_t *list[4]; /* token, position, target, starts */
	int64_t rows, docs;
};

void filling_release(struct filling **out)
{
	struct filling *f = *out;

	for (int i = 0; f && i < 4; i++)
		free(f->list[i]);
	free(f);
	*out = NULL;
}

/* The number of rows after padding. In FP8 it is a multiple of 16, which GEMMs need. Several documents of
 * equal length are not padded, because every full batch has the same number. A single document may have any
 * length, so it is padded. */
static int64_t filled_rows(const struct gpu_state *g, const struct batch *b)
{
	const int64_t first = b->doc_start[1], most = b->tokens_most ? b->tokens_most : g->rows_most;
	const int64_t least =
		g->options.fp8 ? (b->tokens + FP8_MULTIPLE - 1) / FP8_MULTIPLE * FP8_MULTIPLE : b->tokens;
	int64_t step = (g->rows_most / CLASSES + TOGETHER - 1) / TOGETHER * TOGETHER, up;
	bool alike = b->docs > 1 || b->tokens == most;

	for (int64_t i = 0; alike && i < b->docs; i++)
		alike = b->doc_start[i + 1] - b->doc_start[i] == first;
	if (!g->rows_most || alike)
		return least;
	step = step > TOGETHER ? step : TOGETHER;
	up = (b->tokens + step - 1) / step * step;
	up = up < most ? up : most;
	return up > least ? up : least;
}

static enum status make_room(struct filling **out, int64_t rows, int64_t docs, struct error *err)
{
	if (*out && (*out)->rows >= rows && (*out)->docs >= docs)
		return STATUS_OK;
	filling_release(out);
	*out = calloc(1, sizeof(**out));
	for (int i = 0; *out && i < 4; i++)
		(*out)->list[i] = malloc((size_t)(i < 3 ? rows : docs + 1) * sizeof(int32_t));
	if (!*out || !(*out)->list[0] || !(*out)->list[1] || !(*out)->list[2] || !(*out)->list[3])
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a micro-batch of %lld rows", (long long)rows);
	(*out)->rows = rows;
	(*out)->docs = docs;
	return STATUS_OK;
}

/* Appends documents to b, none longer than the longest. */
static enum status fill_up(struct gpu_state *g, struct batch *b, int64_t rows, struct error *err)
{
	const int64_t more = (rows - b->tokens + b->doc_len_max - 1) / b->doc_len_max;
	enum status st = make_room(&g->filling, rows, b->docs + more, err);
	struct filling *f = g->filling;

	if (st)
		return st;
	memcpy(f->list[0], b->token, (size_t)b->tokens * sizeof(int32_t));
	memcpy(f->list[1], b->position, (size_t)b->tokens * sizeof(int32_t));
	memcpy(f->list[2], b->target, (size_t)b->tokens * sizeof(int32_t));
	memcpy(f->list[3], b->doc_start, (size_t)(b->docs + 1) * sizeof(int32_t));
	for (int64_t at = b->tokens; at < rows; at++) {
		f->list[0][at] = 0;
		f->list[1][at] = (int32_t)((at - b->tokens) % b->doc_len_max);
		f->list[2][at] = BATCH_UNTRAINED;
	}
	for (int64_t i = 1; i <= more; i++) {
		const int64_t end = b->tokens + i * b->doc_len_max;

		f->list[3][b->docs + i] = (int32_t)(end < rows ? end : rows);
	}
	b->token = f->list[0];
	b->position = f->list[1];
	b->target = f->list[2];
	b->doc_start = f->list[3];
	b->docs += more;
	b->tokens = rows;
	return STATUS_OK;
}

/* -- batches with their own place in the arena -- */

static enum status put_list(struct backend *back, const struct mat *lists, int which, const int32_t *from,
			    int64_t count, const int32_t **out, struct error *err)
{
	struct mat row = *lists;

	row.rows = 1;
	row.cols = count;
	row.data = (int32_t *)lists->data + which * lists->ld;
	*out = row.data;
	return count ? gpu_backend_put(back, row, from, err) : STATUS_OK;
}

static enum status put_all(struct backend *back, const struct batch *b, struct batch *out, struct error *err)
{
	struct mat lists;
	enum status st = workspace_batch(back, b, &lists, err);

	*out = *b;
	if (!st)
		st = put_list(back, &lists, BATCH_TOKEN, b->token, b->tokens, &out->token, err);
	if (!st)
		st = put_list(back, &lists, BATCH_POSITION, b->position, b->tokens, &out->position, err);
	if (!st)
		st = put_list(back, &lists, BATCH_TARGET, b->target, b->tokens, &out->target, err);
	if (!st)
		st = put_list(back, &lists, BATCH_TRAINED, b->trained, b->targets, &out->trained, err);
	if (!st)
		st = put_list(back, &lists, BATCH_STARTS, b->doc_start, b->docs + 1, &out->starts, err);
	return st;
}

/* -- micro-batches in slots: the lists of one are copied on a separate stream while another is in use -- */

struct slot {
	int32_t *host;			   /* pinned; same layout as the lists on the device */
	struct gpu_event *copied, *passed; /* end of its copy; end of the work of the batch that used it */
	bool used;			   /* both events were recorded */
};

struct turns {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct slot slot[2];
	int next, working;	     /* slot numbers; working -1: none */
	bool ahead;		     /* slot `next` holds `staged` */
	struct batch staged, placed; /* as passed by the caller, and as operations see it */
};

static uint64_t slot_bytes(int64_t rows)
{
	return (uint64_t)BATCH_LISTS * (uint64_t)(rows + 1) * sizeof(int32_t);
}

uint64_t turns_pinned_bytes(int64_t rows)
{
	return 2 * slot_bytes(rows);
}

void turns_release(struct turns **out)
{
	struct turns *t = *out;

	if (!t)
		return;
	if (t->stream)
		gpu_stream_wait(t->stream, NULL); /* copies made ahead may still read from the slots */
	for (int i = 0; i < 2; i++) {
		void *host = t->slot[i].host;

		gpu_event_destroy(&t->slot[i].copied);
		gpu_event_destroy(&t->slot[i].passed);
		gpu_host_free(t->device, &host);
	}
	gpu_stream_destroy(&t->stream);
	free(t);
	*out = NULL;
}

static enum status turns_create(struct turns **out, struct gpu_device *d, int64_t rows, struct error *err)
{
	struct turns *t = calloc(1, sizeof(*t));
	enum status st;

	if (!t)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for micro-batches");
	t->device = d;
	t->working = -1;
	st = gpu_stream_create(d, &t->stream, err);
	for (int i = 0; !st && i < 2; i++) {
		void *host = NULL;

		st = gpu_host_alloc(d, &host, slot_bytes(rows), err);
		t->slot[i].host = host;
		if (!st)
			st = gpu_event_create(d, &t->slot[i].copied, err);
		if (!st)
			st = gpu_event_create(d, &t->slot[i].passed, err);
		if (!st)
			memset(host, 0, slot_bytes(rows)); /* unused places are copied too */
	}
	if (st)
		turns_release(&t);
	*out = t;
	return st;
}

/* Writes a list to the slot's pinned memory and returns its future address on the device. */
static const int32_t *lay(const struct slot *s, const struct mat *lists, int which, const int32_t *from,
			  int64_t count)
{
	if (count)
		memcpy(s->host + which * lists->ld, from, (size_t)count * sizeof(int32_t));
	return (const int32_t *)lists->data + which * lists->ld;
}

/* Writes the order of attention's work for documents of unequal length. Equal lengths need none. */
static void lay_order(const struct slot *s, const struct mat *lists, struct batch *placed)
{
	const uint32_t *starts = (const uint32_t *)placed->doc_start;
	const int64_t at = BATCH_ORDER * lists->ld;
	struct error ignored = {0};

	placed->order = NULL;
	placed->ordered = 0;
	if (attention_state_one_length(placed) || !attention_order_holds(starts, (uint32_t)placed->docs) ||
	    attention_order_fill((uint32_t *)s->host + at, starts, (uint32_t)placed->docs, true, &ignored))
		return;
	placed->order = (const uint32_t *)lists->data + at;
	placed->ordered = (int64_t)attention_order_count(starts, (uint32_t)placed->docs);
}

static void lay_out(const struct slot *s, const struct mat *lists, const struct batch *b,
		    struct batch *placed)
{
	*placed = *b;
	placed->token = lay(s, lists, BATCH_TOKEN, b->token, b->tokens);
	placed->position = lay(s, lists, BATCH_POSITION, b->position, b->tokens);
	placed->target = lay(s, lists, BATCH_TARGET, b->target, b->tokens);
	placed->trained = lay(s, lists, BATCH_TRAINED, b->trained, b->targets);
	placed->starts = lay(s, lists, BATCH_STARTS, b->doc_start, b->docs + 1);
	lay_order(s, lists, placed);
}

/* Marks the end of the present batch's work: everything enqueued so far. */
static enum status end_turn(struct turns *t, struct gpu_stream *main, struct error *err)
{
	enum status st =
		t->working >= 0 ? gpu_event_record(t->slot[t->working].passed, main, err) : STATUS_OK;

	t->working = -1;
	return st;
}

/* The copy stream waits for the batch that used the slot before. The calling thread waits for the earlier
 * copy from its pinned memory. */
static enum status stage(struct backend *back, struct turns *t, const struct batch *b, struct error *err)
{
	struct slot *s = &t->slot[t->next];
	const struct mat *lists = &back->lists[t->next];
	enum status st = end_turn(t, gpu_of(back)->stream, err);

	if (!st && s->used)
		st = gpu_event_wait(s->copied, err);
	if (!st && s->used)
		st = gpu_stream_after(t->stream, s->passed, err);
	if (st)
		return st;
	lay_out(s, lists, b, &t->placed);
	st = gpu_stream_copy_to(t->stream, gpu_address(lists->data), s->host, slot_bytes(lists->cols - 1),
				err);
	return st ? st : gpu_event_record(s->copied, t->stream, err);
}

static enum status take_turn(struct backend *back, struct turns *t, struct batch *out, struct error *err)
{
	struct slot *s = &t->slot[t->next];
	enum status st = gpu_stream_after(gpu_of(back)->stream, s->copied, err);

	*out = t->placed;
	t->working = t->next;
	t->next = 1 - t->next;
	t->ahead = false;
	s->used = true; /* `passed` is recorded before the slot is used again */
	return st;
}

/* Pads the batch if necessary, and stages it. */
static enum status prepare(struct backend *back, const struct batch *host, bool turns, struct batch *b,
			   struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	const int64_t rows = filled_rows(g, host);
	enum status st = STATUS_OK;

	*b = *host;
	if (rows > b->tokens)
		st = fill_up(g, b, rows, err);
	if (!st && turns && !g->turns)
		st = turns_create(&g->turns, g->device, back->lists[0].cols - 1, err);
	return st || !turns ? st : stage(back, g->turns, b, err);
}

enum status gpu_backend_prefetch(struct backend *back, const struct batch *host, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct batch b;
	enum status st;

	if (!lists_hold(back, filled_rows(g, host)))
		return STATUS_OK;
	st = prepare(back, host, true, &b, err);
	if (st)
		return st;
	g->turns->staged = *host;
	g->turns->ahead = true;
	return STATUS_OK;
}

enum status gpu_batch(struct backend *back, const struct batch *host, struct batch *out, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	const bool turns = lists_hold(back, filled_rows(g, host));
	struct batch b;
	enum status st = STATUS_OK;

	if (!turns || !g->turns || !g->turns->ahead || memcmp(&g->turns->staged, host, sizeof(*host)))
		st = prepare(back, host, turns, &b, err);
	if (st)
		return st;
	return turns ? take_turn(back, g->turns, out, err) : put_all(back, &b, out, err);
}
