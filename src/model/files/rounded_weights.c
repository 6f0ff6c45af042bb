/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/rounded_weights.h"

#include <stdlib.h>

static enum status no_memory(const struct weights *w, struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
}

enum status rounded_weights_read(struct rounded_weights *r, const struct weights *w, const struct named *n,
				 const struct storage *storage, struct error *err)
{
	struct mat numbers = {.rows = n->rows, .cols = n->cols, .ld = n->cols, .dtype = DTYPE_F32};
	enum status st = STATUS_OK;

	r->stored = (struct stored){
		.bnb4 = {.rows = n->rows, .cols = n->cols, .type = storage->type, .nested = storage->nested}};
	r->memory = aligned_alloc(ARENA_ALIGN,
				  (stored_bytes(&r->stored) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN);
	numbers.data = malloc(sizeof(float) * (size_t)(n->rows * n->cols));
	if (!numbers.data || !r->memory)
		st = no_memory(w, err);
	if (!st)
		st = weights_rows(w, n->hf, 0, n->rows, numbers.data, err);
	if (!st) {
		bnb4_place(&r->stored.bnb4, r->memory);
		st = bnb4_quantize(&r->stored.bnb4, &numbers, NULL, err);
	}
	free(numbers.data);
	return st;
}

void rounded_weights_rows(const struct rounded_weights *r, int64_t row, int64_t rows, float *out)
{
	const int64_t cols = r->stored.bnb4.cols;
	const struct mat to = {.data = out, .rows = rows, .cols = cols, .ld = cols, .dtype = DTYPE_F32};

	bnb4_dequantize(&r->stored.bnb4, row, &to, NULL);
}

void rounded_weights_release(struct rounded_weights *r)
{
	free(r->memory);
	*r = (struct rounded_weights){0};
}
