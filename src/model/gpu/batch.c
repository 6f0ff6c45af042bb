/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of a micro-batch on the device, filled up to one of a few numbers of rows with documents that
 * nobody is trained on: a product's plan is of one number of rows, and another one's candidates would be
 * timed anew.
 */
#include <stdlib.h>
#include "model/gpu/internal.h"

enum { CLASSES = 32, TOGETHER = 64 };

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

/* Rows that a batch is filled up to. Several documents of one length are as many in every full batch; one
 * alone has any length. */
static int64_t filled_rows(const struct gpu_state *g, const struct batch *b)
{
	const int64_t first = b->doc_start[1];
	int64_t step = (g->rows_most / CLASSES + TOGETHER - 1) / TOGETHER * TOGETHER, up;
	bool alike = b->docs > 1 || b->tokens == g->rows_most;

	for (int64_t i = 0; alike && i < b->docs; i++)
		alike = b->doc_start[i + 1] - b->doc_start[i] == first;
	if (!g->rows_most || alike)
		return b->tokens;
	step = step > TOGETHER ? step : TOGETHER;
	up = (b->tokens + step - 1) / step * step;
	up = up < g->rows_most ? up : g->rows_most;
	return up > b->tokens ? up : b->tokens;
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

/* *b becomes the batch with documents behind its own, none longer than the longest. */
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

static enum status put_list(struct back *back, const struct mat *lists, int which, const int32_t *from,
			    int64_t count, const int32_t **out, struct error *err)
{
	struct mat row = *lists;

	row.rows = 1;
	row.cols = count;
	row.data = (int32_t *)lists->data + which * lists->ld;
	*out = row.data;
	return count ? gpu_back_put(back, row, from, err) : STATUS_OK;
}

enum status gpu_batch(struct back *back, const struct batch *host, struct batch *out, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct batch b = *host;
	const int64_t rows = filled_rows(g, &b);
	enum status st = rows > b.tokens ? fill_up(g, &b, rows, err) : STATUS_OK;
	struct mat lists;

	if (!st)
		st = workspace_batch(back, &b, &lists, err);
	*out = b;
	if (!st)
		st = put_list(back, &lists, BATCH_TOKEN, b.token, b.tokens, &out->token, err);
	if (!st)
		st = put_list(back, &lists, BATCH_POSITION, b.position, b.tokens, &out->position, err);
	if (!st)
		st = put_list(back, &lists, BATCH_TARGET, b.target, b.tokens, &out->target, err);
	if (!st)
		st = put_list(back, &lists, BATCH_TRAINED, b.trained, b.targets, &out->trained, err);
	if (!st)
		st = put_list(back, &lists, BATCH_STARTS, b.doc_start, b.docs + 1, &out->starts, err);
	return st;
}
